"""Measuring a machine, what it reached as an entry that a scenario takes, and predictions beside measurements."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.core.plans import plan
from triledger.core import evaluate, read_scenario
from triledger.core.catalogue import catalogue
from triledger.core.errors import ScenarioError
from triledger.core.figures.measured import measured
from triledger.core.measured.comparison import Comparison
from triledger.core.measured.machine import Reached, beside_base, entry_text
from triledger.core.measured.timing import BANDWIDTH, Task, copy_bytes, host_tasks, matrix_flops, measuring
from triledger.core.scenario import Scenario
from triledger.core.scenario_file import write_scenario

REACHED = Reached("a machine", "numpy 2, 2026-01-01", (("fp32", 1.23456e12),), 4.5678e10, 64 * 2**30, 65.0)


def plan_on(accelerator: object) -> Scenario:
    text = yaml.safe_dump({"model": "llama-3.2-1b", "cluster": {"gpus": 1, "accelerator": accelerator}})
    return read_scenario(text, "own.yaml")


def test_flops_of_a_product_and_bytes_of_a_copy() -> None:
    assert matrix_flops(1000) == 2e9
    assert copy_bytes(100) == 200


def test_the_entry_stands_in_a_scenario_file_as_it_is() -> None:
    scenario = plan_on(yaml.safe_load(entry_text(REACHED)))
    device = scenario.cluster.accelerator
    assert device.memory_bandwidth == pytest.approx(4.57e10)
    assert (device.peak.fp32, device.peak.bf16) == (1.23e12, None)
    assert (device.memory, device.power, device.name) == (64 * 2**30, 65.0, "a machine")
    assert device.measured == REACHED.rates
    report = evaluate(scenario)
    assert report["time.step_s"] > 0
    assert report["roofline.peak_flops"] == 1.23e12
    assert read_scenario(write_scenario(scenario), "own.yaml") == scenario


def test_the_data_sheet_of_a_measured_machine_can_be_stated() -> None:
    device = plan_on(yaml.safe_load(entry_text(REACHED, peak=2e12, bandwidth=5e10))).cluster.accelerator
    assert (device.peak.fp32, device.memory_bandwidth) == (2e12, 5e10)
    assert (device.measured.fp32, device.measured.memory_bandwidth) == (1.23e12, 4.57e10)
    assert "numpy 2, 2026-01-01" in device.measured.source


def test_what_an_accelerator_of_the_catalogue_reached_stands_beside_its_data_sheet(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(beside_base(REACHED, "a100-sxm-80gb"), encoding="utf-8")
    text = "model: llama-3.2-1b\ncluster: {gpus: 1, accelerator: mine.yaml}\n"
    scenario = read_scenario(text, str(tmp_path / "plan.yaml"))
    device, sheet = scenario.cluster.accelerator, catalogue().accelerators["a100-sxm-80gb"]
    assert device == replace(sheet, measured=REACHED.rates)
    assert evaluate(scenario)["time.step_s"] == evaluate(plan_on("a100-sxm-80gb"))["time.step_s"]
    assert read_scenario(write_scenario(scenario), "own.yaml") == scenario


def test_a_measured_rate_that_is_none_is_refused_with_its_line() -> None:
    with pytest.raises(ScenarioError, match=r"own.yaml:\d+: cluster.accelerator.measured.bf16: 'fast'"):
        plan_on({"base": "a100-sxm-80gb", "measured": {"bf16": "fast"}})


def test_the_knee_is_where_both_rates_take_equally_long() -> None:
    assert pytest.approx(1.23456e12 / 4.5678e10) == REACHED.knee


def test_the_best_repetition_within_the_seconds_of_each_task_counts() -> None:
    lengths = iter((9.0, 2.0, 1.0, 4.0, 9.0, 10.0))  # the first of each task warms up
    now = [0.0]

    def work() -> None:
        now[0] += next(lengths)

    tasks = [Task("product", "fp32", 10.0, lambda: work), Task("copy", BANDWIDTH, 10.0, lambda: work)]
    seen = list(measuring(tasks, lambda: now[0], seconds=5.0))
    assert dict(seen[-1].rates) == {"fp32": 10.0, BANDWIDTH: 1.0}
    assert [progress.task.name for progress in seen] == ["product"] * 4 + ["copy"] * 2
    assert [progress.done for progress in seen] == pytest.approx([0.0, 0.2, 0.3, 0.5, 0.5, 1.0])


def test_a_host_is_measured_by_products_and_a_copy() -> None:
    ticks = itertools.count()
    seen = list(measuring(host_tasks((8, 16), 1024), lambda: float(next(ticks)), seconds=0.0))
    assert dict(seen[-1].rates) == {"fp32": matrix_flops(16), BANDWIDTH: copy_bytes(1024)}


# ---------------------------------------------------------------- the chart of predictions


PLAN = plan("llama-2-7b")


def row(name: str, source: str, seen: float, error: float, flagged: bool = False) -> Comparison:
    return Comparison(name, "training", source, "step time", "s", seen, seen * (1 + error), PLAN, flagged=flagged)


def test_the_chart_has_a_mark_a_row_and_a_colour_a_source() -> None:
    rows = [row("a", "sc21", 1.0, 0.05), row("b", "mpt", 10.0, -0.1), row("c", "mpt", 3.0, 0.0)]
    chart = measured((*rows, row("d", "mpt", 1.0, 5.0, flagged=True)))
    assert [(mark.name, mark.x, mark.y) for mark in chart.marks] == [
        ("a", 1.0, 1.05),
        ("b", 10.0, 9.0),
        ("c", 3.0, 3.0),
    ]
    colours = {mark.name: mark.series for mark in chart.marks}
    assert colours["b"] == colours["c"] != colours["a"]
    assert {text for _, text in chart.key} == {"llm-foundry", "Narayanan 2021"}
    assert chart.x.log
    assert chart.y.log
    assert (chart.x.low, chart.x.high) == (chart.y.low, chart.y.high)
    assert chart.x.low < 1.0
    assert chart.x.high > 10.0
    assert len(chart.rows) == 3


def test_rows_of_other_metrics_are_counted_and_not_drawn() -> None:
    other = Comparison("x", "serving", "ft", "request latency", "s", 1.0, 1.0, PLAN)
    chart = measured((row("a", "s", 1.0, 0.0), row("b", "s", 2.0, 0.0), other))
    assert len(chart.marks) == 2
    assert "1 row of other metrics" in chart.subtitle


def test_without_rows_the_chart_says_so() -> None:
    assert measured(()).empty
