"""The tabs below the charts: ledgers that sum, and findings that can be answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.gui.reports import GIB, Plans, serving_report, training_report
from triledger.core.report import Edit, Finding
from triledger.gui.ledgers import LedgerTabs
from triledger.gui.theme import DARK, LIGHT


@pytest.fixture
def plans(qapp: QApplication) -> Plans:
    return Plans(training_report())


@pytest.fixture
def tabs(qtbot: QtBot, plans: Plans) -> LedgerTabs:
    tabs = LedgerTabs(plans.store, LIGHT)
    qtbot.addWidget(tabs)
    tabs.resize(1100, 340)
    tabs.show()
    return tabs


def cells(tabs: LedgerTabs) -> dict[str, list[str]]:
    """The rows of the table on show by their first cell."""
    model = tabs.ledgers.table.model()
    lines = [
        [str(model.index(row, column).data()) for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]
    return {line[0]: line[1:] for line in lines}


def test_the_memory_ledger_stands_first_with_totals_and_what_is_left_out(tabs: LedgerTabs) -> None:
    rows = cells(tabs)
    assert rows["total"][:3] == ["56.4 GiB", "60.6 GB", "71.2 %"]
    assert rows["to spare"][0] == "22.8 GiB"
    assert rows["activations"][3:] == ["26.4 GiB", "20.1 GiB", "13.6 GiB", "7.20 GiB"]
    assert "NCCL buffers above 1 GiB" in tabs.ledgers.notes.text()
    header = tabs.ledgers.table.model().headerData(3, Qt.Orientation.Horizontal)
    assert header == "of usable"


def test_the_three_ledgers_are_a_click_apart(tabs: LedgerTabs, qtbot: QtBot) -> None:
    buttons = {button.text(): button for button in tabs.ledgers.choice.buttons()}
    qtbot.mouseClick(buttons["Communication"], Qt.MouseButton.LeftButton)
    assert cells(tabs)["total"][5] == "134 GB"
    qtbot.mouseClick(buttons["Compute"], Qt.MouseButton.LeftButton)
    assert cells(tabs)["attention"][2] == "2.70 PFLOP"
    assert "rule of thumb" in tabs.ledgers.notes.text()


def test_cells_change_in_place(tabs: LedgerTabs, qtbot: QtBot, plans: Plans) -> None:
    table = tabs.ledgers.table
    table.setCurrentIndex(table.model().index(2, 1))
    with qtbot.assertNotEmitted(table.model().modelReset):
        plans.show(training_report(memory__activations_bytes=30 * GIB))
    assert cells(tabs)["activations"][0] == "30.0 GiB"
    assert table.currentIndex().row() == 2


def test_columns_never_shrink_under_changing_numbers(tabs: LedgerTabs, plans: Plans) -> None:
    width = tabs.ledgers.table.columnWidth(1)
    plans.show(training_report(memory__total_bytes=1.0))
    assert tabs.ledgers.table.columnWidth(1) == width


def test_another_kind_of_plan_has_other_rows(tabs: LedgerTabs, plans: Plans) -> None:
    plans.show(serving_report())
    assert "KV cache" in cells(tabs)
    assert "gradients" not in cells(tabs)


@pytest.mark.parametrize("by", ["button", "keys"])
def test_a_copied_ledger_has_numbers_for_sheets_and_texts_for_documents(
    tabs: LedgerTabs, qtbot: QtBot, by: str
) -> None:
    if by == "button":
        qtbot.mouseClick(tabs.ledgers.copy_button, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(tabs.ledgers.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    data = QGuiApplication.clipboard().mimeData()
    lines = [line.split("\t") for line in data.text().splitlines()]
    assert lines[0][:4] == ["item", "GiB", "GB", "of usable"]
    total = next(line for line in lines if line[0] == "total")
    assert float(total[1]) == pytest.approx(56.4 * GIB)
    assert "<td>56.4 GiB</td>" in data.html()


def test_ledgers_out_of_sight_are_not_computed_and_catch_up(tabs: LedgerTabs, plans: Plans) -> None:
    tabs.setCurrentWidget(tabs.findings)
    plans.show(training_report(memory__headroom_bytes=2 * GIB))
    assert cells(tabs)["to spare"][0] == "22.8 GiB"
    tabs.setCurrentWidget(tabs.ledgers)
    assert cells(tabs)["to spare"][0] == "2.00 GiB"


def test_the_tab_counts_the_findings(tabs: LedgerTabs, plans: Plans) -> None:
    assert tabs.tabText(1) == "Findings 1"
    plans.show(replace(training_report(), findings=()))
    assert tabs.tabText(1) == "Findings"


def test_findings_are_listed_by_severity_and_can_be_answered(tabs: LedgerTabs, qtbot: QtBot, plans: Plans) -> None:
    over = Finding("over", "error", "Does not fit.", edits=(Edit("ZeRO-2", (("parallelism.zero", 2),)),))
    report = training_report()
    plans.show(replace(report, findings=(*report.findings, over)))
    tabs.setCurrentWidget(tabs.findings)
    rows = [row for row in tabs.findings.rows if row.isVisible()]
    assert [row.severity.text() for row in rows] == ["Error", "Hint"]
    assert rows[0].accessibleName() == "Error: Does not fit."
    qtbot.mouseClick(rows[0].buttons[0], Qt.MouseButton.LeftButton)
    assert plans.store.scenario.parallelism.zero == 2


def test_a_finding_keeps_numbers_with_their_units(tabs: LedgerTabs, plans: Plans) -> None:
    tight = Finding("tight", "warning", "Only 1.2 GiB of 79.2 GiB are left.")
    tabs.setCurrentWidget(tabs.findings)
    plans.show(replace(training_report(), findings=(tight,)))
    assert tabs.findings.rows[0].message.text() == "Only 1.2\u00a0GiB of 79.2\u00a0GiB are left."


def test_a_plan_without_fault_says_so(tabs: LedgerTabs, plans: Plans) -> None:
    plans.show(replace(training_report(), findings=()))
    tabs.setCurrentWidget(tabs.findings)
    assert tabs.findings.nothing.isVisible()
    assert not any(row.isVisible() for row in tabs.findings.rows)


def test_a_theme_reaches_table_and_findings(tabs: LedgerTabs) -> None:
    tabs.set_theme(DARK)
    image = tabs.grab().toImage()
    assert image.pixelColor(800, 200).name() == DARK.surface
    tabs.setCurrentWidget(tabs.findings)
    assert tabs.grab().toImage().pixelColor(800, 200).name() == DARK.surface
