"""How many layers of each kind a pipeline stage holds, where a model has layers of several kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from operator import add, sub

import numpy as np

from ..model.layers import Model
from ..numeric import Number, is_array, minimum, where
from ..terms import formula, is_recording
from .stages import FoldedStages, Stages, opposite_stage


@formula("L_i,kind", "layers", "the order of the model's layers and the layers of the stage's chunks")
def kind_layers(layers: Number) -> Number:
    """Layers of one kind on a stage, counted."""
    return layers


@dataclass(frozen=True)
class StageKinds:
    """The layers of each group of a model on the stages of a pipeline."""

    model: Model
    stages: Stages
    pipeline: Number

    @cached_property
    def _found(self) -> dict[float, tuple[Number, ...]]:
        """What has been counted already, by stage: each ledger asks again."""
        return {}

    def on(self, stage: Number) -> tuple[Number, ...]:
        """Layers of each group on a stage (0-based; a number or an array of stages)."""
        if len(self.model.groups) == 1:
            return (self.stages.layers_on(stage),)
        if is_array(stage):
            return self._counted(stage)
        if stage not in self._found:
            self._found[stage] = self._counted(stage)
        return self._found[stage]

    def apart(self, stage: Number) -> list[tuple[Number, tuple[Number, ...]]]:
        """The stages that a rank holds, each with its layers of each group."""
        if self._unfolded is None:
            return [(stage, self.on(stage))]
        return [(held, self._unfolded.on(held)) for held in (stage, opposite_stage(self._unfolded.pipeline, stage))]

    @cached_property
    def _unfolded(self) -> StageKinds | None:
        """The stages of a folded pipeline, of which each rank holds two; None where it holds one."""
        folded = self.stages
        return StageKinds(self.model, folded.stages, folded.count) if isinstance(folded, FoldedStages) else None

    def firsts(self, stage: Number) -> Number:
        """First stages, with the embedding, that a rank holds: 1 or 0."""
        return self._held(stage, 0)

    def lasts(self, stage: Number) -> Number:
        """Last stages, with the output head, that a rank holds: 1 or 0."""
        return self._held(stage, (self._unfolded or self).pipeline - 1)

    def _held(self, stage: Number, wanted: Number) -> Number:
        here = where(stage == wanted, 1.0, 0.0)
        if self._unfolded is None:
            return here
        return where(opposite_stage(self._unfolded.pipeline, stage) == wanted, 1.0, here)

    def _counted(self, stage: Number) -> tuple[Number, ...]:
        chunks = [
            (self.model.layers_before(chunk.before + chunk.layers), self.model.layers_before(chunk.before))
            for chunk in self.stages.chunks_on(stage)
        ]
        counted = [tuple(map(sub, after, before)) for after, before in chunks]
        return tuple(kind_layers(reduce(add, each)) for each in zip(*counted, strict=True))

    @cached_property
    def distinct(self) -> list[Number]:
        """Stages among which the largest of any ledger is found: of those with equal layers the first, and the last."""
        if len(self.model.groups) == 1:
            return self.stages.distinct()
        last = (self.pipeline if self._unfolded is None else self._unfolded.pipeline / 2) - 1
        stages = [minimum(float(stage), last) for stage in range(int(np.max(last)) + 1)]
        counts = np.broadcast_arrays(*(n for stage in stages for _, held in self.apart(stage) for n in held))
        held = np.reshape(counts, (len(stages), len(counts) // len(stages), -1))
        kept: list[int] = []
        for stage, here in enumerate(held):
            if not (held[kept] == here).all(axis=1).any(axis=0).all():
                kept.append(stage)
        if kept[-1] != len(stages) - 1:
            kept.append(len(stages) - 1)
        return [stages[stage] for stage in kept]


def stage_kinds(model: Model, stages: Stages, pipeline: Number) -> StageKinds:
    """The layers of a model on the stages of a pipeline; what was counted of a plan that came before is looked up."""
    if len(model.groups) > 1 and not is_recording():
        try:
            return _kept(model, stages, pipeline)
        except TypeError:  # arrays have no hash
            pass
    return StageKinds(model, stages, pipeline)


_kept = lru_cache(maxsize=64)(StageKinds)
