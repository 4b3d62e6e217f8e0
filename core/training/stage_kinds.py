"""How many layers of each kind a pipeline stage holds, where a model has layers of several kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add, sub

import numpy as np

from ..model.layers import Model
from ..numeric import Number, is_array, minimum
from ..terms import formula
from .stages import Stages


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
        last = self.pipeline - 1
        stages = [minimum(float(stage), last) for stage in range(int(np.max(self.pipeline)))]
        counts = np.broadcast_arrays(*(count for stage in stages for count in self.on(stage)))
        held = np.reshape(counts, (len(stages), len(self.model.groups), -1))
        kept: list[int] = []
        for stage, here in enumerate(held):
            if not (held[kept] == here).all(axis=1).any(axis=0).all():
                kept.append(stage)
        if kept[-1] != len(stages) - 1:
            kept.append(len(stages) - 1)
        return [stages[stage] for stage in kept]
