"""The tab of what ifs: computed when it is looked at, and each row can be taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytestqt.qtbot import QtBot

from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.what_if import WhatIfPage


@pytest.fixture
def page(qtbot: QtBot, store: Store) -> WhatIfPage:
    page = WhatIfPage(store, LIGHT)
    qtbot.addWidget(page)
    page.resize(900, 400)
    page.show()
    qtbot.waitUntil(lambda: bool(page.table.rows.texts))
    return page


def row_of(page: WhatIfPage, label: str) -> int:
    return next(place for place, texts in enumerate(page.table.rows.texts) if texts[0] == label)


def choose(page: WhatIfPage, label: str) -> None:
    page.table.setCurrentIndex(page.table.rows.index(row_of(page, label), 0))


def test_a_change_is_taken_as_one_step_that_can_be_undone(page: WhatIfPage, store: Store) -> None:
    assert not page.take_button.isEnabled()
    choose(page, "full recompute")
    assert page.take_button.text() == "Take: full recompute"
    page.take_button.click()
    assert store.scenario.training.recompute == "full"
    store.undo_stack.undo()
    assert store.scenario.training.recompute == "none"


def test_the_plan_itself_cannot_be_taken(page: WhatIfPage) -> None:
    choose(page, "this plan")
    assert not page.take_button.isEnabled()


def test_rows_follow_the_plan(qtbot: QtBot, page: WhatIfPage, store: Store) -> None:
    before = page.table.rows.texts[0]
    store.set("training.global_batch", 512)
    store.flush()
    qtbot.waitUntil(lambda: page.table.rows.texts[0] != before)


def test_nothing_is_evaluated_out_of_sight(
    qtbot: QtBot, page: WhatIfPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.hide()
    store.set("training.global_batch", 512)
    store.flush()
    asked: list[Scenario] = []
    evaluate: Callable[[Scenario], Report] = store.evaluate
    monkeypatch.setattr(store, "evaluate", lambda scenario: asked.append(scenario) or evaluate(scenario))
    assert not page._rest.isActive()
    assert not asked
    page.show()
    qtbot.waitUntil(lambda: bool(asked))
