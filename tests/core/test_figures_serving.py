"""What the roofline and the serving chart say of evaluated plans."""

from __future__ import annotations

import pytest

from triledger.core.engine import evaluate
from triledger.core.figures.by_name import figure
from triledger.core.figures.figure import Figure, Mark
from triledger.core.scenario import Scenario
from triledger.core.scenario_file import load_scenario

INT4 = "70b-int4-1xh100-serve"


def drawn(name: str, scenario: Scenario) -> Figure:
    return figure(name, scenario, evaluate(scenario))


def mark(chart: Figure, name: str) -> Mark:
    (found,) = [each for each in chart.marks if each.name == name]
    return found


@pytest.mark.parametrize(
    ("preset", "field", "value"),
    [
        ("70b-bf16-8xa100-serve", "serving.concurrency", 128),
        (INT4, "serving.concurrency", 23),
        ("70b-64xh100-train", "training.sequence_length", 4096),
        ("70b-64xh100-train", "training.sequence_length", 1),
    ],
)
def test_colour_and_side_of_the_knee_agree(preset: str, field: str, value: int) -> None:
    scenario = load_scenario(preset).with_(field, value)
    report, chart = evaluate(scenario), drawn("roofline", scenario)
    kinds = {(each.x >= report["roofline.knee"], each.series) for each in chart.marks if each.shape == "dot"}
    assert kinds <= {(True, "compute"), (False, "memory")}
    assert chart.title.startswith(f"{str(report['time.bottleneck']).capitalize()} bound")


def test_a_kernel_left_of_the_knee_names_its_own_ceiling() -> None:
    scenario = load_scenario(INT4).with_("serving.concurrency", 23)
    hover = mark(drawn("roofline", scenario), "FFN up").hover
    assert "memory bound; kernel ceiling 237 TFLOP/s, 24 % of peak" in hover
    assert "few rows for its tiles, weights expanded to 16 bits" in hover
    assert "kernel ceiling" not in mark(drawn("roofline", load_scenario(INT4)), "FFN up").hover


def test_the_ring_of_a_full_cache_is_where_that_plan_stands() -> None:
    scenario = load_scenario(INT4)
    there = evaluate(scenario.with_("serving.concurrency", 23))
    ring = mark(drawn("serving", scenario), "capacity")
    assert ring.x == pytest.approx(there["serving.tpot_s"], rel=1e-12)
    assert ring.y == pytest.approx(there["serving.output_tokens_per_s"], rel=1e-12)
    assert ring.hover.startswith("23 fill the KV cache: 23 requests: 472 tok/s a GPU, 47.7 ms a token")


@pytest.mark.parametrize("requests", [16, 64])
def test_the_cache_says_how_many_requests_it_is_to_hold_and_can_hold(requests: int) -> None:
    scenario = load_scenario(INT4).with_("serving.concurrency", requests)
    (label,) = drawn("memory", scenario).labels
    assert label.text == f"{requests} requests, room for 23"


def test_the_knee_is_marked_on_the_curve() -> None:
    scenario = load_scenario("70b-bf16-8xa100-serve")
    knee = evaluate(scenario)["serving.knee_requests"]
    there = evaluate(scenario.with_("serving.concurrency", round(knee)))
    ring = mark(drawn("serving", scenario), "knee")
    assert ring.x == pytest.approx(there["serving.tpot_s"], rel=0.05)
    assert ring.y == pytest.approx(there["serving.output_tokens_per_s"] / 8, rel=0.05)


def test_the_target_of_the_first_token_is_marked_where_it_is_passed() -> None:
    scenario = load_scenario("70b-bf16-8xa100-serve").with_("serving.ttft_target", 0.3)
    ring = mark(drawn("serving", scenario), "first token")
    assert ring.label == "TTFT 300 ms"
    several = int(ring.hover.split("about ")[1].split()[0])
    assert evaluate(scenario.with_("serving.concurrency", several))["serving.ttft_s"] == pytest.approx(0.3, rel=0.05)
    never = drawn("serving", scenario.with_("serving.ttft_target", 100.0))
    assert "first token" not in {each.name for each in never.marks}


def test_each_step_of_the_curve_says_what_it_would_be_and_cost() -> None:
    scenario = load_scenario(INT4)
    there = evaluate(scenario.with_("serving.concurrency", 8))
    hover = mark(drawn("serving", scenario), "8").hover
    price = there["cost.usd_per_million_output_tokens"]
    assert hover.startswith("8 requests: 300 tok/s a GPU, 25.7 ms a token, 39.0 tok/s each, ")
    assert hover.endswith(f"${price:.2f} a million")
    assert mark(drawn("serving", scenario), "plan").hover.endswith(" a million")


def test_engines_side_by_side_rise_at_the_same_time_per_token() -> None:
    """Up to one request an engine a token takes as long; the whole gets faster."""
    chart = drawn("serving", load_scenario(INT4).with_("cluster.gpus", 64))
    steps = [mark(chart, name) for name in ("1", "2", "8", "64")]
    assert len({each.x for each in steps}) == 1
    assert [each.y / steps[0].y for each in steps] == [pytest.approx(n) for n in (1, 2, 8, 64)]


@pytest.mark.parametrize("output", [0, 1])
def test_answers_without_a_second_token_have_no_curve(output: int) -> None:
    chart = drawn("serving", load_scenario(INT4).with_("serving.output_tokens", output))
    assert chart.empty == "An answer of one token or none has no time per token."
    assert not chart.marks


def test_a_baseline_without_a_time_per_token_is_left_out() -> None:
    scenario = load_scenario(INT4)
    report, before = evaluate(scenario), evaluate(scenario.with_("serving.output_tokens", 0))
    assert "baseline" not in {each.name for each in figure("serving", scenario, report, before).marks}
