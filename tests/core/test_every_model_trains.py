"""A training plan of every model of the catalogue, and of every family of layers that a published config holds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.plans import plan
from tests.core.spreadsheet import computed
from tests.core.test_arrays import differences
from tests.core.test_kinds_time import FAMILIES, MIXED, spec
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.cells import cell_text
from triledger.core.legality import require_legal
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Scenario

OTHERS = (*MIXED, *FAMILIES)
NAMES = (*catalogue().models, *OTHERS)


def model(name: str) -> ModelSpec:
    return spec(name) if name in OTHERS else catalogue().models[name]


def training(name: str, **changes: Any) -> Scenario:
    """A plan on four servers: two stages, experts over two ranks where there are any."""
    subject = model(name)
    usual: dict[str, Any] = {
        "cluster__gpus": 32,
        "parallelism__pp": 2,
        "parallelism__ep": 2 if subject.experts else 1,
        "training__global_batch": 64,
    }
    scenario = plan(subject, "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))
    require_legal(scenario)
    return scenario


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_step_between_the_bound_and_sanity(name: str) -> None:
    report = evaluate(training(name))
    values = report.values
    assert 0 < values["time.bound_s"] < values["time.step_s"]
    assert 0 < values["time.mfu"] < 0.75
    for key, value in values.items():
        assert isinstance(value, (str, bool)) or value is None or math.isfinite(float(value)), key
    exposed = sum(row.exposed_seconds for row in report.communication)
    assert exposed == pytest.approx(values["communication.exposed_seconds"])
    names = [point.name for point in report.points]
    assert len(names) == len(set(names))
    assert bool(model(name).experts) == ("experts" in names) == ("router" in names)
    assert bool(model(name).experts) == any("expert parallel" in row.name for row in report.communication)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("zero", "balance"), [(1, "by-time"), (3, "even")])
def test_arrays_of_layouts_hold_what_single_plans_hold(name: str, zero: int, balance: str) -> None:
    stages, micro, nodes = np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 1.0]), np.array([8.0, 8.0, 4.0])
    base = training(name, parallelism__zero=zero, parallelism__stage_balance=balance)

    def at(pp: Any, micro_batch: Any, gpus_per_node: Any) -> Scenario:
        parallel = replace(base.parallelism, pp=pp)
        work = replace(base.training, micro_batch=micro_batch)
        return replace(
            base, parallelism=parallel, training=work, cluster=replace(base.cluster, gpus_per_node=gpus_per_node)
        )

    together = evaluate(at(stages, micro, nodes))
    for index in range(3):
        alone = evaluate(at(float(stages[index]), float(micro[index]), float(nodes[index])))
        assert not differences(alone, together, index)


def test_one_pipeline_and_many_machines_deal_layers_by_time() -> None:
    machines = np.array([50e9, 5e9])
    together = evaluate(_with_network(machines))
    for index in range(2):
        assert not differences(evaluate(_with_network(float(machines[index]))), together, index)


def _with_network(bandwidth: Any) -> Scenario:
    scenario = training("deepseek-v3", parallelism__stage_balance="by-time")
    return scenario.with_("cluster.network.bandwidth", bandwidth)


#: One model for each way in which layers differ; recording every model would take minutes.
RECORDED = ("deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "qwen3-30b-a3b", "llama-4-maverick", *MIXED[4:7], "falcon_h1")


@pytest.mark.parametrize("name", RECORDED)
def test_every_term_of_such_a_plan_computes_what_the_engine_computed(name: str) -> None:
    report = evaluate(training(name), record=True)
    for term in report.terms:
        text = cell_text(term)
        value = computed(text, term.inputs)
        same = value == term.value if isinstance(term.value, str) else math.isclose(value, term.value, rel_tol=1e-12)
        assert same, text
    assert report.flat() == evaluate(report.scenario).flat()
