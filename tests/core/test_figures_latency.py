"""The chart of the parts of the time to first token and of the time per token."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate, load_scenario
from triledger.core.figures.by_name import figure
from triledger.core.figures.figure import SERIES, Figure


def drawn(**changes: Any) -> Figure:
    plan = serving("llama-3-70b", **({"tp": 8} | changes))
    return figure("latency", plan, evaluate(plan))


@pytest.mark.parametrize(
    "changes",
    [
        {"concurrency": 128},
        {"concurrency": 64, "request_rate": 2.0},
        {"tp": 4, "concurrency": 2000, "engine": "sglang-0.5"},
        {"tp": 1, "pp": 8, "concurrency": 40},
        {"concurrency": 4, "speculative.draft_tokens": 3},
        {"concurrency": 64, "output_tokens": 2, "prompt_tokens": 8000, "max_context": 9000},
    ],
)
def test_the_parts_fill_their_bars(changes: dict[str, Any]) -> None:
    drafts = changes.pop("speculative.draft_tokens", 0)
    plan = serving("llama-3-70b", **({"tp": 8} | changes)).with_("serving.speculative.draft_tokens", drafts)
    report = evaluate(plan)
    chart = figure("latency", plan, report)
    for place, key in enumerate(("serving.ttft_s", "serving.tpot_s")):
        lengths = [bar.length for bar in chart.bars if bar.row == place]
        # parts below a fifth of a per cent are left out, and a time may be raised to its physical floor
        assert sum(lengths) == pytest.approx(1.0, abs=0.015), key


def test_the_title_names_the_largest_parts() -> None:
    assert drawn(concurrency=1).title.startswith("Its prompt takes")
    assert "no place in the batch takes" in drawn(tp=4, concurrency=3000).title.lower()


def test_a_single_token_has_a_first_one_only() -> None:
    chart = drawn(output_tokens=1)
    assert chart.y.categories == ("first token",)
    assert {bar.row for bar in chart.bars} == {0}


def test_each_name_has_a_colour_of_its_own() -> None:
    series = [name for chart in (drawn(tp=4, concurrency=3000), drawn(concurrency=8)) for name in chart.key]
    named = {name: SERIES[one] for one, name in series}
    assert len(set(named.values())) == len(named) > 8


def test_one_request_waits_for_no_other_rank() -> None:
    many = load_scenario("deepseek-v3-h200-serve")
    one = many.with_("serving.concurrency", 1)
    names = [{bar.name for bar in figure("latency", plan, evaluate(plan)).bars} for plan in (many, one)]
    assert "waiting of attention ranks" in names[0] - names[1]
    assert not any("pipeline" in each for each in names)
    assert evaluate(one)["time.bubble_s"] == 0
