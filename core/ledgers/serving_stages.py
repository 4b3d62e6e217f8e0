"""Layers of the stages of a serving pipeline, where layers are not all alike.

Stages have layers in equal numbers; where these do not divide, the longer stages stand in the middle.
"""

from __future__ import annotations

import numpy as np

from ..model.layers import Model
from ..model.order import layers_among_first
from ..numeric import Number, ceil, floor, is_array, maximum, minimum
from ..terms import formula

#: How many layers of each kind of the model a stage has.
Stage = list[Number]


@formula("L_max", "layers")
def most_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the fullest stage."""
    return ceil(layers / pipeline_parallel)


@formula("L_end", "layers", "longer stages stand in the middle")
def end_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the first stage; of all but the last it is the last to get one more."""
    return minimum(ceil(layers / pipeline_parallel), floor((layers + 1) / pipeline_parallel))


@formula("L_before", "layers", "longer stages stand in the middle")
def layers_before(stage: Number, layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of all stages before one of them; all layers behind the last stage."""
    return minimum(
        layers,
        stage * floor(layers / pipeline_parallel)
        + minimum(
            maximum(0, stage - floor((pipeline_parallel - layers % pipeline_parallel) / 2)),
            layers % pipeline_parallel,
        ),
    )


@formula("L_stage", "layers")
def between(before: Number, up_to: Number) -> Number:
    """Layers of one kind in a stage."""
    return up_to - before


def stages_of(model: Model, pipeline: Number) -> tuple[list[Stage], list[Stage]]:
    """The stages that may be the fullest, and the first and the last one."""
    layers = [count for count, _ in model.groups]
    if len(layers) == 1:
        return [[most_layers(layers[0], pipeline)]], [[end_layers(layers[0], pipeline)]]
    if not is_array(pipeline) and pipeline == 1:
        return [layers], [layers]
    stages = [_stage(model, pipeline, float(place)) for place in range(int(np.max(pipeline)))]
    return stages, [stages[0], _stage(model, pipeline, pipeline - 1)]


def _stage(model: Model, pipeline: Number, place: Number) -> Stage:
    ends = [layers_before(stage, model.layers, pipeline) for stage in (place, place + 1)]
    before, up_to = (layers_among_first(model.spec, layers) for layers in ends)
    return [between(first, last) for first, last in zip(before, up_to, strict=True)]
