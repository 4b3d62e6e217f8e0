"""A table of the core as a view: texts in columns that do not jump, numbers that can be asked for, and copying."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from ..core.ledgers.tables import Table
from .clipboard import table_data
from .fonts import font, typeset

ROW = 22
_PADDING = 24
_SIZE = 12

_ASKING = (Qt.Key.Key_F1, Qt.Key.Key_Return, Qt.Key.Key_Enter)
_Index = QModelIndex | QPersistentModelIndex


class TableModel(QAbstractTableModel):
    """A ledger's rows and totals as texts; cells change in place while the shape stays."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table: Table | None = None
        self.texts: list[tuple[str, ...]] = []
        self._bold = font(_SIZE, bold=True)

    def set_table(self, table: Table) -> None:
        before, self.table = self.table, table
        texts = [tuple(typeset(text) for text in table.texts(row)) for row in (*table.rows, *table.totals)]
        same = before is not None and before.columns == table.columns and len(texts) == len(self.texts)
        if same:
            self.texts = texts
            self.dataChanged.emit(self.index(0, 0), self.index(len(texts) - 1, len(table.columns) - 1))
        else:
            self.beginResetModel()
            self.texts = texts
            self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.texts)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() or self.table is None else len(self.table.columns)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self.texts[index.row()][index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        if role == Qt.ItemDataRole.FontRole and self.table and index.row() >= len(self.table.rows):
            return self._bold
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation == Qt.Orientation.Vertical or self.table is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.table.columns[section].name
        return self._alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        numbers = self.table is not None and self.table.columns[column].unit
        return (Qt.AlignmentFlag.AlignRight if numbers else Qt.AlignmentFlag.AlignLeft) | Qt.AlignmentFlag.AlignVCenter


class LedgerTable(QTableView):
    """One ledger; its columns are as wide as the widest text they have held, so that nothing jumps.

    A click on a number asks for its working, and so do F1 and Enter on the row, unless it does not ask.
    """

    #: Row and column of a number whose working is wanted.
    asked = Signal(int, int)

    def __init__(self, parent: QWidget | None = None, asks: bool = True) -> None:
        super().__init__(parent)
        self._asks = asks
        self.rows = TableModel(self)
        self.setModel(self.rows)
        self._metrics = QFontMetricsF(font(_SIZE, bold=True))
        self.setFont(font(_SIZE))
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setWordWrap(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setFixedHeight(ROW + 2)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setFont(font(_SIZE))
        self._widths: dict[tuple[str, str], float] = {}
        self.setMouseTracking(True)
        self.clicked.connect(self._ask_of_number)

    def set_table(self, table: Table) -> None:
        self.rows.set_table(table)
        for number, column in enumerate(table.columns):
            texts = (column.name, *(row[number] for row in self.rows.texts))
            width = max(self._metrics.horizontalAdvance(text) for text in texts) + _PADDING
            key = (table.name, column.name)
            self._widths[key] = max(width, self._widths.get(key, 0.0))
            if self.columnWidth(number) != round(self._widths[key]):
                self.setColumnWidth(number, round(self._widths[key]))

    def keyPressEvent(self, event) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif self._asks and event.key() in _ASKING and self.currentIndex().isValid():
            self.asked.emit(self.currentIndex().row(), self.currentIndex().column())
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        number = self._is_number(self.indexAt(event.position().toPoint()))
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if number else Qt.CursorShape.ArrowCursor)

    def _ask_of_number(self, index: QModelIndex) -> None:
        if self._is_number(index):
            self.asked.emit(index.row(), index.column())

    def _is_number(self, index: QModelIndex) -> bool:
        table = self.rows.table
        if not (self._asks and index.isValid() and table is not None):
            return False
        return bool(table.columns[index.column()].unit and index.data())

    def copy(self) -> None:
        """The whole table to the clipboard: SI numbers for spreadsheets, texts with units for documents."""
        table = self.rows.table
        if table is not None:
            columns = [column.name for column in table.columns]
            rows = (*table.rows, *table.totals)
            QGuiApplication.clipboard().setMimeData(table_data(columns, rows, [table.texts(row) for row in rows]))
