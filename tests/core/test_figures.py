"""The charts as data: what they draw is what the report says, and their titles claim no more than that."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.core.figure_reports import (
    BANDWIDTH,
    GIB,
    PEAK,
    SERVING,
    TRAINING,
    concurrency_curve,
    deep_report,
    every_figure,
    gpus_curve,
    one_gpu_report,
    serving_figure,
    serving_report,
    too_large_report,
    traffic_row,
    training_figure,
    training_report,
)
from triledger.core import evaluate, load_scenario
from triledger.core.errors import OutputError
from triledger.core.figures.by_name import FIGURES, figure
from triledger.core.figures.colour import contrast, ink_on, legible
from triledger.core.figures.communication import communication
from triledger.core.figures.curves import crossing, runs
from triledger.core.figures.figure import SERIES, Figure
from triledger.core.figures.memory import memory
from triledger.core.figures.roofline import roofline
from triledger.core.figures.serving import concurrency_sweep, serving
from triledger.core.figures.training import gpus_sweep, training_days
from triledger.core.legality import legal
from triledger.core.report import Report
from triledger.core.scenario import MeasuredRates
from triledger.core.units import digits, format_quantity

FIGURE_NAMES = list(every_figure())


def marks(chart: Figure, series: str) -> list[tuple[float, float]]:
    return [(mark.x, mark.y) for mark in chart.marks if mark.series == series]


# ---------------------------------------------------------------- all charts


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_everything_drawn_lies_on_the_axes(name: str) -> None:
    chart = every_figure()[name]
    x = [at for line in chart.lines for at in line.x] + [mark.x for mark in chart.marks]
    x += [end for bar in chart.bars for end in (bar.start, bar.start + bar.length)]
    y = [at for line in chart.lines for at in line.y] + [mark.y for mark in chart.marks]
    for axis, places in ((chart.x, x), (chart.y, y)):
        slack = 1e-9 * axis.high
        assert all(axis.low - slack <= at <= axis.high + slack for at in places)
        assert all(axis.low <= at <= axis.high for at, _ in axis.ticks)


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_texts_are_for_reading(name: str) -> None:
    chart = every_figure()[name]
    ticks = [text for axis in (chart.x, chart.y) for _, text in axis.ticks]
    said = [mark.label + mark.hover for mark in chart.marks] + [bar.text + bar.hover for bar in chart.bars]
    for text in [chart.title, *ticks, *said, *(label.text for label in chart.labels)]:
        assert "e+" not in text
        assert "nan" not in text
    assert chart.title
    assert chart.empty or (chart.x.label and ticks)


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_series_have_colours_and_rows_fit_their_columns(name: str) -> None:
    chart = every_figure()[name]
    parts = (*chart.bars, *chart.lines, *chart.bands, *chart.marks, *chart.rules, *chart.labels)
    assert {part.series for part in parts} <= set(SERIES)
    assert {series for series, _ in chart.key} <= set(SERIES)
    assert all(len(row) == len(chart.columns) for row in chart.rows)


def test_a_chart_is_found_by_name_or_refused_with_what_would_do() -> None:
    scenario = load_scenario("70b-64xh100-train")
    report = evaluate(scenario)
    for name, kinds in FIGURES.items():
        if "training" in kinds:
            assert figure(name, scenario, report).name == name
    with pytest.raises(OutputError, match="did you mean roofline"):
        figure("rooflin", scenario, report)
    with pytest.raises(OutputError, match="a training plan has no serving chart; it has roofline, memory"):
        figure("serving", scenario, report)


def test_the_engine_answers_the_sweeps_the_charts_ask_for() -> None:
    scenario = load_scenario("70b-64xh100-train")
    report = evaluate(scenario)
    chart = figure("training", scenario, report)
    curve = [(x, y) for line in chart.lines if line.series == "prediction" for x, y in zip(line.x, line.y, strict=True)]
    assert (64.0, pytest.approx(report["training.days"], rel=1e-9)) in curve


# ---------------------------------------------------------------- roofline


def test_operators_stand_at_their_intensity_and_rate() -> None:
    report = training_report()
    chart = roofline(report)
    drawn = {(mark.name, mark.x, mark.y) for mark in chart.marks}
    assert drawn == {(p.name, p.intensity, p.achieved_flops) for p in report.points}
    assert {mark.name for mark in chart.marks if mark.label} == {p.name for p in report.points if p.bound} | {
        "whole step"
    }


def test_the_roof_rises_with_the_bandwidth_and_bends_at_the_knee() -> None:
    roof = roofline(training_report()).lines[0]
    assert roof.x[1] == PEAK / BANDWIDTH
    assert roof.y == (pytest.approx(roof.x[0] * BANDWIDTH), PEAK, PEAK)
    knee = roofline(training_report()).rules[0]
    assert (knee.at, knee.label) == (PEAK / BANDWIDTH, "knee 295")


def test_the_step_hangs_under_the_roof_by_what_it_misses() -> None:
    chart = roofline(training_report())
    distance = next(line for line in chart.lines if line.name == "distance to the roof")
    assert distance.x == (869.0, 869.0)
    assert distance.y == (pytest.approx(487e12), PEAK)
    assert chart.title == "Compute bound: the whole step reaches 49 % of the roof"
    assert "487 TFLOP/s (49 %)" in chart.marks[-1].label


def test_a_memory_bound_step_is_measured_against_the_roof_too() -> None:
    assert roofline(serving_report()).title == "Memory bound: decode reaches 70 % of the roof"


def test_the_peak_has_its_own_tick() -> None:
    ticks = dict(roofline(training_report()).y.ticks)
    assert ticks[PEAK] == "989"
    assert max(ticks) == PEAK


def test_operators_that_compute_nothing_are_in_the_table_only() -> None:
    report = training_report()
    copy = replace(report.points[0], name="copy", flops=0.0, intensity=0.0, achieved_flops=0.0)
    chart = roofline(replace(report, points=(*report.points, copy)))
    assert "copy" not in {mark.name for mark in chart.marks}
    assert "copy" in {row[0] for row in chart.rows}


def test_a_baseline_is_a_hollow_mark() -> None:
    chart = roofline(training_report(), serving_report())
    (before,) = [mark for mark in chart.marks if mark.shape == "hollow"]
    parts = [p for p in serving_report().points if p.phase == "decode"]
    assert before.x == pytest.approx(sum(p.flops for p in parts) / sum(p.bytes for p in parts))
    assert before.y == pytest.approx(sum(p.flops for p in parts) / serving_report()["time.step_s"])


def measured_report(**rates: float | str) -> Report:
    """The training report of a plan whose accelerator carries measured rates."""
    report = training_report()
    device = replace(report.scenario.cluster.accelerator, measured=MeasuredRates(**rates))  # type: ignore[arg-type]
    return replace(report, scenario=report.scenario.with_("cluster.accelerator", device))


def test_a_measured_roof_stands_dashed_below_that_of_the_data_sheet() -> None:
    report = measured_report(bf16=700e12, memory_bandwidth=2.8e12, machine="node 7", source="torch, 2026-05-01")
    chart = roofline(report)
    sheet, measured = chart.lines[:2]
    assert sheet.hover.startswith("data sheet: 989 TFLOP/s")
    assert (measured.style, measured.x[1], measured.y[1:]) == ("dashed", 250.0, (700e12, 700e12))
    assert measured.width < sheet.width
    assert measured.y[0] == pytest.approx(measured.x[0] * 2.8e12)
    assert measured.hover == (
        "measured on node 7 (torch, 2026-05-01): 700 TFLOP/s and 2.80 TB/s, knee at 250 FLOP/byte"
    )
    (knee,) = [mark for mark in chart.marks if mark.name == "measured knee"]
    assert (knee.x, knee.y, knee.hover) == (250.0, 700e12, measured.hover)
    assert "dashed: measured: 700 TFLOP/s, 2.80 TB/s" in chart.subtitle
    assert len(roofline(training_report()).lines) == len(chart.lines) - 1


def test_what_was_measured_is_in_the_data_behind_the_chart() -> None:
    chart = roofline(measured_report(bf16=700e12, memory_bandwidth=2e12))
    rows = {row[0]: dict(zip(chart.columns, row, strict=True)) for row in chart.rows}
    allowed = "attainable as measured [FLOP/s]"
    step = rows["whole step"]
    assert step[allowed] == 700e12
    assert step["attainable [FLOP/s]"] == PEAK
    assert rows["measured knee"]["intensity [FLOP/B]"] == 350.0
    assert allowed not in roofline(training_report()).columns


def test_rates_of_another_format_are_named_and_missing_ones_are_those_of_the_data_sheet() -> None:
    chart = roofline(measured_report(fp32=50e12))
    assert chart.lines[1].label == "measured fp32: 50.0 TFLOP/s"
    assert chart.lines[1].x[1] == pytest.approx(50e12 / BANDWIDTH)
    assert roofline(measured_report(memory_bandwidth=3e12)).lines[1].label == "measured: 3.00 TB/s"


def test_a_machine_known_by_its_measurement_alone_has_one_roof() -> None:
    chart = roofline(measured_report(bf16=PEAK, memory_bandwidth=BANDWIDTH, machine="node 7"))
    assert [line.name for line in chart.lines] == ["roof", "distance to the roof"]
    assert chart.lines[0].hover.startswith("measured on node 7")


def test_the_roof_of_a_slow_machine_is_seen_whole_beside_a_fast_one() -> None:
    chart = roofline(measured_report(fp32=80e9, memory_bandwidth=12e9))
    assert chart.y.low < 80e9 < chart.y.high
    assert chart.x.low < chart.lines[1].x[1]


# ---------------------------------------------------------------- memory


def test_bars_add_up_to_the_ledger() -> None:
    report = training_report()
    chart = memory(report)
    for row, label in enumerate(chart.labels):
        stage = sum(values[row] for values in report.stages.values())
        bars = [bar for bar in chart.bars if bar.row == row and bar.series != "baseline"]
        assert sum(bar.length for bar in bars) == pytest.approx(stage)
        assert label.x == pytest.approx(stage)
        assert all(first.start + first.length == pytest.approx(then.start) for first, then in pairwise(bars))
    assert [label.text for label in chart.labels] == ["56.4 GiB", "49.9 GiB", "43.4 GiB", "42.3 GiB"]
    assert chart.title == "Stage 0 holds the most: 56.4 of 79.2 GiB"


def test_states_of_the_optimizer_are_one_item() -> None:
    bars = [bar for bar in memory(training_report()).bars if bar.row == 3]
    assert [bar.series for bar in bars] == ["weights", "gradients", "optimizer", "activations", "logits", "workspace"]
    assert bars[2].length == pytest.approx(13.7 * GIB)


def test_what_does_not_fit_is_hatched() -> None:
    report = too_large_report()
    chart = memory(report)
    over = {row: sum(b.length for b in chart.bars if b.row == row and b.pattern == "hatched") for row in range(4)}
    assert over[0] == pytest.approx(-report["memory.headroom_bytes"])
    assert (over[2], over[3]) == (0, 0)
    assert chart.title == "Does not fit: stage 0 needs 89.9 of 79.2 GiB"


def test_many_stages_are_shown_in_runs_by_their_fullest() -> None:
    report = deep_report(30)
    chart = memory(report)
    assert len(chart.y.categories) == 8
    assert chart.y.categories[0] == "stage 0"
    assert chart.y.categories[-1] == "stage 29"
    totals = sum(report.stages.values())
    assert chart.labels[0].x == pytest.approx(totals[0])
    first, last = (int(end) for end in chart.y.categories[1].removeprefix("stages ").split("–"))
    assert chart.labels[1].x == pytest.approx(max(totals[first : last + 1]))
    assert len(chart.rows) == 30


def test_ranks_of_dualpipe_are_shown_by_the_two_stages_they_hold() -> None:
    report = evaluate(load_scenario("deepseek-v3-2048xh800-train"))
    chart = memory(report)
    assert chart.y.categories == tuple(f"stage {i}+{15 - i}" for i in range(8))
    assert "tage 0+15 holds" in chart.title
    assert chart.labels[3].x == pytest.approx(report.stages["total"][3])
    deeper = load_scenario("deepseek-v3-2048xh800-train").with_("parallelism.pp", 32).with_("parallelism.ep", 32)
    assert memory(evaluate(deeper)).y.categories[:3] == ("stage 0+31", "stages 1+30–2+29", "stages 3+28–4+27")


def test_a_report_without_stages_shows_the_fullest_gpu() -> None:
    report = training_report(memory__weights_bytes=4.6 * GIB, memory__optimizer_bytes=13.2 * GIB)
    chart = memory(replace(report, stages={}))
    assert chart.y.categories == ("fullest GPU",)
    assert chart.labels[0].x == pytest.approx(17.8 * GIB)


def test_serving_shows_the_free_part_of_the_pool() -> None:
    report = serving_report(32)
    chart = memory(report)
    pool = report["serving.kv_capacity_tokens"] * report["serving.kv_bytes_per_token_per_gpu"]
    lengths = {bar.name: bar.length for bar in chart.bars}
    assert lengths["KV cache"] == pytest.approx(0.15 * 32 * GIB)
    assert lengths["KV cache"] + lengths["free for KV cache"] == pytest.approx(pool)
    assert chart.title == "Each GPU holds 24.9 of 79.2 GiB"


def test_a_baseline_is_drawn_as_ghosts_where_it_has_the_same_rows() -> None:
    ghosts = [bar for bar in memory(training_report(), too_large_report()).bars if bar.pattern == "ghost"]
    assert [bar.length / GIB for bar in ghosts] == [pytest.approx(total) for total in (86.4, 72.1, 57.0, 49.5)]
    assert not [bar for bar in memory(training_report(), deep_report()).bars if bar.pattern == "ghost"]


# ---------------------------------------------------------------- communication


def test_bars_are_bytes_and_their_solid_part_is_exposed_time() -> None:
    chart = communication(training_report())
    first = [bar for bar in chart.bars if bar.row == 0]
    assert [bar.pattern for bar in first] == ["solid", "pale"]
    assert sum(bar.length for bar in first) == pytest.approx(118.2e9)
    assert first[0].length / 118.2e9 == pytest.approx(0.92 / 2.41)
    assert [label.text for label in chart.labels] == [
        "118 GB in 2.4 s, 920 ms exposed",
        "8.80 GB in 310 ms, 30 ms exposed",
        "4.40 GB in 120 ms, hidden",
        "2.10 GB in 50 ms, hidden",
    ]
    assert chart.title == "Each GPU sends 134 GB and waits 8.5 % of the step"


def test_rows_are_sorted_and_the_smallest_are_summed() -> None:
    rows = tuple(traffic_row(f"row {k}", "all-reduce", "scale-up", k * 1e9, (1.0, 0.5)) for k in range(1, 11))
    chart = communication(replace(training_report(), communication=rows))
    assert len(chart.y.categories) == 6
    assert chart.y.categories[0].startswith("row 10: all-reduce")
    assert chart.y.categories[-1] == "5 smaller ones"
    assert sum(bar.length for bar in chart.bars) == pytest.approx(55e9)
    assert len(chart.rows) == 10


def test_links_keep_their_colour() -> None:
    chart = communication(training_report())
    assert {bar.series for bar in chart.bars if bar.row == 0} == {"scale-up"}
    assert {bar.series for bar in chart.bars if bar.row > 0} == {"scale-out"}


def test_one_gpu_sends_nothing() -> None:
    chart = communication(one_gpu_report())
    assert chart.empty == "One GPU: nothing to send."
    assert not chart.bars


# ---------------------------------------------------------------- training days


def test_the_sweep_keeps_the_plan_and_whole_batches() -> None:
    gpus = gpus_sweep(TRAINING).cluster.gpus
    assert gpus.tolist() == [32, 64, 128, 256, 512, 1024]
    odd = gpus_sweep(TRAINING.with_("training.global_batch", 24).with_("cluster.gpus", 96)).cluster.gpus
    assert odd.tolist() == [32, 64, 96, 128, 192, 256, 384, 768]
    assert all(legal(TRAINING.with_("training.global_batch", 24).with_("cluster.gpus", n)) for n in odd)
    shards = gpus_sweep(TRAINING.with_("parallelism.hsdp_replicas", 2)).cluster.gpus
    assert shards.tolist() == [64, 128, 256, 512, 1024]


def test_the_plan_stands_on_its_curve_with_band_and_bounds() -> None:
    chart = training_figure()
    assert marks(chart, "plan") == [(64.0, 318.0)]
    assert chart.marks[-1].label == "318 days (295–346) on 64"
    by_name = {line.name: line for line in chart.lines}
    assert (by_name["physical bound"].style, by_name["whiteboard"].style) == ("dashed", "dotted")
    assert by_name["physical bound"].y[1] == 144.0
    (band,) = chart.bands
    assert all(low < high for low, high in zip(band.low, band.high, strict=True))


def test_the_deadline_is_read_off_the_curve() -> None:
    chart = training_figure()
    (mark,) = [mark for mark in chart.marks if mark.name == "deadline"]
    days = 318 * (64 / 256) ** 0.94
    assert (mark.x, mark.y) == (256, pytest.approx(days))
    assert mark.label == "256 GPUs: 86.4 days"
    assert chart.title == "318 days on 64 GPUs; 256 would take 86.4 days"


def test_the_number_of_gpus_for_a_deadline_is_a_legal_one() -> None:
    scenario = load_scenario("70b-128xa100-2t-train").with_("training.global_batch", 384)
    title = figure("training", scenario, evaluate(scenario)).title
    found = re.search(r"; ([\d\u202f]+) would take ([\d.]+) days", title)
    assert found, title
    taken = scenario.with_("cluster.gpus", int(found[1].replace("\u202f", "")))
    assert legal(taken)
    assert evaluate(taken)["training.days"] == pytest.approx(float(found[2]), rel=5e-3)
    assert float(found[2]) <= 90


def test_a_short_training_is_drawn_in_hours() -> None:
    scenario = load_scenario("8b-qlora-1xrtx4090-train")
    chart = figure("training", scenario, evaluate(scenario))
    assert chart.y.label == "hours"
    assert {text: at for at, text in chart.y.ticks}["10"] == pytest.approx(10 / 24)
    assert training_figure().y.label == "days"


def test_every_number_of_gpus_on_the_curve_tells_its_days_and_cost() -> None:
    scenario = load_scenario("70b-64xh100-train")
    chart = figure("training", scenario, evaluate(scenario))
    at_256 = evaluate(scenario.with_("cluster.gpus", 256))
    (hover,) = [mark.hover for mark in chart.marks if mark.x == 256]
    assert hover.startswith(f"256 GPUs: {digits(at_256['training.days'])} days (")
    assert hover.endswith(f", {format_quantity(at_256['cost.usd'], 'USD')}")
    assert {mark.x for mark in chart.marks} == set(chart.lines[0].x)


def test_one_legal_number_of_gpus_is_drawn_as_points() -> None:
    scenario = load_scenario("7b-8xa100-train").with_("cluster.gpus", 1).with_("training.global_batch", 1)
    chart = figure("training", scenario, evaluate(scenario))
    assert not chart.lines
    assert {mark.series for mark in chart.marks} == {"bound", "whiteboard", "plan"}


def test_a_short_plan_without_a_deadline_is_not_asked_for_one() -> None:
    chart = training_figure(training__days=60.0)
    assert chart.title == "60 days on 64 GPUs"
    assert not chart.rules
    assert [mark.name for mark in chart.marks if mark.label] == ["plan"]


def test_the_deadline_of_the_plan_is_drawn_even_where_it_is_out_of_reach() -> None:
    def chart(days: float, deadline: float) -> Figure:
        report = training_report(training__days=days)
        report = replace(report, scenario=TRAINING.with_("training.deadline", deadline * 86400))
        return training_days(report, gpus_curve(report, gpus_sweep(TRAINING)))

    assert chart(318.0, 120.0).title == "318 days on 64 GPUs; 256 would take 86.4 days"
    assert chart(100.0, 110.0).rules[0].label == "110 days"
    late = chart(9000.0, 90.0)
    assert late.title == "9\u202f000 days on 64 GPUs; even 1\u202f024 miss 90 days"
    assert chart(9000.0, 1.0).rules[0].label == "1 day"
    assert chart(9000.0, 0.5).rules[0].label == "12 hours"
    assert [rule.at for rule in late.rules] == [90.0]
    assert late.y.low < 90


def test_fewer_gpus_that_meet_the_deadline_are_named() -> None:
    report = training_report(training__days=60.0)
    report = replace(report, scenario=TRAINING.with_("training.deadline", 90 * 86400.0))
    curve = gpus_curve(report, gpus_sweep(TRAINING))
    assert training_days(report, curve).title == "60 days on 64 GPUs"
    roomy = replace(curve, values=dict(curve.values) | {"memory.fits": True})
    assert training_days(report, roomy).title == "60 days on 64 GPUs"
    deadline = report.scenario.with_("training.deadline", 200 * 86400.0)
    fewer = training_days(replace(report, scenario=deadline), roomy).title
    assert fewer == "60 days on 64 GPUs; 32 would take 115 days"


def test_numbers_of_gpus_that_do_not_fit_are_dashed() -> None:
    lines = [line for line in training_figure().lines if line.series == "prediction"]
    assert [(line.style, line.x[0], line.x[-1]) for line in lines] == [("dashed", 32, 64), ("solid", 64, 1024)]


def test_a_baseline_is_a_hollow_mark_on_the_days() -> None:
    report = training_report()
    before = replace(training_report(training__days=400.0), scenario=TRAINING.with_("cluster.gpus", 128))
    chart = training_days(report, gpus_curve(report, gpus_sweep(TRAINING)), before)
    assert marks(chart, "baseline") == [(128.0, 400.0)]


# ---------------------------------------------------------------- serving


def test_the_sweep_over_requests_holds_the_plan() -> None:
    assert concurrency_sweep(SERVING.with_("serving.concurrency", 24)).serving.concurrency.tolist() == [
        1, 2, 4, 8, 16, 24, 32, 64, 128, 256,
    ]  # fmt: skip
    assert max(concurrency_sweep(SERVING.with_("serving.concurrency", 512)).serving.concurrency) == 4096


def test_the_plan_stands_at_its_speed_and_throughput() -> None:
    report = serving_report(32)
    chart = serving_figure(32)
    assert marks(chart, "plan") == [(report["serving.tpot_s"], pytest.approx(32 / report["serving.tpot_s"] / 8))]
    assert chart.title == "32 requests: 401 tok/s a GPU at 9.98 ms a token"
    assert (chart.rules[0].at, chart.rules[0].label) == (0.05, "target 50 ms")


def test_the_curve_is_solid_up_to_what_the_cache_holds() -> None:
    chart = serving_figure(128)
    solid, dashed = [line for line in chart.lines if line.series == "prediction"]
    assert (solid.style, dashed.style) == ("solid", "dashed")
    assert solid.x[-1] == dashed.x[0]
    assert solid.x[-1] == pytest.approx(0.0079 + 0.000065 * 316)
    (full,) = [mark for mark in chart.marks if mark.name == "capacity"]
    assert (full.x, full.label) == (solid.x[-1], "316 fill the KV cache")


def test_titles_admit_a_full_cache_and_a_missed_target() -> None:
    assert serving_figure(512).title.endswith("; the KV cache holds 316")
    slow = replace(serving_report(), scenario=SERVING.with_("serving.tpot_target", 0.005))
    chart = serving(slow, concurrency_curve(slow, concurrency_sweep(slow.scenario)))
    assert chart.title.endswith(", over the 5 ms target")


# ---------------------------------------------------------------- curves and colours


def test_crossing_is_exact_on_a_power_law_and_none_without_a_crossing() -> None:
    x = (1.0, 2.0, 4.0)
    y = tuple(100 / at**2 for at in x)
    assert crossing(x, y, 50.0) == pytest.approx(math.sqrt(2))
    assert crossing(x, y, 6.25) == pytest.approx(4.0)
    assert crossing(x, y, 1.0) is None
    assert crossing(x, y, 1000.0) is None


def test_runs_share_their_ends() -> None:
    x = tuple(np.arange(5.0))
    pieces = list(runs(x, x, [True, True, False, True, True]))
    assert [(piece[0], holds) for piece, _, holds in pieces] == [(0, True), (1, False), (3, True)]
    assert [piece[-1] for piece, _, _ in pieces] == [1, 3, 4]


@pytest.mark.parametrize("series", list(SERIES))
@pytest.mark.parametrize("dark", [False, True])
def test_text_in_and_on_every_colour_reads(series: str, dark: bool) -> None:
    code, ground = SERIES[series][dark], "#171e28" if dark else "#ffffff"
    assert contrast(ink_on(code), code) >= 4.5
    assert contrast(legible(code, ground), ground) >= 4.5
