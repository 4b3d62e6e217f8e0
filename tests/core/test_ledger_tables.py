"""The ledgers as tables: rows sum to totals, numbers are SI, and what is not counted is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gui.reports import GIB, serving_report, training_report
from triledger.core import evaluate, load_scenario
from triledger.core.ledgers.tables import Table, communication_table, compute_table, memory_table, tables
from triledger.core.report import Report


def column(table: Table, name: str) -> int:
    return [each.name for each in table.columns].index(name)


def cell(table: Table, row: str, name: str) -> object:
    line = next(line for line in (*table.rows, *table.totals) if line[0] == row)
    return line[column(table, name)]


@pytest.mark.parametrize("report", [training_report(), serving_report()])
def test_every_row_has_a_cell_for_every_column_and_reads_as_text(report: Report) -> None:
    for table in tables(report):
        for row in (*table.rows, *table.totals):
            assert len(row) == len(table.columns)
            assert all(isinstance(text, str) for text in table.texts(row))


@pytest.mark.parametrize("report", [training_report(), serving_report()])
def test_the_memory_ledger_sums_to_its_total_and_the_total_to_what_is_usable(report: Report) -> None:
    table = memory_table(report)
    size = column(table, "GiB")
    assert sum(row[size] for row in table.rows) == pytest.approx(report["memory.total_bytes"])
    assert sum(row[column(table, "of usable")] for row in table.rows) == pytest.approx(
        report["memory.total_bytes"] / report["memory.usable_bytes"]
    )
    assert cell(table, "total", "GiB") + cell(table, "to spare", "GiB") == pytest.approx(cell(table, "usable", "GiB"))


def test_memory_is_told_in_gib_and_gb() -> None:
    table = memory_table(training_report())
    total = next(row for row in table.totals if row[0] == "total")
    assert table.texts(total)[:4] == ("total", "56.4 GiB", "60.6 GB", "71.2 %")


def test_what_the_fit_rule_keeps_free_is_a_row_of_its_own() -> None:
    table = memory_table(training_report(memory__headroom_bytes=20.3 * GIB))
    assert cell(table, "kept for driver and slack", "GiB") == pytest.approx(2.5 * GIB)
    assert not any(row[0] == "kept for driver and slack" for row in memory_table(training_report()).totals)


def test_an_overflow_is_short_not_negative() -> None:
    table = memory_table(training_report(memory__headroom_bytes=-5 * GIB))
    assert cell(table, "short", "GiB") == 5 * GIB


def test_stages_stand_side_by_side_where_there_are_several() -> None:
    table = memory_table(training_report())
    assert [cell(table, "activations", f"stage {n}") / GIB for n in range(4)] == [26.4, 20.1, 13.6, 7.2]
    assert cell(table, "logits", "stage 3") == pytest.approx(4.2 * GIB), "held by another stage than the fullest"
    one = replace(training_report(), stages={key: sizes[:1] for key, sizes in training_report().stages.items()})
    assert len(memory_table(one).columns) == 4
    many = replace(training_report(), stages={key: [1.0] * 64 for key in training_report().stages})
    assert len(memory_table(many).columns) == 4


def test_the_compute_ledger_sums_the_operators_and_keeps_the_whole_step_apart() -> None:
    report = training_report()
    table = compute_table(report)
    flops = column(table, "FLOPs")
    assert sum(row[flops] for row in table.rows) == pytest.approx(cell(table, "all operators", "FLOPs"))
    assert cell(table, "whole step", "time") == report["time.step_s"]
    assert not any(row[0] == "whole step" for row in table.rows)


def test_prefill_and_decode_are_summed_apart() -> None:
    table = compute_table(serving_report())
    sums = {row[1]: row[column(table, "FLOPs")] for row in table.totals if row[0] == "all operators"}
    assert sums == {"decode": pytest.approx(5.81e11), "prefill": pytest.approx(3.74e13)}


def test_the_compute_ledger_compares_itself_with_the_rule_of_thumb() -> None:
    rule, step = compute_table(training_report()).notes
    assert "433 GFLOP a token" in rule
    assert "+3.1 %" in rule
    assert "64.0 PFLOP computed again" in step
    assert "computed again" not in compute_table(training_report(compute__hardware_flops_per_step=1.816e18)).notes[1]


def test_the_communication_ledger_sums_bytes_times_and_exposure() -> None:
    report = training_report()
    table = communication_table(report)
    assert cell(table, "total", "sent") == pytest.approx(report["communication.bytes_per_gpu"])
    assert cell(table, "total", "exposed") == pytest.approx(report["communication.exposed_seconds"])
    assert cell(table, "tensor", "group") == "tensor parallel 8"


def test_a_lonely_gpu_has_an_empty_communication_ledger() -> None:
    table = communication_table(replace(training_report(), communication=()))
    assert table.rows == ()
    assert cell(table, "total", "sent") == 0


def test_what_is_not_counted_is_said() -> None:
    assert [table.not_counted for table in tables(training_report())] == [
        ("softmax, norms",),
        ("NCCL buffers above 1 GiB",),
        ("data loading",),
    ]


def test_the_rule_of_full_recomputation_is_compared_with_what_is_executed() -> None:
    plan = load_scenario("7b-8xa100-train").with_("training.recompute", "full")
    report = evaluate(plan)
    executed = report["compute.hardware_flops_per_step"] / report["compute.tokens_per_step"]
    rule = report["compute.rule_flops_per_token"]
    note = next(note for note in compute_table(report).notes if "rule of thumb" in note)
    assert "executed a token" in note
    assert f"(+{100 * (executed / rule - 1):.1f} %)" in note
    without = compute_table(evaluate(plan.with_("training.recompute", "none"))).notes
    assert not any("executed" in note for note in without)
