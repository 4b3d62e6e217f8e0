"""The tabs below the charts: ledgers that sum, and findings that can be answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.gui.reports import GIB, serving_report, training_report
from triledger.core.report import Edit, Finding, Report
from triledger.gui.ledgers import LedgerTabs
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT

Make = Callable[[Report], LedgerTabs]


@pytest.fixture
def tabs(qtbot: QtBot, qapp: QApplication) -> Make:
    def make(report: Report) -> LedgerTabs:
        store = Store(report.scenario, evaluate=lambda scenario: store.given)
        store.given = report
        store.flush()
        tabs = LedgerTabs(store, LIGHT)
        tabs.store = store
        qtbot.addWidget(tabs)
        tabs.resize(1100, 340)
        tabs.show()
        return tabs

    return make


def show(tabs: LedgerTabs, report: Report) -> None:
    tabs.store.given = report
    tabs.store.set("training.tokens", tabs.store.scenario.training.tokens + 1)
    tabs.store.flush()


def cells(tabs: LedgerTabs) -> dict[str, list[str]]:
    """The rows of the table on show by their first cell."""
    model = tabs.ledgers.table.model()
    lines = [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]
    return {line[0]: line[1:] for line in lines}


def test_the_memory_ledger_stands_first_with_totals_and_what_is_left_out(tabs: Make) -> None:
    shown = tabs(training_report())
    rows = cells(shown)
    assert rows["total"][:3] == ["56.4 GiB", "60.6 GB", "71.2 %"]
    assert rows["to spare"][0] == "22.8 GiB"
    assert rows["activations"][3:] == ["26.4 GiB", "20.1 GiB", "13.6 GiB", "7.20 GiB"]
    assert "NCCL buffers above 1 GiB" in shown.ledgers.notes.text()
    header = shown.ledgers.table.model().headerData(3, Qt.Orientation.Horizontal)
    assert header == "of usable"


def test_the_three_ledgers_are_a_click_apart(tabs: Make, qtbot: QtBot) -> None:
    shown = tabs(training_report())
    buttons = {button.text(): button for button in shown.ledgers.choice.buttons()}
    qtbot.mouseClick(buttons["Communication"], Qt.MouseButton.LeftButton)
    assert cells(shown)["total"][4] == "134 GB"
    qtbot.mouseClick(buttons["Compute"], Qt.MouseButton.LeftButton)
    assert cells(shown)["attention"][1] == "2.70 PFLOP"
    assert "rule of thumb" in shown.ledgers.notes.text()


def test_cells_change_in_place(tabs: Make, qtbot: QtBot) -> None:
    shown = tabs(training_report())
    table = shown.ledgers.table
    table.setCurrentIndex(table.model().index(2, 1))
    with qtbot.assertNotEmitted(table.model().modelReset):
        show(shown, training_report(memory__activations_bytes=30 * GIB))
    assert cells(shown)["activations"][0] == "30.0 GiB"
    assert table.currentIndex().row() == 2


def test_columns_never_shrink_under_changing_numbers(tabs: Make) -> None:
    shown = tabs(training_report())
    width = shown.ledgers.table.columnWidth(1)
    show(shown, training_report(memory__total_bytes=1.0))
    assert shown.ledgers.table.columnWidth(1) == width


def test_another_kind_of_plan_has_other_rows(tabs: Make) -> None:
    shown = tabs(training_report())
    show(shown, serving_report())
    assert "KV cache" in cells(shown)
    assert "gradients" not in cells(shown)


@pytest.mark.parametrize("by", ["button", "keys"])
def test_a_copied_ledger_has_numbers_for_sheets_and_texts_for_documents(tabs: Make, qtbot: QtBot, by: str) -> None:
    shown = tabs(training_report())
    if by == "button":
        qtbot.mouseClick(shown.ledgers.copy_button, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(shown.ledgers.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    data = QGuiApplication.clipboard().mimeData()
    lines = [line.split("\t") for line in data.text().splitlines()]
    assert lines[0][:4] == ["item", "GiB", "GB", "of usable"]
    total = next(line for line in lines if line[0] == "total")
    assert float(total[1]) == pytest.approx(56.4 * GIB)
    assert "<td>56.4 GiB</td>" in data.html()


def test_ledgers_out_of_sight_are_not_computed_and_catch_up(tabs: Make) -> None:
    shown = tabs(training_report())
    shown.setCurrentWidget(shown.findings)
    show(shown, training_report(memory__headroom_bytes=2 * GIB))
    assert cells(shown)["to spare"][0] == "22.8 GiB"
    shown.setCurrentWidget(shown.ledgers)
    assert cells(shown)["to spare"][0] == "2.00 GiB"


def test_the_tab_counts_the_findings(tabs: Make) -> None:
    shown = tabs(training_report())
    assert shown.tabText(1) == "Findings 1"
    show(shown, replace(training_report(), findings=()))
    assert shown.tabText(1) == "Findings"


def test_findings_are_listed_by_severity_and_can_be_answered(tabs: Make, qtbot: QtBot) -> None:
    over = Finding("over", "error", "Does not fit.", edits=(Edit("ZeRO-2", (("parallelism.zero", 2),)),))
    report = training_report()
    shown = tabs(replace(report, findings=(*report.findings, over)))
    shown.setCurrentWidget(shown.findings)
    rows = [row for row in shown.findings.rows if row.isVisible()]
    assert [row.severity.text() for row in rows] == ["Error", "Hint"]
    assert rows[0].accessibleName() == "Error: Does not fit."
    qtbot.mouseClick(rows[0].buttons[0], Qt.MouseButton.LeftButton)
    assert shown.store.scenario.parallelism.zero == 2


def test_a_plan_without_fault_says_so(tabs: Make) -> None:
    shown = tabs(replace(training_report(), findings=()))
    shown.setCurrentWidget(shown.findings)
    assert shown.findings.nothing.isVisible()
    assert not any(row.isVisible() for row in shown.findings.rows)


def test_a_theme_reaches_table_and_findings(tabs: Make) -> None:
    shown = tabs(training_report())
    shown.set_theme(DARK)
    image = shown.grab().toImage()
    assert image.pixelColor(800, 200).name() == DARK.surface
    shown.setCurrentWidget(shown.findings)
    assert shown.grab().toImage().pixelColor(800, 200).name() == DARK.surface
