"""Where the time of a step goes: parts that add up, and the published loss from 8 192 to 16 384 GPUs."""

from __future__ import annotations

import pytest

from tests.core.plans import plan
from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.figures.figure import Figure
from triledger.core.figures.waterfall import waterfall
from triledger.core.report import Report
from triledger.core.working import explain

PARTS = ("ideal", "bubble", "uneven", "exposed_communication", "optimizer", "straggler", "interruptions")
TRAINING = [name for name in catalogue().presets if load_scenario(name).kind == "training"]


def llama_405b(gpus: int) -> Report:
    """arXiv 2407.21783, table 4: TP 8, PP 16, sequences of 8192, 16 M tokens a step."""
    return evaluate(
        plan(
            *("llama-3.1-405b", "h100-sxm-80gb", "roce-400"),
            cluster__gpus=gpus,
            parallelism__tp=8,
            parallelism__pp=16,
            parallelism__vpp=7,
            parallelism__schedule="interleaved",
            parallelism__sp=True,
            parallelism__zero=1,
            training__sequence_length=8192,
            training__global_batch=2048,
        )
    )


@pytest.mark.parametrize("name", TRAINING)
def test_parts_of_a_step_add_up_to_its_wall_time(name: str) -> None:
    report = evaluate(load_scenario(name))
    parts = {part: report[f"time.{part}_s"] for part in PARTS}
    assert sum(parts.values()) == pytest.approx(report["time.effective_s"], rel=1e-12)
    assert min(parts.values()) >= 0
    assert report["time.effective_s"] == pytest.approx(report["time.step_s"] / report["training.effective_ratio"])
    # no kernel is faster than the peak
    assert report["time.compute_floor_s"] <= report["time.ideal_s"]
    assert report["time.compute_floor_s"] == pytest.approx(report["time.mfu"] * report["time.step_s"])


def test_twice_the_gpus_lose_7_per_cent_each() -> None:
    # published: 430 and 400 TFLOP/s a GPU on 8192 and 16 384
    few, many = llama_405b(8192), llama_405b(16384)
    rate = [989.4e12 * report["time.mfu"] for report in (few, many)]
    assert rate == pytest.approx([430e12, 400e12], rel=0.07)
    assert 1 - rate[1] / rate[0] == pytest.approx(0.07, abs=0.035)
    # half the micro-batches a replica: the kernels take half the time, the bubble as long as before
    assert many["time.ideal_s"] == pytest.approx(few["time.ideal_s"] / 2, rel=0.01)
    assert many["time.bubble_s"] == pytest.approx(few["time.bubble_s"])
    # failures come twice as often, and the slowest of twice the replicas is slower
    assert many["reliability.lost_share"] == pytest.approx(2**0.5 * few["reliability.lost_share"], rel=0.02)
    assert many["time.straggler_factor"] > few["time.straggler_factor"]


def ends(chart: Figure) -> list[tuple[float, float]]:
    return [(bar.start, bar.start + bar.length) for bar in chart.bars]


def test_every_bar_starts_where_the_one_before_ends() -> None:
    report = evaluate(load_scenario("405b-16384xh100-train"))
    chart = waterfall(report)
    *parts, whole = ends(chart)
    assert [start for start, _ in parts[1:]] == pytest.approx([end for _, end in parts[:-1]], rel=1e-3)
    assert whole == (0.0, pytest.approx(parts[-1][1], rel=1e-3))
    assert chart.y.categories == (
        *("kernels", "bubble", "uneven stages", "exposed traffic", "stragglers", "interruptions"),
        "in all",
    )
    assert chart.title == "41 % of the time is at peak; kernels below it cost 24 %"
    assert all(chart.x.low <= end <= chart.x.high for _, end in ends(chart))
    losses = chart.bars[2:-1]
    assert len({bar.series for bar in losses}) == len(losses), "each part has a colour of its own"


def test_every_part_is_linked_to_a_result_that_shows_its_working() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"), record=True)
    chart = waterfall(report)
    links = [bar.link for bar in chart.bars]
    assert links[:2] == ["time.compute_floor_s", "time.ideal_s"]
    for bar in chart.bars:
        assert explain(report, bar.link).lines()


def test_what_does_not_cost_anything_has_no_row() -> None:
    chart = waterfall(evaluate(load_scenario("7b-8xa100-train")))
    assert "bubble" not in chart.y.categories
    assert len(chart.rows) == len(chart.y.categories) + 1


def test_a_baseline_is_drawn_where_it_was() -> None:
    report, before = llama_405b(16384), llama_405b(8192)
    chart = waterfall(report, before)
    ghost = next(bar for bar in chart.bars if bar.pattern == "ghost" and bar.row == 1)
    assert (ghost.start, ghost.length) == (before["time.ideal_s"], before["time.bubble_s"])
    assert max(end for _, end in ends(chart)) <= chart.x.high


@pytest.mark.parametrize("name", [name for name in catalogue().presets if name not in TRAINING])
def test_parts_of_a_served_token_add_up_and_are_linked(name: str) -> None:
    report = evaluate(load_scenario(name), record=True)
    chart = waterfall(report)
    *parts, whole = ends(chart)
    assert whole == (0.0, pytest.approx(parts[-1][1], rel=1e-3))
    assert whole[1] == pytest.approx(report.get("serving.tpot_s", report["time.step_s"]), rel=1e-3)
    assert chart.bars[0].length == pytest.approx(report["time.bound_s"])
    for bar in chart.bars:
        assert explain(report, bar.link).lines()


def test_prompts_of_other_requests_stand_between_two_tokens() -> None:
    report = evaluate(load_scenario("70b-bf16-8xa100-serve"))
    prompts = next(bar for bar in waterfall(report).bars if bar.name == "other prompts")
    assert prompts.length == pytest.approx(report["serving.tpot_s"] * report["serving.prefill_share"], rel=0.01)


def test_parts_of_a_token_with_drafts_are_those_of_a_cycle_over_its_tokens() -> None:
    scenario = load_scenario("70b-int4-1xh100-serve").with_("serving.speculative.draft_tokens", 3)
    report = evaluate(scenario)
    chart, tokens = waterfall(report), report["serving.speculative_tokens_per_cycle"]
    drafts = next(bar for bar in chart.bars if bar.name == "drafts and checks")
    assert drafts.start == pytest.approx(report["time.step_s"] / tokens)
    assert drafts.start + drafts.length == pytest.approx(report["serving.token_step_s"])
    assert chart.bars[-1].length == pytest.approx(report["serving.tpot_s"], rel=1e-3)
    assert max(end for _, end in ends(chart)) <= chart.bars[-1].length * 1.001
