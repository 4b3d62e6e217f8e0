"""The picture of a slider: groove with its coloured strip, ticks and thumb."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from ...core.explore.stops import Scale
from ...core.units import format_quantity
from ..theme import Theme

RADIUS = 5.5
STRIP = 5.0
CENTRE = 7.0
TICKS_HEIGHT = 12
_COLORS = {"fits": "fits", "tight": "tight", "does-not-fit": "over", "illegal": "illegal", "": "groove"}


@dataclass
class Groove:
    """What a slider shows. `legal` are the allowed stops (None: all), `verdicts` has one word a stop or is empty."""

    scale: Scale
    value: float | None = None
    mark: float | None = None
    legal: Collection[float] | None = None
    verdicts: tuple[str, ...] = ()
    ticks: bool = False

    def allowed(self) -> Scale:
        """The scale with the allowed stops only; all of them when none would be left."""
        stops = tuple(s for s in self.scale.stops if self.legal is None or s in self.legal)
        return replace(self.scale, stops=stops) if stops else self.scale

    def x(self, value: float, width: float) -> float:
        """The pixel at which a value lies on a groove `width` pixels wide."""
        return RADIUS + 1 + self.scale.place(value) * (width - 2 * RADIUS - 2)

    def stop_at(self, x: float, width: float) -> float:
        """The stop nearest to a pixel, allowed or not."""
        return self.scale.nearest((x - RADIUS - 1) / max(1.0, width - 2 * RADIUS - 2))

    def value_at(self, x: float, width: float) -> float:
        """The allowed stop nearest to a pixel."""
        return min(self.allowed().stops, key=lambda stop: abs(self.x(stop, width) - x))

    def paint(self, painter: QPainter, width: float, theme: Theme, font: QFont, focused: bool, hovered: bool) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_strip(painter, width, theme)
        if self.mark is not None:
            painter.setPen(QPen(theme.color("muted"), 1.2))
            at = self.x(self.mark, width)
            painter.drawLine(QPointF(at, CENTRE - 5), QPointF(at, CENTRE + 5))
        if self.ticks:
            self._paint_ticks(painter, width, theme, font)
        if self.value is not None:
            self._paint_thumb(painter, width, theme, focused, hovered)
        elif focused:
            painter.setPen(QPen(theme.color("accent"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(1, 1, width - 2, 2 * CENTRE - 2), 4, 4)

    def _paint_strip(self, painter: QPainter, width: float, theme: Theme) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(0.5, CENTRE - STRIP / 2, width - 1, STRIP), STRIP / 2, STRIP / 2)
        if not self.verdicts:
            painter.fillPath(outline, theme.color("groove"))
            return
        painter.save()
        painter.setClipPath(outline)
        places = [self.x(stop, width) for stop in self.scale.stops]
        edges = [0.0, *((a + b) / 2 for a, b in pairwise(places)), width]
        for index, verdict in enumerate(self.verdicts):
            area = QRectF(edges[index], 0, edges[index + 1] - edges[index] + 0.5, 2 * CENTRE)
            painter.fillRect(area, theme.color(_COLORS[verdict]))
        painter.restore()

    def _paint_ticks(self, painter: QPainter, width: float, theme: Theme, font: QFont) -> None:
        small = QFont(font)
        small.setPixelSize(10)
        strong = QFont(small)
        strong.setWeight(QFont.Weight.DemiBold)
        free_from = 0.0
        for stop in self.scale.stops:
            text, chosen = format_quantity(stop, "count"), stop == self.value
            used = strong if chosen else small
            span = QFontMetricsF(used).horizontalAdvance(text)
            left = min(max(0.0, self.x(stop, width) - span / 2), width - span)
            if left < free_from and not chosen:
                continue
            painter.setFont(used)
            painter.setPen(self._tick_color(stop, theme))
            painter.drawText(QPointF(left, 2 * CENTRE + TICKS_HEIGHT - 3), text)
            free_from = left + span + 5

    def _tick_color(self, stop: float, theme: Theme) -> QColor:
        if stop == self.value:
            return theme.color("text")
        color = theme.color("muted")
        if self.legal is not None and stop not in self.legal:
            color.setAlphaF(0.45)
        return color

    def _paint_thumb(self, painter: QPainter, width: float, theme: Theme, focused: bool, hovered: bool) -> None:
        assert self.value is not None
        centre = QPointF(self.x(self.value, width), CENTRE)
        if focused or hovered:
            halo = theme.color("accent")
            halo.setAlphaF(0.35 if focused else 0.18)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(halo)
            painter.drawEllipse(centre, RADIUS + 1.5, RADIUS + 1.5)
        painter.setPen(QPen(theme.color("accent"), 2))
        painter.setBrush(theme.color("surface"))
        painter.drawEllipse(centre, RADIUS - 1, RADIUS - 1)
