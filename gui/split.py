"""The charts over the ledgers, with a handle between; in a low window the ledgers are down to their tabs."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QSplitter, QTabWidget, QWidget

#: Pixels the charts need before the ledgers get more than their tabs, and what the ledgers get at least and at most.
_CHARTS, _LEAST, _LEDGERS = 530, 240, 340
#: The part of the height that ledgers get which are asked for: enough for the totals below their rows.
_OPENED = 0.58


class ChartsOverLedgers(QSplitter):
    """A click on a tab of folded ledgers opens them, a double click folds them again."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self.setChildrenCollapsible(False)
        self._remembered: QByteArray | None = None

    def remember(self, state: QByteArray) -> None:
        """Take the heights of an earlier run when the parts are there."""
        self._remembered = state

    def fill(self, charts: QWidget, ledgers: QTabWidget) -> None:
        """Put in the two parts."""
        self._tabs = ledgers.tabBar().sizeHint().height()
        ledgers.setMinimumHeight(self._tabs)
        ledgers.tabBarClicked.connect(self._open)
        # The tab bar says "clicked" once more after a double click, so folding waits for that.
        ledgers.tabBarDoubleClicked.connect(self._fold, Qt.ConnectionType.QueuedConnection)
        self.addWidget(charts)
        self.addWidget(ledgers)
        self.setStretchFactor(0, 1)
        self.setStretchFactor(1, 0)
        if self._remembered is None or not self.restoreState(self._remembered):
            spare = self.height() - _CHARTS
            self._give(min(spare, _LEDGERS) if spare >= _LEAST else self._tabs)

    def _open(self) -> None:
        if self.sizes()[1] < self._tabs + 60:
            self._give(round(_OPENED * self.height()))

    def _fold(self) -> None:
        self._give(self._tabs)

    def _give(self, ledgers: int) -> None:
        self.setSizes([self.height() - ledgers, ledgers])
