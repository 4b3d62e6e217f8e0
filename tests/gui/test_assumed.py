"""Settings at their defaults below the findings, once the plan rests."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from triledger.core import evaluate
from triledger.core.unset import unset
from triledger.gui.window import Window


def test_assumed_settings_follow_the_findings_and_can_be_set(window: Window, qtbot: QtBot) -> None:
    assert window.ledgers is not None
    page, store = window.ledgers.findings, window.store
    window.ledgers.show_page(page)
    expected = unset(store.scenario, evaluate)
    qtbot.waitUntil(lambda: len([row for row in page.rows if row.isVisible()]) >= len(expected))
    rows = [row for row in page.rows if row.severity.text() == "Assumed" and row.isVisible()]
    assert len(rows) == len(expected)
    assert expected[0].field in dict(expected[0].edits[0].changes)
    rows[0].buttons[0].click()
    path, value = expected[0].edits[0].changes[0]
    assert store.scenario.get(path) == value
    store.flush()
    qtbot.waitUntil(lambda: expected[0].label not in " ".join(r.message.text() for r in page.rows if r.isVisible()))
