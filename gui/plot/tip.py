"""The words beside the pointer."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtWidgets import QLabel, QWidget

from ..fonts import font
from ..theme import Theme

_WIDEST = 340
_AWAY, _PADDING = 14, 8


class Tip(QLabel):
    """A small label inside its parent that says what is under the pointer; it never takes the pointer itself."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setFont(font(12, tabular=False))
        self.set_theme(theme)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(
            f"background: {theme.text}; color: {theme.surface}; border-radius: 4px; padding: 4px {_PADDING}px;"
        )

    def say(self, text: str, point: QPointF | None, room: QSize) -> None:
        """Show a text beside a point, or where it is, within some room; an empty text hides it."""
        if not text:
            self.hide()
            return
        if text != self.text():
            self.setText(text)
            natural = math.ceil(self.fontMetrics().horizontalAdvance(text)) + 2 * _PADDING + 2
            width = min(natural, _WIDEST, max(120, room.width() - 8))
            self.resize(width, self.heightForWidth(width))
        if point is not None:
            self._stand_beside(point, room)
        self.show()

    def _stand_beside(self, point: QPointF, room: QSize) -> None:
        """Above and right of the point, or on the other side where the room ends."""
        right, left = point.x() + _AWAY, point.x() - _AWAY - self.width()
        x = right if right + self.width() < room.width() else left
        above = point.y() - 10 - self.height()
        y = above if above > 0 else point.y() + 18
        self.move(round(max(2.0, min(x, room.width() - self.width() - 2.0))), round(y))
