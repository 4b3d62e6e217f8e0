"""The scenario: everything a person decides, as frozen dataclasses with SI numbers.

Any number may be a numpy array: then the scenario stands for as many scenarios and every formula answers for all.
Words (schedules, precisions, catalogue names) are always single.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

from .model.spec import ModelSpec
from .numeric import Number


@dataclass(frozen=True)
class Peak:
    """Dense peak rates of the matrix units in FLOP/s (integer: operations/s); None where the part has no such unit."""

    fp32: Number | None = None
    fp16: Number | None = None
    bf16: Number | None = None
    fp8: Number | None = None
    fp4: Number | None = None
    int8: Number | None = None


@dataclass(frozen=True)
class Link:
    """Scale-up link of one accelerator: bytes/s one way, and how many accelerators share the domain."""

    name: str = ""
    bandwidth: Number = 0.0
    domain: Number = 1


@dataclass(frozen=True)
class MeasuredRates:
    """What a machine reached: FLOP/s of large matrix products by number format, and bytes/s of a stream.

    `machine` is what was measured, `source` when and how. None: not measured.
    """

    fp32: Number | None = None
    fp16: Number | None = None
    bf16: Number | None = None
    fp8: Number | None = None
    fp4: Number | None = None
    int8: Number | None = None
    memory_bandwidth: Number | None = None
    machine: str = ""
    source: str = ""


@dataclass(frozen=True)
class Accelerator:
    """One accelerator as software sees it. Rates are data-sheet peaks; what is reached is in `machine.rates`.

    `measured` stands beside the data sheet on the roofline and predicts nothing.
    """

    id: str
    name: str
    vendor: str
    generation: str
    memory: Number
    memory_bandwidth: Number
    peak: Peak
    link: Link
    power: Number
    year: int = 0
    memory_reported: Number | None = None
    pcie: Number = 31.5e9
    units: Number = 132
    unit_flops: Number = 4096
    price: Number | None = None
    measured: MeasuredRates = MeasuredRates()
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Network:
    """Scale-out network: bytes/s one way for each accelerator, and the class of its latency."""

    id: str
    name: str
    bandwidth: Number
    latency_class: str = "ib"
    #: Scale-up domains that a node is made of, joined through the host links.
    boards: Number = 1
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Cluster:
    accelerator: Accelerator
    network: Network
    gpus: Number = 8
    gpus_per_node: Number = 8
    power_limit: Number | None = None


@dataclass(frozen=True)
class Parallelism:
    tp: Number = 1
    pp: Number = 1
    cp: Number = 1
    ep: Number = 1
    etp: Number = 1
    vpp: Number = 1
    zero: int = 2
    hsdp_replicas: Number = 1
    sp: bool = False
    schedule: str = "1f1b"
    context_scheme: str = "ring"
    context_latent: bool = False
    stage_balance: str | tuple[int, ...] = "even"
    expert_dispatch: str = "all-to-all"


@dataclass(frozen=True)
class Overlap:
    """Which communication a training stack hides behind compute."""

    dp: bool = True
    parameter_gather: bool = True
    tp_forward: bool = False
    tp_backward: bool = True


@dataclass(frozen=True)
class Moe:
    """How routed experts are run: launches, overlap, how evenly tokens fall and what of them is padded or limited."""

    capture: str = "none"
    overlap: bool = False
    activation: str = "fused"
    dispatch_precision: str = "bf16"
    imbalance: Number = 1.0
    #: Rows of every expert over the even share; None: as many as are routed to it.
    capacity: Number | None = None
    #: Scale-up domains that a token may reach; None: all.
    route_groups: Number | None = None


@dataclass(frozen=True)
class Fp8:
    """Habits of an 8-bit recipe: the weights' 8-bit copy is kept for the step, what updated weights travel as, and
    whether what an activation function reads is kept in 8 bits."""

    cache_weights: bool = True
    parameter_gather: bool = False
    activation_inputs: bool = False


@dataclass(frozen=True)
class Pipeline:
    """Habits of the pipeline: transfers run behind compute when it is interleaved (auto), always or never."""

    async_transfer: str = "auto"
    #: Micro-batches after which the pipeline runs empty; None: once a step.
    drain_every: Number | None = None


@dataclass(frozen=True)
class Lora:
    """Adapters of low rank beside frozen matrices; `base_format` is that of a quantised base."""

    rank: Number = 16
    targets: str = "attention"
    dropout: Number = 0.05
    base_format: str = "nf4-double"
    kernels: str = "eager"
    #: Copies of the inputs of frozen 4-bit matrices that old kernels keep.
    kept_inputs: Number = 0.0


@dataclass(frozen=True)
class Training:
    sequence_length: Number = 4096
    image_tokens: Number = 0
    micro_batch: Number = 1
    global_batch: Number = 256
    tokens: Number = 2e12
    precision: str = "bf16"
    gradient_precision: str = "fp32"
    state_precision: str = "fp32"
    residual_precision: str = "bf16"
    finetune: str = "full"
    lora: Lora = Lora()
    autocast: bool = True
    logit_bytes: Number | None = None
    optimizer: str = "adamw"
    fused_optimizer: bool = True
    offload_optimizer: bool = False
    offload_layers: Number = 0
    recompute: str = "none"
    attention: str = "flash"
    attention_kernel: str = "auto"
    fused_gradient_accumulation: bool = True
    projections: str = "fused"
    pointwise: str = "fused"
    bucket_bytes: Number | None = None
    kernel_maturity: str = "mature"
    dropout: bool = False
    framework: str = "megatron"
    mfu: Number | Literal["auto"] = "auto"
    deadline: Number | None = None


@dataclass(frozen=True)
class Speculative:
    """Tokens proposed for each that the model would give, how many are accepted, and what proposing costs."""

    draft_tokens: Number = 0
    acceptance: Number = 0.8
    #: Time of one draft over that of a decode step, or of a prediction head as long as one layer and the output head.
    draft_cost: Number = 0.05
    drafter: str = "model"


@dataclass(frozen=True)
class Serving:
    prompt_tokens: Number = 2048
    output_tokens: Number = 512
    image_tokens: Number = 0
    lengths: str = "fixed"
    concurrency: Number = 32
    max_context: Number = 4096
    engine: str = "vllm-v1"
    weight_format: str = "bf16"
    kv_format: str = "bf16"
    memory_utilization: Number = 0.9
    max_batched_tokens: Number = 8192
    ttft_target: Number = 0.5
    tpot_target: Number = 0.05
    request_rate: Number = 0.0
    attention_dp: Number = 1
    prefix_shared: Number = 0
    disaggregated: bool = False
    speculative: Speculative = Speculative()


@dataclass(frozen=True)
class Whiteboard:
    """The label that rules of thumb use for the number of parameters; None: the exact count."""

    parameters: Number | None = None


@dataclass(frozen=True)
class Economics:
    gpu_price: Number = 1.80
    power_usage_effectiveness: Number = 1.2
    grid_intensity: Number = 0.4


@dataclass(frozen=True)
class Reliability:
    node_failures_per_1000_days: Number = 3.8
    checkpoint_seconds: Number = 10.0
    restart_seconds: Number = 600.0
    checkpointing: str = "stated"
    storage_bandwidth: Number = 2e12
    straggling_share: Number = 0.0
    straggling_factor: Number = 1.0


@dataclass(frozen=True)
class Measured:
    """What a person saw; None: not measured."""

    step_time: Number | None = None
    tokens_per_s: Number | None = None
    ttft: Number | None = None
    tpot: Number | None = None


@dataclass(frozen=True)
class Scenario:
    model: ModelSpec
    cluster: Cluster
    name: str = "Untitled"
    kind: str = "training"
    parallelism: Parallelism = Parallelism()
    training: Training = Training()
    overlap: Overlap = Overlap()
    moe: Moe = Moe()
    fp8: Fp8 = Fp8()
    pipeline: Pipeline = Pipeline()
    serving: Serving = Serving()
    whiteboard: Whiteboard = Whiteboard()
    economics: Economics = Economics()
    reliability: Reliability = Reliability()
    measured: Measured = Measured()
    #: Overridden machine and engine constants, by their name in `machine.rates.Rates`.
    assumptions: tuple[tuple[str, Any], ...] = field(default=())

    def get(self, path: str) -> Any:
        """The value at a dotted path such as `parallelism.tp`."""
        if path.startswith("assumptions."):
            return dict(self.assumptions).get(path.removeprefix("assumptions."))
        return reduce(getattr, path.split("."), self)

    def with_(self, path: str, value: Any) -> Scenario:
        """A copy in which the value at a dotted path is another; everything else is shared.

        Another model, or another shape of it, has not the label of the one before.
        """
        if path.startswith("assumptions."):
            table = dict(self.assumptions)
            name = path.removeprefix("assumptions.")
            table = {k: v for k, v in table.items() if k != name} | ({} if value is None else {name: value})
            return replace(self, assumptions=tuple(table.items()))
        changed = _replaced(self, path.split("."), value)
        if path == "model" or path.startswith("model."):
            changed = replace(changed, whiteboard=Whiteboard())
        if path == "cluster.accelerator.memory":  # the vendor's total is that of the part as built
            changed = _replaced(changed, ["cluster", "accelerator", "memory_reported"], None)
        return changed


def _replaced(node: Any, path: list[str], value: Any) -> Any:
    head, *rest = path
    return replace(node, **{head: _replaced(getattr(node, head), rest, value) if rest else value})
