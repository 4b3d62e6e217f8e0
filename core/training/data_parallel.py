"""Gradient reduction and parameter gathering over the data parallel ranks, and what of it a step waits for.

Routed experts are the same on other ranks than the rest, and have collectives of their own; all of them hide behind
the same compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..machine.collectives import Collective, Group, collective
from ..numeric import Number, is_array, where
from ..scenario import Scenario
from ..sums import add_seconds, times_bytes, times_count, times_seconds, total_bytes, total_seconds
from .layout import Layout
from .overlap import exposed_behind
from .pipeline import PipelineTime
from .reduction import (
    at_most,
    backward_window,
    buckets,
    buffer_bytes,
    ends_bytes,
    flow_bytes,
    flow_seconds,
    forward_window,
    in_proportion,
    mean_stage_parameters,
    only_if_sharded,
    reduced_parameters,
    reductions_of_step,
    replica_bytes,
    sharded_exposed,
    sharded_exposed_in_pipeline,
)


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


@dataclass(frozen=True)
class Owned:
    """Parameters that the same ranks hold: what every token meets, or routed experts.

    `block` are those of one block on a rank, mean over the layers; `embedding` and `head` those at the ends.
    `holders` are all ranks that hold the same, `shards` those over which ZeRO shards them.
    """

    of: str
    block: Number
    embedding: Number
    head: Number
    holders: Group
    shards: Group


@dataclass(frozen=True)
class DataParallel:
    """What the traffic of data parallel groups depends on; widths are bytes of one gradient and one gathered weight."""

    scenario: Scenario
    layout: Layout
    pipe: PipelineTime
    #: What is trained, and what ZeRO-3 gathers.
    owned: tuple[Owned, ...]
    gathered: tuple[Owned, ...]
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
    def _parameters(self) -> list[Number]:
        layers, pipeline = self.layout.layers, self.layout.pipeline
        return [
            reduced_parameters(mean_stage_parameters(layers, each.block, pipeline), each.embedding, each.head, pipeline)
            for each in self.owned
        ]

    def _window(self, pieces: Number) -> Number:
        layout = self.layout
        return backward_window(pieces, layout.layers, layout.pipeline, self.pipe.block.backward_seconds)

    def _groups(self) -> list[Group]:
        return [each.shards if self.scenario.parallelism.zero else each.holders for each in self.owned]

    def _behind(self, found: Sequence[Collective], window: Number, hide: bool, repeats: Number) -> list[Number]:
        """What each of several collectives costs a step that hides all of them behind one window."""
        together = total_seconds([each.seconds for each in found])
        cost = exposed_behind(together, window, self.kappa) if hide else together
        cost = times_seconds(repeats, cost) if repeats is not None else cost
        if len(found) == 1:
            return [only_if_sharded(self._groups()[0].ranks, cost)]
        return [in_proportion(cost, each.seconds, together) for each in found]

    def _reduced(self) -> DataParallelTime:
        """ZeRO 0 to 2: gradients reduced, and updated weights gathered where the optimizer is sharded."""
        scenario, layout = self.scenario, self.layout
        zero, hide = scenario.parallelism.zero, scenario.overlap.dp
        groups = self._groups()
        stated = scenario.training.bucket_bytes
        bucket = self.framework["bucket"] if stated is None else stated
        buffers = [buffer_bytes(self.gradient_width, parameters) for parameters in self._parameters]
        pieces = [buckets(layout.virtual, buffer, bucket) for buffer in buffers]
        kind = "all-reduce" if zero == 0 else "reduce-scatter"
        reduced = [
            collective(kind, buffer, group, layout.fabric, count)
            for buffer, group, count in zip(buffers, groups, pieces, strict=True)
        ]
        repeats = self._reductions if zero == 2 else 1.0
        costs = self._behind(reduced, self._window(pieces[0]), hide, repeats)
        behind = "backward" if hide else ""
        flows = [
            Flow(
                f"gradients{owned.of}",
                "gradients",
                kind,
                times_bytes(repeats, reduce.sent),
                times_seconds(repeats, reduce.seconds),
                cost,
                repeats,
                behind,
                group,
            )
            for owned, reduce, cost, group in zip(self.owned, reduced, costs, groups, strict=True)
        ]
        if zero:
            flows += self._gathered(groups, pieces)
        return DataParallelTime(tuple(flows), total_seconds([flow.exposed for flow in flows]))

    def _gathered(self, groups: list[Group], pieces: list[Number]) -> list[Flow]:
        """Updated weights on their way to all ranks."""
        layout, overlap = self.layout, self.scenario.overlap
        gathered = [
            collective("all-gather", buffer_bytes(self.weight_width, parameters), group, layout.fabric, count)
            for parameters, group, count in zip(self._parameters, groups, pieces, strict=True)
        ]
        hide = overlap.dp and overlap.parameter_gather
        window = forward_window(layout.layers, layout.pipeline, self.pipe.block.forward_seconds)
        costs = self._behind(gathered, window, hide, None)
        behind = "next forward" if hide else ""
        return [
            Flow(
                f"updated weights{owned.of}",
                "weights",
                "all-gather",
                gather.sent,
                gather.seconds,
                cost,
                1.0,
                behind,
                group,
            )
            for owned, gather, cost, group in zip(self.owned, gathered, costs, groups, strict=True)
        ]

    def _across_replicas(self, time: DataParallelTime) -> DataParallelTime:
        """The flows inside the shard group and one all-reduce of the gradient shards over its replicas."""
        group = self.layout.replica_group
        buffer = total_bytes(
            [
                replica_bytes(self.gradient_width, parameters, each.shards.ranks)
                for parameters, each in zip(self._parameters, self.owned, strict=True)
            ]
        )
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

    def _blocks(self, kind: str, width: Number, sets: tuple[Owned, ...]) -> list[Collective]:
        """The collective of one block, of each set of parameters."""
        fabric = self.layout.fabric
        return [collective(kind, buffer_bytes(width, each.block), each.shards, fabric) for each in sets]

    def _ends(self, kind: str, width: Number, sets: tuple[Owned, ...]) -> list[Collective]:
        """The same of the ends of the model."""
        fabric, pipeline = self.layout.fabric, self.layout.pipeline
        buffers = [ends_bytes(width, each.embedding, each.head, pipeline) for each in sets]
        return [collective(kind, buffer, each.shards, fabric) for buffer, each in zip(buffers, sets, strict=True)]

    def _sharded(self) -> DataParallelTime:
        """ZeRO-3: weights gathered for forward and again for backward, gradients scattered, for each micro-batch."""
        layout, kappa = self.layout, self.kappa
        weights, gradients = (
            (self._blocks(kind, width, sets), self._ends(kind, width, sets))
            for kind, width, sets in (
                ("all-gather", self.weight_width, self.gathered),
                ("reduce-scatter", self.gradient_width, self.owned),
            )
        )
        (gather, root), (scatter, root_back) = (
            [total_seconds([each.seconds for each in found]) for found in both] for both in (weights, gradients)
        )
        both_ends = add_seconds(root, root_back)
        ahead, back = self.pipe.block.forward_seconds, self.pipe.block.backward_seconds
        alone = sharded_exposed(
            layout.micro_batches,
            self._reductions,
            layout.layers,
            exposed_behind(gather, ahead, kappa),
            exposed_behind(gather, back, kappa),
            exposed_behind(add_seconds(gather, scatter), back, kappa),
            gather,
            scatter,
            both_ends,
        )
        piped = sharded_exposed_in_pipeline(layout.layers, layout.pipeline, gather, ahead, scatter, back, both_ends)
        waited = where(layout.pipeline > 1, piped, alone)
        gathers = where(layout.pipeline > 1, 1.0, times_count(2.0, layout.micro_batches))
        return self._sharded_flows((gathers, self._reductions), weights, gradients, waited)

    def _sharded_flows(
        self,
        counts: tuple[Number, Number],
        weights: tuple[list[Collective], list[Collective]],
        gradients: tuple[list[Collective], list[Collective]],
        waited: Number,
    ) -> DataParallelTime:
        """Gathering and scattering as flows, which share what is waited for by their times."""
        layers, pipeline = self.layout.layers, self.layout.pipeline
        hide = self.scenario.overlap.dp
        before, after = ("previous layer", "next layer's backward") if hide else ("", "")
        words = (
            ("weights", "all-gather", before, self.gathered),
            ("gradients", "reduce-scatter", after, self.owned),
        )
        found = [
            (owned, what, kind, behind, count, block, end)
            for (what, kind, behind, sets), count, (blocks, ends) in zip(
                words, counts, (weights, gradients), strict=True
            )
            for owned, block, end in zip(sets, blocks, ends, strict=True)
        ]
        seconds = [flow_seconds(count, layers, pipeline, block.seconds, end.seconds) for *_, count, block, end in found]
        together = total_seconds(seconds)
        waiting = at_most(waited, together) if hide else together
        if len(self.gathered) == 1:
            waiting = only_if_sharded(self.owned[0].shards.ranks, waiting)
        flows = tuple(
            Flow(
                f"{what}{owned.of}",
                what,
                kind,
                flow_bytes(count, layers, pipeline, block.sent, end.sent),
                one,
                in_proportion(waiting, one, together),
                count,
                behind,
                owned.shards,
            )
            for (owned, what, kind, behind, count, block, end), one in zip(found, seconds, strict=True)
        )
        return DataParallelTime(flows, waiting)
