"""One of a few words, or an entry of a catalogue found by typing."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QComboBox, QCompleter, QLineEdit, QSizePolicy

_ARROW = 16
HEIGHT = 21


class Choice(QComboBox):
    """A flat box with its word on the right. Sends `chosen(text)` when a person picks another."""

    chosen = Signal(str)
    #: What stands in it could not be taken.
    wrong = False

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(HEIGHT)
        self.activated.connect(lambda index: self.chosen.emit(str(self.itemData(index))))

    def offer(self, entries: list[tuple[str, str]]) -> None:
        """The choices as (what is chosen, what is read)."""
        self.clear()
        for key, text in entries:
            self.addItem(text, key)
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + 24)

    def show_choice(self, key: str, text: str) -> None:
        """Show a choice; one that is not among the entries is shown by its text."""
        self.setCurrentIndex(self.findData(key))
        self.setPlaceholderText("" if self.currentIndex() >= 0 else text)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        text = self.currentText() or self.placeholderText()
        return QSize(self.fontMetrics().horizontalAdvance(text) + _ARROW + 8, HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(30, HEIGHT)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._paint_frame(painter)
        text = self.currentText() or self.placeholderText()
        painter.setPen(self.palette().color(QPalette.ColorRole.Text))
        area = self.rect().adjusted(4, 0, -_ARROW, 0)
        shown = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, shown)

    def _paint_frame(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = QGuiApplication.palette()  # the box's own has no ground in the style sheet
        active = self.hasFocus() or self.underMouse()
        if active or self.wrong:
            edge = QPalette.ColorRole.Highlight if self.hasFocus() else QPalette.ColorRole.Mid
            painter.setPen(palette.color(QPalette.ColorRole.BrightText if self.wrong else edge))
            painter.setBrush(palette.color(QPalette.ColorRole.Base))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        pen = QPen(QColor(palette.color(QPalette.ColorRole.Dark)), 1.5)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        x, y = self.width() - 8.5, self.height() / 2 + 0.5
        painter.drawPolyline(QPolygonF([QPointF(x - 3, y - 1.5), QPointF(x, y + 1.5), QPointF(x + 3, y - 1.5)]))


class SearchChoice(Choice):
    """A Choice that is typed into: any part of a name finds it. The entries are asked for when first needed.

    A text that is no entry's name nor a part of just one is sent as it is, so that a path or a quantity may be given
    instead. What could not be taken stays in place until it is corrected or Escape, which sends `given_up`, brings the
    choice back.
    """

    given_up = Signal()

    def __init__(self, entries: Callable[[], list[tuple[str, str]]]) -> None:
        super().__init__()
        self._entries = entries
        self._key, self._text = "", ""
        self._select = False
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        edit = self.lineEdit()
        assert edit is not None
        edit.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        edit.setFrame(False)
        edit.installEventFilter(self)
        edit.returnPressed.connect(self._confirm)

    def show_choice(self, key: str, text: str) -> None:
        self._key, self._text = key, text
        self._mark(False)
        self.setCurrentIndex(self.findData(key))
        self._edit().setText(text)
        self._edit().setCursorPosition(0)

    def refuse(self, reason: str) -> None:
        """Mark what was typed as wrong, where it stands."""
        self._mark(True, reason)

    def setAccessibleName(self, name: str) -> None:
        super().setAccessibleName(name)
        self._edit().setAccessibleName(name)

    def showPopup(self) -> None:
        self._fill()
        super().showPopup()

    def paintEvent(self, event: QPaintEvent) -> None:
        self._paint_frame(QPainter(self))

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._fill()
        super().focusInEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self._edit().selectAll()
            # The click that brought the focus would put the cursor between the letters again.
            self._select = event.reason() == Qt.FocusReason.MouseFocusReason

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self._confirm()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Cancel):
            self.show_choice(self._key, self._text)
            self._edit().selectAll()
            self.given_up.emit()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonRelease and self._select:
            self._select = False
            if not self._edit().hasSelectedText():
                self._edit().selectAll()
        return super().eventFilter(watched, event)

    def _edit(self) -> QLineEdit:
        edit = self.lineEdit()
        assert edit is not None
        return edit

    def _fill(self) -> None:
        if self.count():
            return
        self.offer(self._entries())
        completer = QCompleter(self.model(), self)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        self.setCompleter(completer)
        if (popup := completer.popup()) is not None:
            popup.setObjectName("choices")
        self.show_choice(self._key, self._text)

    def _confirm(self) -> None:
        text = self._edit().text().strip()
        if text != self._text or self.wrong:
            self.chosen.emit(self._found(text))

    def _found(self, text: str) -> str:
        """The key of the entry of that name, or of the only one that the text is a part of; else the text."""
        sought = text.casefold()
        hits = [(key, name.casefold()) for key, name in self._entries() if sought and sought in name.casefold()]
        exact = [key for key, name in hits if name == sought]
        return exact[0] if exact else hits[0][0] if len(hits) == 1 else text

    def _mark(self, wrong: bool, reason: str = "") -> None:
        self.wrong = wrong
        self._edit().setAccessibleDescription(reason)
        self.update()
