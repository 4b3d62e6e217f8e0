"""The tabs below the charts: three ledgers as tables, findings, the working of any number, and what if."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QTabWidget, QWidget

from ..core.ledgers.row_keys import row_key
from ..core.ledgers.tables import communication_table, compute_table, memory_table
from ..core.report import Report
from .findings import FindingList
from .ledger_table import ROW
from .store import Store
from .table_page import TablePage
from .theme import Theme
from .what_if import WhatIfPage
from .working import WorkingPage

_LEDGERS = {"Memory": memory_table, "Compute": compute_table, "Communication": communication_table}


class LedgerPage(TablePage):
    """One of the three ledgers at a time, with its title, its notes and what it does not count."""

    #: The key of a result whose working is wanted.
    explained = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tuple(_LEDGERS), asks=True, parent=parent)
        self._report: Report | None = None
        self.choice.idClicked.connect(self._refresh)
        self.table.asked.connect(self._explain)

    def set_report(self, report: Report) -> None:
        self._report = report
        self._refresh()

    def _explain(self, row: int, column: int) -> None:
        table = self.table.rows.table
        key = row_key(self._report, table, row, column) if self._report and table else ""
        if key:
            self.explained.emit(key)

    def _refresh(self) -> None:
        if self._report is None:
            return
        table = tuple(_LEDGERS.values())[self.choice.checkedId()](self._report)
        left_out = f"Not counted: {', '.join(table.not_counted)}." if table.not_counted else ""
        self.show_table(table, " · ".join(text for text in (*table.notes, left_out) if text))


class LedgerTabs(QTabWidget):
    """Ledgers, findings, the working of any number, and what if. What is not in sight is not computed."""

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
        self.what_if = WhatIfPage(store, theme)
        self.addTab(self.what_if, "What if")
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
        if isinstance(page, (LedgerPage, FindingList)) and page.isVisible() and page.height() > ROW:
            page.set_report(report)
