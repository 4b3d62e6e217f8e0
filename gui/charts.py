"""The charts: each a card with a title that says what the chart says, its plot, and a menu to take it away."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QFileDialog, QGridLayout, QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from ..core.errors import OutputError
from ..core.export import SUFFIXES, write_figure
from ..core.figures.communication import communication
from ..core.figures.figure import Axis, Figure
from ..core.figures.memory import memory
from ..core.figures.roofline import roofline
from ..core.figures.serving import serving
from ..core.figures.training import training_days
from .clipboard import chart_data, figure_table
from .ink import Ink
from .plot import PlotView
from .store import Store
from .surface import Surface
from .theme import Theme

#: Milliseconds of rest after which axes may shrink again.
_REST = 200
_LINE, _TITLE = 18, 13
#: Pixels that two rows of charts need.
_TWO_ROWS = 370

_PLACES = {"roofline": 0, "memory": 1, "communication": 2, "training": 3, "serving": 3}
_NO_CURVE = Figure("curve", "", "", Axis(), Axis(), empty="No curve for this plan.")

#: Asks for the file to write: parent, suggested name, filter; an empty answer means none.
Choose = Callable[[QWidget, str, str], str]


def choose_file(parent: QWidget, suggestion: str, kinds: str) -> str:
    return QFileDialog.getSaveFileName(parent, "Export chart", suggestion, kinds)[0]


class Heading(QWidget):
    """A bold title and a muted subtitle on two lines; a long title takes the line of the subtitle."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ink = Ink(theme)
        self._title = self._subtitle = ""
        self.setFixedHeight(2 * _LINE)

    def set_texts(self, title: str, subtitle: str) -> None:
        if (title, subtitle) != (self._title, self._subtitle):
            self._title, self._subtitle = title, subtitle
            self.setToolTip(f"{title}\n{subtitle}")
            self.update()

    def set_theme(self, theme: Theme) -> None:
        self._ink = Ink(theme)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, ink = QPainter(self), self._ink
        titles = ink.wrapped(self._title, self.width(), 2, bold=True, size=_TITLE)
        for place, line in enumerate(titles):
            ink.write(painter, ink.text(line, True, _TITLE), 0, place * _LINE, ink.readable("text"))
        if len(titles) == 1:
            subtitle = ink.elided(self._subtitle, self.width())
            ink.write(painter, ink.text(subtitle), 0, _LINE, ink.readable("muted"))
        painter.end()


class ChartCard(Surface):
    """One chart on a card. `failed` says in one line why a file could not be written, `done` that one was.

    Files and pictures on the clipboard are drawn for paper and slides, whatever the theme of the screen.
    """

    failed = Signal(str)
    done = Signal()

    def __init__(self, theme: Theme, choose: Choose = choose_file, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._choose = choose
        self.heading = Heading(theme)
        self.plot = PlotView(theme)
        self.menu_button = QToolButton()
        self.menu_button.setText("⋯")
        self.menu_button.setAccessibleName("Chart menu")
        self.menu_button.setToolTip("Export, copy, reset")
        self.menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = self._menu()
        self.menu_button.setMenu(self.menu)
        self.plot.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.plot.customContextMenuRequested.connect(self._show_menu)
        top = QHBoxLayout()
        top.addWidget(self.heading, 1)
        top.addWidget(self.menu_button, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 6, 6)
        layout.setSpacing(2)
        layout.addLayout(top)
        layout.addWidget(self.plot, 1)
        self.set_theme(theme)

    @property
    def figure(self) -> Figure:
        return self.plot.figure

    def set_figure(self, figure: Figure, settle: bool = True) -> None:
        """Show a figure; unless `settle`, its axes only grow."""
        changed = figure != self.plot.figure
        self.plot.set_figure(figure, settle)
        if changed:
            self.heading.set_texts(figure.title, figure.subtitle)
            self.plot.setAccessibleName(figure.title)
            self.plot.setAccessibleDescription(description(figure))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.heading.set_theme(theme)
        self.plot.set_theme(theme)
        self.menu_button.setStyleSheet(
            f"QToolButton {{ border: 0; border-radius: 4px; color: {theme.muted}; font-size: 15px; padding: 0 5px; }}"
            f"QToolButton:hover, QToolButton:focus {{ background: {theme.hover}; color: {theme.accent}; }}"
            "QToolButton::menu-indicator { image: none; width: 0; }"
        )

    def copy_chart(self) -> None:
        """The chart to the clipboard, as a picture and as SVG."""
        QGuiApplication.clipboard().setMimeData(chart_data(self.figure))

    def copy_table(self) -> None:
        """The data behind the chart to the clipboard."""
        QGuiApplication.clipboard().setMimeData(figure_table(self.figure))

    def export(self, suffix: str) -> None:
        """Ask for a file and write the chart to it; a picture of pixels has twice the screen's resolution."""
        name = re.sub(r"[^\w\-×]+", "-", f"{self.figure.scenario} {self.figure.name}").strip("-")
        chosen = self._choose(self, f"{name}{suffix}", f"{suffix[1:].upper()} (*{suffix})")
        if not chosen:
            return
        path = Path(chosen) if Path(chosen).suffix.lower() in SUFFIXES else Path(chosen + suffix)
        try:
            write_figure(self.figure, path)
        except OutputError as problem:
            self.failed.emit(f"Not exported: {problem}")
        else:
            self.done.emit()

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        for suffix in SUFFIXES:
            menu.addAction(f"Export as {suffix[1:].upper()}…", lambda suffix=suffix: self.export(suffix))
        menu.addSeparator()
        menu.addAction("Copy chart", self.copy_chart)
        menu.addAction("Copy table", self.copy_table)
        menu.addSeparator()
        menu.addAction("Reset view", self.plot.reset_view)
        return menu

    def _show_menu(self, at: QPoint) -> None:
        self.menu.popup(self.plot.mapToGlobal(at))


def description(figure: Figure) -> str:
    """What a screen reader says of a chart: the subtitle and the facts that stand out in it."""
    names = figure.y.categories
    rows = [label for label in figure.labels if 0 <= round(label.y) < len(names)]
    facts = [mark.hover or mark.label for mark in figure.marks if mark.bold]
    facts += [f"{names[round(label.y)]}: {label.text}" for label in rows]
    facts += [rule.hover or rule.label for rule in figure.rules]
    return ". ".join(text for text in (figure.subtitle, figure.empty, *facts) if text)


class ChartGrid(QWidget):
    """The four charts of a plan, two by two: roofline, memory, communication, and training days or serving.

    Axes only grow while something is dragged; they shrink after a rest with no button down, and at once when another
    plan is opened. Where there is height for one row only, it is the row of the chart asked for last.
    """

    failed = Signal(str)
    done = Signal()

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
            layout.setColumnStretch(place % 2, 1)
        self._grid, self._row = layout, 0
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
        """The card of a chart: roofline, memory, communication, training or serving (which share a place)."""
        return self._cards[_PLACES[name]]

    def focus(self, name: str) -> None:
        """Give the keyboard to a chart, and show its row where there is height for one only."""
        self._row = _PLACES[name] // 2
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

    def _draw_report(self, settle: bool) -> None:
        report = self._store.report
        if report is None:
            return
        for card, build in zip(self._cards, (roofline, memory, communication), strict=False):
            self._put(card, build(report), settle)

    def _draw_curve(self, settle: bool) -> None:
        """The chart over a sweep; it follows when the machine is idle, and waits while the sweep is of another kind."""
        report, curve = self._store.report, self._store.curve
        if report is None or (curve and curve.scenario.kind != report.scenario.kind):
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
