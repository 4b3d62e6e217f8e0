"""Paints a Figure: ground, grid, bands, bars, rules, lines, marks, texts, ticks and key, from back to front."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPolygonF

from ...core.figures.figure import Band, Bar, Figure, Line, Mark, Rule
from ...core.figures.lettering import Text
from ..ink import BAND, PALE, Ink
from .frame import KEY, TICK, Frame, key_rows
from .hover import Element

_ROW = 17.0
_NO_PEN = Qt.PenStyle.NoPen


class Brushwork:
    """One painting of one figure: the painter with what every stroke needs."""

    def __init__(self, painter: QPainter, figure: Figure, frame: Frame, ink: Ink) -> None:
        self.painter = painter
        self.figure = figure
        self.frame = frame
        self.ink = ink
        self.ground = QRectF(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top)

    def paint(self, texts: Sequence[Text], touched: Element | None) -> None:
        painter = self.painter
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._grid()
        painter.save()
        painter.setClipRect(self.ground.adjusted(-1, -1, 2, 1))
        for band in self.figure.bands:
            self._band(band)
        for bar in sorted(self.figure.bars, key=lambda bar: bar.pattern == "ghost"):
            self._bar(bar)
        for rule in self.figure.rules:
            self._rule(rule, rule is touched)
        for line in self.figure.lines:
            self._line(line, line is touched)
        painter.restore()
        for mark in self.figure.marks:
            self._mark(mark, mark is touched)
        if isinstance(touched, Bar):
            self._outline(touched)
        for text in texts:
            self._text(text)
        self._ticks()
        self._key()

    # ------------------------------------------------------------ ground

    def _grid(self) -> None:
        frame, painter = self.frame, self.painter
        painter.setPen(self.ink.pen("grid"))
        across = [round(frame.pixel_x(at)) + 0.5 for at, _ in frame.x.ticks]
        lines = [QLineF(x, frame.top, x, frame.bottom) for x in across if frame.left < x <= frame.right + 1]
        if not frame.y.categories:
            up = [round(frame.pixel_y(at)) + 0.5 for at, _ in frame.y.ticks]
            lines += [QLineF(frame.left, y, frame.right, y) for y in up if frame.top - 1 <= y < frame.bottom]
        if lines:
            painter.drawLines(lines)
        painter.setPen(self.ink.pen("border"))
        left, bottom = round(frame.left) + 0.5, round(frame.bottom) + 0.5
        painter.drawLine(QLineF(left, frame.top, left, bottom))
        if not frame.y.categories:
            painter.drawLine(QLineF(left, bottom, frame.right, bottom))

    def _ticks(self) -> None:
        frame = self.frame
        for at, text in frame.x.ticks:
            x = frame.pixel_x(at)
            if frame.left - 1 <= x <= frame.right + 1:
                self._write(text, x, frame.bottom + 4, 0.5)
        ticks = tuple(enumerate(frame.y.categories)) if frame.y.categories else frame.y.ticks
        if not frame.y.above:
            for at, text in ticks:
                y = frame.pixel_y(at)
                if frame.top - 1 <= y <= frame.bottom + 1:
                    self._write(self.ink.elided(text, frame.left - 10, size=TICK), frame.left - 8, y - 7, 1.0)
        if frame.y.label:
            self._write(frame.y.label, frame.left, frame.top - _ROW - 1, 0.0)

    def _key(self) -> None:
        frame = self.frame
        y = frame.bottom + _ROW + 4
        rows = key_rows(self.figure, self.ink, frame.right - KEY)
        for row in rows:
            for offset, series, text in row:
                self.painter.fillRect(QRectF(KEY + offset, y + 3, 9, 9), self.ink.brush(series))
                self._write(text, KEY + offset + 14, y, 0.0)
            y += _ROW
        if frame.x.label:
            self._write(frame.x.label, frame.right, y - _ROW, 1.0)

    # ------------------------------------------------------------ data

    def _band(self, band: Band) -> None:
        upper = [QPointF(*self.frame.pixel(x, y)) for x, y in zip(band.x, band.high, strict=True)]
        lower = [QPointF(*self.frame.pixel(x, y)) for x, y in zip(band.x, band.low, strict=True)]
        self.painter.setPen(_NO_PEN)
        self.painter.setBrush(self.ink.brush(band.series, BAND))
        self.painter.drawPolygon(QPolygonF(upper + lower[::-1]))

    def _rect(self, bar: Bar) -> QRectF:
        frame = self.frame
        left, right = frame.pixel_x(bar.start), frame.pixel_x(bar.start + bar.length)
        top, bottom = frame.pixel_y(bar.row - bar.height / 2), frame.pixel_y(bar.row + bar.height / 2)
        return QRectF(left, round(top), right - left, max(1.0, round(bottom) - round(top)))

    def _bar(self, bar: Bar) -> None:
        rect = self._rect(bar)
        if bar.pattern == "ghost":
            self.painter.setBrush(Qt.BrushStyle.NoBrush)
            self.painter.setPen(self.ink.pen(bar.series, 1.2, "dashed"))
            self.painter.drawRect(rect)
            return
        if bar.pattern == "hatched":
            self._hatch(rect, bar.series)
        else:
            self.painter.fillRect(rect, self.ink.brush(bar.series, PALE if bar.pattern == "pale" else 1.0))
        if rect.width() > 4:  # a hairline of the ground keeps neighbours apart
            self.painter.fillRect(QRectF(rect.right() - 1, rect.top(), 1, rect.height()), self.ink.brush("surface"))

    def _hatch(self, rect: QRectF, series: str) -> None:
        painter = self.painter
        painter.fillRect(rect, self.ink.brush(series, BAND))
        painter.save()
        painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
        painter.setPen(self.ink.pen(series, 1.6))
        step, height = 7.0, rect.height()
        count = int((rect.width() + height) / step) + 1
        starts = [rect.left() - height + i * step for i in range(count)]
        painter.drawLines([QLineF(x, rect.bottom(), x + height, rect.top()) for x in starts])
        painter.restore()

    def _outline(self, bar: Bar) -> None:
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.setPen(self.ink.pen("text", 1.5))
        self.painter.drawRect(self._rect(bar).adjusted(-0.5, -0.5, 0.5, 0.5))

    def _rule(self, rule: Rule, touched: bool) -> None:
        frame = self.frame
        self.painter.setPen(self.ink.pen(rule.series, 2.4 if touched else 1.6, rule.style))
        if rule.across == "x":
            x = round(frame.pixel_x(rule.at)) + 0.5
            self.painter.drawLine(QLineF(x, frame.top, x, frame.bottom))
        else:
            y = round(frame.pixel_y(rule.at)) + 0.5
            self.painter.drawLine(QLineF(frame.left, y, frame.right, y))

    def _line(self, line: Line, touched: bool) -> None:
        points = [QPointF(*self.frame.pixel(x, y)) for x, y in zip(line.x, line.y, strict=True)]
        self.painter.setPen(self.ink.pen(line.series, line.width + (1.2 if touched else 0.0), line.style))
        self.painter.drawPolyline(QPolygonF(points))

    def _mark(self, mark: Mark, touched: bool) -> None:
        x, y = self.frame.pixel(mark.x, mark.y)
        if not self.ground.adjusted(-2, -2, 2, 2).contains(x, y):
            return
        painter, radius = self.painter, mark.size / 2 + (1.5 if touched else 0.0)
        if mark.shape == "dot":
            painter.setPen(self.ink.pen("surface", 1.5))
            painter.setBrush(self.ink.brush(mark.series))
        else:
            ring = mark.shape == "ring"
            painter.setPen(self.ink.pen(mark.series, 3.0 if ring else 1.6))
            painter.setBrush(self.ink.brush("surface") if ring else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(x, y), radius, radius)

    # ------------------------------------------------------------ texts

    def _text(self, text: Text) -> None:
        left, _, _, high = text.box
        if text.leader:
            self._leader(text)
        if not self.figure.bars:  # lines stop short of the letters that stand on them
            behind = QRectF(left, -high, text.box[2] - left, high - text.box[1]).adjusted(0, 2, 0, -2)
            self.painter.fillRect(behind, self.ink.halo)
        color = self.ink.color_on(text.on) if text.on else self.ink.readable(text.series)
        self.ink.write(self.painter, self.ink.text(text.text, text.bold), left, -high, color)

    def _leader(self, text: Text) -> None:
        """A thin line from a mark to its label, ending at the nearest point of the label's box."""
        assert text.leader is not None
        (x, up), (left, low, right, high) = text.leader, text.box
        nearest = QPointF(min(right, max(left, x)), -min(high, max(low, up)))
        self.painter.setPen(self.ink.pen("muted", 0.8))
        self.painter.drawLine(QPointF(x, -up), nearest)

    def _write(self, text: str, x: float, y: float, align: float) -> None:
        """A muted small text whose left edge, middle or right edge (align 0, 0.5, 1) is at x."""
        laid = self.ink.text(text, size=TICK)
        self.ink.write(self.painter, laid, x - align * laid.width, y, self.ink.readable("muted"))


def paint_notice(painter: QPainter, text: str, rect: QRectF, ink: Ink) -> None:
    """The words in place of a chart that has nothing to draw."""
    painter.setFont(ink.text(text).font)
    painter.setPen(ink.pen("muted"))
    painter.drawText(rect, int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap), text)


def paint_more(painter: QPainter, text: str, frame: Frame, ink: Ink) -> None:
    """Says in the lower right corner that there are rows out of sight."""
    laid = ink.text(text, size=TICK)
    left, top = frame.right - laid.width, frame.bottom - laid.height - 1
    painter.fillRect(QRectF(left - 4, top, laid.width + 4, laid.height), ink.brush("surface"))
    ink.write(painter, laid, left, top, ink.readable("accent"))


def paint_ring(painter: QPainter, rect: QRectF, ink: Ink) -> None:
    """Shows that the keys go to this plot."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(ink.pen("accent", 1.5))
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 4, 4)
