"""The tab of what ifs: the plan with one change at a time, each with a button that makes it."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QToolButton, QWidget

from ..core.report import Edit, Report
from ..core.what_if import answers, table
from .store import Store
from .table_page import TablePage
from .theme import Theme

#: Milliseconds of rest before the changes are evaluated, so that a drag never waits for them.
_REST = 150


class WhatIfPage(TablePage):
    """A row a change. It is computed while it is in sight and nothing else is to be done.

    The button, Enter and a double click make the change of the row that is chosen, as one undo step.
    """

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent=parent)
        self._store = store
        self._report: Report | None = None
        self._edits: list[Edit] = []
        self.take_button = QToolButton()
        self.take_button.clicked.connect(lambda: self._take(self.table.currentIndex()))
        self.table.activated.connect(self._take)
        self.table.selectionModel().currentRowChanged.connect(self._offer)
        self.top.insertWidget(1, self.take_button)
        self.top.insertSpacing(2, 6)
        self._rest = QTimer(self, singleShot=True)
        self._rest.timeout.connect(self.refresh)
        store.report_changed.connect(self._wait)
        self.set_theme(theme)
        self._offer(QModelIndex())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._rest.start(0)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._rest.stop()

    def refresh(self) -> None:
        """Evaluate the changes of the present plan now."""
        report = self._store.report
        if report is None or report is self._report:
            return
        self._report = report
        found = answers(report.scenario, self._store.evaluate)
        shown = table(report, found, self._store.evaluate)
        self._edits = [each.edit for each in found]
        self.show_table(shown, " · ".join(shown.notes))
        self._offer(self.table.currentIndex())

    def _wait(self) -> None:
        if self.isVisible():
            self._rest.start(_REST)

    def _edit(self, index: QModelIndex) -> Edit | None:
        """The change of a row; the first row is the plan as it is."""
        place = index.row() - 1 if index.isValid() else -1
        return self._edits[place] if 0 <= place < len(self._edits) else None

    def _offer(self, index: QModelIndex) -> None:
        edit = self._edit(index)
        self.take_button.setEnabled(edit is not None)
        self.take_button.setText(f"Take: {edit.label}" if edit else "Take a change")

    def _take(self, index: QModelIndex) -> None:
        if (edit := self._edit(index)) is not None:
            self._store.apply_edit(edit)
