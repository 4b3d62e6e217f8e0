"""The tabs below the charts: the three ledgers as tables, the findings, and the working of any number."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QKeySequence, QMouseEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QTableView,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ..core.ledgers.row_keys import row_key
from ..core.ledgers.tables import Table, communication_table, compute_table, memory_table
from ..core.report import Report
from .clipboard import table_data
from .findings import FindingList
from .fonts import font, typeset
from .store import Store
from .theme import Theme, page_style
from .working import WorkingPage

_LEDGERS = {"Memory": memory_table, "Compute": compute_table, "Communication": communication_table}
_ROW = 22
_PADDING = 22
_SIZE = 12

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

    A click on a number asks for its working, and so do F1 and Enter on the row.
    """

    #: Row and column of a number whose working is wanted.
    asked = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        self.verticalHeader().setDefaultSectionSize(_ROW)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setFixedHeight(_ROW + 2)
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
        elif event.key() in (Qt.Key.Key_F1, Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
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
        return index.isValid() and table is not None and bool(table.columns[index.column()].unit and index.data())

    def copy(self) -> None:
        """The whole table to the clipboard: SI numbers for spreadsheets, texts with units for documents."""
        table = self.rows.table
        if table is not None:
            columns = [column.name for column in table.columns]
            rows = (*table.rows, *table.totals)
            QGuiApplication.clipboard().setMimeData(table_data(columns, rows, [table.texts(row) for row in rows]))


class LedgerPage(QWidget):
    """One of the three ledgers at a time, with its title, its notes and what it does not count."""

    #: The key of a result whose working is wanted.
    explained = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self.table = LedgerTable()
        self.title = QLabel()
        self.title.setFont(font(13, bold=True))
        self.notes = QLabel()
        self.notes.setObjectName("notes")
        self.notes.setWordWrap(True)
        self.choice = QButtonGroup(self)
        top = QHBoxLayout()
        top.setSpacing(0)
        for number, name in enumerate(_LEDGERS):
            button = QToolButton()
            button.setText(name)
            button.setCheckable(True)
            button.setChecked(number == 0)
            self.choice.addButton(button, number)
            top.addWidget(button)
        self.copy_button = QToolButton()
        self.copy_button.setText("Copy table")
        self.copy_button.clicked.connect(self.table.copy)
        top.addSpacing(14)
        top.addWidget(self.title, 1)
        top.addWidget(self.copy_button)
        self.choice.idClicked.connect(self._refresh)
        self.table.asked.connect(self._explain)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(6)
        layout.addLayout(top)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.notes)

    def set_report(self, report: Report) -> None:
        self._report = report
        self._refresh()

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(page_style(theme))

    def _explain(self, row: int, column: int) -> None:
        table = self.table.rows.table
        key = row_key(self._report, table, row, column) if self._report and table else ""
        if key:
            self.explained.emit(key)

    def _refresh(self) -> None:
        if self._report is None:
            return
        table = tuple(_LEDGERS.values())[self.choice.checkedId()](self._report)
        self.table.set_table(table)
        self.table.setAccessibleName(table.title)
        left_out = f"Not counted: {', '.join(table.not_counted)}." if table.not_counted else ""
        _say(self.title, typeset(table.title))
        _say(self.notes, typeset(" · ".join(text for text in (*table.notes, left_out) if text)))


class LedgerTabs(QTabWidget):
    """Ledgers, findings and the working of any number of the present plan. What is not in sight is not computed."""

    #: The control of a field is wanted.
    field_requested = Signal(str)

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self.ledgers = LedgerPage()
        self.findings = FindingList(store, theme)
        self.addTab(self.ledgers, "Ledgers")
        self.working = WorkingPage(store, theme)
        self.addTab(self.findings, "Findings")
        self.addTab(self.working, "Working")
        self.ledgers.explained.connect(self.explain)
        self.working.field_requested.connect(self.field_requested)
        self.set_theme(theme)
        store.report_changed.connect(self._show)
        self.currentChanged.connect(self._show)
        self._show()

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(
            f"""
            QTabWidget::pane {{ background: {theme.surface}; border: 1px solid {theme.border}; border-radius: 6px;
                top: -1px; }}
            QTabBar::tab {{ color: {theme.muted}; background: transparent; border: 1px solid transparent;
                border-bottom: 0; border-top-left-radius: 5px; border-top-right-radius: 5px; padding: 6px 13px; }}
            QTabBar::tab:selected {{ color: {theme.text}; background: {theme.surface}; border-color: {theme.border}; }}
            QTabBar::tab:hover, QTabBar::tab:focus {{ color: {theme.accent}; }}
            """
        )
        for place in range(self.count()):
            self.widget(place).set_theme(theme)  # type: ignore[attr-defined]

    def show_page(self, page: QWidget) -> None:
        """Show a page, as a click on its tab would."""
        self.setCurrentWidget(page)
        self.tabBarClicked.emit(self.indexOf(page))

    def explain(self, key: str) -> None:
        """Show the working of a result."""
        self.working.open(key)
        self.show_page(self.working)
        self.working.inputs.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()

    def _show(self) -> None:
        report = self._store.report
        if report is None:
            return
        words = f"Findings {len(report.findings)}" if report.findings else "Findings"
        if self.tabText(1) != words:
            self.setTabText(1, words)
        page = self.currentWidget()
        if isinstance(page, (LedgerPage, FindingList)) and page.isVisible() and page.height() > _ROW:
            page.set_report(report)


def _say(label: QLabel, text: str) -> None:
    """Setting a text lays out anew, even the same one."""
    if label.text() != text:
        label.setText(text)
