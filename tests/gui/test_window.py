from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from triledger.core.scenario import Scenario
from triledger.gui import display
from triledger.gui.application import run, screenshot
from triledger.gui.controls.quantity_row import QuantityRow
from triledger.gui.controls.row import CatalogueRow
from triledger.gui.errors import Notice, Unexpected
from triledger.gui.store import Store
from triledger.gui.theme import DARK, THEMES
from triledger.gui.window import Window

from .conftest import press

TP = "parallelism.tp"


# ------------------------------------------------------------ keys, toggles, themes


def test_undo_and_redo_by_key(qtbot: QtBot, window: Window, store: Store) -> None:
    store.set(TP, 4)
    press(qtbot, window, "Ctrl+Z")
    assert store.scenario.parallelism.tp == 8
    for redo in ("Ctrl+Shift+Z", "Ctrl+Y"):
        press(qtbot, window, redo)
        assert store.scenario.parallelism.tp == 4
        press(qtbot, window, "Ctrl+Z")


def test_the_toggle_changes_the_kind_and_follows_undo(qtbot: QtBot, window: Window, store: Store) -> None:
    training, serving = window.toolbar.kinds.actions()
    assert training.isChecked()
    serving.trigger()
    assert store.kind == "serving"
    assert "serving.concurrency" in [row.field.path for row in window.panels["workload"].rows]
    store.undo_stack.undo()
    assert training.isChecked()


def test_number_keys_go_to_the_charts(qtbot: QtBot, window: Window) -> None:
    assert window.charts is not None
    for number, name in enumerate(("roofline", "memory", "communication", "training", "waterfall"), start=1):
        press(qtbot, window, f"Ctrl+{number}")
        assert window.focusWidget() is window.charts.chart(name).plot
        assert window.charts.chart(name).figure.name == name


def test_the_theme_changes_everything_and_is_remembered(qtbot: QtBot, window: Window, settings: QSettings) -> None:
    light = window.grab().toImage()
    press(qtbot, window, "Ctrl+T")
    dark = window.grab().toImage()
    assert window.theme is DARK
    assert settings.value("theme") == "dark"
    for x, y in ((5, 5), (100, 60), (700, 70), (1430, 890)):
        assert light.pixelColor(x, y).lightness() > 200
        assert dark.pixelColor(x, y).lightness() < 60


@pytest.mark.parametrize(
    "keys", [("T", "S"), ("S", "T"), ("T", "S", "T"), ("S", "T", "S"), ("T", "P"), ("P", "T", "T")]
)
def test_whatever_the_order_of_kind_and_theme_the_panels_have_the_colours_of_the_theme(
    qtbot: QtBot, window: Window, store: Store, keys: tuple[str, ...]
) -> None:
    for key in keys:
        if key == "T":
            press(qtbot, window, "Ctrl+T")
        elif key == "S":
            window.toolbar.kinds.actions()[store.kind == "training"].trigger()
        else:
            window.files.open_preset("70b-bf16-8xa100-serve")
    qtbot.waitUntil(lambda: all(panel.height() >= panel.wanted_height() for panel in window.panels.values()))
    store.flush()
    window.strips.finish()
    theme, picture = window.theme, window.grab().toImage()

    def color(widget: QWidget, x: int, y: int) -> str:
        return picture.pixelColor(widget.mapTo(window, QPoint(x, y))).name()

    strip = {theme.fits, theme.tight, theme.over, theme.illegal, theme.groove}
    for row in (row for panel in window.panels.values() for row in panel.rows):
        assert color(row, 0, row.height() - 1) == theme.panel, row.field.path
        if isinstance(row, CatalogueRow) and not row.control.underMouse():
            assert color(row.control, 8, 11) == theme.panel, row.field.path
        if isinstance(row, QuantityRow) and row.slider is not None:
            assert color(row.slider, row.slider.width() // 2 + 20, 7) in strip | {theme.accent, theme.surface}
            assert color(row.slider, row.slider.width() - 5, 7) in strip | {theme.accent, theme.surface}


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_text_has_a_contrast_of_four_and_a_half_to_one(theme) -> None:
    def luminance(role: str) -> float:
        channels = (getattr(theme.color(role), channel)() for channel in ("redF", "greenF", "blueF"))
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    grounds = {"text": ("window", "panel", "surface", "hover"), "muted": ("window", "panel", "surface")}
    grounds |= {"accent": ("surface", "accent_soft"), "bad": ("surface", "panel", "bad_soft"), "on_accent": ("accent",)}
    grounds |= {"good": ("surface",), "warn": ("surface",)}
    for ink, below in grounds.items():
        for ground in below:
            light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


# ------------------------------------------------------------ start, pictures, failures


def test_the_verdict_is_painted_before_the_plots_are_imported(tmp_path: Path) -> None:
    script = """
import json, os, sys
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtCore import QSettings
from triledger.core import load_scenario
from triledger.gui.application import _application
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.window import Window
application = _application()
window = Window(Store(load_scenario("7b-8xa100-train")), QSettings(sys.argv[1], QSettings.Format.IniFormat), LIGHT)
heavy, seen = ("pyqtgraph", "matplotlib"), {}
window.centralWidget().painted.connect(lambda: seen.setdefault("painted", [n for n in heavy if n in sys.modules]))
def done():
    seen["completed"] = [n for n in heavy if n in sys.modules]
    application.quit()
window.completed.connect(done)
window.show()
application.exec()
print(json.dumps(seen))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "settings.ini")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(answer.stdout) == {"painted": [], "completed": ["pyqtgraph"]}


def test_a_screenshot_shows_the_whole_window(qapp: QApplication, plan: Scenario, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("QT_SCALE_FACTOR", "1")
    file = tmp_path / "window.png"
    assert screenshot(plan, file, (1440, 900), "dark") == 0
    picture = QImage(str(file))
    assert (picture.width(), picture.height()) == (1440, 900)
    assert picture.pixelColor(5, 5) == DARK.color("surface")
    strip = {picture.pixelColor(x, y).name() for x in range(12, 280) for y in range(380, 420)}
    assert {DARK.fits, DARK.over} <= strip
    assert screenshot(plan, tmp_path / "nowhere" / "window.png") == 2


def test_without_a_display_one_sentence_says_what_to_do(
    plan: Scenario, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert run(plan) == 2
    said = capsys.readouterr().err
    assert said.startswith("triledger: there is no display")
    assert "--screenshot" in said
    assert said.count("\n") == 1


def test_missing_libraries_are_named_with_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(display, "_loads", lambda pattern: "libxcb-cursor.so.0: cannot open shared object file")
    reason = display.missing_display_reason()
    assert reason is not None
    assert "libxcb-cursor.so.0" in reason
    assert "apt install" in reason
    assert "libxcb-cursor0" in reason


def test_an_x_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":987")
    monkeypatch.setattr(display, "_loads", lambda pattern: None)
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(display, "_answers", lambda: False)
    reason = display.missing_display_reason()
    assert reason is not None
    assert "display :987 does not answer" in reason


def test_an_unexpected_error_is_logged_whole_and_said_in_one_line(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    notice, unexpected = Notice(), Unexpected()
    qtbot.addWidget(notice)
    unexpected.happened.connect(notice.say)
    try:
        raise RuntimeError("two\nlines")
    except RuntimeError as problem:
        with caplog.at_level(logging.CRITICAL):
            unexpected.take(type(problem), problem, problem.__traceback__)
    assert notice.isVisible()
    assert notice.label.text().endswith("two lines")
    assert "Traceback" in caplog.text
    qtbot.keyClick(notice, Qt.Key.Key_Escape)
    assert not notice.isVisible()


def test_the_notice_of_a_failed_evaluation_goes_with_the_next_good_report(
    qtbot: QtBot, window: Window, store: Store
) -> None:
    store.failed.emit("no")
    assert window.notice.isVisible()
    with qtbot.waitSignal(store.report_changed):
        store.set(TP, 4)
    assert not window.notice.isVisible()


def test_the_notice_of_a_file_stays_until_it_is_dismissed(
    qtbot: QtBot, window: Window, store: Store, tmp_path: Path
) -> None:
    window.files.open(tmp_path / "nowhere.yaml")
    with qtbot.waitSignal(store.report_changed):
        store.set(TP, 4)
    assert window.notice.isVisible()


def test_a_tick_reaches_the_verdict_and_the_charts(qtbot: QtBot, window: Window, store: Store) -> None:
    row = window.panels["workload"].row("training.micro_batch")
    assert isinstance(row, QuantityRow)
    assert row.slider is not None
    assert window.charts is not None
    before = window.charts.chart("memory").figure
    with qtbot.waitSignal(store.report_changed):
        qtbot.keyClick(row.slider, Qt.Key.Key_Right)
    assert window.charts.chart("memory").figure != before


def test_none_is_not_used_up() -> None:
    """PySide6 6.12.0 drops a reference to None on each void call, which aborts CPython below 3.12."""
    label = QLabel()
    before = sys.getrefcount(None)
    for number in range(1000):
        label.setObjectName(str(number))
    assert abs(sys.getrefcount(None) - before) < 100


def test_the_program_ends_well_after_something_was_copied(tmp_path: Path) -> None:
    script = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from triledger.core import load_scenario
from triledger.gui.application import _application, run
from triledger.gui.window import Window

def copy_and_close():
    window = next(w for w in QApplication.topLevelWidgets() if isinstance(w, Window))
    window.complete()
    window.charts.chart("memory").copy_table()
    window.charts.chart("memory").copy_chart()
    window.close()

application = _application()
QTimer.singleShot(0, copy_and_close)
sys.exit(run(load_scenario("7b-8xa100-train")))
"""
    folders = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", **folders}
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (answer.returncode, answer.stderr.replace("This plugin does not support propagateSizeHints()\n", "")) == (
        0,
        "",
    )
