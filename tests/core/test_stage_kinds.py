"""Layers of each kind on the stages of a pipeline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from triledger.core.catalogue import catalogue
from triledger.core.model.layers import Model, build
from triledger.core.training.stage_kinds import StageKinds
from triledger.core.training.stages import EvenStages, ListedStages, Stages, TimedStages

MIXED = [id for id, spec in catalogue().models.items() if len(build(spec).groups) > 1]


def counted(model: Model, stages: Stages, pipeline: int) -> list[list[float]]:
    """Layers of each group on each stage, counted one by one from the order of the layers."""
    held = []
    for stage in range(pipeline):
        chunks = stages.chunks_on(float(stage))
        places = [int(chunk.before) + n for chunk in chunks for n in range(int(chunk.layers))]
        held.append([sum(model.order[place] == group for place in places) for group in range(len(model.groups))])
    return held


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize(("pipeline", "virtual"), [(1, 1), (4, 1), (4, 3), (7, 2), (8, 1)])
def test_every_layer_stands_on_one_stage(name: str, pipeline: int, virtual: int) -> None:
    model = build(catalogue().models[name])
    stages = EvenStages(model.layers, pipeline, virtual)
    kinds = StageKinds(model, stages, pipeline)
    found = [list(kinds.on(float(stage))) for stage in range(pipeline)]
    assert found == counted(model, stages, pipeline)
    assert np.sum(found, axis=0).tolist() == [layers for layers, _ in model.groups]
    assert [sum(each) for each in found] == [stages.layers_on(float(stage)) for stage in range(pipeline)]


def test_the_dense_layers_of_deepseek_stand_on_the_first_stage() -> None:
    # arXiv 2412.19437, section 4.2: the first three layers are dense
    model = build(catalogue().models["deepseek-v3"])
    kinds = StageKinds(model, EvenStages(61, 16, 1), 16)
    assert kinds.on(0.0) == (3.0, 0.0)
    assert kinds.on(15.0) == (0.0, 3.0)
    assert kinds.distinct == [0.0, 1.0, 14.0, 15.0]


def test_a_list_and_stages_by_time() -> None:
    model = build(catalogue().models["deepseek-v3"])
    listed = StageKinds(model, ListedStages((2, 20, 20, 19), 4), 4)
    assert [listed.on(float(stage)) for stage in range(4)] == [(2, 0), (1, 19), (0, 20), (0, 19)]
    timed = StageKinds(model, TimedStages(61, 4, 13), 4)
    assert [timed.on(float(stage)) for stage in range(4)] == [(3, 13), (0, 16), (0, 16), (0, 13)]


@pytest.mark.parametrize("name", MIXED)
def test_arrays_hold_what_numbers_hold(name: str) -> None:
    spec = catalogue().models[name]
    layers, pipeline, virtual = np.array([40, 40, 61, 50]), np.array([1, 4, 8, 5]), np.array([1, 2, 1, 3])
    many = build(replace(spec, layers=layers))
    together = StageKinds(many, EvenStages(layers, pipeline, virtual), pipeline)
    for stage in range(5):
        on = together.on(np.minimum(float(stage), pipeline - 1))
        for index in range(4):
            model = build(replace(spec, layers=int(layers[index])))
            alone = StageKinds(
                model, EvenStages(int(layers[index]), int(pipeline[index]), int(virtual[index])), int(pipeline[index])
            )
            single = alone.on(float(min(stage, pipeline[index] - 1)))
            assert [float(each[index]) for each in on][: len(single)] == list(single)


def test_stages_of_many_pipelines_that_tell_something_are_few() -> None:
    model = build(catalogue().models["deepseek-v3"])
    pipelines = np.array([1.0, 4.0, 16.0, 60.0])
    many = StageKinds(model, EvenStages(61, pipelines, 1), pipelines)
    assert len(many.distinct) < 10
    for index, pipeline in enumerate(pipelines):
        alone = StageKinds(model, EvenStages(61, float(pipeline), 1), float(pipeline))
        found = {float(np.broadcast_to(stage, 4)[index]) for stage in many.distinct}
        assert found >= {stage for stage in alone.distinct if stage < pipeline}
