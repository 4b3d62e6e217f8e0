"""How many layers of each kind a pipeline stage holds, where a model has layers of several kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add, sub

import numpy as np

from ..model.layers import Model
from ..numeric import Number, is_array, minimum
from ..terms import formula, plain
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

    def on(self, stage: Number) -> tuple[Number, ...]:
        """Layers of each group on a stage (0-based; a number or an array of stages)."""
        if len(self.model.groups) == 1:
            return (self.stages.layers_on(stage),)
        chunks = [
            (self.model.layers_before(chunk.before + chunk.layers), self.model.layers_before(chunk.before))
            for chunk in self.stages.chunks_on(stage)
        ]
        counted = [tuple(map(sub, after, before)) for after, before in chunks]
        return tuple(kind_layers(reduce(add, each)) for each in zip(*counted, strict=True))

    def distinct(self) -> list[Number]:
        """Stages among which the largest of any ledger is found: of those with equal layers the first, and the last."""
        if len(self.model.groups) == 1:
            return self.stages.distinct()
        count = int(np.max(self.pipeline))
        if is_array(self.pipeline):
            return [minimum(float(stage), self.pipeline - 1) for stage in range(count)]
        held = [self.on(float(stage)) for stage in range(count)]
        if any(is_array(*each) for each in held):
            return [float(stage) for stage in range(count)]
        first: dict[tuple[float, ...], float] = {}
        for stage, each in enumerate(held):
            first.setdefault(tuple(map(plain, each)), float(stage))
        return sorted({*first.values(), float(count - 1)})
