"""A line of mathematics as a picture: fractions one over the other, brackets as tall as what they hold, low indices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from .fonts import font, typeset
from .theme import Theme

#: Where a line may be broken, and what separates products.
_LOOSE = (
    " = ",
    " + ",
    " − ",
    " > ",
    " < ",
    " ≤ ",
    " ≥ ",
    " ≠ ",
    ", ",
    " if ",
    " else ",
    " and ",
    " or ",
    " over ",
    " for ",
)
_PRODUCT = (" · ", " / ")
_OPEN, _CLOSE = "([⌈⌊", ")]⌉⌋"
_INDEXED = re.compile(r"(?P<base>[^\W\d_]{1,6})_(?P<index>\w+)")
_SIZE = 15
#: Sizes that are tried in turn, with the left side kept beside what follows it or not.
_TRIES = ((_SIZE, True), (13, True), (_SIZE, False), (13, False), (11, False))
_GAP, _BAR, _INDENT = 3.0, 1.2, 22.0
#: How small a part that cannot be broken may become, of the least size.
_LEAST_SCALE = 0.75


@dataclass
class Box:
    """Something with a size around a baseline: `above` and `below` it."""

    width: float
    above: float
    below: float

    def paint(self, painter: QPainter, x: float, baseline: float) -> None:
        raise NotImplementedError


class Word(Box):
    """Letters in one size, lowered by some pixels."""

    def __init__(self, text: str, size: int, lowered: float = 0.0) -> None:
        self.text, self.font, self.lowered = typeset(text), font(size), lowered
        metrics = QFontMetricsF(self.font)
        super().__init__(metrics.horizontalAdvance(self.text), metrics.ascent() - lowered, metrics.descent() + lowered)

    def paint(self, painter: QPainter, x: float, baseline: float) -> None:
        painter.setFont(self.font)
        painter.drawText(QPointF(x, baseline + self.lowered), self.text)


class Row(Box):
    """Boxes side by side."""

    def __init__(self, boxes: list[Box]) -> None:
        self.boxes = boxes
        super().__init__(
            sum(box.width for box in boxes),
            max((box.above for box in boxes), default=0.0),
            max((box.below for box in boxes), default=0.0),
        )

    def paint(self, painter: QPainter, x: float, baseline: float) -> None:
        for box in self.boxes:
            box.paint(painter, x, baseline)
            x += box.width


class Fraction(Box):
    """One box over another."""

    def __init__(self, over: Box, under: Box, size: int) -> None:
        self.over, self.under = over, under
        self.axis = 0.32 * size
        super().__init__(
            max(over.width, under.width) + 8,
            over.above + over.below + _GAP + self.axis,
            under.above + under.below + _GAP - self.axis,
        )

    def paint(self, painter: QPainter, x: float, baseline: float) -> None:
        bar = baseline - self.axis
        painter.drawLine(QPointF(x + 2, bar), QPointF(x + self.width - 2, bar))
        self.over.paint(painter, x + (self.width - self.over.width) / 2, bar - _GAP - self.over.below)
        self.under.paint(painter, x + (self.width - self.under.width) / 2, bar + _GAP + self.under.above)


class Fence(Box):
    """A box in brackets of its own height."""

    def __init__(self, left: str, inner: Box, right: str, size: int) -> None:
        self.left, self.inner, self.right = left, inner, right
        self.side = 0.42 * size
        super().__init__(inner.width + 2 * self.side, inner.above, inner.below)

    def paint(self, painter: QPainter, x: float, baseline: float) -> None:
        top, bottom = baseline - self.inner.above + 1.5, baseline + self.inner.below - 1.5
        painter.drawPath(_bracket(self.left, QRectF(x + 1.5, top, self.side - 3, bottom - top), False))
        self.inner.paint(painter, x + self.side, baseline)
        right = x + self.side + self.inner.width
        painter.drawPath(_bracket(self.right, QRectF(right + 1.5, top, self.side - 3, bottom - top), True))


def _bracket(mark: str, area: QRectF, right: bool) -> QPainterPath:
    inner, outer = (area.left(), area.right()) if right else (area.right(), area.left())
    path = QPainterPath(QPointF(inner, area.top()))
    if mark in "()":
        bend = outer + (outer - inner) * 0.6
        path.cubicTo(
            QPointF(bend, area.top() + area.height() * 0.3), QPointF(bend, area.bottom() - area.height() * 0.3),
            QPointF(inner, area.bottom()),
        )  # fmt: skip
        return path
    if mark in "⌊⌋":
        path.moveTo(QPointF(outer, area.top()))
    else:
        path.lineTo(QPointF(outer, area.top()))
    path.lineTo(QPointF(outer, area.bottom()))
    if mark not in "⌈⌉":
        path.lineTo(QPointF(inner, area.bottom()))
    return path


# ---------------------------------------------------------------- from text to boxes


def boxes_of(text: str, size: int = _SIZE) -> list[Box]:
    """The boxes of a line of mathematics; between any two of them it may be broken."""
    boxes: list[Box] = []
    for separator, piece in _split(text, _LOOSE):
        mark = [Word(separator if boxes else separator.lstrip(), size)] if separator else []
        if separator == ", ":  # a line never starts with a comma
            boxes[-1] = Row([boxes[-1], *mark])
            mark = []
        boxes.append(Row([*mark, _product(piece, size)]))
    return boxes


def _split(text: str, separators: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The pieces of a text between separators outside brackets, each with the separator before it."""
    depth, start, before, place = 0, 0, "", 0
    while place < len(text):
        depth += (text[place] in _OPEN) - (text[place] in _CLOSE)
        found = next((mark for mark in separators if depth == 0 and text.startswith(mark, place)), "")
        if found:
            yield before, text[start:place]
            before, start = found, place + len(found)
            place = start
        else:
            place += 1
    yield before, text[start:]


def _product(text: str, size: int) -> Box:
    """Factors side by side; what is divided stands over all that it is divided by until the next factor."""
    done: list[Box] = []
    over: list[str] = []
    under: list[str] = []
    for separator, factor in _split(text, _PRODUCT):
        if separator == " / ":
            under.append(factor)
            continue
        if under:
            done = [*done, _quotient(over, under, size), Word(" · ", size)]
            over, under = [], []
        over.append(factor)
    return Row([*done, _quotient(over, under, size)])


def _quotient(over: list[str], under: list[str], size: int) -> Box:
    return Fraction(_factors(over, size), _factors(under, size), size) if under else _factors(over, size, bare=False)


def _factors(texts: list[str], size: int, bare: bool = True) -> Box:
    """Factors with a dot between; a single one in a fraction needs no brackets."""
    if bare and len(texts) == 1:
        return Row(boxes_of(_bare(texts[0]), size))
    boxes: list[Box] = []
    for text in texts:
        boxes += [Word(" · ", size)] if boxes else []
        boxes.append(_atom(text, size))
    return Row(boxes)


def _bare(text: str) -> str:
    """The text without brackets around all of it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for place, mark in enumerate(text):
        depth += (mark == "(") - (mark == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]


def _atom(text: str, size: int) -> Box:
    """A name, a number or a call: words, and brackets with a line inside."""
    start = next((place for place, mark in enumerate(text) if mark in _OPEN), None)
    if start is None:
        return _word(text, size)
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] in _OPEN) - (text[end] in _CLOSE)
        if depth == 0:
            fence = Fence(text[start], Row(boxes_of(text[start + 1 : end], size)), text[end], size)
            before = [_word(text[:start], size)] if start else []
            after = [_atom(text[end + 1 :], size)] if end + 1 < len(text) else []
            return Row([*before, fence, *after])
    return _word(text, size)


def _word(text: str, size: int) -> Box:
    match = _INDEXED.fullmatch(text)
    if match is None:
        return Word(text, size)
    return Row([Word(match["base"], size), Word(match["index"], round(size * 0.72), 0.2 * size)])


class FormulaView(QWidget):
    """Paints one line of mathematics, broken before signs where it is too long; smaller where even that is too wide."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ""
        self._theme = theme
        self._lines: list[list[Box]] = []
        #: What cannot be broken is painted this much smaller.
        self._scale = 1.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def set_text(self, text: str) -> None:
        if text != self.text:
            self.text = text
            self.setAccessibleName(text)
            self.setToolTip(typeset(text))
            self._lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.text), _BAR))
        painter.scale(self._scale, self._scale)
        top = _GAP
        for number, line in enumerate(self._lines):
            row = Row(line)
            row.paint(painter, _INDENT if number else 0.0, top + row.above)
            top += row.above + row.below + 2 * _GAP
        painter.end()

    def sizeHint(self) -> QSize:
        return QSize(200, self._height())

    def _height(self) -> int:
        return round(self._scale * sum(row.above + row.below + 2 * _GAP for row in map(Row, self._lines)))

    def _lay_out(self) -> None:
        for size, joined in _TRIES if self.text else ():
            self._lines = _broken(boxes_of(self.text, size), self.width(), joined)
            widest = max(Row(line).width + _INDENT * (place > 0) for place, line in enumerate(self._lines))
            self._scale = min(1.0, max(_LEAST_SCALE, self.width() / widest))
            if self._scale == 1.0:
                break
        self.setFixedHeight(self._height())
        self.update()


def _broken(boxes: list[Box], room: float, joined: bool) -> list[list[Box]]:
    """Lines no wider than some room where that can be; `joined` keeps the left side with what follows it."""
    lines: list[list[Box]] = []
    left = 0.0
    for box in boxes:
        if not lines or (box.width > left and not (joined and lines == [boxes[:1]])):
            lines.append([])
            left = room - (_INDENT if len(lines) > 1 else 0.0)
        lines[-1].append(box)
        left -= box.width
    return lines
