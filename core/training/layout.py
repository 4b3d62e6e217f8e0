"""How a training plan lies on the machine: degrees, micro-batches, tokens of a rank, layers of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..machine.collectives import Fabric, Group, devices_of_host, node_domain
from ..machine.kernels import sustained_bandwidth
from ..machine.rates import Rates
from ..numeric import Number, maximum, where
from ..scenario import Scenario
from ..terms import formula
from .stages import EvenStages, FoldedStages, ListedStages, SlotStages, Stages, TimedStages

#: Schedules that fold the pipeline: a rank holds two chunks of its own (ZB-V), or two ranks hold the same two stages.
TWO_CHUNKS, BOTH_WAYS = "zero-bubble-v", "dualpipe"


@formula("2·p", "chunks", "Qi 2023, arXiv 2401.10241, section 6: down the ranks and back up")
def two_chunks(pipeline: Number) -> Number:
    """Chunks of a pipeline whose ranks hold two."""
    return 2 * pipeline


@formula("D", "ranks")
def data_parallel(gpus: Number, tensor_parallel: Number, pipeline: Number, context_parallel: Number) -> Number:
    """Data parallel degree."""
    return gpus / (tensor_parallel * pipeline * context_parallel)


@formula("m", "micro-batches")
def micro_batches(global_batch: Number, micro_batch: Number, data_parallel: Number) -> Number:
    """Micro-batches of a replica in one step."""
    return global_batch / (micro_batch * data_parallel)


@formula("T", "tokens")
def rank_tokens(micro_batch: Number, sequence: Number, context_parallel: Number) -> Number:
    """Tokens of one micro-batch on one rank."""
    return micro_batch * sequence / context_parallel


@formula("B·s", "tokens")
def step_tokens(global_batch: Number, sequence: Number) -> Number:
    """Tokens of one optimizer step."""
    return global_batch * sequence


@formula("D·c", "ranks")
def shard_ranks(data_parallel: Number, context_parallel: Number, replicas: Number) -> Number:
    """Ranks over which ZeRO shards: data times context parallel ranks, over the replicas of HSDP."""
    return data_parallel * context_parallel / replicas


@formula("σ", "share", "Korthikanti 2022, arXiv 2205.05198")
def sequence_share(tensor_parallel: Number) -> Number:
    """Share of norms and residuals a rank holds under sequence parallelism."""
    return 1 / tensor_parallel


@formula("D_e", "ranks")
def expert_replicas(tensor: Number, context: Number, data: Number, expert_tensor: Number, expert: Number) -> Number:
    """Ranks of a stage that hold the same experts: expert data parallel degree."""
    return tensor * context * data / (expert_tensor * expert)


@formula("t·c", "devices")
def product_of_degrees(first: Number, second: Number) -> Number:
    """Distance between neighbours of a group in devices: the product of the faster degrees."""
    return first * second


@dataclass(frozen=True)
class Layout:
    """The resolved plan of a training scenario."""

    tensor: Number
    pipeline: Number
    context: Number
    data: Number
    virtual: Number
    micro_batches: Number
    tokens: Number
    sequence: Number
    micro_batch: Number
    shards: Number
    sp: bool
    sequence_share: Number
    layers: Number
    stages: Stages
    schedule: str
    context_scheme: str
    #: 1 where activation transfers run behind compute, 0 where a stage waits for them.
    async_transfer: Number
    #: Whether layers are dealt by hand, so that no stage is much longer than the mean.
    spread: bool
    #: Micro-batches after which the pipeline runs empty; None: once a step.
    drain_every: Number | None
    fabric: Fabric
    tensor_group: Group
    context_group: Group
    data_group: Group
    #: Ranks over which ZeRO shards, and the replicas of that group under HSDP.
    shard_group: Group
    replica_group: Group
    #: Experts lie over all ranks of a stage: split in each by t_e, dealt over e groups, the same on D_e ranks.
    expert: Number
    expert_tensor: Number
    expert_replicas: Number
    expert_dispatch: str
    expert_group: Group
    expert_tensor_group: Group
    expert_data_group: Group

    @property
    def both_ways(self) -> bool:
        """Whether micro-batches enter at both ends, so that two ranks hold the same two stages (DualPipe)."""
        return self.schedule == BOTH_WAYS

    @property
    def turns(self) -> bool:
        """Whether the pipeline turns on its last rank, so that a rank holds two chunks of its own (ZB-V)."""
        return self.schedule == TWO_CHUNKS

    @property
    def one_rank_ends(self) -> bool:
        """Whether the first and the last stage of several are on one rank."""
        return self.turns or self.both_ways


def _stages(scenario: Scenario) -> Stages:
    """Stages as the scenario asks; stages by time start even until a block has been timed."""
    parallel, balance = scenario.parallelism, scenario.parallelism.stage_balance
    stages = stages_of(parallel.schedule, parallel.pp)
    if not isinstance(balance, str):
        dealt = ListedStages(_two_chunks(balance) if parallel.schedule == TWO_CHUNKS else tuple(balance), stages)
    else:
        dealt = (SlotStages if balance == "slots" else EvenStages)(scenario.model.layers, stages, parallel.vpp)
    return folded(parallel.schedule, dealt, stages)


def _two_chunks(layers: Sequence[int]) -> tuple[int, ...]:
    """Layers of the chunks, first to last, of stages that each hold one on the way there and one on the way back."""
    return (*(count - count // 2 for count in layers), *(count // 2 for count in reversed(layers)))


def stages_of(schedule: str, pipeline: Number) -> Number:
    """Stages that layers are dealt to: one a rank, or two where a rank holds two chunks of its own."""
    return two_chunks(pipeline) if schedule == TWO_CHUNKS else pipeline


def folded(schedule: str, dealt: Stages, stages: Number) -> Stages:
    """Stages on the ranks of a schedule: two on each where the pipeline runs there and back, or both ways."""
    return FoldedStages(dealt, stages) if schedule in (TWO_CHUNKS, BOTH_WAYS) else dealt


def timed(layout: Layout, last: Number) -> Layout:
    """A layout whose last stage has its own number of layers."""
    stages = stages_of(layout.schedule, layout.pipeline)
    return replace(layout, stages=folded(layout.schedule, TimedStages(layout.layers, stages, last), stages))


def _virtual(scenario: Scenario) -> Number:
    return 2.0 if scenario.parallelism.schedule == TWO_CHUNKS else scenario.parallelism.vpp


def _async_transfer(scenario: Scenario) -> Number:
    choice = scenario.pipeline.async_transfer
    if choice == "auto":
        return where(_virtual(scenario) > 1, 1.0, 0.0)
    return 1.0 if choice == "always" else 0.0


def fabric_of(scenario: Scenario, rates: Rates) -> Fabric:
    """The sustained links of a cluster."""
    cluster = scenario.cluster
    return Fabric(
        domain=node_domain(cluster.gpus_per_node, cluster.accelerator.link.domain, cluster.network.boards),
        link_rate=sustained_bandwidth(
            maximum(cluster.accelerator.link.bandwidth, cluster.accelerator.pcie), rates.e_nv
        ),
        network_rate=sustained_bandwidth(cluster.network.bandwidth, rates.e_nic),
        alpha_c=rates.alpha_c,
        alpha_nv=rates.alpha_nv,
        alpha_ring=rates.alpha_ring,
        alpha_net=rates.alpha_net,
        alpha_p2p=rates.alpha_p2p,
        host_rate=sustained_bandwidth(cluster.accelerator.pcie, rates.e_nic),
        host=devices_of_host(cluster.gpus_per_node, cluster.network.boards),
    )


def layout_of(scenario: Scenario, rates: Rates) -> Layout:
    """The layout a training scenario stands for."""
    parallel, training, gpus = scenario.parallelism, scenario.training, scenario.cluster.gpus
    data = data_parallel(gpus, parallel.tp, parallel.pp, parallel.cp)
    shards = shard_ranks(data, parallel.cp, parallel.hsdp_replicas)
    fabric = fabric_of(scenario, rates)
    replicas = expert_replicas(parallel.tp, parallel.cp, data, parallel.etp, parallel.ep)
    return Layout(
        tensor=parallel.tp,
        pipeline=parallel.pp,
        context=parallel.cp,
        data=data,
        virtual=_virtual(scenario),
        micro_batches=micro_batches(training.global_batch, training.micro_batch, data),
        tokens=rank_tokens(training.micro_batch, training.sequence_length, parallel.cp),
        sequence=training.sequence_length,
        micro_batch=training.micro_batch,
        shards=shards,
        sp=parallel.sp,
        sequence_share=sequence_share(parallel.tp) if parallel.sp else 1.0,
        layers=scenario.model.layers,
        stages=_stages(scenario),
        schedule=parallel.schedule,
        context_scheme=parallel.context_scheme,
        async_transfer=_async_transfer(scenario),
        spread=parallel.stage_balance == "spread",
        drain_every=scenario.pipeline.drain_every,
        fabric=fabric,
        tensor_group=Group.of(parallel.tp, 1, fabric),
        context_group=Group.of(parallel.cp, parallel.tp, fabric),
        data_group=Group.of(shard_ranks(data, parallel.cp, 1), parallel.tp, fabric),
        shard_group=Group.of(shards, parallel.tp, fabric),
        replica_group=Group.of(parallel.hsdp_replicas, product_of_degrees(parallel.tp, shards), fabric),
        expert=parallel.ep,
        expert_tensor=parallel.etp,
        expert_replicas=replicas,
        expert_dispatch=parallel.expert_dispatch,
        expert_group=Group.of(parallel.ep, parallel.etp, fabric),
        expert_tensor_group=Group.of(parallel.etp, 1, fabric),
        expert_data_group=Group.of(replicas, product_of_degrees(parallel.etp, parallel.ep), fabric),
    )
