"""The picture of a Figure: pyqtgraph's view box for ranges, pan and zoom, and one item that paints it all."""

from __future__ import annotations

import math
from dataclasses import replace

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import QGraphicsView, QWidget

from ...core.figures.figure import Axis, Figure
from ...core.figures.lettering import Text, letter
from ..ink import Ink
from ..theme import Theme
from .frame import (
    Frame,
    Margins,
    first_result,
    held,
    larger,
    margins,
    reach,
    rows_in,
    spaced,
    view_range,
    visible_part,
    zoomed,
)
from .hover import Element
from .paint import Brushwork, paint_more, paint_notice, paint_ring
from .scene import Canvas, PanZoomBox

#: How far beyond the data a view may be moved, and the smallest part one may zoom to, as shares of the whole.
_BEYOND = 0.1
_CLOSEST = 0.125
#: Rows of bars that are worth speaking of when they are out of sight.
_SOME = 0.3
#: Height and width in pixels for the words that say so.
_MORE, _TOLD = 18.0, 84.0
_NOTHING = Figure("", "", "", Axis(), Axis(), empty=" ")


class Drawing(pg.GraphicsView):
    """Draws one Figure: where its data land, which part of it is in sight, and which part is brought out."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, background=theme.surface)
        self.ink = Ink(theme)
        self.figure = _NOTHING
        self._shown = _NOTHING
        self._margins: Margins | None = None
        self._frame: Frame | None = None
        self._texts: list[Text] = []
        #: The part under the pointer, brought out.
        self._touched: Element | None = None
        self._moved = False
        self._scrolled = self._reach = 0.0
        self._loose = self._ringed = self._browsed = False
        self.setMinimumSize(160, 100)
        self.box = PanZoomBox()
        self.addItem(self.box)
        self.canvas = Canvas(self)
        self.canvas.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.addItem(self.canvas)
        self.box.sigRangeChanged.connect(self._repaint)
        self.box.sigRangeChangedManually.connect(self._take_move)

    def set_figure(self, figure: Figure, settle: bool = True) -> None:
        """Show a figure. Unless `settle`, axes and margins only grow, so that nothing jumps during a drag."""
        before = self._shown
        grows = not settle and before.name == figure.name and not figure.empty and not before.empty
        shown = replace(figure, x=held(before.x, figure.x), y=held(before.y, figure.y)) if grows else figure
        self.figure = figure
        if before.name != figure.name:
            self._moved = self._browsed = False
        if shown == before and not (settle and self._loose):
            return
        self._shown = shown
        self._lay_out(grows)

    def set_theme(self, theme: Theme) -> None:
        self.ink = Ink(theme)
        self.setBackground(theme.surface)
        self._repaint()

    def reset_view(self) -> None:
        """The whole figure, as it was before panning and zooming."""
        self._moved = self._browsed = False
        self._lay_out()

    @property
    def zoomable(self) -> bool:
        return not (self._shown.empty or self._shown.bars or self._shown.y.categories)

    def frame(self) -> Frame:
        """Where the data land at present."""
        if self._frame is None:
            rect, shown = self.box.geometry(), self._shown
            (x_range, y_range) = (tuple(ends) for ends in self.box.viewRange())
            self._frame = Frame(
                rect.left(),
                rect.top(),
                rect.right(),
                rect.bottom(),
                zoomed(shown.x, x_range) if self._moved else shown.x,
                spaced(zoomed(shown.y, y_range) if self._moved else shown.y, y_range, rect.height()),
                x_range,
                y_range,
            )
            self._texts = self._letter(self._frame)
        return self._frame

    def _letter(self, frame: Frame) -> list[Text]:
        visible = visible_part(self._shown, frame) if self._moved else self._shown
        if self._rows_hidden() < _SOME:
            return letter(visible, frame.upwards, self._measure, frame.bounds)
        left, low, right, high = frame.bounds
        texts = letter(visible, frame.upwards, self._measure, (left, low + _MORE, right, high))
        told = right - _TOLD  # the words that say how many rows are below stand in the corner
        seen = (text for text in texts if low <= text.box[1] and text.box[3] <= high)
        return [text for text in seen if text.box[1] >= low + _MORE or text.box[2] < told]

    def paint(self, painter: QPainter) -> None:
        """Paint the figure in the view's pixels."""
        if self._ringed:
            paint_ring(painter, self.canvas.rect, self.ink)
        if self._shown.empty:
            paint_notice(painter, self._shown.empty, self.canvas.rect.adjusted(16, 0, -16, 0), self.ink)
            return
        frame = self.frame()
        Brushwork(painter, self._shown, frame, self.ink).paint(self._texts, self._touched)
        if (below := self._rows_hidden() - self._scrolled) >= _SOME:
            paint_more(painter, f"{math.ceil(below - _SOME)} more below", frame, self.ink)

    def _measure(self, text: str, bold: bool) -> tuple[float, float]:
        laid = self.ink.text(text, bold)
        return laid.width, laid.height

    def _lay_out(self, grows: bool = False) -> None:
        wanted = margins(self._shown, self.ink, self.width())
        around = larger(self._margins, wanted) if grows and self._margins else wanted
        self._margins = around
        needed = reach(self._shown, self.ink, self.width() - around.left - around.right)
        self._reach = max(self._reach, needed) if grows else needed
        self._loose = (around, self._reach) != (wanted, needed)
        whole = QRectF(0, 0, self.width(), self.height())
        if self.canvas.rect != whole:
            self.canvas.resize(whole)
        ground = whole.adjusted(around.left, around.top, -around.right, -around.bottom)
        if ground.isValid() and self.box.geometry() != ground:
            self.box.setGeometry(ground)
        self._set_ranges()
        self._repaint()

    def _set_ranges(self) -> None:
        x, y = view_range(self._shown.x), view_range(self._shown.y)
        self.box.setMouseEnabled(self.zoomable, self.zoomable)
        if not self.zoomable:
            self._moved = False
        if self._shown.y.categories:
            wanted = self._scrolled if self._browsed else first_result(self._shown)
            self._scrolled = max(0.0, min(wanted, self._rows_hidden()))
            top = y[0] + self._scrolled
            y = (top, top + rows_in(self._shown.y, self.box.height()))
            x = (x[0], max(x[1], self._reach))
        limits = {}
        for axis, (low, high) in (("x", x), ("y", y)):
            span = high - low
            limits |= {f"{axis}Min": low - _BEYOND * span, f"{axis}Max": high + _BEYOND * span}
            limits |= {f"min{axis.upper()}Range": _CLOSEST * span, f"max{axis.upper()}Range": (1 + 2 * _BEYOND) * span}
        self.box.setLimits(**limits)
        if not self._moved:
            self.box.setRange(xRange=x, yRange=y, padding=0.0)

    def _rows_hidden(self) -> float:
        """How many rows of bars there is no room for."""
        axis = self._shown.y
        return axis.high - axis.low - rows_in(axis, self.box.height()) if axis.categories else 0.0

    def _scroll(self, rows: float) -> None:
        self._scrolled, self._browsed = self._scrolled + rows, True
        self._set_ranges()
        self._repaint()

    def _take_move(self) -> None:
        self._moved = True
        self._repaint()

    def _repaint(self) -> None:
        self._frame = None
        self.canvas.update()

    def resizeEvent(self, ev: QResizeEvent | None) -> None:
        super().resizeEvent(ev)
        if hasattr(self, "canvas"):  # pyqtgraph calls this while it is being made
            self._lay_out()

    def close(self) -> None:
        # pyqtgraph takes the viewport away on close and crashes with the widgets on it.
        QGraphicsView.close(self)
