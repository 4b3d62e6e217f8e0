from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage, QKeySequence
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from triledger.core import load_scenario, save_scenario
from triledger.core.catalogue import catalogue
from triledger.core.fields import PANELS
from triledger.core.scenario import Scenario
from triledger.gui import display
from triledger.gui.application import run, screenshot
from triledger.gui.controls.choice import Choice
from triledger.gui.controls.quantity_row import QuantityRow
from triledger.gui.dock_area import shares
from triledger.gui.errors import Notice, Unexpected
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT, THEMES
from triledger.gui.window import Window

from .conftest import Answers

TP = "parallelism.tp"


def press(qtbot: QtBot, window: Window, keys: str) -> None:
    qtbot.keySequence(window, QKeySequence(keys))


# ------------------------------------------------------------ the plan and its file


def test_the_title_names_the_plan_and_marks_changes(window: Window, store: Store) -> None:
    assert window.windowTitle() == f"{store.scenario.name}[*] – Triledger"
    assert not window.isWindowModified()
    store.set(TP, 4)
    assert window.isWindowModified()
    store.undo_stack.undo()
    assert not window.isWindowModified()


def test_a_plan_is_saved_and_opened_again(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.set(TP, 4)
    answers.save = str(tmp_path / "mine")
    press(qtbot, window, "Ctrl+S")
    file = tmp_path / "mine.yaml"
    assert load_scenario(file) == store.scenario
    assert not window.isWindowModified()
    assert store.path == file

    store.set(TP, 2)
    press(qtbot, window, "Ctrl+S")
    assert answers.asked == ["save"], "a plan that has a file is saved without asking"
    assert load_scenario(file).parallelism.tp == 2

    window.files.open_preset("7b-8xa100-train")
    answers.open = str(file)
    press(qtbot, window, "Ctrl+O")
    assert store.scenario.parallelism.tp == 2
    assert window.files.recent() == [str(file)]


def test_save_as_writes_another_file(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.saved(tmp_path / "first.yaml")
    answers.save = str(tmp_path / "second.yaml")
    press(qtbot, window, "Ctrl+Shift+S")
    assert load_scenario(tmp_path / "second.yaml") == store.scenario
    assert not (tmp_path / "first.yaml").exists()


def test_a_file_that_cannot_be_read_is_said_in_one_line_that_can_be_dismissed(
    qtbot: QtBot, window: Window, store: Store, tmp_path: Path, plan: Scenario
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("model: llama-2-7b\ncluster: {accelerator: h100-sxm-80gb}\nparallelism: {tp: 3}\n")
    window.files.open(broken)
    assert window.notice.isVisible()
    assert "broken.yaml:3: parallelism.tp: 3 does not divide" in window.notice.label.text()
    assert store.scenario is plan
    qtbot.mouseClick(window.notice.dismiss, Qt.MouseButton.LeftButton)
    assert not window.notice.isVisible()


def test_a_folder_that_is_not_there_is_said_when_saving(window: Window, answers: Answers, tmp_path: Path) -> None:
    answers.save = str(tmp_path / "nowhere" / "plan.yaml")
    assert not window.files.save()
    assert window.notice.label.text().startswith("Not saved:")


@pytest.mark.parametrize(("answer", "closed"), [("cancel", False), ("discard", True), ("save", True)])
def test_closing_with_unsaved_changes_asks(
    window: Window, store: Store, answers: Answers, tmp_path: Path, answer: str, closed: bool
) -> None:
    store.set(TP, 4)
    answers.unsaved, answers.save = answer, str(tmp_path / "kept.yaml")
    assert window.close() is closed
    assert answers.asked[0] == "unsaved"
    assert (tmp_path / "kept.yaml").exists() is (answer == "save")


def test_closing_without_changes_asks_nothing(window: Window, answers: Answers) -> None:
    assert window.close()
    assert answers.asked == []


def drop(window: Window, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    where, copy, left = QPointF(300, 300), Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    enter = QDragEnterEvent(where.toPoint(), copy, data, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(where, copy, data, left, Qt.KeyboardModifier.NoModifier))
    return enter.isAccepted()


def test_a_scenario_file_dropped_on_the_window_opens(window: Window, store: Store, tmp_path: Path) -> None:
    other = load_scenario("7b-8xa100-train")
    save_scenario(other, tmp_path / "other.yaml")
    assert drop(window, tmp_path / "other.yaml")
    assert store.scenario == other
    assert not drop(window, tmp_path / "picture.png")


def test_a_preset_is_one_step(window: Window, store: Store, plan: Scenario) -> None:
    menu = window.toolbar.presets.menu()
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()] == [p.name for p in catalogue().presets.values()]
    action = next(a for a in menu.actions() if a.text() == catalogue().presets["7b-8xa100-train"].name)
    action.trigger()
    assert store.scenario == load_scenario("7b-8xa100-train")
    assert store.undo_stack.count() == 1
    store.undo_stack.undo()
    assert store.scenario == plan


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
    for number, name in enumerate(("roofline", "memory", "communication", "training"), start=1):
        press(qtbot, window, f"Ctrl+{number}")
        assert window.focusWidget() is window.charts.chart(name).plot


def test_the_theme_changes_everything_and_is_remembered(qtbot: QtBot, window: Window, settings: QSettings) -> None:
    light = window.grab().toImage()
    press(qtbot, window, "Ctrl+T")
    dark = window.grab().toImage()
    assert window.theme is DARK
    assert settings.value("theme") == "dark"
    for x, y in ((5, 5), (100, 60), (700, 70), (1430, 890)):
        assert light.pixelColor(x, y).lightness() > 200
        assert dark.pixelColor(x, y).lightness() < 60


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


# ------------------------------------------------------------ panels as docks


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


def test_a_small_window_shows_a_part_of_every_panel(qtbot: QtBot, window: Window) -> None:
    window.resize(1100, 700)
    qtbot.waitUntil(lambda: window.panels["assumptions"].geometry().bottom() <= 700)
    assert window.width() == 1100
    assert all(panel.height() >= 60 for panel in window.panels.values())


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
