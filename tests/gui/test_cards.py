"""The verdict and the cards: they say what the report says, offer what helps, and do not jump."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.gui.reports import GIB, TRAINING, Plans, serving_report, training_report
from triledger.core.headlines import Headline
from triledger.core.report import Edit, Finding
from triledger.gui.cards import Card, Cards, Verdict
from triledger.gui.ink import Ink
from triledger.gui.theme import DARK, LIGHT, Theme


@pytest.fixture
def plans(qapp: QApplication) -> Plans:
    return Plans(training_report())


@pytest.fixture
def verdict(qtbot: QtBot, plans: Plans) -> Verdict:
    verdict = Verdict(plans.store, LIGHT)
    qtbot.addWidget(verdict)
    verdict.resize(1100, 52)
    verdict.show()
    return verdict


@pytest.fixture
def cards(qtbot: QtBot, plans: Plans) -> Cards:
    cards = Cards(plans.store, LIGHT)
    qtbot.addWidget(cards)
    cards.resize(1100, 90)
    cards.show()
    return cards


def shown(cards: Cards) -> dict[str, Card]:
    return {card.headline.label: card for card in cards.cards if card.isVisible() and card.headline}


def test_the_verdict_is_one_sentence_with_what_helps(verdict: Verdict) -> None:
    assert verdict.accessibleName().startswith("Fits with 22.8 GiB to spare. Compute bound")
    assert [button.text() for button in verdict.buttons if button.isVisible()] == ["Interleave ×5: −2.9 %"]


def test_a_button_applies_its_edit_as_one_step_that_can_be_undone(verdict: Verdict, plans: Plans, qtbot: QtBot) -> None:
    qtbot.mouseClick(verdict.buttons[0], Qt.MouseButton.LeftButton)
    assert plans.store.scenario.parallelism.vpp == 5
    assert plans.store.scenario.parallelism.schedule == "interleaved"
    assert plans.store.undo_stack.count() == 1
    plans.store.undo_stack.undo()
    assert plans.store.scenario == TRAINING


def test_at_most_three_buttons_are_offered(verdict: Verdict, plans: Plans) -> None:
    edits = tuple(Edit(f"edit {n}", (("parallelism.tp", n),)) for n in range(5))
    plans.show(replace(training_report(), findings=(Finding("many", "warning", "Many.", edits=edits),)))
    assert [button.text() for button in verdict.buttons if button.isVisible()] == ["edit 0", "edit 1", "edit 2"]
    plans.show(replace(training_report(), findings=()))
    assert not any(button.isVisible() for button in verdict.buttons)


def test_a_narrow_verdict_keeps_its_sentence_and_fewer_buttons(verdict: Verdict, plans: Plans) -> None:
    edits = tuple(Edit(f"a button with many words {n}", (("parallelism.tp", n),)) for n in range(3))
    plans.show(replace(training_report(), findings=(Finding("many", "warning", "Many.", edits=edits),)))
    for width, offered in ((1100, 3), (950, 2), (700, 1)):
        verdict.resize(width, 52)
        QApplication.processEvents()
        assert sum(button.isVisible() for button in verdict.buttons) == offered
        assert verdict.sentence.heightForWidth(verdict.sentence.width()) <= verdict.height()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_bar_tells_the_severity(verdict: Verdict, plans: Plans, theme: Theme) -> None:
    verdict.set_theme(theme)
    assert verdict.grab().toImage().pixelColor(2, 26).name() == theme.good
    plans.show(training_report(memory__fits=False, memory__verdict="does-not-fit", memory__headroom_bytes=-GIB))
    assert verdict.grab().toImage().pixelColor(2, 26).name() == theme.bad
    assert "too much" in verdict.accessibleName()


def test_words_of_a_finding_are_not_taken_for_markup(verdict: Verdict, plans: Plans) -> None:
    traffic = replace(training_report().communication[0], group="<i>tensor</i> parallel")
    plans.show(replace(training_report(), communication=(traffic,)))
    assert "&lt;i&gt;tensor" in verdict.sentence.text()


def test_the_cards_of_a_training_plan(cards: Cards) -> None:
    found = shown(cards)
    memory = found["Fullest GPU"].headline
    assert memory is not None
    assert (memory.number, memory.unit) == ("56.4", "of 79.2 GiB")
    assert "350 days" in found["Training"].accessibleName()
    assert "bound 158" in found["Training"].accessibleName()
    assert "whiteboard 298" in found["Training"].toolTip()
    assert len(found) == 6


def test_cards_follow_the_kind_of_the_plan(cards: Cards, plans: Plans) -> None:
    plans.show(serving_report())
    assert "Time per token" in shown(cards)
    assert "Training" not in shown(cards)
    plans.show(training_report())
    assert len(shown(cards)) == 6


def test_changing_digits_move_nothing(cards: Cards, plans: Plans) -> None:
    card = shown(cards)["Training"]
    place = card.geometry()
    plans.show(training_report(training__days=111.0))
    assert card.geometry() == place
    ink = Ink(LIGHT)
    assert ink.text("111", True, 22).width == ink.text("888", True, 22).width


class Paints(QObject):
    """Notes which cards are painted."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and isinstance(watched, Card) and watched.headline:
            self.labels.append(watched.headline.label)
        return False


def test_an_unchanged_card_is_not_painted_again(cards: Cards, plans: Plans) -> None:
    QApplication.processEvents()
    paints = Paints()
    for card in cards.cards:
        card.installEventFilter(paints)
    plans.show(training_report(training__days=360.0))
    QApplication.processEvents()
    assert paints.labels == ["Training"]


def test_what_does_not_fit_stands_out(cards: Cards, plans: Plans) -> None:
    plans.show(training_report(memory__verdict="does-not-fit", memory__headroom_bytes=-GIB))
    card = shown(cards)["Fullest GPU"]
    image = card.grab().toImage()
    colors = {image.pixelColor(x, y).name() for x in range(10, 60) for y in range(25, 48)}
    assert LIGHT.bad in colors
    assert "1.0 over" in card.accessibleName()


def test_a_narrow_card_shortens_its_lines_and_keeps_them_in_its_tooltip(qtbot: QtBot, cards: Cards) -> None:
    ink = Ink(LIGHT)
    assert ink.elided("bound 146k · whiteboard 77.7k", 60, size=11).endswith("…")
    assert "whiteboard 77.7k" in shown(cards)["Throughput"].toolTip()


def test_a_narrow_card_breaks_a_long_line_in_place_of_cutting_it(qtbot: QtBot) -> None:
    card = Card(LIGHT)
    qtbot.addWidget(card)
    card.resize(125, 86)
    card.set_headline(
        Headline("mfu", "Utilisation (MFU)", "40.7", "%", ("bound 100 % · HFU 40.9 %", "whiteboard 52 %"))
    )
    card.show()
    assert card.lines(109, 10) == ["bound 100 %", "HFU 40.9 %", "whiteboard 52 %"]
    assert card.lines(300, 10) == ["bound 100 % · HFU 40.9 %", "whiteboard 52 %"]


@pytest.mark.parametrize("width", [806, 1090, 1300])
def test_the_sentence_fits_its_bar_and_keeps_numbers_and_units_together(
    verdict: Verdict, plans: Plans, width: int
) -> None:
    verdict.resize(width, 52)
    plans.show(training_report(memory__fits=False, memory__verdict="does-not-fit", memory__headroom_bytes=-GIB))
    QApplication.processEvents()
    sentence = verdict.sentence
    assert sentence.heightForWidth(sentence.width()) <= verdict.height()
    assert "79.2\u00a0GiB" in sentence.text()


def test_a_long_verdict_gets_a_third_line_and_is_not_cut(verdict: Verdict, plans: Plans) -> None:
    verdict.resize(420, 52)
    plans.show(training_report(memory__fits=False, memory__headroom_bytes=-30 * GIB))
    assert 52 < verdict.sentence.heightForWidth(verdict.sentence.width()) <= verdict.height()
    verdict.resize(1600, verdict.height())
    assert verdict.height() == 52
