"""A page that is a table of the core: its title, its notes, and a button that copies it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from ..core.ledgers.tables import Table
from .controls.labels import ElidedLabel
from .fonts import font, typeset
from .ledger_table import LedgerTable
from .theme import Theme, page_style


class TablePage(QWidget):
    """One table at a time; buttons before its title choose among several. `body` has room beside the table."""

    def __init__(self, choices: Sequence[str] = (), asks: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table, self.title, self.notes = LedgerTable(asks=asks), ElidedLabel(), QLabel()
        self.title.setFont(font(13, bold=True))
        self.notes.setObjectName("notes")
        self.notes.setWordWrap(True)
        self.copy_button = QToolButton()
        self.copy_button.setText("Copy table")
        self.copy_button.clicked.connect(self.table.copy)
        self.choice = QButtonGroup(self)
        self.top, self.body = QHBoxLayout(), QHBoxLayout()
        self.top.setSpacing(0)
        self._offer_choices(choices)
        self.top.addWidget(self.title, 1)
        self.top.addWidget(self.copy_button)
        self.body.setSpacing(10)
        self.body.addWidget(self.table, 8)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(self.top)
        column.addLayout(self.body, 1)
        column.addWidget(self.notes)

    def _offer_choices(self, choices: Sequence[str]) -> None:
        for number, name in enumerate(choices):
            button = QToolButton()
            button.setText(name)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self.choice.addButton(button, number)
            self.top.addWidget(button)
        if choices:
            self.top.addSpacing(14)

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(page_style(theme))

    def show_table(self, table: Table, notes: str) -> None:
        self.table.set_table(table)
        self.table.setAccessibleName(table.title)
        say(self.title, typeset(table.title))
        self.title.setToolTip(table.title)
        say(self.notes, typeset(notes))


def say(label: QLabel, text: str) -> None:
    """Setting a text lays out anew, even the same one."""
    if label.text() != text:
        label.setText(text)
