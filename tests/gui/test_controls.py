from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from triledger.core.explore.stops import Scale
from triledger.gui.controls.choice import Choice, SearchChoice
from triledger.gui.controls.quantity import QuantityEdit
from triledger.gui.controls.slider import Slider
from triledger.gui.controls.switch import Switch
from triledger.gui.theme import DARK, LIGHT, Theme, apply

LEFT = Qt.MouseButton.LeftButton
DEGREES = Scale((1, 2, 4, 8, 16, 32), "even")


class Moves:
    """What a slider sent."""

    def __init__(self, slider: Slider) -> None:
        self.sent: list[tuple[float, int]] = []
        self.resets: list[int] = []
        slider.moved.connect(self.take)
        slider.reset.connect(self.resets.append)
        self.slider = slider

    def take(self, value: float, gesture: int) -> None:
        self.sent.append((value, gesture))
        self.slider.show_value(value)

    @property
    def values(self) -> list[float]:
        return [value for value, _ in self.sent]

    @property
    def gestures(self) -> set[int]:
        return {gesture for _, gesture in self.sent}


@pytest.fixture
def slider(qtbot: QtBot) -> Slider:
    numbers = iter(range(1, 1000))
    slider = Slider(DEGREES, lambda: next(numbers), ticks=True)
    slider.show_value(8)
    qtbot.addWidget(slider)
    slider.resize(260, 26)
    slider.show()
    return slider


@pytest.fixture
def moves(slider: Slider) -> Moves:
    return Moves(slider)


def at(slider: Slider, value: float) -> QPoint:
    return QPoint(round(slider.groove.x(value, slider.width())), 7)


def test_a_drag_is_one_gesture_through_the_stops(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    qtbot.mousePress(slider, LEFT, pos=at(slider, 8))
    assert moves.sent == []
    qtbot.mouseMove(slider, at(slider, 4))
    qtbot.mouseMove(slider, at(slider, 2))
    qtbot.mouseRelease(slider, LEFT, pos=at(slider, 2))
    qtbot.mouseMove(slider, at(slider, 32))
    assert moves.values == [4, 2]
    assert len(moves.gestures) == 1


def test_two_drags_are_two_gestures(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    for value in (1, 16):
        qtbot.mousePress(slider, LEFT, pos=at(slider, value))
        qtbot.mouseRelease(slider, LEFT, pos=at(slider, value))
    assert moves.values == [1, 16]
    assert len(moves.gestures) == 2


def test_a_drag_snaps_to_the_nearest_stop_that_is_allowed(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.show_scale(DEGREES, frozenset({1, 2, 8}))
    qtbot.mousePress(slider, LEFT, pos=at(slider, 8))
    qtbot.mouseMove(slider, at(slider, 4) - QPoint(3, 0))
    qtbot.mouseMove(slider, at(slider, 32))
    qtbot.mouseRelease(slider, LEFT, pos=at(slider, 32))
    assert moves.values == [2, 8]


def test_escape_during_a_drag_goes_back_to_where_it_began(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    qtbot.mousePress(slider, LEFT, pos=at(slider, 8))
    qtbot.mouseMove(slider, at(slider, 1))
    qtbot.keyClick(slider, Qt.Key.Key_Escape)
    qtbot.mouseMove(slider, at(slider, 32))
    assert moves.values == [1, 8]
    assert len(moves.gestures) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (Qt.Key.Key_Right, 16),
        (Qt.Key.Key_Up, 16),
        (Qt.Key.Key_Left, 4),
        (Qt.Key.Key_Down, 4),
        (Qt.Key.Key_PageUp, 32),
        (Qt.Key.Key_PageDown, 1),
        (Qt.Key.Key_Home, 1),
        (Qt.Key.Key_End, 32),
    ],
)
def test_keys_move_by_stops(qtbot: QtBot, slider: Slider, moves: Moves, key: Qt.Key, value: float) -> None:
    qtbot.keyClick(slider, key)
    assert moves.values == [value]


def test_page_keys_move_by_ten_stops(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.show_scale(Scale(tuple(range(1, 101))), None)
    qtbot.keyClick(slider, Qt.Key.Key_PageUp)
    qtbot.keyClick(slider, Qt.Key.Key_PageDown)
    assert moves.values == [18, 8]


def test_keys_step_over_what_is_not_allowed(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.show_scale(DEGREES, frozenset({1, 2, 8, 32}))
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert moves.values == [32, 1, 2]


def test_keys_leave_from_a_value_between_stops(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.show_value(6)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    slider.show_value(6)
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert moves.values == [8, 4]


def test_an_unset_slider_begins_in_the_middle(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.show_value(None)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert moves.values == [8]


def test_a_double_click_asks_for_the_reset_within_its_gesture(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    qtbot.mouseDClick(slider, LEFT, pos=at(slider, 8))
    assert len(moves.resets) == 1


def test_the_wheel_scrolls_the_panel_and_not_the_value(qtbot: QtBot, slider: Slider, moves: Moves) -> None:
    slider.setFocus()
    point = QPointF(at(slider, 8))
    wheel = QWheelEvent(
        point,
        slider.mapToGlobal(point),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(slider, wheel)
    assert moves.sent == []
    assert not wheel.isAccepted()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_the_strip_is_coloured_where_the_plan_stands(qtbot: QtBot, slider: Slider, theme) -> None:
    slider.set_theme(theme)
    slider.show_value(1)
    slider.show_strip(("fits", "fits", "tight", "does-not-fit", "illegal", "illegal"))
    picture = slider.grab().toImage()
    colors = [picture.pixelColor(at(slider, stop)).name() for stop in (2, 4, 8, 16)]
    assert colors == [theme.fits, theme.tight, theme.over, theme.illegal]


@pytest.fixture
def ground(qtbot: QtBot) -> QWidget:
    """A window that takes the focus away from a field."""
    holder = QWidget()
    qtbot.addWidget(holder)
    holder.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    holder.show()
    holder.setFocus()
    return holder


@pytest.fixture
def edit(ground: QWidget) -> QuantityEdit:
    edit = QuantityEdit(100)
    edit.setParent(ground)
    edit.show_value("1 024", "1024")
    edit.show()
    return edit


def test_a_quantity_shows_the_rounded_value_and_is_edited_as_the_exact_one(
    qtbot: QtBot, ground: QWidget, edit: QuantityEdit
) -> None:
    edit.show_value("3.35 TB/s", "3.352TB/s")
    assert edit.text() == "3.35 TB/s"
    edit.setFocus()
    assert (edit.text(), edit.selectedText()) == ("3.352TB/s", "3.352TB/s")
    with qtbot.assertNotEmitted(edit.entered):
        ground.setFocus()
    assert edit.text() == "3.35 TB/s"


def test_typing_replaces_the_value(qtbot: QtBot, edit: QuantityEdit) -> None:
    qtbot.mouseClick(edit, LEFT)
    qtbot.keyClicks(edit, "8*16")
    with qtbot.waitSignal(edit.entered) as entered:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert entered.args == ["8*16"]


def test_leaving_the_field_confirms_what_was_typed(qtbot: QtBot, ground: QWidget, edit: QuantityEdit) -> None:
    edit.setFocus()
    qtbot.keyClicks(edit, "2k")
    with qtbot.waitSignal(edit.entered) as entered:
        ground.setFocus()
    assert entered.args == ["2k"]


def test_a_wrong_value_stays_marked_until_escape_brings_the_value_back(
    qtbot: QtBot, ground: QWidget, edit: QuantityEdit
) -> None:
    edit.setFocus()
    qtbot.keyClicks(edit, "six")
    edit.refuse("'six' is not a quantity")
    ground.setFocus()
    assert edit.wrong
    assert edit.text() == "six"
    assert "six" in edit.accessibleDescription()
    edit.setFocus()
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert not edit.wrong
    assert edit.text() == "1024"


def test_a_choice_sends_what_a_person_picks_and_not_what_is_shown(qtbot: QtBot) -> None:
    choice = Choice()
    qtbot.addWidget(choice)
    choice.offer([("0", "nothing"), ("1", "optimizer")])
    choice.show()
    with qtbot.assertNotEmitted(choice.chosen):
        choice.show_choice("1", "optimizer")
    with qtbot.waitSignal(choice.chosen) as chosen:
        qtbot.keyClick(choice, Qt.Key.Key_Up)
    assert chosen.args == ["0"]


@pytest.fixture
def search(ground: QWidget) -> SearchChoice:
    models = {"llama-3-8b": "Llama 3 8B", "llama-3-70b": "Llama 3 70B", "qwen-7b": "Qwen 7B"}
    box = SearchChoice(lambda: list(models.items()))
    box.setParent(ground)
    box.show_choice("llama-3-8b", "Llama 3 8B")
    box.resize(160, 22)
    box.show()
    return box


@pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard")
def test_a_catalogue_entry_is_found_by_a_part_of_its_name(qtbot: QtBot, search: SearchChoice) -> None:
    edit = search.lineEdit()
    assert edit is not None
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, "wen")
    found = search.completer().completionModel()
    assert [found.index(row, 0).data() for row in range(found.rowCount())] == ["Qwen 7B"]
    edit.setText("qwen 7b")
    with qtbot.waitSignal(search.chosen) as chosen:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert chosen.args == ["qwen-7b"]


def test_what_is_no_entry_is_sent_as_it_was_typed(qtbot: QtBot, search: SearchChoice) -> None:
    edit = search.lineEdit()
    assert edit is not None
    edit.setFocus()
    edit.setText("25 GB/s")
    with qtbot.waitSignal(search.chosen) as chosen:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert chosen.args == ["25 GB/s"]
    search.refuse("unknown")
    assert search.wrong
    with qtbot.waitSignal(search.given_up):
        qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert not search.wrong
    assert edit.text() == "Llama 3 8B"


@pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard")
@pytest.mark.parametrize(
    ("typed", "sent"), [("70", "llama-3-70b"), ("QWEN", "qwen-7b"), ("llama", "llama"), ("llama 3 8b", "llama-3-8b")]
)
def test_a_click_selects_what_stands_there_and_enter_takes_the_only_hit(
    qtbot: QtBot, search: SearchChoice, typed: str, sent: str
) -> None:
    edit = search.lineEdit()
    assert edit is not None
    qtbot.mouseClick(edit, LEFT)
    assert edit.selectedText() == "Llama 3 8B"
    qtbot.keyClicks(edit, typed)
    assert edit.text() == typed
    with qtbot.waitSignal(search.chosen) as chosen:
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert chosen.args == [sent]


@pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard")
def test_a_second_click_puts_the_cursor_between_the_letters(qtbot: QtBot, search: SearchChoice) -> None:
    edit = search.lineEdit()
    assert edit is not None
    qtbot.mouseClick(edit, LEFT)
    qtbot.wait(QApplication.doubleClickInterval() + 10)
    qtbot.mouseClick(edit, LEFT)
    assert not edit.hasSelectedText()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_a_box_has_a_frame_and_a_ground_while_it_is_used(qtbot: QtBot, search: SearchChoice, theme: Theme) -> None:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    apply(application, theme)
    holder = search.parentWidget()
    assert holder is not None
    holder.setObjectName("row")
    search.setFocus()
    qtbot.waitUntil(search.hasFocus)
    picture = search.grab().toImage()
    assert picture.pixelColor(80, 0) == theme.color("accent")
    assert picture.pixelColor(4, 4) == theme.color("surface")


def test_a_switch_answers_to_the_mouse_and_the_space_bar(qtbot: QtBot) -> None:
    switch = Switch()
    qtbot.addWidget(switch)
    switch.show()
    off = switch.grab().toImage()
    qtbot.mouseClick(switch, LEFT)
    assert switch.isChecked()
    assert switch.grab().toImage() != off
    qtbot.keyClick(switch, Qt.Key.Key_Space)
    assert not switch.isChecked()
