"""The values that went into a formula as a table; those that can be followed are links."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ..core.working import Input
from .fonts import font, typeset
from .theme import Theme

_ROW, _SIZE = 22, 12
_HEADER = ("input", "value", "what it is")
_WIDEST = 240


class InputTable(QTableWidget):
    """Symbol, value and origin of each input. A click, Enter or F1 follows one."""

    #: The place of an input that was followed.
    followed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(_HEADER), parent)
        self._inputs: tuple[Input, ...] = ()
        self._theme: Theme | None = None
        for column, name in enumerate(_HEADER):
            heading = QTableWidgetItem(name)
            heading.setTextAlignment(_side(column))
            self.setHorizontalHeaderItem(column, heading)
        self.setFont(font(_SIZE))
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setAccessibleName("Inputs of the formula")
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(_ROW)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = self.horizontalHeader()
        header.setFixedHeight(_ROW + 2)
        header.setHighlightSections(False)
        header.setFont(font(_SIZE))
        header.setStretchLastSection(True)
        self.cellClicked.connect(lambda row, _: self._follow(row))

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(
            f"""
            QTableView {{ background: {theme.surface}; alternate-background-color: {theme.hover}; color: {theme.text};
                selection-background-color: {theme.accent_soft}; selection-color: {theme.accent}; outline: 0; }}
            QTableView::item {{ padding: 0 6px; border: 0; }}
            QHeaderView, QHeaderView::section {{ background: {theme.surface}; color: {theme.muted}; border: 0; }}
            QHeaderView::section {{ padding: 0 9px; }}
            """
        )
        self._fill()

    def set_inputs(self, inputs: tuple[Input, ...]) -> None:
        if inputs != self._inputs:
            same = [entry.symbol for entry in inputs] == [entry.symbol for entry in self._inputs]
            self._inputs = inputs
            self._fill()
            if not same:
                self.clearSelection()
                self.setCurrentCell(-1, -1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F1) and self.currentRow() >= 0:
            self._follow(self.currentRow())
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        item = self.itemAt(event.position().toPoint())
        link = item is not None and follows(self._inputs[item.row()])
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.ArrowCursor)

    def _follow(self, row: int) -> None:
        if row < len(self._inputs) and follows(self._inputs[row]):
            self.followed.emit(row)

    def _fill(self) -> None:
        if self._theme is None:
            return
        self.setRowCount(len(self._inputs))
        for row, entry in enumerate(self._inputs):
            link = follows(entry)
            sign = "\u2002→" if link else ""
            for column, text in enumerate((entry.symbol + sign, entry.text, entry.origin)):
                item = QTableWidgetItem(typeset(text))
                item.setTextAlignment(_side(column))
                item.setToolTip(typeset(_tip(entry)))
                if column == 0 and link:
                    item.setForeground(QColor(self._theme.accent))
                elif column == 2:
                    item.setForeground(QColor(self._theme.muted))
                self.setItem(row, column, item)
        for column in (0, 1):
            self.resizeColumnToContents(column)
            self.setColumnWidth(column, min(self.columnWidth(column), _WIDEST))


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column == 1 else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def follows(entry: Input) -> bool:
    """Whether an input leads to a working of its own or to a control."""
    return bool(entry.key or entry.working is not None or entry.path)


def _tip(entry: Input) -> str:
    where = entry.key or entry.path
    return f"{entry.symbol} = {entry.text}\n{entry.origin}" + (f"\n{where}" if where else "")
