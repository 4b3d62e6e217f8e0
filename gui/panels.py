"""The five panels of inputs: docks on the left, each made from the table of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ..core.fields import Field, fields_of
from ..core.traits import traits
from .controls.quantity_row import QuantityRow, edit_width
from .controls.row import CatalogueRow, ChoiceRow, DerivedRow, FlagRow, Row
from .fonts import font
from .icons import icon
from .model_strip import ModelStrip
from .store import Store
from .text import data_parallel
from .theme import Theme

WIDTH = 292
TITLE_HEIGHT = 20
_MARGIN, _SPACE, _SCROLL_BAR = 11, 10, 8
_ROOM = WIDTH - 2 * _MARGIN - _SCROLL_BAR
#: From a catalogue's name to its entries as (id, name).
Catalogue = Callable[[str], list[tuple[str, str]]]


class Title(QWidget):
    """The slim bar of a dock: its name, the fold of the advanced fields, float and close. It is dragged as usual."""

    def __init__(self, dock: QDockWidget, text: str) -> None:
        super().__init__(dock)
        self.setObjectName("title")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(TITLE_HEIGHT)
        self.fold = self._button("Advanced fields")
        self.fold.setText("advanced")
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self.fold.setCheckable(True)
        self.float = self._button("Float this panel, or put it back")
        self.float.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        self.close_button = self._button("Hide this panel")
        self.close_button.clicked.connect(dock.close)
        line = QHBoxLayout(self)
        line.setContentsMargins(_MARGIN, 0, 5, 0)
        line.setSpacing(0)
        line.addWidget(QLabel(text.upper()), 1)
        for button in (self.fold, self.float, self.close_button):
            line.addWidget(button)

    def set_theme(self, theme: Theme) -> None:
        self.fold.setIcon(icon("down" if self.fold.isChecked() else "right", theme.muted))
        self.float.setIcon(icon("float", theme.muted))
        self.close_button.setIcon(icon("close", theme.muted))

    def _button(self, text: str) -> QToolButton:
        button = QToolButton(self)
        button.setIconSize(QSize(12, 12))
        button.setToolTip(text)
        button.setAccessibleName(text)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button


class Panel(QDockWidget):
    """One panel: the daily fields of the present kind of plan, and the advanced ones folded below."""

    #: Its contents need another height now.
    resized = Signal()

    def __init__(self, name: str, store: Store, theme: Theme, catalogue: Catalogue) -> None:
        super().__init__(name.capitalize())
        self.setObjectName(name)
        self.setFeatures(
            QDockWidget.DockWidgetFeature.DockWidgetClosable
            | QDockWidget.DockWidgetFeature.DockWidgetMovable
            | QDockWidget.DockWidgetFeature.DockWidgetFloatable
        )
        self.name, self._store, self._theme, self._catalogue = name, store, theme, catalogue
        self._kind, self._traits = "", frozenset[str]()
        self._rows: list[Row | DerivedRow | ModelStrip] = []
        self._advanced: QWidget | None = None
        self.title = Title(self, name)
        self.title.fold.toggled.connect(self._fold)
        self.setTitleBarWidget(self.title)
        self._scroll = QScrollArea()
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setMinimumHeight(1)  # a panel with nothing to show needs no more than its title
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._scroll)
        store.scenario_changed.connect(self.sync)
        self.sync()

    @property
    def rows(self) -> list[Row]:
        """The rows of fields, the advanced ones once they were unfolded."""
        return [row for row in self._rows if isinstance(row, Row)]

    def row(self, path: str) -> Row:
        """The row of a field; unfolds the advanced fields when it is among them. KeyError when it is nowhere."""
        for unfold in (False, True):
            if unfold:
                self.title.fold.setChecked(True)
            for row in self.rows:
                if row.field.path == path:
                    return row
        raise KeyError(path)

    def reveal(self, path: str) -> None:
        """Scroll to the control of a field and give it the keyboard."""
        row = self.row(path)
        self._scroll.ensureWidgetVisible(row)
        control = row.label.buddy() or row
        control.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def wanted_height(self) -> int:
        """Pixels that show everything without scrolling."""
        body = self._scroll.widget()
        return TITLE_HEIGHT + (body.sizeHint().height() if body is not None else 0)

    def daily_height(self) -> int:
        """Pixels that show the daily fields without scrolling, whether the advanced ones are unfolded or not."""
        unfolded = self._advanced is not None and self._advanced.isVisibleTo(self)
        return self.wanted_height() - (self._advanced.sizeHint().height() if self._advanced and unfolded else 0)

    def sync(self) -> None:
        """Show the store's scenario."""
        kind, found = self._store.kind, traits(self._store.scenario)
        if kind != self._kind or self._needed(found) != self._needed(self._traits):
            self._kind, self._traits = kind, found
            self._build()
        for row in self._rows:
            row.sync()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.title.set_theme(theme)
        for row in self._rows:
            row.set_theme(theme)

    def _needed(self, found: frozenset[str]) -> frozenset[str]:
        """What of a model decides which fields the panel has."""
        return found & {field.needs for field in fields_of(self.name, self._kind)}

    def _fields(self, advanced: bool) -> list[Field]:
        """The daily or the advanced fields; where there are no daily ones, the advanced ones stand in their place."""
        daily, rest = (fields_of(self.name, self._kind, each, self._traits) for each in (False, True))
        if not daily:
            daily, rest = rest, []
        return rest if advanced else daily

    def _build(self) -> None:
        self._rows, self._advanced = [], None
        body = QWidget()
        body.setObjectName("rows")
        column = self._body = QVBoxLayout(body)
        column.setContentsMargins(_MARGIN, 0, _MARGIN, 5)
        column.setSpacing(1)
        self._fill(column, self._fields(advanced=False))
        column.addStretch(1)
        if (before := self._scroll.takeWidget()) is not None:
            before.deleteLater()  # one of its rows may be what changed the model
        self._scroll.setWidget(body)
        more = bool(self._fields(advanced=True))
        self.title.fold.setVisible(more)
        self._fold(self.title.fold.isChecked() and more)
        self.set_theme(self._theme)

    def _fold(self, opened: bool) -> None:
        self.title.set_theme(self._theme)
        if opened and self._advanced is None:
            self._build_advanced()
        if self._advanced is not None:
            self._advanced.setVisible(opened)
        self.resized.emit()

    def _build_advanced(self) -> None:
        self._advanced = QWidget()
        column = QVBoxLayout(self._advanced)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(1)
        new = self._fill(column, self._fields(advanced=True))
        self._body.insertWidget(self._body.count() - 1, self._advanced)
        for row in new:
            row.sync()
            row.set_theme(self._theme)

    def _fill(self, column: QVBoxLayout, fields: list[Field]) -> list[Row | DerivedRow | ModelStrip]:
        new: list[Row | DerivedRow | ModelStrip] = []
        for pair in _in_lines(fields):
            rows = [self._row_of(field, narrow=len(pair) > 1) for field in pair]
            new += rows
            column.addLayout(_side_by_side(rows)) if len(rows) > 1 else column.addWidget(rows[0])
            if pair[-1].path == "parallelism.pp" and self._kind == "training":
                new.append(DerivedRow("Data (DP)", data_parallel, self._store))
                column.addWidget(new[-1])
            if pair[-1].path == "model":
                new.append(ModelStrip(self._store, self._theme))
                column.addWidget(new[-1])
        self._rows += new
        return new

    def _row_of(self, field: Field, narrow: bool) -> Row:
        if field.unit == "catalogue":
            return CatalogueRow(field, self._store, lambda: self._catalogue(field.catalogue))
        if field.unit == "choice":
            return ChoiceRow(field, self._store)
        if field.unit == "flag":
            return FlagRow(field, self._store)
        return QuantityRow(field, self._store, narrow)


def _side_by_side(rows: list[Row]) -> QHBoxLayout:
    line = QHBoxLayout()
    line.setSpacing(_SPACE)
    for row in rows:
        line.addWidget(row)
    return line


def _in_lines(fields: list[Field]) -> Iterator[list[Field]]:
    """The fields in lines of one or, where two small ones follow each other and have room, two."""
    waiting: list[Field] = []
    for field in fields:
        if waiting and _least_width(waiting[0]) + _SPACE + _least_width(field) <= _ROOM:
            yield [*waiting, field]
            waiting = []
            continue
        if waiting:
            yield waiting
        waiting = [field]
    if waiting:
        yield waiting


def _least_width(field: Field) -> int:
    """Pixels that a field needs beside another; all there are for one that needs a long slider or a search."""
    metrics = QFontMetrics(font(tabular=False))
    label = metrics.horizontalAdvance(field.label) + 4
    if field.unit == "choice":
        return label + max(map(metrics.horizontalAdvance, field.choices)) + 24
    if field.unit == "flag":
        return label + 30
    # Coarse sliders, and those of fields that are mostly unset, do with half the width.
    coarse = field.half or field.slider is None or (field.scale == "linear" and field.unit != "count")
    return label + edit_width(field) if field.unit != "catalogue" and (coarse or field.optional) else _ROOM
