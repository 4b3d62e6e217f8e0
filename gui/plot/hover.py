"""What of a Figure lies under the pointer, and where its parts are."""

from __future__ import annotations

import itertools
import math

from ...core.figures.figure import Band, Bar, Figure, Line, Mark, Rule
from .frame import Frame

Element = Mark | Bar | Line | Rule | Band
Point = tuple[float, float]

_NEAR = 6.0


def elements(figure: Figure) -> list[Element]:
    """All parts that have something to say, in the order in which a keyboard walks over them."""
    parts: tuple[Element, ...] = (*figure.marks, *figure.bars, *figure.lines, *figure.rules, *figure.bands)
    return [part for part in parts if part.hover]


def element_at(figure: Figure, frame: Frame, point: Point) -> Element | None:
    """The part under a pixel: the nearest mark, else the bar, the nearest line or rule, or the band."""
    if not (frame.left - _NEAR <= point[0] <= frame.right + _NEAR and frame.top <= point[1] <= frame.bottom + _NEAR):
        return None
    near = [(_distance(part, frame, point), order, part) for order, part in enumerate(elements(figure))]
    reached = [item for item in near if item[0] <= _NEAR]
    return min(reached, key=lambda item: (_rank(item[2]), item[0], item[1]))[2] if reached else None


def anchor(part: Element, frame: Frame) -> Point:
    """A pixel that stands for a part."""
    match part:
        case Mark():
            return frame.pixel(part.x, part.y)
        case Bar():
            return frame.pixel(part.start + part.length / 2, part.row)
        case Line():
            middle = len(part.x) // 2
            return frame.pixel(part.x[middle], part.y[middle])
        case Rule(across="x"):
            return frame.pixel_x(part.at), (frame.top + frame.bottom) / 2
        case Rule():
            return (frame.left + frame.right) / 2, frame.pixel_y(part.at)
        case Band():
            middle = len(part.x) // 2
            return frame.pixel(part.x[middle], part.high[middle])


def _rank(part: Element) -> int:
    """Marks lie over bars, bars over lines, lines over bands; a ghost bar only speaks where nothing else does."""
    if isinstance(part, Bar) and part.pattern == "ghost":
        return 4
    return {Mark: 0, Bar: 1, Line: 2, Rule: 2, Band: 3}[type(part)]


def _distance(part: Element, frame: Frame, point: Point) -> float:
    """Pixels between a point and a part; 0 on it."""
    x, y = point
    match part:
        case Mark():
            px, py = frame.pixel(part.x, part.y)
            return max(0.0, math.hypot(x - px, y - py) - part.size / 2)
        case Bar():
            return _outside_bar(part, frame, point)
        case Line():
            corners = [frame.pixel(*corner) for corner in zip(part.x, part.y, strict=True)]
            pieces = itertools.pairwise(corners)
            return min((_to_segment(point, start, end) for start, end in pieces), default=math.inf)
        case Rule(across="x"):
            return abs(x - frame.pixel_x(part.at))
        case Rule():
            return abs(y - frame.pixel_y(part.at))
        case Band():
            return _outside_band(part, frame, point)


def _outside_bar(bar: Bar, frame: Frame, point: Point) -> float:
    """0 inside the bar, else infinite; a bar of a few pixels is as wide as a pointer can hit."""
    left, right = frame.pixel_x(bar.start), frame.pixel_x(bar.start + bar.length)
    slack = max(0.0, 3.0 - (right - left) / 2)
    top, bottom = frame.pixel_y(bar.row - bar.height / 2), frame.pixel_y(bar.row + bar.height / 2)
    inside = left - slack <= point[0] <= right + slack and top <= point[1] <= bottom
    return 0.0 if inside else math.inf


def _outside_band(band: Band, frame: Frame, point: Point) -> float:
    x, y = point
    xs = [frame.pixel_x(position) for position in band.x]
    for index, (start, end) in enumerate(itertools.pairwise(xs)):
        if start <= x <= end and end > start:
            share = (x - start) / (end - start)
            low, high = (
                frame.pixel_y(curve[index]) * (1 - share) + frame.pixel_y(curve[index + 1]) * share
                for curve in (band.low, band.high)
            )
            return 0.0 if high <= y <= low else math.inf
    return math.inf


def _to_segment(point: Point, start: Point, end: Point) -> float:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = dx * dx + dy * dy
    share = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / length if length else 0.0
    share = min(1.0, max(0.0, share))
    return math.hypot(point[0] - start[0] - share * dx, point[1] - start[1] - share * dy)
