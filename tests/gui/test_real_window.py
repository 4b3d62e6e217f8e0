"""One flow through the whole window, which also runs on a real X server (QT_QPA_PLATFORM=xcb)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from pytestqt.qtbot import QtBot

from triledger.core import load_scenario
from triledger.gui.controls.quantity_row import QuantityRow
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.window import Window

pytestmark = pytest.mark.xcb


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Window:
    settings = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
    window = Window(Store(load_scenario("7b-8xa100-train")), settings, LIGHT)
    qtbot.addWidget(window)
    window.resize(1440, 900)
    with qtbot.waitSignal(window.completed):
        window.show()
    qtbot.waitExposed(window)
    window.store.flush()
    return window


def test_a_slider_moves_the_plan_and_the_picture_and_undo_brings_both_back(qtbot: QtBot, window: Window) -> None:
    row = window.panels["workload"].row("training.tokens")
    assert isinstance(row, QuantityRow)
    assert row.slider is not None
    before, days = window.grab().toImage(), window.store.report["training.days"]  # pyright: ignore[reportOptionalSubscript]

    with qtbot.waitSignal(window.store.report_changed):
        qtbot.keyClick(row.slider, Qt.Key.Key_Right)
    assert window.store.report["training.days"] > days  # pyright: ignore[reportOptionalSubscript]
    assert window.isWindowModified()
    assert window.grab().toImage() != before

    with qtbot.waitSignal(window.store.report_changed):
        window.store.undo_stack.undo()
    assert window.store.report["training.days"] == days  # pyright: ignore[reportOptionalSubscript]
    assert not window.isWindowModified()
