"""A chart on a card: a title that says what the chart says, its plot, other views of it, and a menu to take it away."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QFileDialog, QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from ..core.errors import OutputError
from ..core.export import SUFFIXES, write_figure
from ..core.figures.figure import Figure
from .clipboard import chart_data, figure_table
from .ink import Ink
from .plot import PlotView
from .surface import Surface
from .theme import Theme

_LINE, _TITLE = 18, 13

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
    #: The number of another view of the card that was chosen.
    chosen = Signal(int)

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
        self.switch = QWidget()
        self._views = QButtonGroup(self)
        self.menu = self._menu()
        self.menu_button.setMenu(self.menu)
        self.plot.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.plot.customContextMenuRequested.connect(self._show_menu)
        top = QHBoxLayout()
        top.addWidget(self.heading, 1)
        top.addWidget(self.switch, 0, Qt.AlignmentFlag.AlignTop)
        top.addWidget(self.menu_button, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 6, 6)
        layout.setSpacing(2)
        layout.addLayout(top)
        layout.addWidget(self.plot, 1)
        self.set_theme(theme)

    def offer(self, most: int) -> None:
        """Let a person switch between at most so many views, named later; the first is the one that is shown."""
        line = QHBoxLayout(self.switch)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        for number in range(most):
            button = QToolButton()
            button.setCheckable(True)
            button.setChecked(number == 0)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self._views.addButton(button, number)
            line.addWidget(button)
        self._views.idToggled.connect(lambda number, on: self.chosen.emit(number) if on else None)
        self.set_theme(self.theme)

    def name_views(self, views: Sequence[str]) -> None:
        """The words of the views that there are."""
        for number, button in enumerate(self._views.buttons()):
            button.setText(views[number] if number < len(views) else "")
            button.setVisible(number < len(views))

    def choose(self, view: int) -> None:
        """Switch to a view."""
        self._views.button(view).setChecked(True)

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
        self.switch.setStyleSheet(
            "QToolButton { border: 0; border-bottom: 2px solid transparent; padding: 1px 3px; font-size: 11px;"
            f" color: {theme.muted}; }}"
            f"QToolButton:checked {{ color: {theme.text}; border-bottom-color: {theme.accent}; }}"
            f"QToolButton:hover, QToolButton:focus {{ color: {theme.accent}; }}"
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
