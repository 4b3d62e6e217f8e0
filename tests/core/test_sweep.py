"""A sweep: every combination, numbers evaluated together, illegal ones with a reason."""

from __future__ import annotations

import pytest

from triledger.core import Report, Scenario, evaluate, load_scenario
from triledger.core.errors import ScenarioError
from triledger.core.explore.sweep import METRICS, sweep
from triledger.core.legality import violations
from triledger.core.scenario_file import set_field

OVER = {
    "7b-8xa100-train": [
        ("training.recompute", ["none", "full"]),
        ("parallelism.zero", ["1", "3"]),
        ("parallelism.tp", ["1", "2", "3", "8"]),
        ("training.tokens", ["1T", "2T"]),
    ],
    "70b-bf16-8xa100-serve": [
        ("serving.kv_format", ["bf16", "fp8"]),
        ("serving.concurrency", ["8", "64"]),
        ("parallelism.tp", ["4", "8", "5"]),
    ],
}


@pytest.mark.parametrize("preset", OVER)
def test_rows_are_those_of_one_plan_at_a_time(preset: str) -> None:
    scenario = load_scenario(preset)
    metrics = METRICS[scenario.kind]
    rows = sweep(scenario, OVER[preset], metrics, evaluate)
    assert {bool(row.reason) for row in rows} == {True, False}
    for row in rows:
        plan = scenario
        for (path, _), text in zip(OVER[preset], row.settings, strict=True):
            plan = set_field(plan, path, text)
        if row.reason:
            assert row.results == {}
            assert row.reason.endswith(violations(plan)[0].message)
            continue
        report = evaluate(plan)
        for key in metrics:
            expected = report[key] if isinstance(report[key], str) else pytest.approx(report[key], rel=1e-12)
            assert row.results[key] == expected


def test_the_last_field_changes_fastest() -> None:
    over = [("training.recompute", ["none", "full"]), ("training.micro_batch", ["1", "2"])]
    rows = sweep(load_scenario("7b-8xa100-train"), over, (), evaluate)
    assert [row.settings for row in rows] == [("none", "1"), ("none", "2"), ("full", "1"), ("full", "2")]


def test_numbers_share_an_evaluation_and_words_do_not() -> None:
    calls = []

    def counted(scenario: Scenario) -> Report:
        calls.append(scenario)
        return evaluate(scenario)

    sweep(load_scenario("7b-8xa100-train"), OVER["7b-8xa100-train"], ("time.step_s",), counted)
    assert len(calls) == 4


def test_a_value_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"training\.tokens"):
        sweep(load_scenario("7b-8xa100-train"), [("training.tokens", ["much"])], (), evaluate)
