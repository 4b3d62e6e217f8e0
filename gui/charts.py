"""The charts of a plan on their cards, and when they follow it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QWidget

from ..core.figures.communication import communication
from ..core.figures.figure import Axis, Figure
from ..core.figures.latency import latency
from ..core.figures.memory import memory
from ..core.figures.roofline import roofline
from ..core.figures.serving import serving
from ..core.figures.speculation import speculation
from ..core.figures.training import training_days
from ..core.figures.waterfall import waterfall
from .chart_card import ChartCard, Choose, choose_file
from .store import Store
from .theme import Theme

#: Milliseconds of rest after which axes may shrink again.
_REST = 200
#: Pixels that two rows of charts need.
_TWO_ROWS = 370

_PLACES = {"roofline": 0, "memory": 1, "communication": 2}
#: The views of the last chart by kind of plan, each with its word on the switch: the curve first.
_VIEWS = {
    "training": {"training": "days", "waterfall": "step"},
    "serving": {"serving": "load", "waterfall": "token", "latency": "waits", "speculation": "drafts"},
}
#: What is drawn of a report without a curve.
_OF_REPORT = {"waterfall": waterfall, "latency": latency, "speculation": speculation}
_NO_CURVE = Figure("curve", "", "", Axis(), Axis(), empty="No curve for this plan.")


class ChartGrid(QWidget):
    """The four charts of a plan, two by two: roofline, memory, communication, and training days or serving, in whose
    place one can see where the time goes, and of a served model what its requests wait for and what drafts gain.

    Axes only grow while something is dragged; they shrink after a rest with no button down, and at once when another
    plan is opened. Where there is height for one row only, it is the row of the chart asked for last.
    """

    failed = Signal(str)
    done = Signal()
    #: The key of a result whose working is wanted.
    explained = Signal(str)

    def __init__(self, store: Store, theme: Theme, choose: Choose = choose_file, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._origin = store.origin
        self._cards = [ChartCard(theme, choose) for _ in range(4)]
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        for place, card in enumerate(self._cards):
            layout.addWidget(card, place // 2, place % 2)
            card.failed.connect(self.failed)
            card.done.connect(self.done)
            card.plot.asked.connect(self.explained)
            layout.setColumnStretch(place % 2, 1)
        self._grid, self._row = layout, 0
        self._view = "training"
        self._cards[3].offer(max(map(len, _VIEWS.values())))
        self._cards[3].chosen.connect(self._choose_view)
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST)
        self._rest.timeout.connect(self._settle)
        store.report_changed.connect(self._show_report)
        store.curve_changed.connect(self._show_curve)
        store.undo_stack.cleanChanged.connect(self._follow_title)
        self._refresh(settle=True)

    def sizeHint(self) -> QSize:
        return QSize(1100, 640)

    def minimumSizeHint(self) -> QSize:
        return QSize(340, 170)

    def chart(self, name: str) -> ChartCard:
        """The card of a chart, which then shows it; all that are drawn along a curve or of the time share the last."""
        if name in _PLACES:
            return self._cards[_PLACES[name]]
        views = list(_VIEWS[self._kind])
        self._cards[3].choose(views.index(name) if name in views else 0)
        return self._cards[3]

    @property
    def _kind(self) -> str:
        report = self._store.report
        return report.scenario.kind if report else "training"

    def focus(self, name: str) -> None:
        """Give the keyboard to a chart, and show its row where there is height for one only."""
        self._row = _PLACES.get(name, 3) // 2
        self._arrange()
        self.chart(name).plot.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_theme(self, theme: Theme) -> None:
        for card in self._cards:
            card.set_theme(theme)

    def reset_views(self) -> None:
        """All charts whole again, as before panning and zooming."""
        for card in self._cards:
            card.plot.reset_view()

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        one = self.height() < _TWO_ROWS
        for row in (0, 1):
            shown = not one or row == self._row
            self._grid.setRowStretch(row, int(shown))
            for card in self._cards[2 * row : 2 * row + 2]:
                card.setVisible(shown)

    def showEvent(self, event) -> None:
        super().showEvent(event)
        self._refresh(settle=True)

    def _show_report(self) -> None:
        opened = self._store.origin is not self._origin
        self._origin = self._store.origin
        if not self.isVisible():
            return
        if opened:
            self.reset_views()
        else:
            self._rest.start()
        self._draw_report(settle=opened)

    def _show_curve(self) -> None:
        if self.isVisible():
            self._draw_curve(settle=not self._rest.isActive())

    def _refresh(self, settle: bool) -> None:
        self._draw_report(settle)
        self._draw_curve(settle)

    def _choose_view(self, view: int) -> None:
        self._view = list(_VIEWS[self._kind])[view]
        self._refresh(settle=True)

    def _draw_report(self, settle: bool) -> None:
        report = self._store.report
        if report is None:
            return
        for card, build in zip(self._cards, (roofline, memory, communication), strict=False):
            self._put(card, build(report), settle)
        views = _VIEWS[report.scenario.kind]
        self._cards[3].name_views(list(views.values()))
        if self._view not in views:
            self._view = next(iter(views))
            self._cards[3].choose(0)
        if self._view in _OF_REPORT:
            self._put(self._cards[3], _OF_REPORT[self._view](report), settle)

    def _draw_curve(self, settle: bool) -> None:
        """The chart over a sweep; it follows when the machine is idle, and waits while the sweep is of another kind."""
        report, curve = self._store.report, self._store.curve
        if report is None or self._view in _OF_REPORT or (curve and curve.scenario.kind != report.scenario.kind):
            return
        build = training_days if report.scenario.kind == "training" else serving
        self._put(self._cards[3], build(report, curve) if curve else _NO_CURVE, settle)

    def _put(self, card: ChartCard, figure: Figure, settle: bool) -> None:
        """A figure on its card, under the name that the plan has in the window."""
        card.set_figure(replace(figure, scenario=self._store.title), settle)

    def _follow_title(self, _clean: bool) -> None:
        self._rest.start()

    def _settle(self) -> None:
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            self._rest.start()
        else:
            self._refresh(settle=True)
