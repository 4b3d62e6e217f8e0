"""What charts and cards are painted with in one theme: pens, brushes and laid-out texts, made once and kept."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen, QStaticText, QTransform

from ..core.figures.colour import ink_on, legible, mixed
from ..core.figures.figure import SERIES
from ..core.words import unbroken
from .fonts import font, typeset
from .theme import Theme

#: Share of a series' colour in its pale form and in a band.
PALE = 0.32
BAND = 0.18
_KEPT = 4000
_STYLES = {"solid": Qt.PenStyle.SolidLine, "dashed": Qt.PenStyle.DashLine, "dotted": Qt.PenStyle.DotLine}


@dataclass(frozen=True)
class Lettering:
    """A text laid out in its font."""

    static: QStaticText
    font: QFont
    width: float
    height: float


class Ink:
    """Colours are names of series ("weights") or attributes of the theme ("muted", "grid")."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        #: Lets what is behind a text shine through a little.
        self.halo = theme.color("surface")
        self.halo.setAlpha(190)
        self._pens: dict[tuple[str, float, str], QPen] = {}
        self._brushes: dict[tuple[str, float], QBrush] = {}
        self._readable: dict[str, QColor] = {}
        self._fonts: dict[tuple[int, bool], QFont] = {}
        self._texts: dict[tuple[str, int, bool], Lettering] = {}

    def code(self, color: str) -> str:
        """The colour as "#rrggbb"."""
        return SERIES[color][self.theme.dark] if color in SERIES else getattr(self.theme, color)

    def color_on(self, color: str) -> QColor:
        """White or near black, whichever reads better on a colour."""
        return QColor(ink_on(self.code(color)))

    def pen(self, color: str, width: float = 1.0, style: str = "solid") -> QPen:
        key = (color, width, style)
        if key not in self._pens:
            pen = QPen(QColor(self.code(color)), width, _STYLES[style], Qt.PenCapStyle.FlatCap)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            if style == "dashed":
                pen.setDashPattern([4.0, 3.0])
            self._pens[key] = pen
        return self._pens[key]

    def readable(self, color: str) -> QColor:
        """The colour for text: with a contrast of 4.5 on the ground."""
        if color not in self._readable:
            self._readable[color] = QColor(legible(self.code(color), self.theme.surface))
        return self._readable[color]

    def brush(self, color: str, share: float = 1.0) -> QBrush:
        """A fill; `share` below 1 mixes the colour with the ground, opaque, so that nothing shines through."""
        key = (color, share)
        if key not in self._brushes:
            code = self.code(color)
            self._brushes[key] = QBrush(QColor(code if share == 1.0 else mixed(code, self.theme.surface, share)))
        return self._brushes[key]

    def text(self, text: str, bold: bool = False, size: int = 12) -> Lettering:
        key = (text, size, bold)
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) > _KEPT:  # live numbers bring new texts for ever
                self._texts.clear()
            found = self._texts[key] = self._laid_out(text, bold, size)
        return found

    def elided(self, text: str, room: float, bold: bool = False, size: int = 12) -> str:
        """The text, its end replaced by an ellipsis where it is wider than some room."""
        laid = self.text(text, bold, size)
        if laid.width <= room:
            return text
        return QFontMetricsF(laid.font).elidedText(typeset(text), Qt.TextElideMode.ElideRight, room)

    def wrapped(self, text: str, room: float, most: int, bold: bool = False, size: int = 12) -> list[str]:
        """The text in at most `most` lines; what does not fit into the last one ends in an ellipsis."""
        lines: list[str] = [""]
        text = unbroken(text)
        for word in text.split(" ") if self.text(text, bold, size).width > room else [text]:
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and len(lines) < most and self.text(longer, bold, size).width > room:
                lines.append(word)
            else:
                lines[-1] = longer
        return [self.elided(line, room, bold, size) for line in lines]

    def write(self, painter: QPainter, laid: Lettering, x: float, y: float, color: QColor) -> None:
        """Paint a text with its upper left corner at a pixel."""
        painter.setFont(laid.font)
        painter.setPen(color)
        painter.drawStaticText(QPointF(round(x), round(y)), laid.static)

    def _laid_out(self, text: str, bold: bool, size: int) -> Lettering:
        face = self._fonts.setdefault((size, bold), font(size, bold))
        static = QStaticText(typeset(text))
        static.setTextFormat(Qt.TextFormat.PlainText)
        static.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
        static.prepare(QTransform(), face)
        size_of = static.size()
        return Lettering(static, face, size_of.width(), size_of.height())
