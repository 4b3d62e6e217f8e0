"""What stands in the scene of a plot: the view box for ranges, pan and zoom, and the item that paints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from .drawing import Drawing


class PanZoomBox(pg.ViewBox):
    """A view box whose right button is left to the context menu."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0.0)

    def mouseDragEvent(self, ev, axis=None) -> None:
        if ev.button() == Qt.MouseButton.RightButton:
            ev.ignore()
        else:
            super().mouseDragEvent(ev, axis)


class Canvas(pg.GraphicsObject):
    """Paints what its view shows, in the view's pixels."""

    def __init__(self, view: Drawing) -> None:
        super().__init__()
        self._view = view
        self.rect = QRectF()

    def boundingRect(self) -> QRectF:
        return self.rect

    def resize(self, rect: QRectF) -> None:
        self.prepareGeometryChange()
        self.rect = rect

    def paint(self, painter: QPainter, option: object, widget: QWidget | None = None) -> None:
        self._view.paint(painter)
