"""How far the numbers can be trusted: published runs beside their predictions, those like this plan or all of them."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QToolButton, QWidget

from ..core.figures.measured import measured, measured_like
from ..core.ledgers.tables import Table
from ..core.measured.comparison import by_source
from ..core.measured.errors import shipped_errors
from ..core.measured.likeness import quantity_for
from ..core.measured.similar import most_similar
from ..core.measured.tables import similar_table, sources_table
from .chart_card import ChartCard, Choose, choose_file
from .store import Store
from .table_page import TablePage
from .theme import Theme

#: Runs in the table of those like the plan.
_RUNS = 15
#: Pixels of the page below which there is no room for the chart.
_CHART = 280
#: Milliseconds of rest before similar runs are looked for anew.
_PAUSE = 200
_OPEN = "A double click opens a run as a plan."
#: What the runs like the plan are compared in, and all of them.
_OF = ("time", "memory")
_CHOICES = ("Time", "Memory", "All published runs")


class EvidencePage(TablePage):
    """A table of runs with a chart of predicted against measured: of those most like the plan, or by publication.

    Of the runs like the plan, either time or memory is compared.

    The chart of all runs shows those of the source whose row is chosen. A double click or Enter on a row opens its run
    as a plan; of a source, the run that is predicted worst.
    """

    #: The id of a run that is wanted as a plan.
    run_requested = Signal(str)
    #: This machine is to be measured.
    bench_requested = Signal()

    def __init__(self, store: Store, theme: Theme, choose: Choose = choose_file, parent: QWidget | None = None) -> None:
        super().__init__(_CHOICES, parent=parent)
        self._store = store
        #: The run that each row opens, and of each row of all runs its kind, source and metric.
        self._runs: list[str] = []
        self._groups: list[tuple[str, str, str]] = []
        self.chart = ChartCard(theme, choose)
        self.body.addWidget(self.chart, 5)
        measure = QToolButton()
        measure.setText("Measure this machine…")
        measure.clicked.connect(lambda _checked: self.bench_requested.emit())
        self.top.insertWidget(self.top.count() - 1, measure)
        self._soon = QTimer(self, singleShot=True, interval=_PAUSE)
        self._soon.timeout.connect(self._follow)
        self.choice.idClicked.connect(self._refresh)
        store.report_changed.connect(self._soon.start)
        self.table.selectionModel().currentRowChanged.connect(self._show_source)
        self.table.activated.connect(lambda index: self._open(index.row()))
        self.set_theme(theme)

    def show_all(self) -> None:
        """Show what is known of all numbers."""
        self.choice.button(len(_OF)).click()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.chart.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.chart.setVisible(self.height() >= _CHART)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _follow(self) -> None:
        """Another plan has other runs like it; all runs stay what they are."""
        if not self._shows_all():
            self._refresh()

    def _shows_all(self) -> bool:
        return self.choice.checkedId() == len(_OF)

    def _refresh(self) -> None:
        report = self._store.report
        if report is None or not self.isVisible():
            return
        if self._shows_all():
            groups = by_source(shipped_errors())
            self._groups, self._runs = list(groups), [found.worst_id for found in groups.values()]
            self._show(sources_table(shipped_errors()))
            self._show_source(self.table.currentIndex())
        else:
            quantity = quantity_for(report.scenario.kind, _OF[self.choice.checkedId()])
            similar = most_similar(report.scenario, _RUNS, quantity)
            self._runs = [each.row.id for each in similar]
            self._show(similar_table(report, quantity, similar))
            self.chart.set_figure(measured_like(report, similar))

    def _show_source(self, index: QModelIndex) -> None:
        """The runs of the source in a row, all where none is chosen; a chart of those like the plan stays."""
        if not self._shows_all():
            return
        rows = shipped_errors()
        if 0 <= index.row() < len(self._groups):
            rows = [row for row in rows if (row.kind, row.source, row.metric) == self._groups[index.row()]]
        self.chart.set_figure(measured(rows))

    def _open(self, row: int) -> None:
        if row < len(self._runs):
            self.run_requested.emit(self._runs[row])

    def _show(self, table: Table) -> None:
        self.show_table(table, ". ".join((*table.notes, _OPEN)))
