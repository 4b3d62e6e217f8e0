"""Where the data of a Figure land on the screen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...core.figures.figure import Axis, Figure, Rule
from ...core.figures.ticks import linear_ticks, log_ticks
from ..ink import Ink

Range = tuple[float, float]

TICK = 11
#: Where the key begins: below the names of rows and the ticks, so that it has the whole width.
KEY = 2.0
_GAP = 8.0
_ROW = 17.0
_SWATCH = 9.0
_BETWEEN = 16.0
#: Room for the longer ticks that zooming brings.
_LEAST = 48.0
#: Pixels that a row of bars needs, with its name beside it or above it.
_PITCH, _PITCH_ABOVE = 19.0, 28.0
#: The parts of those with which rows still do where all of them are then seen.
_CLOSE, _CLOSE_ABOVE = 0.84, 0.97
#: Pixels between ticks, one below the other.
_APART = TICK + 3


@dataclass(frozen=True)
class Frame:
    """The plot's rectangle in pixels, y downwards, and the view range of both axes (log10 where logarithmic)."""

    left: float
    top: float
    right: float
    bottom: float
    x: Axis
    y: Axis
    x_range: Range
    y_range: Range

    def pixel_x(self, position: float) -> float:
        low, high = self.x_range
        return self.left + (self.x.view(position) - low) / (high - low) * (self.right - self.left)

    def pixel_y(self, position: float) -> float:
        low, high = self.y_range
        share = (self.y.view(position) - low) / (high - low)
        # Rows of bars count from the top.
        return self.top + (share if self.y.categories else 1 - share) * (self.bottom - self.top)

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        return self.pixel_x(x), self.pixel_y(y)

    def upwards(self, x: float, y: float) -> tuple[float, float]:
        """The pixel with y growing upwards, as the lettering counts."""
        return self.pixel_x(x), -self.pixel_y(y)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The ground of the plot with y growing upwards: left, low, right, high."""
        return self.left, -self.bottom, self.right, -self.top


@dataclass(frozen=True)
class Margins:
    """Pixels around the plot's rectangle for its ticks, names, axis labels and key."""

    left: float
    top: float
    right: float
    bottom: float


def view_range(axis: Axis) -> Range:
    """The axis's ends in view coordinates; never empty."""
    low, high = axis.view(axis.low), axis.view(axis.high)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def rows_in(axis: Axis, height: float) -> float:
    """How much of an axis of rows a height has room for, in rows; at least one."""
    pitch, close = (_PITCH_ABOVE, _CLOSE_ABOVE) if axis.above else (_PITCH, _CLOSE)
    rows, room = axis.high - axis.low, height / pitch
    return rows if room >= close * rows else max(1.0, room)


def margins(figure: Figure, ink: Ink, width: float) -> Margins:
    """The room that the texts around the plot need in a picture of a width."""
    left = _left(figure, ink, width)
    last = ink.text(figure.x.ticks[-1][1], size=TICK).width / 2 if figure.x.ticks else 0.0
    rows = len(key_rows(figure, ink, width - KEY - 2 * _GAP))
    return Margins(left, _ROW + 2 if figure.y.label else _GAP, max(last, 2 * _GAP), (1 + rows) * _ROW + 4)


def _left(figure: Figure, ink: Ink, width: float) -> float:
    """Room for the names of the rows, which may be shortened, or for the ticks."""
    if figure.y.above:
        return 2 * _GAP
    texts = figure.y.categories or tuple(text for _, text in figure.y.ticks)
    widest = max((ink.text(text, size=TICK).width for text in texts), default=0.0) + 2 * _GAP
    return min(widest, 0.4 * width) if figure.y.categories else max(widest, _LEAST)


def key_rows(figure: Figure, ink: Ink, width: float) -> list[list[tuple[float, str, str]]]:
    """The key below the plot as rows of (x offset, series, text); the last row leaves room for the x axis label."""
    reserved = ink.text(figure.x.label, size=TICK).width if figure.x.label else 0.0
    rows: list[list[tuple[float, str, str]]] = [[]]
    offset = 0.0
    for series, text in figure.key:
        needed = _SWATCH + 5 + ink.text(text, size=TICK).width
        if rows[-1] and offset + needed > width:
            rows.append([])
            offset = 0.0
        rows[-1].append((offset, series, text))
        offset += needed + _BETWEEN
    if figure.x.label and rows[-1] and offset + reserved > width:
        rows.append([])
    return rows if figure.key or figure.x.label else []


def larger(first: Margins, second: Margins) -> Margins:
    """Margins with room for both."""
    sides = ("left", "top", "right", "bottom")
    return Margins(*(max(getattr(first, side), getattr(second, side)) for side in sides))


def held(before: Axis, now: Axis) -> Axis:
    """The axis while something is dragged: it grows with the data at once and does not shrink."""
    if (before.log, before.label, len(before.categories)) != (now.log, now.label, len(now.categories)):
        return now
    low, high = min(before.low, now.low), max(before.high, now.high)
    if (low, high) == (before.low, before.high):
        return replace(before, categories=now.categories)
    beyond = tuple(tick for tick in before.ticks if not now.low <= tick[0] <= now.high)
    return replace(now, low=low, high=high, ticks=tuple(sorted(now.ticks + beyond)))


def zoomed(axis: Axis, visible: Range) -> Axis:
    """The axis with ticks for the part of it that is visible."""
    if axis.categories or visible == view_range(axis):
        return axis
    low, high = (10.0**end if axis.log else end for end in visible)
    # Within one decade a logarithmic scale is read like a linear one.
    make = log_ticks if axis.log and high > 10 * low else linear_ticks
    return replace(axis, ticks=make(low, high, axis.unit))


def spaced(axis: Axis, visible: Range, height: float) -> Axis:
    """The axis without the ticks that would touch one above them; the uppermost, which may be a peak, stays."""
    kept: list[tuple[float, str]] = []
    for tick in reversed(() if axis.categories else axis.ticks):
        gap = (axis.view(kept[-1][0]) - axis.view(tick[0])) / (visible[1] - visible[0]) * height if kept else _APART
        if gap >= _APART:
            kept.append(tick)
    return axis if axis.categories else replace(axis, ticks=tuple(reversed(kept)))


def reach(figure: Figure, ink: Ink, width: float) -> float:
    """The end of the x axis at which the labels right of bars end inside a plot of a width in pixels."""
    ends = [0.0]
    rules = sorted(rule.at for rule in figure.rules if rule.across == "x")
    for label in figure.labels if figure.y.categories else ():
        if label.align == "left":
            needed = ink.text(label.text, label.bold).width + 2 * _GAP
            start = label.x
            for rule in rules:  # a label in the way of a rule stands right of it
                if start <= rule <= start + needed * max(figure.x.high, rule) / width:
                    start = rule
            ends.append(start * width / max(width - needed, width / 4))
    return max(ends)


def first_result(figure: Figure) -> float:
    """The first row of bars that are results of the plan: it is in sight until a person scrolls."""
    return min((bar.row for bar in figure.bars if bar.link), default=0.0)


def visible_part(figure: Figure, frame: Frame) -> Figure:
    """The figure without the labels of what lies outside the view."""

    def inside(x: float, y: float) -> bool:
        left, top = frame.pixel(x, y)
        return frame.left - 1 <= left <= frame.right + 1 and frame.top - 1 <= top <= frame.bottom + 1

    def crosses(rule: Rule) -> bool:
        if rule.across == "x":
            return frame.left <= frame.pixel_x(rule.at) <= frame.right
        return frame.top <= frame.pixel_y(rule.at) <= frame.bottom

    return replace(
        figure,
        marks=tuple(mark for mark in figure.marks if inside(mark.x, mark.y)),
        labels=tuple(label for label in figure.labels if inside(label.x, label.y)),
        lines=tuple(line if inside(line.x[-1], line.y[-1]) else replace(line, label="") for line in figure.lines),
        rules=tuple(rule for rule in figure.rules if crosses(rule)),
    )
