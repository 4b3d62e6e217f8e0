"""What tests of the window share: the shipped typeface, a plan, settings of their own, and answers to dialogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from triledger.core import load_scenario
from triledger.core.scenario import Scenario
from triledger.gui import fonts
from triledger.gui.dialogs import Dialogs
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.window import Window


class Answers(Dialogs):
    """Answers in place of a person; `asked` lists the questions."""

    def __init__(self) -> None:
        self.open, self.save, self.unsaved, self.called = "", "", "discard", ""
        self.agrees = True
        self.asked: list[str] = []

    def path_to_open(self, parent: QWidget, folder: str) -> str:
        self.asked.append("open")
        return self.open

    def path_to_save(self, parent: QWidget, suggestion: str, kinds: str) -> str:
        self.asked.append("save")
        return self.save

    def save_first(self, parent: QWidget, name: str) -> str:
        self.asked.append("unsaved")
        return self.unsaved

    def save_illegal(self, parent: QWidget, reason: str) -> bool:
        self.asked.append(f"illegal: {reason}")
        return self.agrees

    def replace(self, parent: QWidget, path: Path) -> bool:
        self.asked.append(f"replace {path.name}")
        return self.agrees

    def name(self, parent: QWidget, present: str) -> str:
        self.asked.append(f"name, not {present}")
        return self.called


def press(qtbot: QtBot, window: Window, keys: str) -> None:
    """Press a key sequence in the window."""
    qtbot.keySequence(window, QKeySequence(keys))


@pytest.fixture(scope="session", autouse=True)
def typeface(qapp: QApplication) -> None:
    fonts.load()
    qapp.setFont(fonts.font(tabular=False))


@pytest.fixture(scope="session")
def plan() -> Scenario:
    """A 70B model on 64 H100, TP 8, PP 4."""
    return load_scenario("70b-64xh100-train")


@pytest.fixture
def settings(tmp_path: Path) -> QSettings:
    return QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def store(qapp: QApplication, plan: Scenario) -> Store:
    """A store of the plan with its first report."""
    store = Store(plan)
    store.flush()
    return store


@pytest.fixture
def window(qtbot: QtBot, store: Store, settings: QSettings, answers: Answers) -> Iterator[Window]:
    """The whole window as it stands after the start, its charts included."""
    window = Window(store, settings, LIGHT, answers)
    qtbot.addWidget(window)
    window.resize(1440, 900)
    with qtbot.waitSignal(window.completed):
        window.show()
    window.strips.finish()
    yield window
    answers.unsaved = "discard"
