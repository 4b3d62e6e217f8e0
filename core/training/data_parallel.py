"""Gradient reduction and parameter gathering over the data parallel ranks, and what of it a step waits for.

Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer and its bucket rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..machine.collectives import Collective, Group, collective
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


@formula("w_g·ψ/D_s", "B", "Zhao 2023, arXiv 2304.11277: hybrid sharding")
def replica_bytes(width: Number, parameters: Number, shards: Number) -> Number:
    """Gradient shard of a rank, which is summed over the replicas of the shard group."""
    return width * parameters / shards


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


@formula("n·(L/p·t + t_ends)", "s")
def flow_seconds(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Time of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)


@formula("n·(L/p·S + S_ends)", "B")
def flow_bytes(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Bytes of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)


@dataclass(frozen=True)
class DataParallel:
    """What the traffic of the data parallel group depends on.

    `embedding` and `head` are the parameters of a rank at the ends of the model, `block` those of one block;
    widths are bytes of one gradient and of one gathered weight.
    """

    scenario: Scenario
    layout: Layout
    pipe: PipelineTime
    block: Number
    embedding: Number
    head: Number
    gradient_width: Number
    weight_width: Number
    framework: dict
    kappa: Number

    def time(self) -> DataParallelTime:
        """Flows of the data parallel group in one step, and what of them the step waits for."""
        parallel = self.scenario.parallelism
        time = self._sharded() if parallel.zero == 3 else self._reduced()
        if parallel.zero and (is_array(parallel.hsdp_replicas) or parallel.hsdp_replicas > 1):
            return self._across_replicas(time)
        return time

    @cached_property
    def _reductions(self) -> Number:
        whole = int(self.framework["accumulate_whole"])
        return reductions_of_step(self.layout.micro_batches, self.layout.pipeline, whole)

    @cached_property
    def _parameters(self) -> Number:
        blocks = mean_stage_parameters(self.layout.layers, self.block, self.layout.pipeline)
        return reduced_parameters(blocks, self.embedding, self.head, self.layout.pipeline)

    def _window(self, pieces: Number) -> Number:
        layout = self.layout
        return backward_window(pieces, layout.layers, layout.pipeline, self.pipe.block.backward_seconds)

    def _reduced(self) -> DataParallelTime:
        """ZeRO 0 to 2: gradients reduced, and updated weights gathered where the optimizer is sharded."""
        scenario, layout = self.scenario, self.layout
        zero, hide = scenario.parallelism.zero, scenario.overlap.dp
        group = layout.shard_group if zero else layout.data_group
        buffer = buffer_bytes(self.gradient_width, self._parameters)
        stated = scenario.training.bucket_bytes
        pieces = buckets(layout.virtual, buffer, self.framework["bucket"] if stated is None else stated)
        kind = "all-reduce" if zero == 0 else "reduce-scatter"
        reduce = collective(kind, buffer, group, layout.fabric, pieces)
        repeats = self._reductions if zero == 2 else 1.0
        cost = exposed_behind(reduce.seconds, self._window(pieces), self.kappa) if hide else reduce.seconds
        cost = only_if_sharded(group.ranks, times_seconds(repeats, cost))
        sent, seconds = times_bytes(repeats, reduce.sent), times_seconds(repeats, reduce.seconds)
        behind = "backward" if hide else ""
        flow = Flow("gradients", "gradients", kind, sent, seconds, cost, repeats, behind, group)
        if zero == 0:
            return DataParallelTime((flow,), cost)
        gather = self._gathered(group, pieces)
        return DataParallelTime((flow, gather), add_seconds(cost, gather.exposed))

    def _gathered(self, group: Group, pieces: Number) -> Flow:
        """Updated weights on their way to all ranks."""
        layout, overlap = self.layout, self.scenario.overlap
        buffer = buffer_bytes(self.weight_width, self._parameters)
        gather = collective("all-gather", buffer, group, layout.fabric, pieces)
        hide = overlap.dp and overlap.parameter_gather
        window = forward_window(layout.layers, layout.pipeline, self.pipe.block.forward_seconds)
        cost = exposed_behind(gather.seconds, window, self.kappa) if hide else gather.seconds
        cost = only_if_sharded(group.ranks, cost)
        behind = "next forward" if hide else ""
        return Flow("updated weights", "weights", "all-gather", gather.sent, gather.seconds, cost, 1.0, behind, group)

    def _across_replicas(self, time: DataParallelTime) -> DataParallelTime:
        """The flows inside the shard group and one all-reduce of the gradient shards over its replicas."""
        group = self.layout.replica_group
        buffer = replica_bytes(self.gradient_width, self._parameters, self.layout.shards)
        reduce = collective("all-reduce", buffer, group, self.layout.fabric)
        cost = only_if_sharded(group.ranks, exposed_behind(reduce.seconds, self._window(1.0), self.kappa))
        flow = Flow(
            "gradients of replicas",
            "gradients",
            "all-reduce",
            reduce.sent,
            reduce.seconds,
            cost,
            1.0,
            "backward",
            group,
        )
        return DataParallelTime((*time.flows, flow), add_seconds(time.exposed, cost))

    def _ends(self, width: Number) -> Number:
        return ends_bytes(width, self.embedding, self.head, self.layout.pipeline)

    def _sharded(self) -> DataParallelTime:
        """ZeRO-3: weights gathered for forward and again for backward, gradients scattered, for each micro-batch."""
        layout, kappa = self.layout, self.kappa
        group, fabric = layout.shard_group, layout.fabric
        gather = collective("all-gather", buffer_bytes(self.weight_width, self.block), group, fabric)
        scatter = collective("reduce-scatter", buffer_bytes(self.gradient_width, self.block), group, fabric)
        root = collective("all-gather", self._ends(self.weight_width), group, fabric)
        root_back = collective("reduce-scatter", self._ends(self.gradient_width), group, fabric)
        both_ends = add_seconds(root.seconds, root_back.seconds)
        ahead, back = self.pipe.block.forward_seconds, self.pipe.block.backward_seconds
        alone = sharded_exposed(
            layout.micro_batches,
            self._reductions,
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
        waited = where(layout.pipeline > 1, piped, alone)
        gathers = where(layout.pipeline > 1, 1.0, times_bytes(2.0, layout.micro_batches))
        return self._sharded_flows((gathers, self._reductions), (gather, scatter), (root, root_back), waited)

    def _sharded_flows(
        self,
        counts: tuple[Number, Number],
        blocks: tuple[Collective, Collective],
        ends: tuple[Collective, Collective],
        waited: Number,
    ) -> DataParallelTime:
        """Gathering and scattering as two flows, which share what is waited for by their times."""
        layers, pipeline = self.layout.layers, self.layout.pipeline
        group, hide = self.layout.shard_group, self.scenario.overlap.dp
        seconds = [
            flow_seconds(count, layers, pipeline, block.seconds, end.seconds)
            for count, block, end in zip(counts, blocks, ends, strict=True)
        ]
        sent = [
            flow_bytes(count, layers, pipeline, block.sent, end.sent)
            for count, block, end in zip(counts, blocks, ends, strict=True)
        ]
        together = add_seconds(*seconds)
        exposed = only_if_sharded(group.ranks, at_most(waited, together) if hide else together)
        weights, gradients = (in_proportion(exposed, each, together) for each in seconds)
        before, after = ("previous layer", "next layer's backward") if hide else ("", "")
        return DataParallelTime(
            (
                Flow("weights", "weights", "all-gather", sent[0], seconds[0], weights, counts[0], before, group),
                Flow(
                    "gradients", "gradients", "reduce-scatter", sent[1], seconds[1], gradients, counts[1], after, group
                ),
            ),
            exposed,
        )
