"""Where things stand in the window: docks at every size, tabs of docks, charts over ledgers."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtWidgets import QLabel, QTabBar
from pytestqt.qtbot import QtBot

from triledger.core.fields import PANELS
from triledger.core.scenario import Scenario
from triledger.gui.controls.choice import Choice
from triledger.gui.dock_area import shares
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.window import Window

from .conftest import Answers, press

LEFT = Qt.MouseButton.LeftButton


def test_at_the_usual_size_every_daily_field_is_seen_without_scrolling(qtbot: QtBot, window: Window) -> None:
    qtbot.waitUntil(lambda: all(panel.height() >= panel.wanted_height() for panel in window.panels.values()))
    for panel in window.panels.values():
        for row in panel.rows:
            assert not row.visibleRegion().isEmpty()


@pytest.mark.parametrize("kind", ["training", "serving"])
def test_labels_are_not_cut_at_the_usual_size(qtbot: QtBot, window: Window, store: Store, kind: str) -> None:
    store.set("kind", kind)
    for panel in window.panels.values():
        panel.title.fold.setChecked(True)
    qtbot.wait(1)
    for panel in window.panels.values():
        for label in panel.findChildren(QLabel):
            if label.isVisible() and not label.wordWrap():
                assert label.width() >= label.fontMetrics().horizontalAdvance(label.text()), label.text()
        for choice in panel.findChildren(Choice):
            assert choice.width() >= choice.sizeHint().width(), choice.accessibleName()


def seen(window: Window, name: str) -> bool:
    """Whether every row of a panel can be seen whole."""
    return all(row.visibleRegion().boundingRect() == row.rect() for row in window.panels[name].rows)


def click_tab(qtbot: QtBot, window: Window, text: str) -> None:
    for bar in window.findChildren(QTabBar):
        for place in range(bar.count()):
            if bar.parent() is window and bar.tabText(place) == text:
                qtbot.mouseClick(bar, LEFT, pos=bar.tabRect(place).center())


def test_in_a_small_window_panels_share_places_and_each_shows_all_of_its_rows(qtbot: QtBot, window: Window) -> None:
    window.resize(1100, 700)
    qtbot.waitUntil(lambda: seen(window, "model") and seen(window, "parallelism") and seen(window, "workload"))
    assert window.width() == 1100
    assert not seen(window, "hardware")
    click_tab(qtbot, window, "Hardware")
    click_tab(qtbot, window, "Assumptions")
    qtbot.waitUntil(lambda: seen(window, "hardware") and seen(window, "assumptions"))
    window.resize(1440, 900)
    qtbot.waitUntil(lambda: all(seen(window, name) for name in PANELS))


def test_heights_of_an_earlier_run_are_shared_anew_where_a_panel_is_cut_beside_empty_space(
    qtbot: QtBot, window: Window
) -> None:
    cut = window.panels["parallelism"]
    qtbot.waitUntil(lambda: all(seen(window, name) for name in PANELS))
    window.docks.keep()
    window.resizeDocks([cut], [90], Qt.Orientation.Vertical)
    qtbot.waitUntil(lambda: not seen(window, "parallelism"))
    window.resize(1440, 960)
    qtbot.waitUntil(lambda: all(seen(window, name) for name in PANELS))


def test_an_error_below_a_row_does_not_rearrange_the_panels(qtbot: QtBot, window: Window, store: Store) -> None:
    store.set("model.heads", 12)
    store.set("parallelism.tp", 8)
    qtbot.wait(1)
    assert window.panels["parallelism"].row("parallelism.tp").error
    assert not window.tabifiedDockWidgets(window.panels["model"])


def test_docks_hide_float_and_come_back_as_they_were(
    qtbot: QtBot, window: Window, plan: Scenario, settings: QSettings, answers: Answers
) -> None:
    qtbot.mouseClick(window.panels["model"].title.close_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(window.panels["hardware"].title.float, Qt.MouseButton.LeftButton)
    assert window.panels["hardware"].isFloating()
    window.close()
    again = Window(Store(plan), settings, LIGHT, answers)
    qtbot.addWidget(again)
    with qtbot.waitSignal(again.completed):
        again.show()
    assert not again.panels["model"].isVisible()
    assert again.panels["hardware"].isFloating()
    assert not again.panels["workload"].isFloating()
    again.panels["model"].toggleViewAction().trigger()
    assert again.panels["model"].isVisible()


def test_a_hidden_panel_leaves_its_height_to_the_others(qtbot: QtBot, window: Window) -> None:
    window.panels["workload"].title.fold.click()
    cut = window.panels["workload"].height()
    window.panels["model"].close()
    qtbot.waitUntil(lambda: window.panels["workload"].height() > cut)


def test_heights_are_shared_by_need() -> None:
    assert shares([100, 200], 400) == [100, 300]
    assert shares([100, 200], 300) == [100, 200]
    cut = shares([100, 400, 150], 450)
    assert sum(cut) <= 450
    assert all(height >= 86 for height in cut)
    assert cut[1] > cut[2] > cut[0]
    assert len(PANELS) == 5


# ------------------------------------------------------------ charts over ledgers


def tab_at(window: Window, place: int) -> QPoint:
    assert window.ledgers is not None
    return window.ledgers.tabBar().tabRect(place).center()


def test_a_click_on_a_tab_opens_the_ledgers_down_to_their_totals_and_a_double_click_folds_them(
    qtbot: QtBot, window: Window
) -> None:
    assert window.ledgers is not None
    bar = window.ledgers.tabBar()
    folded = window.ledgers.height()
    qtbot.mouseClick(bar, LEFT, pos=tab_at(window, 0))
    table = window.ledgers.ledgers.table
    last = table.rows.rowCount() - 1
    qtbot.waitUntil(lambda: table.viewport().rect().contains(table.visualRect(table.rows.index(last, 0))))
    # as a person does it: two clicks, the second of which comes as a double click
    qtbot.mouseClick(bar, LEFT, pos=tab_at(window, 0))
    qtbot.mouseDClick(bar, LEFT, pos=tab_at(window, 0))
    qtbot.waitUntil(lambda: window.ledgers is not None and window.ledgers.height() == folded)


def test_with_the_ledgers_open_a_row_of_charts_stays_readable_and_keys_go_to_the_other(
    qtbot: QtBot, window: Window
) -> None:
    assert window.charts is not None
    assert window.ledgers is not None
    qtbot.mouseClick(window.ledgers.tabBar(), LEFT, pos=tab_at(window, 0))
    card = window.charts.chart
    qtbot.waitUntil(lambda: card("roofline").isVisible() and not card("training").isVisible())
    qtbot.waitUntil(lambda: card("roofline").height() > 200)
    press(qtbot, window, "Ctrl+4")
    assert card("training").isVisible()
    assert window.focusWidget() is card("training").plot
    qtbot.mouseDClick(window.ledgers.tabBar(), LEFT, pos=tab_at(window, 0))
    qtbot.waitUntil(lambda: card("roofline").isVisible() and card("training").isVisible())
