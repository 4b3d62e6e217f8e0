"""On or off."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox

from ..theme import LIGHT, Theme


class Switch(QCheckBox):
    """A check box drawn as a small switch; its state is told by place as well as by colour."""

    def __init__(self) -> None:
        super().__init__()
        self._theme: Theme = LIGHT

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(30, 18)

    def hitButton(self, pos: QPoint) -> bool:
        return self.rect().contains(pos)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(1.5, self.height() / 2 - 6.5, 26, 13)
        on, theme = self.isChecked(), self._theme
        painter.setPen(QPen(theme.color("accent" if on or self.hasFocus() else "muted"), 2 if self.hasFocus() else 1.2))
        painter.setBrush(theme.color("accent" if on else "groove"))
        painter.drawRoundedRect(area, 6.5, 6.5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("on_accent" if on else "muted"))
        painter.drawEllipse(QPointF(area.right() - 6.5 if on else area.left() + 6.5, area.center().y()), 4, 4)
