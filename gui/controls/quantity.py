"""A typed quantity: shows a rounded value with its unit, is edited as the exact one."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QLineEdit

from ..fonts import font


class QuantityEdit(QLineEdit):
    """A flat line edit, right aligned. Sends `entered(text)` when a changed text is confirmed.

    `stepped(count)` asks for a move by a step (Up, Down). What could not be taken stays in place, marked wrong, until
    it is corrected or Escape brings the value back.
    """

    entered = Signal(str)
    stepped = Signal(int)

    def __init__(self, width: int) -> None:
        super().__init__()
        self._shown, self._exact = "", ""
        self._select = False
        self.setFixedWidth(width)
        self.setFont(font())
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.returnPressed.connect(self._confirm)

    @property
    def wrong(self) -> bool:
        return bool(self.property("wrong"))

    def show_value(self, shown: str, exact: str) -> None:
        """Show a value as a person reads it, `exact` while it is edited. Takes the mark of a wrong value away."""
        self._shown, self._exact = shown, exact
        self._mark(False)
        self.setText(exact if self.hasFocus() else shown)

    def refuse(self, reason: str) -> None:
        """Mark what was typed as wrong, where it stands."""
        self._mark(True)
        self.setAccessibleDescription(reason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1, Qt.Key.Key_PageUp: 10, Qt.Key.Key_PageDown: -10}
        if event.key() == Qt.Key.Key_Escape:
            self.show_value(self._shown, self._exact)
            self.selectAll()
            self.stepped.emit(0)
        elif event.key() in steps:
            self.stepped.emit(steps[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not self.wrong:
            self.setText(self._exact)
        self.selectAll()
        # A click would put the cursor between the digits again.
        self._select = event.reason() == Qt.FocusReason.MouseFocusReason

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._select and not self.hasSelectedText():
            self.selectAll()
        self._select = False

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self._confirm()
            if not self.wrong:
                self.setText(self._shown)

    def _confirm(self) -> None:
        if self.text().strip() != self._exact or self.wrong:
            self.entered.emit(self.text().strip())

    def _mark(self, wrong: bool) -> None:
        if wrong == self.wrong:
            return
        self.setProperty("wrong", wrong)
        self.setAccessibleDescription("")
        self.style().unpolish(self)
        self.style().polish(self)
