"""Layers of the stages of a serving pipeline, where layers are not all alike.

Stages have layers in equal numbers; where these do not divide, the longer stages stand in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.layers import Model
from ..numeric import Number, ceil, floor, is_array, minimum
from ..terms import formula
from ..training.stage_kinds import stage_kinds
from ..training.stages import EvenStages

#: How many layers of each kind of the model a stage has.
Stage = Sequence[Number]


@formula("L_max", "layers")
def most_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the fullest stage."""
    return ceil(layers / pipeline_parallel)


@formula("L_end", "layers", "longer stages stand in the middle")
def end_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the first stage; of all but the last it is the last to get one more."""
    return minimum(ceil(layers / pipeline_parallel), floor((layers + 1) / pipeline_parallel))


def stages_of(model: Model, pipeline: Number) -> tuple[list[Stage], list[Stage]]:
    """The stages that may be the fullest, and the first and the last one."""
    layers = [count for count, _ in model.groups]
    if len(layers) == 1:
        return [[most_layers(layers[0], pipeline)]], [[end_layers(layers[0], pipeline)]]
    if not is_array(pipeline) and pipeline == 1:
        return [layers], [layers]
    kinds = stage_kinds(model, EvenStages(model.layers, pipeline, 1), pipeline)
    return [kinds.on(stage) for stage in kinds.distinct], [kinds.on(stage) for stage in (0.0, pipeline - 1)]
