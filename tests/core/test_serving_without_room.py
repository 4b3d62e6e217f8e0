"""A served plan in which not one request fits: what it holds and its bounds are results, what requests see is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from triledger.core import Report, evaluate, load_scenario
from triledger.core.explore.sweep import METRICS, sweep
from triledger.core.figures.by_name import figure
from triledger.core.report import Finding
from triledger.core.what_if import answers, table
from triledger.core.working import UnknownKeyError, explain

WITHHELD = (
    "time.tokens_per_s",
    "serving.ttft_s",
    "serving.ttft_low_s",
    "serving.tpot_s",
    "serving.output_tokens_per_s",
    "serving.requests_per_s",
    "serving.running",
    "serving.p99_ttft_s",
    "serving.goodput_requests_per_s",
    "cost.usd_per_million_output_tokens",
)
KEPT = (
    "memory.weights_bytes",
    "memory.headroom_bytes",
    "time.bound_s",
    "serving.tpot_bound_s",
    "serving.ttft_bound_s",
    "serving.kv_bytes_per_token",
    "serving.max_concurrency",
    "whiteboard.step_floor_s",
)


def plan():
    return load_scenario("70b-bf16-8xa100-serve").with_("parallelism.tp", 1).with_("cluster.gpus", 1)


@pytest.fixture(scope="module")
def report() -> Report:
    return evaluate(plan())


def test_what_requests_would_see_is_absent_and_the_rest_is_there(report: Report) -> None:
    flat = report.flat()
    assert not flat["memory.fits"]
    assert flat["serving.held_requests"] == 0
    assert not [key for key in WITHHELD if key in flat]
    assert not [key for key in KEPT if key not in flat]
    assert set(WITHHELD) <= set(report.withheld)
    json.dumps(flat)


def test_the_finding_says_what_would_fit_and_speaks_of_no_rates(report: Report) -> None:
    first: Finding = report.findings[0]
    assert (first.code, first.severity) == ("does-not-fit", "error")
    assert all(evaluate(edit.applied(plan())).holds_a_request for edit in first.edits)
    assert first.edits
    running = {"tpot-target-missed", "ttft-target-missed", "large-chunks", "kernel-ceiling", "prefill-share"}
    assert not running & {finding.code for finding in report.findings}


@pytest.mark.parametrize("name", ["serving", "latency", "waterfall", "speculation"])
def test_charts_of_what_requests_see_are_empty_and_say_why(report: Report, name: str) -> None:
    chart = figure(name, plan(), report, evaluate(load_scenario("70b-bf16-8xa100-serve")))
    assert chart.empty == "Not one request fits into memory."


def test_a_baseline_without_room_leaves_a_chart_as_it_is(report: Report) -> None:
    scenario = load_scenario("70b-bf16-8xa100-serve")
    for name in ("serving", "latency", "waterfall"):
        assert not figure(name, scenario, evaluate(scenario), report).empty


def test_a_withheld_result_has_no_working_and_says_why() -> None:
    with pytest.raises(UnknownKeyError, match=r"there is no serving\.tpot_s in this plan: not one request fits"):
        explain(evaluate(plan(), record=True), "serving.tpot_s")


def test_what_if_still_tells_what_a_change_brings(report: Report) -> None:
    rows = {row[0]: row for row in table(report, answers(plan(), evaluate), evaluate).rows}
    assert rows["this plan"][1:4] == (None, None, None)
    assert rows["4-bit weights"][1] > 0


def test_arrays_tell_the_plans_without_room_apart() -> None:
    gpus = np.array([1.0, 2.0, 4.0])
    many = evaluate(load_scenario("70b-bf16-8xa100-serve").with_("cluster.gpus", gpus).with_("parallelism.tp", gpus))
    held = many["serving.held_requests"] >= 1
    assert held.tolist() == [False, True, True]
    for key in ("serving.tpot_s", "serving.output_tokens_per_s", "serving.p99_ttft_s"):
        assert np.isnan(many[key]).tolist() == (~held).tolist()


def test_a_sweep_leaves_out_what_a_plan_does_not_have() -> None:
    over = [("cluster.gpus", ("1", "4")), ("parallelism.tp", ("1", "4"))]
    rows = {row.settings: row.results for row in sweep(plan(), over, METRICS["serving"], evaluate)}
    assert set(rows["1", "1"]) == {"memory.total_bytes", "memory.verdict"}
    assert set(rows["4", "4"]) == set(METRICS["serving"])
