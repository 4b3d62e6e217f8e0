"""What a machine reached, as an entry that a scenario file takes."""

from __future__ import annotations

import pytest
import yaml

from tests.core.plans import plan
from triledger.core import evaluate, read_scenario
from triledger.core.figures.measured import measured
from triledger.core.measured.comparison import Comparison
from triledger.core.measured.machine import Reached, copy_bytes, entry_text, matrix_flops

REACHED = Reached("a machine", "numpy", (("fp32", 1.23456e12),), 4.5678e10, 64 * 2**30, 65.0)


def test_flops_of_a_product_and_bytes_of_a_copy() -> None:
    assert matrix_flops(1000) == 2e9
    assert copy_bytes(100) == 200


def test_the_entry_stands_in_a_scenario_file_as_it_is() -> None:
    text = yaml.safe_dump(
        {"model": "llama-3.2-1b", "cluster": {"gpus": 1, "accelerator": yaml.safe_load(entry_text(REACHED))}}
    )
    device = read_scenario(text, "own.yaml").cluster.accelerator
    assert device.memory_bandwidth == pytest.approx(4.57e10)
    assert (device.peak.fp32, device.peak.bf16) == (1.23e12, 1.23e12)
    assert (device.memory, device.power, device.name) == (64 * 2**30, 65.0, "a machine")
    assert evaluate(read_scenario(text, "own.yaml"))["time.step_s"] > 0


def test_the_knee_is_where_both_rates_take_equally_long() -> None:
    assert pytest.approx(1.23456e12 / 4.5678e10) == REACHED.knee


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
