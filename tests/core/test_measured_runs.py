"""Published runs as plans."""

from __future__ import annotations

import pytest

from triledger.core import evaluate, load_scenario, read_scenario
from triledger.core.errors import ScenarioError
from triledger.core.measured.errors import shipped_errors
from triledger.core.scenario_file import write_scenario


def test_a_run_is_predicted_as_in_the_table_of_errors() -> None:
    row = next(row for row in shipped_errors() if row.id == "bloom-105")
    report = evaluate(load_scenario("run:bloom-105"))
    assert report["time.step_s"] == pytest.approx(row.predicted, rel=1e-3)
    assert report["measured.step_s"] == pytest.approx(row.measured, rel=1e-3)
    assert report["measured.over_prediction"] == pytest.approx(row.slowdown, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["sc21-t1-39B", "nano-80B-4n", "sil-064-tpot", "gptfast-20", "ttm-405b-cp8", "kv-5248"]
)
def test_a_run_can_be_saved_and_read_again(name: str) -> None:
    scenario = load_scenario(f"run:{name}")
    assert name in scenario.name
    assert read_scenario(write_scenario(scenario), "run.yaml") == scenario


def test_what_a_client_saw_stands_beside_the_prediction() -> None:
    assert load_scenario("run:sil-064-tpot").measured.tpot
    assert evaluate(load_scenario("run:sil-064-tpot"))["measured.over_prediction"] > 0


@pytest.mark.parametrize(
    ("name", "said"),
    [("bloom-no", "no published run is called 'bloom-no'"), ("kor-t4-base-fwd", "time of one layer, not of a step")],
)
def test_a_run_that_is_none_is_refused_with_its_reason(name: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        load_scenario(f"run:{name}")


def test_runs_of_the_table_can_be_opened() -> None:
    rows = [row for row in shipped_errors() if row.kind in ("training", "serving")]
    for row in rows[:: len(rows) // 8]:
        assert load_scenario(f"run:{row.id}").kind == row.kind
