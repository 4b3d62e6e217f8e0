"""The page of published runs: those like the plan, all of them by source, and how it follows the plan."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core.measured.comparison import by_source
from triledger.core.measured.errors import shipped_errors
from triledger.core.measured.similar import most_similar
from triledger.gui.evidence import EvidencePage
from triledger.gui.menus import Menus
from triledger.gui.panels import WIDTH
from triledger.gui.theme import DARK
from triledger.gui.window import Window


@pytest.fixture
def page(window: Window) -> EvidencePage:
    assert window.ledgers is not None
    window.ledgers.show_page(window.evidence)
    return window.evidence


def names(page: EvidencePage) -> list[str]:
    """The second column of the table."""
    return [row[1].replace("\u2010", "-") for row in page.table.rows.texts]


def test_the_runs_most_like_the_plan_stand_beside_the_chart_that_brings_them_out(page: EvidencePage) -> None:
    expected = [each.row.id for each in most_similar(page._store.scenario, len(names(page)))]
    assert names(page) == expected
    bold = {mark.name for mark in page.chart.figure.marks if mark.bold}
    assert bold == {*expected, "this plan"}
    assert "published runs of" in page.notes.text()


def test_all_published_runs_are_listed_by_source(page: EvidencePage) -> None:
    page.show_all()
    sources = {(row.kind, row.source, row.metric) for row in shipped_errors()}
    assert len(page.table.rows.texts) == len(sources) + 1
    assert "median error" in page.title.text()
    assert "no row has constants of its own" in page.notes.text()
    assert len(page.chart.figure.marks) > 100


def test_memory_of_the_plan_is_compared_by_one_click(page: EvidencePage, qtbot: QtBot) -> None:
    qtbot.mouseClick(page.choice.button(1), Qt.MouseButton.LeftButton)
    expected = [each.row.id for each in most_similar(page._store.scenario, len(names(page)), "peak")]
    assert names(page) == expected
    assert "more memory than predicted" in page.notes.text()


def test_the_page_follows_the_plan(page: EvidencePage, qtbot: QtBot) -> None:
    before = names(page)
    page._store.set("parallelism.pp", 1)
    page._store.set("cluster.gpus", 8)
    page._store.flush()
    qtbot.waitUntil(lambda: names(page) != before)


def test_numbers_have_no_working_to_ask_for(page: EvidencePage, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(page.table.asked):
        page.table.clicked.emit(page.table.rows.index(0, 2))


def test_the_table_is_copied_with_its_numbers(page: EvidencePage) -> None:
    page.table.copy()
    text = QGuiApplication.clipboard().text()
    assert names(page)[0] in text


def test_the_chart_gives_way_where_there_is_no_height(page: EvidencePage, window: Window) -> None:
    window.resize(1100, 700)
    assert page.chart.isHidden() == (page.height() < 280)
    window.set_theme(DARK)
    assert page.chart.theme is DARK


def test_a_long_title_gives_way_and_leaves_the_panels_their_width(page: EvidencePage, window: Window) -> None:
    window.resize(1100, 700)
    QApplication.processEvents()
    panel = window.panels["model"]
    assert panel.width() == WIDTH
    assert page.title.width() < page.title.fontMetrics().horizontalAdvance(page.title.text())
    assert page.title.toolTip().startswith("Published runs")


def test_the_menu_leads_to_the_numbers(window: Window) -> None:
    menu = window.toolbar.presets.menu()
    menu.clear()
    Menus(window).fill_view(menu)
    next(action for action in menu.actions() if action.text() == "About the numbers").trigger()
    assert window.ledgers is not None
    assert window.ledgers.currentWidget() is window.evidence
    assert window.evidence._shows_all()


def test_a_run_is_opened_as_a_plan(page: EvidencePage, window: Window) -> None:
    name = names(page)[0]
    page.table.activated.emit(page.table.rows.index(0, 0))
    assert name in window.store.scenario.name
    assert window.store.scenario.measured.step_time
    window.store.undo_stack.undo()
    assert name not in window.store.scenario.name


def test_the_chart_shows_the_runs_of_the_source_that_is_chosen(page: EvidencePage) -> None:
    page.show_all()
    everything = len(page.chart.figure.marks)
    page.table.setCurrentIndex(page.table.rows.index(0, 0))
    first = next(iter(by_source(shipped_errors())))
    shown = [row.id for row in shipped_errors() if (row.kind, row.source, row.metric) == first]
    assert [mark.name for mark in page.chart.figure.marks] == shown
    assert len(shown) < everything
