"""How far the numbers can be trusted: published runs beside their predictions, those like this plan or all of them."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from ..core.figures.measured import measured, measured_like
from ..core.ledgers.tables import Table
from ..core.measured.comparison import by_source
from ..core.measured.errors import shipped_errors
from ..core.measured.similar import most_similar
from ..core.measured.tables import similar_table, sources_table
from .chart_card import ChartCard, Choose, choose_file
from .fonts import font, typeset
from .ledger_table import LedgerTable
from .store import Store
from .theme import Theme, page_style

#: Runs in the table of those like the plan.
_RUNS = 15
#: Pixels of the page below which there is no room for the chart.
_CHART = 280
#: Milliseconds of rest before similar runs are looked for anew.
_PAUSE = 200
_OPEN = "A double click opens a run as a plan."
_LIKE, _ALL = "Like this plan", "All published runs"


class EvidencePage(QWidget):
    """A table of runs with a chart of predicted against measured: of those most like the plan, or by publication.

    The chart of all runs shows those of the source whose row is chosen. A double click or Enter on a row opens its run
    as a plan; of a source, the run that is predicted worst.
    """

    #: The id of a run that is wanted as a plan.
    run_requested = Signal(str)

    def __init__(self, store: Store, theme: Theme, choose: Choose = choose_file, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._runs: list[str] = []
        self.title, self.notes = QLabel(), QLabel()
        self.table, self.chart = LedgerTable(asks=False), ChartCard(theme, choose)
        self.choice = QButtonGroup(self)
        self._soon = QTimer(self, singleShot=True, interval=_PAUSE)
        self._soon.timeout.connect(self._refresh)
        self._arrange()
        self.choice.idClicked.connect(self._refresh)
        store.report_changed.connect(self._soon.start)
        self.table.selectionModel().currentRowChanged.connect(self._show_source)
        self.table.activated.connect(lambda index: self._open(index.row()))
        self.set_theme(theme)

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(0)
        for number, name in enumerate((_LIKE, _ALL)):
            button = QToolButton()
            button.setText(name)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self.choice.addButton(button, number)
            top.addWidget(button)
        self.title.setFont(font(13, bold=True))
        self.notes.setObjectName("notes")
        self.notes.setWordWrap(True)
        copy = QToolButton()
        copy.setText("Copy table")
        copy.clicked.connect(self.table.copy)
        top.addSpacing(14)
        top.addWidget(self.title, 1)
        top.addWidget(copy)
        body = QHBoxLayout()
        body.setSpacing(10)
        body.addWidget(self.table, 8)
        body.addWidget(self.chart, 5)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addLayout(top)
        column.addLayout(body, 1)
        column.addWidget(self.notes)

    def show_all(self) -> None:
        """Show what is known of all numbers."""
        self.choice.button(1).click()

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(page_style(theme))
        self.chart.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.chart.setVisible(self.height() >= _CHART)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _refresh(self) -> None:
        report = self._store.report
        if report is None or not self.isVisible():
            return
        if self.choice.checkedId() == 1:
            self._runs = [found.worst_id for found in by_source(shipped_errors()).values()]
            self._show(sources_table(shipped_errors()))
            self._show_source(self.table.currentIndex())
        else:
            similar = most_similar(report.scenario, _RUNS)
            self._runs = [each.row.id for each in similar]
            self._show(similar_table(report, similar))
            self.chart.set_figure(measured_like(report, similar))

    def _show_source(self, index: QModelIndex) -> None:
        """The runs of the source in a row, all where none is chosen; a chart of those like the plan stays."""
        if self.choice.checkedId() != 1:
            return
        groups = list(by_source(shipped_errors()))
        rows = shipped_errors()
        if 0 <= index.row() < len(groups):
            rows = [row for row in rows if (row.kind, row.source, row.metric) == groups[index.row()]]
        self.chart.set_figure(measured(rows))

    def _open(self, row: int) -> None:
        if row < len(self._runs):
            self.run_requested.emit(self._runs[row])

    def _show(self, table: Table) -> None:
        self.table.set_table(table)
        self.table.setAccessibleName(table.title)
        self.title.setText(typeset(table.title))
        self.notes.setText(typeset(". ".join((*table.notes, _OPEN))))
