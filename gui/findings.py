"""The findings of a plan as a list, each with buttons that apply what would answer it; then what is assumed."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from ..core.report import Edit, Finding, Report
from ..core.scenario import Scenario
from ..core.unset import Unset, each_unset, ordered
from .fonts import font, prose
from .store import Store
from .theme import Theme

_WORDS = {"error": "Error", "warning": "Warning", "hint": "Hint", "assumed": "Assumed"}
_ROLES = {"error": "bad", "warning": "warn", "hint": "accent", "assumed": "muted"}
#: Milliseconds of rest before other values of unset settings are tried.
_PAUSE = 250
#: Buttons for the values that were tried.
_MOST_EDITS = 3
_NOTHING = "Nothing to report: no rule finds fault with this plan."


class FindingRow(QWidget):
    """One finding: its severity as a word, its message, and a button for each edit."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self.severity = QLabel()
        self.severity.setFont(font(12, bold=True))
        self.severity.setFixedWidth(64)
        self.message = QLabel()
        self.message.setWordWrap(True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.buttons: list[QPushButton] = []
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(12, 5, 12, 5)
        self._layout.addWidget(self.severity)
        self._layout.addWidget(self.message, 1)

    def set_finding(self, finding: Finding, theme: Theme) -> None:
        self.severity.setText(_WORDS[finding.severity])
        self.severity.setStyleSheet(f"color: {getattr(theme, _ROLES[finding.severity])};")
        self.message.setText(prose(finding.message))
        self.setAccessibleName(f"{_WORDS[finding.severity]}: {finding.message}")
        for button in self.buttons:
            self._layout.removeWidget(button)
            button.deleteLater()
        self.buttons = [self._button(edit) for edit in finding.edits]

    def _button(self, edit: Edit) -> QPushButton:
        button = QPushButton(edit.label)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda: self._store.apply_edit(edit))
        self._layout.addWidget(button)
        return button


class FindingList(QScrollArea):
    """All findings, most severe first, then the settings that are assumed, once the plan rests."""

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store, self._theme = store, theme
        self._findings: tuple[Finding, ...] | None = None
        self._assumed: tuple[Finding, ...] = ()
        #: The plan whose unset settings are shown.
        self._tried: Scenario | None = None
        self._soon = QTimer(self, singleShot=True, interval=_PAUSE)
        self._soon.timeout.connect(self._start)
        self._trying: Iterator[Unset | None] = iter(())
        self._found: list[Unset | None] = []
        self._next = QTimer(self, interval=0)
        self._next.timeout.connect(self._try_next)
        self.rows: list[FindingRow] = []
        self.nothing = QLabel(_NOTHING)
        self.nothing.setContentsMargins(12, 8, 12, 8)
        body = QWidget()
        self._layout = QVBoxLayout(body)
        self._layout.setContentsMargins(0, 6, 0, 6)
        self._layout.setSpacing(0)
        self._layout.addWidget(self.nothing)
        self._layout.addStretch(1)
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(
            f"""
            FindingList, FindingList > QWidget > QWidget {{ background: {theme.surface}; }}
            QLabel {{ color: {theme.text}; }}
            QPushButton {{ background: {theme.accent_soft}; color: {theme.accent}; border: 1px solid {theme.accent};
                border-radius: 5px; padding: 3px 10px; }}
            QPushButton:hover {{ background: {theme.accent}; color: {theme.on_accent}; }}
            QPushButton:focus {{ border-width: 2px; padding: 2px 9px; }}
            """
        )
        self._fill()

    def set_report(self, report: Report) -> None:
        order = list(_WORDS)
        findings = tuple(sorted(report.findings, key=lambda finding: order.index(finding.severity)))
        if findings != self._findings:
            self._findings = findings
            self._fill()
        if report.scenario != self._tried:
            self._soon.start()

    def _start(self) -> None:
        """Begin to try other values of the settings that the plan leaves at their defaults."""
        if self._store.report is not None and self.isVisible():
            self._tried = self._store.report.scenario
            self._trying, self._found = each_unset(self._tried, self._store.evaluate), []
            self._next.start()

    def _try_next(self) -> None:
        """Try one setting, so that nothing waits for all of them."""
        if self._store.scenario is not self._tried:
            self._next.stop()
            self._tried = None
            return
        try:
            self._found.append(next(self._trying))
        except StopIteration:
            self._next.stop()
            self._show_assumed()

    def _show_assumed(self) -> None:
        assumed = tuple(
            Finding("assumed", "assumed", each.message, each.field, each.edits[:_MOST_EDITS])
            for each in ordered(self._found)
        )
        if assumed != self._assumed:
            self._assumed = assumed
            self._fill()

    def _fill(self) -> None:
        findings = (*(self._findings or ()), *self._assumed)
        self.nothing.setVisible(not self._findings)
        while len(self.rows) < len(findings):
            row = FindingRow(self._store)
            self._layout.insertWidget(self._layout.count() - 1, row)
            self.rows.append(row)
        for row, finding in zip(self.rows, findings, strict=False):
            row.set_finding(finding, self._theme)
        for place, row in enumerate(self.rows):
            row.setVisible(place < len(findings))
