"""How layers are dealt to pipeline stages: evenly, with slots for the ends, by a list, or to take equally long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..numeric import Number, both, ceil, floor, is_array, maximum, minimum, where
from ..terms import formula


@formula("L_i", "layers", "Megatron-LM: equal chunks; what is left over goes to the middle chunks")
def stage_layers(
    pipeline: Number,
    virtual: Number,
    stage: Number,
    floor_layers: Number,
    first_long: Number,
    long: Number,
) -> Number:
    """Layers on a stage: `virtual` chunks of the floor, and one more for each longer chunk that falls on the stage."""
    return (
        virtual * floor_layers
        + floor((first_long + long - 1 - stage) / pipeline)
        - floor((first_long - 1 - stage) / pipeline)
    )


@formula("⌊L/(p·v)⌋", "layers")
def chunk_floor(layers: Number, pipeline: Number, virtual: Number) -> Number:
    """Layers that every chunk has."""
    return floor(layers / (pipeline * virtual))


@formula("L mod p·v", "chunks")
def long_chunks(layers: Number, pipeline: Number, virtual: Number, floor_layers: Number) -> Number:
    """Chunks that have one layer more."""
    return layers - pipeline * virtual * floor_layers


@formula("j₀", "chunk", "longer chunks stand farthest from embedding and head")
def first_long_chunk(pipeline: Number, virtual: Number, long: Number) -> Number:
    """The first of the longer chunks, which stand in the middle."""
    return floor((pipeline * virtual - long) / 2)


@formula("j₀ mod p", "stage")
def stage_of_chunk(chunk: Number, pipeline: Number) -> Number:
    """The stage that holds a chunk."""
    return chunk - pipeline * floor(chunk / pipeline)


@formula("p − 1", "stage")
def last_stage(pipeline: Number) -> Number:
    """Index of the last stage."""
    return pipeline - 1


@formula("min(1, p − 1)", "stage")
def second_stage(pipeline: Number) -> Number:
    """Index of the second stage, or 0 where there is one stage only."""
    return where(pipeline > 1, 1.0, 0.0)


@formula("L + 2", "slots", "Megatron-LM: embedding and head are accounted for in the pipeline split")
def layer_slots(layers: Number) -> Number:
    """Slots of the layers, and one each of the embedding and the head."""
    return layers + 2


@formula("L_i", "layers")
def layers_in_slots(slots: Number, first: Number, last: Number) -> Number:
    """Layers in the slots of a stage that may hold the embedding or the head."""
    return slots - first - last


@formula("L_i", "layers")
def listed_layers(layers: Number) -> Number:
    """Layers of a stage as a list states them."""
    return layers


@formula("n − 1 − i", "stage")
def opposite_stage(stages: Number, stage: Number) -> Number:
    """The stage that is as far from the last as a stage is from the first."""
    return stages - 1 - stage


@formula("L_i + L_(n−1−i)", "layers")
def layers_of_two(stage: Number, opposite: Number) -> Number:
    """Layers on a rank that holds two stages."""
    return stage + opposite


@formula("n*", "layers", "derived: the last stage with its head takes as long as the others")
def equal_last_layers(layers: Number, pipeline: Number, head: Number, block: Number) -> Number:
    """Whole layers on the last stage, beside the head, at which the stages come nearest below to equally long."""
    return maximum(0.0, floor((layers - (pipeline - 1) * head / block) / pipeline))


@formula("max t_stage", "s")
def longest_stage(layers: Number, pipeline: Number, last: Number, head: Number, block: Number) -> Number:
    """The longest stage when the last one has `last` layers and the head, and the others share the rest."""
    return maximum(ceil((layers - last) / maximum(1, pipeline - 1)) * block, last * block + head)


@formula("n", "layers")
def better_last_layers(last: Number, longest: Number, longest_with_one_more: Number) -> Number:
    """Layers of the last stage: one more where that makes the longest stage shorter."""
    return last + where(longest_with_one_more < longest, 1.0, 0.0)


@formula("n + 1", "layers")
def one_more(last: Number) -> Number:
    """One layer more."""
    return last + 1


def balanced_last_layers(layers: Number, pipeline: Number, head: Number, block: Number) -> Number:
    """Layers of the last stage for which the longest stage is shortest."""
    last = equal_last_layers(layers, pipeline, head, block)
    longest = longest_stage(layers, pipeline, last, head, block)
    return better_last_layers(last, longest, longest_stage(layers, pipeline, one_more(last), head, block))


@formula("L_i", "layers")
def stage_layers_before_last(layers: Number, pipeline: Number, last_layers: Number, stage: Number) -> Number:
    """Layers on a stage when the last one has its own number; of the others the first ones take one layer more."""
    return where(
        stage == pipeline - 1,
        last_layers,
        floor((layers - last_layers + maximum(1, pipeline - 1) - 1 - stage) / maximum(1, pipeline - 1)),
    )


class Chunk(NamedTuple):
    """A run of layers on a stage: how many stand before it in the model, and how many it has."""

    before: Number
    layers: Number


class Stages(Protocol):
    """A way to deal layers to stages."""

    def layers_on(self, stage: Number) -> Number:
        """Layers on a stage (0-based; a number or an array of stages)."""
        ...

    def distinct(self) -> list[Number]:
        """Stages among which the largest of any ledger is found: what is kept in flight falls with the index."""
        ...

    def chunks_on(self, stage: Number) -> list[Chunk]:
        """The runs of layers of a stage (0-based; a number or an array of stages)."""
        ...


@dataclass(frozen=True)
class EvenStages:
    """Chunks of floor or ceil of the mean; the longer ones stand in the middle."""

    layers: Number
    pipeline: Number
    virtual: Number

    def _long(self) -> tuple[Number, Number, Number]:
        """Layers of every chunk, chunks with one more, and the first of these."""
        least = chunk_floor(self.layers, self.pipeline, self.virtual)
        long = long_chunks(self.layers, self.pipeline, self.virtual, least)
        return least, long, first_long_chunk(self.pipeline, self.virtual, long)

    def layers_on(self, stage: Number) -> Number:
        least, long, first = self._long()
        return stage_layers(self.pipeline, self.virtual, stage, least, first, long)

    def distinct(self) -> list[Number]:
        if not is_array(self.pipeline) and self.pipeline == 1:
            return [0.0]
        longer = stage_of_chunk(self._long()[2], self.pipeline)
        return [0.0, second_stage(self.pipeline), longer, last_stage(self.pipeline)]

    def chunks_on(self, stage: Number) -> list[Chunk]:
        least, long, first = self._long()
        chunks = []
        for turn in range(int(np.max(self.virtual))):
            chunk = turn * self.pipeline + stage
            before = chunk * least + minimum(maximum(chunk - first, 0), long)
            layers = least + where(both(chunk >= first, chunk < first + long), 1, 0)
            chunks.append(Chunk(*(where(turn < self.virtual, each, 0.0) for each in (before, layers))))
        return chunks


@dataclass(frozen=True)
class SlotStages:
    """Slots dealt evenly, of which the embedding takes the first and the head the last."""

    layers: Number
    pipeline: Number
    virtual: Number

    def _slots(self) -> EvenStages:
        return EvenStages(layer_slots(self.layers), self.pipeline, self.virtual)

    def layers_on(self, stage: Number) -> Number:
        first, last = where(stage == 0, 1.0, 0.0), where(stage == self.pipeline - 1, 1.0, 0.0)
        return layers_in_slots(self._slots().layers_on(stage), first, last)

    def distinct(self) -> list[Number]:
        return self._slots().distinct()

    def chunks_on(self, stage: Number) -> list[Chunk]:
        chunks = []
        for turn, (before, slots) in enumerate(self._slots().chunks_on(stage)):
            chunk = turn * self.pipeline + stage
            first = where(chunk == 0, 1.0, 0.0)
            last = where(chunk == self.pipeline * self.virtual - 1, 1.0, 0.0)
            chunks.append(Chunk(maximum(0.0, before - 1), layers_in_slots(slots, first, last)))
        return chunks


@dataclass(frozen=True)
class ListedStages:
    """The number of layers of each chunk as a person states it; stage i holds chunks i, p + i, 2p + i and so on."""

    layers: tuple[int, ...]
    pipeline: Number

    def layers_on(self, stage: Number) -> Number:
        if is_array(stage, self.pipeline):
            chunks = enumerate(self.layers)
            return sum(where(stage_of_chunk(chunk, self.pipeline) == stage, count, 0.0) for chunk, count in chunks)
        return listed_layers(float(sum(self.layers[int(stage) :: int(self.pipeline)])))

    def chunks_on(self, stage: Number) -> list[Chunk]:
        before = np.cumsum((0, *self.layers))
        if is_array(stage, self.pipeline):
            here = [stage_of_chunk(chunk, self.pipeline) == stage for chunk in range(len(self.layers))]
            return [
                Chunk(*(where(flag, each, 0.0) for each in (float(before[chunk]), float(count))))
                for chunk, (flag, count) in enumerate(zip(here, self.layers, strict=True))
            ]
        chunks = range(int(stage), len(self.layers), int(self.pipeline))
        return [Chunk(float(before[chunk]), float(self.layers[chunk])) for chunk in chunks]

    def distinct(self) -> list[Number]:
        return [float(stage) for stage in range(int(np.max(self.pipeline)))]


@dataclass(frozen=True)
class TimedStages:
    """Fewer layers on the last stage, which also holds the head; the others are even."""

    layers: Number
    pipeline: Number
    last: Number

    def layers_on(self, stage: Number) -> Number:
        return stage_layers_before_last(self.layers, self.pipeline, self.last, stage)

    def chunks_on(self, stage: Number) -> list[Chunk]:
        others = maximum(1, self.pipeline - 1)
        rest = self.layers - self.last
        least = floor(rest / others)
        before = where(stage == self.pipeline - 1, rest, stage * least + minimum(stage, rest - others * least))
        return [Chunk(before, self.layers_on(stage))]

    def distinct(self) -> list[Number]:
        return [0.0, second_stage(self.pipeline), last_stage(self.pipeline)]


@dataclass(frozen=True)
class FoldedStages:
    """A pipeline folded in two: a rank holds a stage and the one as far from the other end.

    There are as many stages as ranks where two ranks hold each (DualPipe), twice as many where one does (ZB-V).
    """

    stages: Stages
    count: Number

    def opposite(self, stage: Number) -> Number:
        """The other stage of a rank."""
        return opposite_stage(self.count, stage)

    def layers_on(self, stage: Number) -> Number:
        return layers_of_two(self.stages.layers_on(stage), self.stages.layers_on(self.opposite(stage)))

    def chunks_on(self, stage: Number) -> list[Chunk]:
        return [*self.stages.chunks_on(stage), *self.stages.chunks_on(self.opposite(stage))]

    def distinct(self) -> list[Number]:
        middle = maximum(0.0, floor(self.count / 2) - 1)
        found = [minimum(stage, self.count - 1 - stage) for stage in (*self.stages.distinct(), middle)]
        return found if is_array(*found) else list(dict.fromkeys(found))
