"""The working of a number in the window: asked for by cards and ledgers, followed to inputs and controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core import evaluate
from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.gui.formula import FormulaView, Fraction, Row, boxes_of
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT, Theme
from triledger.gui.window import Window
from triledger.gui.working import WorkingPage


class Recorded:
    """Counts the evaluations that record."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, scenario: Scenario) -> Report:
        self.count += 1
        return evaluate(scenario, record=True)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def page(qtbot: QtBot, store: Store, recorded: Recorded) -> WorkingPage:
    page = WorkingPage(store, LIGHT, recorded)
    qtbot.addWidget(page)
    page.resize(1100, 320)
    page.show()
    return page


def rows(page: WorkingPage) -> dict[str, list[str]]:
    """The inputs by their symbol: value and what each is."""
    table = page.inputs
    cells = [[table.item(row, column).text() for column in range(3)] for row in range(table.rowCount())]
    return {line[0].removesuffix("\u2002→"): line[1:] for line in cells}


def follow(page: WorkingPage, symbol: str) -> None:
    page.follow(list(rows(page)).index(symbol))


def test_a_result_shows_formula_values_source_and_gaps(page: WorkingPage) -> None:
    page.open("training.days")
    assert page.formula.text == "days = steps · step / 86400 / effective ratio"
    assert page.values.text.endswith(f"= {page.number.text()}")
    assert "definition" in page.facts.text()
    assert "queueing" in page.facts.text()
    assert rows(page)["steps"][1] == "Optimizer steps of the training"
    assert page.inputs.item(0, 1).textAlignment() & Qt.AlignmentFlag.AlignRight


def test_an_input_that_is_a_result_opens_and_back_returns(page: WorkingPage, qtbot: QtBot) -> None:
    page.open("training.days")
    follow(page, "step")
    assert page.steps[-1].key == "time.step_s"
    assert [step.name for step in page.steps] == ["training.days", "time.step_s"]
    page.inputs.setFocus()
    qtbot.keyClick(page.inputs, Qt.Key.Key_Backspace)
    assert page.steps[-1].key == "training.days"
    qtbot.mouseClick(page.back, Qt.MouseButton.LeftButton)
    assert page.steps[-1].key == "time.step_s"
    assert not page.back.isEnabled()


def test_inputs_without_a_name_of_their_own_are_followed_down(page: WorkingPage) -> None:
    page.open("time.stage_s")
    follow(page, "block")
    follow(page, "block forward")
    assert page.steps[-1].key == "time.block_forward_s"
    follow(page, "matrices")
    assert page.steps[-1].places
    assert next(iter(rows(page))) == "QKV forward"
    page.trail.linkActivated.emit("0")
    assert [step.key for step in page.steps] == ["time.stage_s"]


def test_a_field_is_a_link_to_its_control(page: WorkingPage, qtbot: QtBot) -> None:
    page.open("training.steps")
    with qtbot.waitSignal(page.field_requested) as asked:
        follow(page, "T")
    assert asked.args == ["training.tokens"]


def test_a_result_that_is_a_field_leads_to_its_control(page: WorkingPage, qtbot: QtBot) -> None:
    page.open("roofline.bandwidth")
    assert "Memory bandwidth" in page.meaning.text()
    with qtbot.waitSignal(page.field_requested) as asked:
        page.facts.linkActivated.emit(page.facts.text().split('href="')[1].split('"')[0])
    assert asked.args == ["cluster.accelerator.memory_bandwidth"]


def test_the_trail_survives_a_change_of_the_plan(page: WorkingPage, store: Store, qtbot: QtBot) -> None:
    page.open("time.stage_s")
    follow(page, "head")
    before = page.number.text()
    store.set("training.micro_batch", 2.0)
    store.flush()
    qtbot.waitUntil(lambda: page.number.text() != before)
    assert page.steps[-1].name == "head"


def test_nothing_is_recorded_out_of_sight_and_a_drag_records_seldom(
    page: WorkingPage, store: Store, recorded: Recorded, qtbot: QtBot
) -> None:
    page.hide()
    shown = recorded.count
    for batch in range(1, 21):
        store.set("training.micro_batch", float(batch))
        store.flush()
    assert recorded.count == shown
    page.show()
    assert recorded.count == shown + 1
    for batch in range(21, 41):
        store.set("training.micro_batch", float(batch))
        store.flush()
    assert recorded.count == shown + 1
    qtbot.waitUntil(lambda: recorded.count == shown + 2)


def test_results_are_found_by_words(page: WorkingPage, qtbot: QtBot) -> None:
    qtbot.keyClicks(page.results.search, "block forward")
    assert page.results.shown() == ["time.block_forward_s"]
    qtbot.keyClick(page.results.search, Qt.Key.Key_Return)
    assert page.steps[-1].key == "time.block_forward_s"
    page.results.search.setFocus()
    qtbot.keyClick(page.results.search, Qt.Key.Key_Backspace)
    assert page.results.search.text() == "block forwar"
    assert page.steps[-1].key == "time.block_forward_s"


def test_a_result_that_another_kind_of_plan_lacks_says_so(page: WorkingPage, store: Store, qtbot: QtBot) -> None:
    page.open("training.days")
    store.set("kind", "serving")
    store.flush()
    qtbot.waitUntil(lambda: "serving plan" in page.meaning.text())
    assert page.inputs.isHidden()


def test_the_working_can_be_copied_as_text(page: WorkingPage, qtbot: QtBot) -> None:
    page.open("training.days")
    qtbot.mouseClick(page.copy_button, Qt.MouseButton.LeftButton)
    assert "days = steps · step" in QGuiApplication.clipboard().text()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_page_takes_the_theme(page: WorkingPage, theme: Theme) -> None:
    page.set_theme(theme)
    for view in (page.inputs, page.text):
        image = view.grab().toImage()
        assert image.pixelColor(image.width() - 20, image.height() - 8).name() == theme.surface


# ---------------------------------------------------------------- from the window


def test_a_click_on_a_card_opens_the_working(window: Window, qtbot: QtBot) -> None:
    card = window.cards.cards[3]
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton, pos=QPoint(30, 30))
    assert window.ledgers is not None
    assert window.ledgers.currentWidget() is window.ledgers.working
    assert window.ledgers.working.number.text().endswith(" d")
    assert window.ledgers.working.height() > 150


@pytest.mark.parametrize("key", [Qt.Key.Key_F1, Qt.Key.Key_Return])
def test_a_focused_card_opens_by_key(window: Window, qtbot: QtBot, key: Qt.Key) -> None:
    window.cards.cards[4].setFocus()
    qtbot.keyClick(window.cards.cards[4], key)
    assert window.ledgers is not None
    assert window.ledgers.working.steps[-1].key == "cost.usd"


@pytest.mark.parametrize(
    ("ledger", "row", "column", "key"),
    [
        ("Memory", 0, 1, "memory.weights_bytes"),
        ("Compute", 0, 6, "roofline.points.0.seconds"),
        ("Communication", 1, 8, "communication.1.exposed_seconds"),
        ("Communication", -1, 6, "communication.bytes_per_gpu"),
    ],
)
def test_a_number_of_a_ledger_opens_its_working(
    window: Window, qtbot: QtBot, ledger: str, row: int, column: int, key: str
) -> None:
    assert window.ledgers is not None
    window.ledgers.setCurrentWidget(window.ledgers.ledgers)
    window.ledgers.tabBarClicked.emit(0)
    QApplication.processEvents()
    next(each for each in window.ledgers.ledgers.choice.buttons() if each.text() == ledger).click()
    table = window.ledgers.ledgers.table
    index = table.model().index(row % table.model().rowCount(), column)
    shown = index.data()
    table.scrollTo(index)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(index).center())
    assert window.ledgers.working.steps[-1].key == key
    number = window.ledgers.working.number.text()
    assert float(number.split()[0]) == pytest.approx(float(shown.split()[0]), rel=0.006) or "T" in number


def test_a_word_of_a_ledger_only_selects(window: Window, qtbot: QtBot) -> None:
    assert window.ledgers is not None
    table = window.ledgers.ledgers.table
    place = table.visualRect(table.model().index(0, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert window.ledgers.currentWidget() is window.ledgers.ledgers


@pytest.mark.parametrize("path", ["training.tokens", "economics.power_usage_effectiveness", "cluster.gpus"])
def test_a_field_gets_the_keyboard_wherever_it_stands(window: Window, qtbot: QtBot, path: str) -> None:
    assert window.ledgers is not None
    for panel in window.panels.values():
        panel.hide()
    window.ledgers.working.field_requested.emit(path)
    focused = window.focusWidget()
    assert focused is not None
    panel = next(panel for panel in window.panels.values() if panel.isAncestorOf(focused))
    assert panel.row(path).isAncestorOf(focused)
    assert not panel.isHidden()


# ---------------------------------------------------------------- the picture of a formula


def boxes(of: Row, found: Callable[[Any], bool]) -> list[Any]:
    """All boxes within a row that answer to something."""
    result, waiting = [], list(of.boxes)
    while waiting:
        box = waiting.pop()
        result += [box] if found(box) else []
        for name in ("boxes", "inner", "over", "under"):
            inner = getattr(box, name, [])
            waiting += inner if isinstance(inner, list) else [inner]
    return result


@pytest.mark.parametrize(
    ("text", "fractions"),
    [
        ("days = steps · step / 86400 / effective ratio", 1),
        ("t = a / b + c / (d + e / f)", 3),
        ("β = 11 KiB/token · 4 096", 0),
        ("n = ⌈rows / height⌉ · ⌈columns / width⌉", 2),
    ],
)
def test_division_stands_as_a_fraction(text: str, fractions: int) -> None:
    assert len(boxes(Row(boxes_of(text)), lambda box: isinstance(box, Fraction))) == fractions


def test_a_formula_reads_in_full(page: WorkingPage) -> None:
    page.open("training.effective_ratio")
    words = [box.text for box in boxes(Row(boxes_of(page.formula.text)), lambda box: hasattr(box, "text"))]
    for word in ("MTBF", "checkpoint", "interval", "restart", "10¹²"):
        assert any(word in text for text in words)


def test_what_cannot_be_broken_is_painted_smaller(qtbot: QtBot) -> None:
    view = FormulaView(LIGHT)
    qtbot.addWidget(view)
    view.resize(300, 100)
    view.show()
    view.set_text("t = max(a / b, max(inside / link rate, across / network rate))")
    assert view._scale == 1.0
    whole = view.height()
    view.resize(200, 100)
    widest = max(Row(line).width for line in view._lines)
    assert widest * view._scale <= 200
    assert view._scale < 1.0
    assert view.height() < 3 * whole
