"""Published runs that are most like a plan."""

from __future__ import annotations

import pytest

from tests.core.plans import with_all
from triledger.core import evaluate, load_scenario
from triledger.core.figures.measured import measured_like
from triledger.core.measured.errors import shipped_errors
from triledger.core.measured.likeness import quantities, results_of
from triledger.core.measured.similar import most_similar
from triledger.core.measured.tables import similar_table, sources_table
from triledger.core.measured.validation import Validation


def test_the_run_that_a_plan_is_comes_first_without_a_difference(shipped: Validation) -> None:
    for name in ("bloom-105", "mbr-020", "trt-v0.9.0-71"):
        found = next((row for row in shipped.comparisons if row.id == name), None)
        if found is None:
            continue
        first, *others = most_similar(found.scenario, 5)
        same = [each for each in (first, *others) if not each.differences]
        assert name in [each.row.id for each in same]
        assert first.missed == 0


def test_nearer_plans_come_before_farther_ones() -> None:
    found = most_similar(load_scenario("7b-8xa100-train"), 40)
    missed = [each.missed for each in found]
    assert missed == sorted(missed)
    assert all(each.row.plan["cluster.accelerator.generation"] == "ampere" for each in found[:5])
    assert all(each.title for each in found)


def test_differences_are_named_in_the_words_of_the_fields() -> None:
    plan = with_all(load_scenario("7b-8xa100-train"), {"training.global_batch": 250})
    (first,) = most_similar(plan, 1)
    differences = {difference.path: difference for difference in first.differences}
    found = differences["training.global_batch"]
    assert (found.label, found.plan) == ("Global batch", "250")
    assert found.text == f"Global batch {found.run}, not 250"


def test_what_misses_a_criterion_is_named_first() -> None:
    plan = load_scenario("7b-8xa100-train").with_("cluster.accelerator.generation", "unheard of")
    assert most_similar(plan, 1)[0].differences[0].path == "cluster.accelerator.generation"


@pytest.mark.parametrize("quantity", ["pace", "first token"])
def test_a_serving_plan_is_compared_by_the_quantity_asked_for(quantity: str) -> None:
    found = most_similar(load_scenario("70b-bf16-8xa100-serve"), 8, quantity)
    assert {each.row.quantity for each in found} == {quantity}
    assert len(found) == 8


@pytest.mark.parametrize(("preset", "quantity"), [("7b-8xa100-train", "peak"), ("70b-bf16-8xa100-serve", "cache")])
def test_memory_of_a_plan_is_compared_with_that_of_runs(preset: str, quantity: str) -> None:
    report = evaluate(load_scenario(preset))
    similar = most_similar(report.scenario, 12, quantity)
    assert {each.row.quantity for each in similar} == {quantity}
    assert "serving.concurrency" not in {difference.path for each in similar for difference in each.differences}
    (note,) = similar_table(report, quantity, similar).notes
    assert "more memory than predicted" in note
    assert "this plan" in {mark.name for mark in measured_like(report, similar).marks}


def test_every_row_has_the_fields_that_likeness_asks_for() -> None:
    for row in shipped_errors():
        assert row.measured > 0
        assert row.predicted > 0
        assert row.plan["cluster.accelerator.generation"]


def test_the_chart_brings_out_the_runs_like_the_plan_in_their_crowd() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"))
    similar = most_similar(report.scenario, 10)
    chart = measured_like(report, similar)
    near = {mark.name for mark in chart.marks if mark.series == "prediction"}
    assert near == {each.row.id for each in similar}
    assert len(chart.rows) == 10
    (own,) = (line for line in chart.lines if line.name == "this plan")
    assert own.x == (report["time.low_s"], report["time.high_s"])
    assert own.y == (report["time.step_s"],) * 2
    assert any(mark.series == "baseline" for mark in chart.marks)
    assert all(chart.x.low <= mark.x <= chart.x.high for mark in chart.marks)


def test_the_tables_are_made_of_the_rows() -> None:
    report = evaluate(load_scenario("70b-bf16-8xa100-serve"))
    similar = most_similar(report.scenario, 5)
    table = similar_table(report, "pace", similar)
    assert len(table.rows) == 5
    assert all(len(table.texts(row)) == len(table.columns) for row in table.rows)
    assert "published runs" in table.notes[0]
    sources = sources_table(shipped_errors())
    counts = [row[2] for row in sources.rows]
    assert sum(counts) == len(shipped_errors()) == sources.totals[0][2]


def test_every_result_that_is_a_measured_figure_is_one_of_a_report() -> None:
    presets = {"training": "7b-8xa100-train", "serving": "70b-bf16-8xa100-serve"}
    reports = {kind: evaluate(load_scenario(preset)) for kind, preset in presets.items()}
    for quantity in quantities().values():
        for results in (quantity.results, *filter(None, quantity.metrics.values())):
            predicted, *ends = (reports[quantity.kind][key] for key in results)
            assert min(ends) <= predicted <= max(ends)
    assert results_of("decode rate") is None
    assert results_of("unheard of") is None


def test_where_no_run_is_like_a_plan_its_table_has_no_rows() -> None:
    table = similar_table(evaluate(load_scenario("7b-8xa100-train")), "step", [])
    assert table.rows == ()
    assert "published runs" in table.notes[0]
