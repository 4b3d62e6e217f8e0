"""The one table of fields: the checks of files, the controls of the panels, the help texts are all made from it.

A field's default is the value in a Scenario with nothing set; it is not repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PANELS = ("model", "hardware", "parallelism", "workload", "assumptions")


@dataclass(frozen=True)
class Field:
    """One thing a person can set.

    `unit` names a quantity of `units.UNITS`, or is choice, catalogue, flag or text. `scale` says how a slider moves:
    log, linear, power2 or divisor. `catalogue` names the catalogue that a catalogue field picks from.
    `optional` fields may be unset (None). `kinds` says to which kinds of plan it matters.
    """

    path: str
    label: str
    unit: str
    panel: str
    help: str
    minimum: float = 0.0
    maximum: float = 1e30
    #: Ends of the slider; typed values may go to minimum and maximum.
    slider: tuple[float, float] | None = None
    scale: str = "linear"
    choices: tuple[str, ...] = ()
    catalogue: str = ""
    optional: bool = False
    advanced: bool = False
    kinds: tuple[str, ...] = ("training", "serving")
    #: Whether a list of whole numbers may stand in place of the word.
    takes_list: bool = False
    suffix: str = field(default="")


_TRAINING = ("training",)
_SERVING = ("serving",)

# one line a field: a table to read down
# fmt: off


def _model() -> tuple[Field, ...]:
    panel = "model"
    return (
        Field("model", "Model", "catalogue", panel, "The model, from the catalogue.", catalogue="models"),
        Field("model.layers", "Layers", "count", panel, "Decoder blocks.", 1, 1000, (1, 160), "linear"),
        Field("model.hidden_size", "Hidden size", "count", panel, "Width of the residual stream.", 64, 65536, (512, 32768), "log"),
        Field("model.heads", "Query heads", "count", panel, "Attention heads.", 1, 1024, (1, 256), "power2", advanced=True),
        Field("model.kv_heads", "KV heads", "count", panel, "Key and value heads; fewer than query heads is grouped-query attention.", 1, 1024, (1, 128), "power2"),
        Field("model.head_dim", "Head size", "count", panel, "Width of one head; 0 is hidden size over heads.", 0, 1024, (32, 512), "power2", advanced=True),
        Field("model.ffn_size", "FFN size", "count", panel, "Inner width of the feed-forward part.", 64, 1048576, (512, 131072), "log", advanced=True),
        Field("model.vocabulary", "Vocabulary", "count", panel, "Rows of the embedding.", 2, 4194304, (1000, 512000), "log", advanced=True),
        Field("model.gated", "Gated FFN", "flag", panel, "Three matrices (SwiGLU, GeGLU) instead of two.", advanced=True),
        Field("model.norm", "Norm", "choice", panel, "RMSNorm (gain) or LayerNorm (gain and bias).", choices=("rms", "layer"), advanced=True),
        Field("model.tied", "Tied embedding", "flag", panel, "Input embedding and output head are one matrix.", advanced=True),
        Field("model.qkv_bias", "Biases on q, k, v", "flag", panel, "Biases on the query, key and value projections.", advanced=True),
        Field("model.output_bias", "Bias on attention output", "flag", panel, "Bias on the attention output projection.", advanced=True),
        Field("model.mlp_bias", "FFN biases", "flag", panel, "Biases on the feed-forward matrices.", advanced=True),
        Field("model.qk_norm", "Query/key norm", "flag", panel, "A norm on each head of queries and keys.", advanced=True),
        Field("model.parallel_block", "Parallel block", "flag", panel, "Attention and feed-forward part side by side behind one norm.", advanced=True),
        Field("model.positions", "Learned positions", "count", panel, "Rows of learned positions; 0 for rotary and ALiBi.", 0, 1048576, advanced=True),
        Field("model.vocabulary_multiple", "Vocabulary padding", "count", panel, "A training plan pads the vocabulary to a multiple of this.", 1, 65536, advanced=True, kinds=_TRAINING),
        Field("whiteboard.parameters", "Whiteboard parameters", "amount", panel, "The round number that rules of thumb use; unset: the exact count.", 1e3, 1e15, (1e8, 2e12), "log", optional=True, advanced=True),
    )


def _hardware() -> tuple[Field, ...]:
    panel = "hardware"
    device = "cluster.accelerator"
    return (
        Field(device, "Accelerator", "catalogue", panel, "The accelerator, from the catalogue.", catalogue="accelerators"),
        Field("cluster.gpus", "GPUs", "count", panel, "Accelerators in all.", 1, 1048576, (1, 32768), "power2"),
        Field("cluster.gpus_per_node", "GPUs per node", "count", panel, "Accelerators in one server.", 1, 1024, (1, 72), "divisor", advanced=True),
        Field("cluster.network", "Network", "catalogue", panel, "Scale-out network, from the catalogue or as a rate per GPU and direction.", catalogue="networks"),
        Field("cluster.network.bandwidth", "Network rate per GPU", "bytes/s", panel, "One direction, for each GPU.", 1e6, 1e13, (1e9, 4e11), "log"),
        Field(f"{device}.memory", "Memory per GPU", "bytes", panel, "Capacity as printed on the sheet.", 2**30, 2**45, (2**33, 2**39), "log", advanced=True),
        Field(f"{device}.memory_bandwidth", "Memory bandwidth", "bytes/s", panel, "Peak rate of the device memory.", 1e9, 1e15, (2e11, 2e13), "log", advanced=True),
        Field(f"{device}.peak.bf16", "Peak bf16", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (5e13, 1e16), "log", advanced=True),
        Field(f"{device}.peak.fp16", "Peak fp16", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (5e13, 1e16), "log", optional=True, advanced=True),
        Field(f"{device}.peak.fp8", "Peak fp8", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (1e14, 2e16), "log", optional=True, advanced=True),
        Field(f"{device}.link.bandwidth", "Scale-up link", "bytes/s", panel, "One direction, whole link of one GPU.", 1e8, 1e14, (1e10, 4e12), "log", advanced=True),
        Field(f"{device}.link.domain", "Scale-up domain", "count", panel, "GPUs that share the scale-up link.", 1, 16384, (1, 256), "power2", advanced=True),
        Field(f"{device}.power", "Board power", "watts", panel, "Thermal design power.", 1, 1e5, (50, 2000), "log", advanced=True),
        Field("economics.gpu_price", "Price per GPU-hour", "USD/h", panel, "Rental of one GPU for one hour.", 0, 1000, (0.2, 20), "log"),
        Field("economics.power_usage_effectiveness", "PUE", "number", panel, "Power drawn by the site over power drawn by the servers.", 1, 10, (1, 2), advanced=True),
        Field("economics.grid_intensity", "Grid intensity", "kg/kWh", panel, "CO2 equivalent for each kilowatt-hour.", 0, 5, (0, 1), advanced=True),
    )


def _parallelism() -> tuple[Field, ...]:
    panel = "parallelism"
    t = _TRAINING
    return (
        Field("parallelism.tp", "Tensor (TP)", "count", panel, "Ranks that split every matrix.", 1, 16384, (1, 64), "divisor"),
        Field("parallelism.pp", "Pipeline (PP)", "count", panel, "Pipeline stages.", 1, 16384, (1, 128), "divisor"),
        Field("parallelism.cp", "Context (CP)", "count", panel, "Ranks that split each sequence.", 1, 16384, (1, 64), "divisor", kinds=t, advanced=True),
        Field("parallelism.vpp", "Virtual stages", "count", panel, "Model chunks a stage holds when the pipeline is interleaved.", 1, 1000, (1, 16), "linear", kinds=t),
        Field("parallelism.zero", "ZeRO stage", "choice", panel, "What is sharded over data parallel ranks: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights.", choices=("0", "1", "2", "3"), kinds=t),
        Field("parallelism.hsdp_replicas", "HSDP replicas", "count", panel, "Replicas of the shard group.", 1, 16384, (1, 64), "divisor", kinds=t, advanced=True),
        Field("parallelism.sp", "Sequence parallel", "flag", panel, "Norms and residuals are split along the sequence inside the tensor parallel group.", kinds=t),
        Field("parallelism.schedule", "Schedule", "choice", panel, "Pipeline schedule.", choices=("1f1b", "interleaved", "gpipe", "zero-bubble", "zero-bubble-v", "dualpipe"), kinds=t, advanced=True),
        Field("parallelism.context_scheme", "Context scheme", "choice", panel, "How keys and values travel under context parallelism.", choices=("ring", "all-gather", "ulysses"), kinds=t, advanced=True),
        Field("parallelism.stage_balance", "Stage balance", "choice", panel, "Layers a stage: even, by time, or a list.", choices=("even", "by-time"), kinds=t, advanced=True, takes_list=True),
        Field("pipeline.async_transfer", "Asynchronous transfers", "choice", panel, "Whether pipeline transfers run behind compute; auto: when the pipeline is interleaved.", choices=("auto", "never", "always"), kinds=t, advanced=True),
        Field("overlap.dp", "Hide gradient traffic", "flag", panel, "Gradient reduction and parameter gathering run behind compute.", kinds=t, advanced=True),
        Field("overlap.tp_forward", "Hide TP in chunks", "flag", panel, "Tensor parallel traffic runs in chunks beside the matrix products.", kinds=t, advanced=True),
        Field("overlap.tp_backward", "Hide TP in backward", "flag", panel, "Backward tensor parallel traffic runs behind the weight gradients.", kinds=t, advanced=True),
    )


def _workload() -> tuple[Field, ...]:
    panel = "workload"
    t, s = _TRAINING, _SERVING
    return (
        Field("training.sequence_length", "Sequence", "count", panel, "Tokens a sequence.", 1, 16777216, (512, 1048576), "power2", kinds=t),
        Field("training.micro_batch", "Micro-batch", "count", panel, "Sequences that one rank computes at a time.", 1, 65536, (1, 64), "power2", kinds=t),
        Field("training.global_batch", "Global batch", "count", panel, "Sequences a step, over all ranks.", 1, 16777216, (1, 16384), "power2", kinds=t),
        Field("training.tokens", "Tokens", "tokens", panel, "Tokens to train on.", 1, 1e18, (1e9, 1e14), "log", kinds=t),
        Field("training.precision", "Precision", "choice", panel, "Number format of the matrix products.", choices=("bf16", "fp16", "fp32", "fp8"), kinds=t),
        Field("training.gradient_precision", "Gradients", "choice", panel, "Number format in which gradients are kept and reduced.", choices=("fp32", "bf16"), kinds=t),
        Field("training.recompute", "Recompute", "choice", panel, "Activations computed again in the backward pass instead of kept.", choices=("none", "selective", "full"), kinds=t),
        Field("training.optimizer", "Optimizer", "choice", panel, "Optimizer, which sets the bytes of its states.", choices=("adamw", "adamw-8bit", "sgd"), kinds=t, advanced=True),
        Field("training.fused_optimizer", "Fused optimizer", "flag", panel, "One pass over parameters and states.", kinds=t, advanced=True),
        Field("training.attention", "Attention", "choice", panel, "Flash kernels keep no score matrix; unfused ones do.", choices=("flash", "unfused"), kinds=t, advanced=True),
        Field("training.attention_kernel", "Attention kernel", "choice", panel, "Which flash kernel; auto takes the usual one of the device.", choices=("auto", "fa2", "fa3", "fa4", "cudnn", "triton"), kinds=t, advanced=True),
        Field("training.fused_gradient_accumulation", "Fused accumulation", "flag", panel, "Weight-gradient kernels add into the gradient themselves.", kinds=t, advanced=True),
        Field("training.dropout", "Dropout", "flag", panel, "Masks are kept for the backward pass.", kinds=t, advanced=True),
        Field("training.framework", "Framework", "choice", panel, "Memory and schedule habits of a training stack.", choices=("megatron", "megatron-2022", "torchtitan", "hf-trainer", "litgpt"), kinds=t, advanced=True),
        Field("serving.prompt_tokens", "Prompt", "count", panel, "Tokens of a prompt.", 1, 16777216, (1, 1048576), "power2", kinds=s),
        Field("serving.output_tokens", "Output", "count", panel, "Tokens generated for a request.", 0, 16777216, (1, 65536), "power2", kinds=s),
        Field("serving.concurrency", "Concurrency", "count", panel, "Requests decoded together.", 1, 1048576, (1, 4096), "power2", kinds=s),
        Field("serving.max_context", "Max context", "count", panel, "Longest sequence that must be held.", 1, 16777216, (256, 1048576), "power2", kinds=s),
        Field("serving.weight_format", "Weights", "choice", panel, "Number format of the stored weights.", choices=("bf16", "fp16", "fp8", "fp8-block", "int8", "int8-g128", "int4-g128", "int4-g64", "int4-g32", "int4-tinygemm-g32", "int4-tinygemm-g64", "gptq-g128", "gptq-g64", "gptq-g32", "nf4", "mxfp4", "nvfp4", "gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-q4_k_m", "gguf-q4_k_s", "gguf-q3_k_m", "exl2-2.5", "exl2-3.0", "exl2-4.0"), kinds=s),
        Field("serving.kv_format", "KV cache", "choice", panel, "Number format of the cache.", choices=("bf16", "fp8", "int4"), kinds=s),
        Field("serving.engine", "Engine", "catalogue", panel, "Serving engine and its generation.", catalogue="engines", kinds=s, advanced=True),
        Field("serving.memory_utilization", "Memory utilisation", "ratio", panel, "Share of device memory the engine may use.", 0.01, 1, (0.5, 1), kinds=s, advanced=True),
        Field("serving.max_batched_tokens", "Batched tokens", "count", panel, "Token budget of one engine iteration.", 1, 16777216, (256, 65536), "power2", kinds=s, advanced=True),
        Field("serving.ttft_target", "TTFT target", "seconds", panel, "Wanted time to first token.", 1e-6, 1e5, (0.05, 30), "log", kinds=s, advanced=True),
        Field("serving.tpot_target", "TPOT target", "seconds", panel, "Wanted time per output token.", 1e-6, 1e4, (0.002, 1), "log", kinds=s, advanced=True),
        Field("serving.request_rate", "Request rate", "1/s", panel, "Requests a second; 0 is a closed loop at the concurrency.", 0, 1e9, (0, 100), kinds=s, advanced=True),
    )


def _assumptions() -> tuple[Field, ...]:
    panel = "assumptions"
    t = _TRAINING
    return (
        Field("training.mfu", "Stated MFU", "ratio", panel, "MFU of the whiteboard's days, such as 50 %; auto: the predicted one.", 0.001, 1, (0.05, 0.8), optional=True, kinds=t),
        Field("training.deadline", "Deadline", "seconds", panel, "Time there is for the training, such as 90 d.", 1, 1e10, (86400, 3.2e8), "log", optional=True, kinds=t),
        Field("reliability.node_failures_per_1000_days", "Node failures per 1000 days", "number", panel, "Unexpected failures of one node in 1000 days.", 0, 1e5, (0, 20), kinds=t),
        Field("reliability.checkpoint_seconds", "Checkpoint", "seconds", panel, "Time one checkpoint blocks training.", 0, 1e5, (0, 300), kinds=t),
        Field("reliability.restart_seconds", "Restart", "seconds", panel, "From a failure to training again.", 0, 1e6, (0, 3600), kinds=t),
        Field("measured.step_time", "Measured step", "seconds", panel, "A step time you saw: gives MFU, HFU and the distance to the bound.", 1e-9, 1e7, optional=True, kinds=t, advanced=True),
        Field("measured.tokens_per_s", "Measured tokens/s", "amount", panel, "A throughput you saw, over all GPUs.", 1e-6, 1e15, optional=True, advanced=True),
        Field("measured.ttft", "Measured TTFT", "seconds", panel, "A time to first token you saw.", 1e-9, 1e6, optional=True, kinds=_SERVING, advanced=True),
        Field("measured.tpot", "Measured TPOT", "seconds", panel, "A time per output token you saw.", 1e-9, 1e6, optional=True, kinds=_SERVING, advanced=True),
    )


def _facts() -> tuple[Field, ...]:
    panel, device = "hardware", "cluster.accelerator"
    return (
        Field("model.max_context", "Longest context", "count", "model", "Tokens the model was made for; 0: unknown."),
        Field(f"{device}.peak.fp32", "Peak fp32", "FLOP/s", panel, "Dense peak of the vector units.", 1e9, 1e18, optional=True),
        Field(f"{device}.peak.fp4", "Peak fp4", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, optional=True),
        Field(f"{device}.peak.int8", "Peak int8", "FLOP/s", panel, "Dense peak of the matrix units, operations per second.", 1e9, 1e18, optional=True),
        Field(f"{device}.memory_reported", "Reported memory", "bytes", panel, "Total that the vendor's tool shows.", 2**28, 2**45, optional=True),
        Field(f"{device}.pcie", "Host link", "bytes/s", panel, "One direction, after encoding.", 1e8, 1e13),
        Field(f"{device}.units", "Compute units", "count", panel, "Streaming multiprocessors, compute units or matrix engines.", 1, 1e6),
        Field(f"{device}.unit_flops", "FLOPs per unit and clock", "count", panel, "Dense 16-bit FLOPs.", 1, 1e9),
        Field(f"{device}.price", "Rental price", "USD/h", panel, "A published price of one device and hour.", 0, 1000, optional=True),
        Field(f"{device}.year", "Year", "count", panel, "First year in volume.", 0, 2100),
        Field("cluster.network.latency_class", "Latency class", "choice", panel, "Fabric, which sets the latency of a hop.", choices=("ib", "roce", "efa", "opa")),
    )

# fmt: on
FIELDS: dict[str, Field] = {
    f.path: f for f in (*_model(), *_hardware(), *_parallelism(), *_workload(), *_assumptions())
}

#: Facts of catalogue entries that a file may state and no panel shows.
FACTS: dict[str, Field] = {f.path: f for f in _facts()}


def fields_of(panel: str, kind: str, advanced: bool | None = None) -> list[Field]:
    """The fields of a panel that matter to a kind of plan, daily ones, advanced ones or (None) all."""
    return [
        f
        for f in FIELDS.values()
        if f.panel == panel and kind in f.kinds and (advanced is None or f.advanced == advanced)
    ]
