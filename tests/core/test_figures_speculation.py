"""The chart of what drafts gain along the batch."""

from __future__ import annotations

import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.figures.by_name import figure
from triledger.core.scenario import Scenario

DRAFTS = "serving.speculative.draft_tokens"


def plan(drafts: float, **changes: float) -> Scenario:
    return serving("llama-3-70b", tp=8, **({"concurrency": 64} | changes)).with_(DRAFTS, drafts)


def test_the_plan_stands_where_its_gain_is() -> None:
    scenario = plan(3)
    report = evaluate(scenario)
    chart = figure("speculation", scenario, report)
    [ring] = chart.marks
    assert (ring.x, ring.y) == (64, pytest.approx(report["serving.speculative_speedup"], rel=1e-12))
    assert chart.title.startswith("3 drafts: tokens ")


def test_a_plan_without_drafts_is_shown_four() -> None:
    scenario = plan(0)
    chart = figure("speculation", scenario, evaluate(scenario))
    four = evaluate(plan(4))["serving.speculative_speedup"]
    assert chart.marks[0].y == pytest.approx(four, rel=1e-12)


def test_longer_contexts_lie_higher_and_the_title_names_the_end_of_the_gain() -> None:
    scenario = plan(5, prompt_tokens=256, output_tokens=256)
    report = evaluate(scenario)
    chart = figure("speculation", scenario, report)
    short, own, long = (line.y for line in chart.lines)
    assert short[-1] < own[-1] < long[-1]
    end = float(chart.title.split("from ")[1].split(" sequences")[0].replace("\u202f", "").replace("\u00a0", ""))
    assert end == pytest.approx(report["serving.speculative_crossover_batch"], rel=0.1)
