"""Gradient reduction and parameter gathering over the data parallel ranks, and what of it a step waits for.

Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer and its bucket rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.collectives import Group, collective
from ..numeric import Number, floor, is_array, maximum, minimum, where
from ..scenario import Scenario
from ..sums import add_seconds, times_bytes, times_seconds
from ..terms import formula
from .layout import Layout
from .overlap import exposed_behind
from .pipeline import PipelineTime


@formula("ψ̄", "parameters")
def mean_stage_parameters(layers: Number, block: Number, pipeline: Number) -> Number:
    """Block parameters a rank reduces, mean over the stages."""
    return layers * block / pipeline


@formula("ψ", "parameters")
def reduced_parameters(blocks: Number, embedding: Number, head: Number, pipeline: Number) -> Number:
    """Parameters that a rank of the first stage reduces: its blocks and the embedding; both ends in a single stage."""
    return blocks + embedding + where(pipeline > 1, 0.0, head)


@formula("w·ψ", "B")
def buffer_bytes(width: Number, parameters: Number) -> Number:
    """Bytes of a gradient or weight buffer."""
    return width * parameters


@formula("buckets", "pieces", "one a model chunk, at least one for each bucket size")
def buckets(virtual: Number, buffer: Number, bucket: Number) -> Number:
    """Pieces in which a gradient buffer is reduced."""
    return maximum(1, floor(maximum(virtual, buffer / bucket)))


@formula("(1 − 1/buckets)·t_bwd", "s", "the last bucket has nothing left to hide behind")
def backward_window(pieces: Number, layers: Number, pipeline: Number, backward: Number) -> Number:
    """Compute behind which the gradient reduction hides; half of the backward pass where there is one bucket."""
    return where(pieces > 1, 1 - 1 / pieces, 0.5) * layers / pipeline * backward


@formula("t_fwd", "s")
def forward_window(layers: Number, pipeline: Number, forward: Number) -> Number:
    """Compute behind which the parameter gathering hides: the next forward pass."""
    return layers / pipeline * forward


@formula("x", "s", "Zhao 2023, arXiv 2304.11277: layer by layer with prefetch; first and last layer have no window")
def sharded_exposed(
    micro_batches: Number,
    reductions: Number,
    layers: Number,
    forward_exposed: Number,
    gather_exposed: Number,
    backward_exposed: Number,
    gather: Number,
    scatter: Number,
    ends: Number,
) -> Number:
    """What ZeRO-3 traffic costs a step without a pipeline; backward passes that reduce nothing only gather."""
    return (
        micro_batches * (layers * forward_exposed + gather + 0.5 * ends)
        + layers * ((micro_batches - reductions) * gather_exposed + reductions * backward_exposed)
        + reductions * scatter
    )


@formula("x", "s", "pipelines over FSDP gather once and reduce once a step")
def sharded_exposed_in_pipeline(
    layers: Number, pipeline: Number, gather: Number, forward: Number, scatter: Number, backward: Number, ends: Number
) -> Number:
    """What ZeRO-3 traffic costs a step with a pipeline."""
    return (
        maximum(0.0, layers / pipeline * (gather - forward))
        + maximum(0.0, layers / pipeline * (scatter - backward))
        + gather
        + scatter
        + ends
    )


@formula("r", "times", "PyTorch FSDP, no_sync; pipelines reduce once a step: MegaScale, arXiv 2402.15627")
def reductions_of_step(micro_batches: Number, pipeline: Number, whole: Number) -> Number:
    """Gradient reductions of a step: one a micro-batch, or one where gradients stay whole until the last."""
    return where(pipeline > 1, 1.0, where(whole > 0, 1.0, micro_batches))


@formula("D > 1", "s")
def only_if_sharded(ranks: Number, seconds: Number) -> Number:
    """Nothing is reduced where there is one rank."""
    return where(ranks > 1, seconds, 0.0)


@dataclass(frozen=True)
class Flow:
    """One collective of the data parallel group in one step."""

    name: str
    what: str
    kind: str
    sent: Number
    seconds: Number
    exposed: Number
    times: Number
    behind: str
    group: Group


@dataclass(frozen=True)
class DataParallelTime:
    flows: tuple[Flow, ...]
    exposed: Number


def data_parallel_time(
    scenario: Scenario,
    layout: Layout,
    pipe: PipelineTime,
    block_share: Number,
    ends: tuple[Number, Number],
    widths: tuple[Number, Number],
    framework: dict,
    kappa: Number,
) -> DataParallelTime:
    """Flows of the data parallel group; `ends`: embedding and head, `widths`: bytes of gradient and weight."""
    whole = int(framework["accumulate_whole"])
    reductions = reductions_of_step(layout.micro_batches, layout.pipeline, whole)
    if scenario.parallelism.zero == 3:
        time = _sharded(scenario, layout, pipe, block_share, ends, widths, reductions, kappa)
    else:
        time = _reduced(scenario, layout, pipe, block_share, ends, widths, reductions, framework, kappa)
    replicas = scenario.parallelism.hsdp_replicas
    if scenario.parallelism.zero and (is_array(replicas) or replicas > 1):
        return _across_replicas(time, layout, pipe, block_share, ends, widths[0], kappa)
    return time


def _reduced(
    scenario: Scenario,
    layout: Layout,
    pipe: PipelineTime,
    block_share: Number,
    ends: tuple[Number, Number],
    widths: tuple[Number, Number],
    reductions: Number,
    framework: dict,
    kappa: Number,
) -> DataParallelTime:
    """ZeRO 0 to 2: gradients reduced, and updated weights gathered where the optimizer is sharded."""
    zero, hide = scenario.parallelism.zero, scenario.overlap.dp
    group = layout.shard_group if zero else layout.data_group
    gradient_width, weight_width = widths
    psi = _rank_parameters(layout, block_share, ends)
    buffer = buffer_bytes(gradient_width, psi)
    stated = scenario.training.bucket_bytes
    pieces = buckets(layout.virtual, buffer, framework["bucket"] if stated is None else stated)
    kind = "all-reduce" if zero == 0 else "reduce-scatter"
    reduce = collective(kind, buffer, group, layout.fabric, pieces)
    repeats = reductions if zero == 2 else 1.0
    window = backward_window(pieces, layout.layers, layout.pipeline, pipe.block.backward_seconds)
    cost = exposed_behind(reduce.seconds, window, kappa) if hide else reduce.seconds
    cost = only_if_sharded(group.ranks, times_seconds(repeats, cost))
    sent, seconds = times_bytes(repeats, reduce.sent), times_seconds(repeats, reduce.seconds)
    behind = "backward" if hide else ""
    flows = [Flow("gradients", "gradients", kind, sent, seconds, cost, repeats, behind, group)]
    if zero > 0:
        gather = collective("all-gather", buffer_bytes(weight_width, psi), group, layout.fabric, pieces)
        hide = hide and scenario.overlap.parameter_gather
        window = forward_window(layout.layers, layout.pipeline, pipe.block.forward_seconds)
        cost = exposed_behind(gather.seconds, window, kappa) if hide else gather.seconds
        cost = only_if_sharded(group.ranks, cost)
        behind = "next forward" if hide else ""
        flows.append(
            Flow("updated weights", "weights", "all-gather", gather.sent, gather.seconds, cost, 1.0, behind, group)
        )
    exposed = flows[0].exposed if len(flows) == 1 else add_seconds(flows[0].exposed, flows[1].exposed)
    return DataParallelTime(tuple(flows), exposed)


def _rank_parameters(layout: Layout, block_share: Number, ends: tuple[Number, Number]) -> Number:
    blocks = mean_stage_parameters(layout.layers, block_share, layout.pipeline)
    return reduced_parameters(blocks, *ends, layout.pipeline)


@formula("w_g·ψ/D_s", "B", "Zhao 2023, arXiv 2304.11277: hybrid sharding")
def replica_bytes(width: Number, parameters: Number, shards: Number) -> Number:
    """Gradient shard of a rank, which is summed over the replicas of the shard group."""
    return width * parameters / shards


def _across_replicas(
    time: DataParallelTime,
    layout: Layout,
    pipe: PipelineTime,
    block_share: Number,
    ends: tuple[Number, Number],
    width: Number,
    kappa: Number,
) -> DataParallelTime:
    """The flows inside the shard group and one all-reduce of the gradient shards over its replicas."""
    buffer = replica_bytes(width, _rank_parameters(layout, block_share, ends), layout.shards)
    reduce = collective("all-reduce", buffer, layout.replica_group, layout.fabric)
    window = backward_window(1.0, layout.layers, layout.pipeline, pipe.block.backward_seconds)
    cost = only_if_sharded(layout.replica_group.ranks, exposed_behind(reduce.seconds, window, kappa))
    flow = Flow(
        "gradients of replicas",
        "gradients",
        "all-reduce",
        reduce.sent,
        reduce.seconds,
        cost,
        1.0,
        "backward",
        layout.replica_group,
    )
    return DataParallelTime((*time.flows, flow), add_seconds(time.exposed, cost))


@formula("S_embedding + S_head", "B")
def ends_bytes(width: Number, embedding: Number, head: Number, pipeline: Number) -> Number:
    """Bytes of the embedding and, where there is one stage, the head."""
    return width * (embedding + where(pipeline > 1, 0.0, head))


@formula("min", "s")
def at_most(exposed: Number, seconds: Number) -> Number:
    """Exposed time of some traffic, which is no more than all of its time."""
    return minimum(exposed, seconds)


@formula("share", "s")
def in_proportion(exposed: Number, seconds: Number, all_seconds: Number) -> Number:
    """Exposed time of one flow: its share of the time of all flows of the group."""
    return exposed * seconds / maximum(all_seconds, 1e-30)


def _sharded(
    scenario: Scenario,
    layout: Layout,
    pipe: PipelineTime,
    block_share: Number,
    ends: tuple[Number, Number],
    widths: tuple[Number, Number],
    reductions: Number,
    kappa: Number,
) -> DataParallelTime:
    """ZeRO-3: weights gathered for forward and again for backward, gradients scattered, for each micro-batch."""
    gradient_width, weight_width = widths
    group, fabric = layout.shard_group, layout.fabric
    gather = collective("all-gather", buffer_bytes(weight_width, block_share), group, fabric)
    scatter = collective("reduce-scatter", buffer_bytes(gradient_width, block_share), group, fabric)
    root = collective("all-gather", ends_bytes(weight_width, *ends, layout.pipeline), group, fabric)
    root_back = collective("reduce-scatter", ends_bytes(gradient_width, *ends, layout.pipeline), group, fabric)
    both_ends = add_seconds(root.seconds, root_back.seconds)
    ahead, back = pipe.block.forward_seconds, pipe.block.backward_seconds
    alone = sharded_exposed(
        layout.micro_batches,
        reductions,
        layout.layers,
        exposed_behind(gather.seconds, ahead, kappa),
        exposed_behind(gather.seconds, back, kappa),
        exposed_behind(add_seconds(gather.seconds, scatter.seconds), back, kappa),
        gather.seconds,
        scatter.seconds,
        both_ends,
    )
    piped = sharded_exposed_in_pipeline(
        layout.layers, layout.pipeline, gather.seconds, ahead, scatter.seconds, back, both_ends
    )
    gathers = where(layout.pipeline > 1, 1.0, times_bytes(2.0, layout.micro_batches))
    gather_seconds = flow_seconds(gathers, layout.layers, layout.pipeline, gather.seconds, root.seconds)
    scatter_seconds = flow_seconds(reductions, layout.layers, layout.pipeline, scatter.seconds, root_back.seconds)
    together, hide = add_seconds(gather_seconds, scatter_seconds), scenario.overlap.dp
    exposed = at_most(where(layout.pipeline > 1, piped, alone), together) if hide else together
    exposed = only_if_sharded(group.ranks, exposed)
    return DataParallelTime(
        (
            Flow(
                "weights",
                "weights",
                "all-gather",
                flow_bytes(gathers, layout.layers, layout.pipeline, gather.sent, root.sent),
                gather_seconds,
                in_proportion(exposed, gather_seconds, together),
                gathers,
                "previous layer" if hide else "",
                group,
            ),
            Flow(
                "gradients",
                "gradients",
                "reduce-scatter",
                flow_bytes(reductions, layout.layers, layout.pipeline, scatter.sent, root_back.sent),
                scatter_seconds,
                in_proportion(exposed, scatter_seconds, together),
                reductions,
                "next layer's backward" if hide else "",
                group,
            ),
        ),
        exposed,
    )


@formula("n·(L/p·t + t_ends)", "s")
def flow_seconds(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Time of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)


@formula("n·(L/p·S + S_ends)", "B")
def flow_bytes(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Bytes of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)
