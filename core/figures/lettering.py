"""All the words inside a chart and where they stand, for any renderer that can measure text.

Every text gets a box in pixels: names over bars, values in bars, labels of rules, and, where there is room, the labels
of marks and of line ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from .figure import Bar, Figure, Label, Line, Mark, Rule
from .placement import Box, beside, free, leader, meet, place

#: Marks in order of importance: the plan's own, limits on its way (rings), and all others.
_OWN, _LIMIT, _OTHER = range(3)
#: Distances of a mark's label, tried in turn: only important ones may have theirs at the end of a long leader.
_NEAR, _FAR = (2, 12, 26), (42, 60)

Pixel = Callable[[float, float], tuple[float, float]]
Measure = Callable[[str, bool], tuple[float, float]]


@dataclass(frozen=True)
class Text:
    """A text in its box (pixels, y upwards). `on` names the series of the solid bar it stands on, if it does."""

    text: str
    box: Box
    bold: bool = False
    series: str = "text"
    on: str = ""
    #: Whether lines may run behind it, so that it needs a patch of the ground's colour.
    patch: bool = False
    #: The rim of the mark or the end of the bar it belongs to, where it stands so far off that a thin line leads there.
    leader: tuple[float, float] | None = None


def letter(figure: Figure, pixel: Pixel, measure: Measure, bounds: Box, point: float = 1.0) -> list[Text]:
    """The texts of a figure with their boxes.

    pixel: data position (x, y) to pixels with y upwards. measure: (text, bold) to width and height in pixels.
    bounds: the plot's ground in pixels. point: pixels of one unit of `Mark.size`, which also scales the gaps.
    """
    gap = 4 * point
    texts = [text for bar in figure.bars if (text := _bar_text(bar, pixel, measure, gap))]
    fixed = _row_names(figure, pixel, measure, gap)
    upright = [pixel(rule.at, figure.y.low)[0] for rule in figure.rules if rule.across == "x"]
    fixed += [_label(label, pixel, measure, bounds, gap, upright) for label in figure.labels]
    rims = [(*pixel(mark.x, mark.y), mark.size * point / 2) for mark in figure.marks]
    ground = _Ground(pixel, measure, bounds, point)
    ground.taken = [text.box for text in fixed] + [_rim(*rim) for rim in rims]
    ground.segments = _segments(figure, pixel)
    ground.rules = [_across(rule, figure, pixel, bounds) for rule in figure.rules]
    ground.bars = [_bar(bar, pixel) for bar in figure.bars]
    texts += fixed
    # the plan's own mark first: a rule has a label at its other end as well
    texts += ground.mark_labels(figure.marks, _OWN)
    names = [ground.rule_label(rule, line) for rule, line in zip(figure.rules, ground.rules, strict=True) if rule.label]
    texts += [name for name in names if name is not None]
    texts += ground.line_labels([line for line in figure.lines if line.label])
    return texts + ground.mark_labels(figure.marks, _LIMIT) + ground.mark_labels(figure.marks, _OTHER)


def _bar_text(bar: Bar, pixel: Pixel, measure: Measure, gap: float) -> Text | None:
    """The value inside a bar, when it fits."""
    if not bar.text:
        return None
    (left, y), (right, _) = pixel(bar.start, bar.row), pixel(bar.start + bar.length, bar.row)
    width, height = measure(bar.text, False)
    if width + gap > right - left:
        return None
    box = ((left + right - width) / 2, y - height / 2, (left + right + width) / 2, y + height / 2)
    return Text(bar.text, box, on=bar.series if bar.pattern == "solid" else "")


def _row_names(figure: Figure, pixel: Pixel, measure: Measure, gap: float) -> list[Text]:
    if not figure.y.above:
        return []
    texts = []
    for row, name in enumerate(figure.y.categories):
        half = max((bar.height for bar in figure.bars if bar.row == row), default=0.5) / 2
        x, y = pixel(figure.x.low, row - half)
        width, height = measure(name, False)
        left, low = x + gap / 2, y + gap / 4
        texts.append(Text(name, (left, low, left + width, low + height)))
    return texts


def _label(label: Label, pixel: Pixel, measure: Measure, bounds: Box, gap: float, rules: list[float]) -> Text:
    """A label at its place; one that starts there gives way to an upright rule, to the right if there is room.

    Where it comes to stand far off, a line leads back.
    """
    x, y = pixel(label.x, label.y)
    width, height = measure(label.text, label.bold)
    left = {"left": x + gap, "center": x - width / 2, "right": x - width - gap}[label.align]
    for rule in sorted(rules) if label.align == "left" else ():
        if left - gap < rule < left + width + gap / 2:
            left = rule + gap if rule + gap + width <= bounds[2] else rule - gap - width
    left = max(bounds[0], min(left, bounds[2] - width))
    low = y - height / 2 + label.rise * height
    far = label.align == "left" and left > x + gap + width / 2
    back = (x + gap / 2, y) if far else None
    return Text(label.text, (left, low, left + width, low + height), label.bold, label.series, patch=True, leader=back)


def _segments(figure: Figure, pixel: Pixel) -> list[Box]:
    """Every piece of every line."""
    segments = []
    for line in figure.lines:
        points = [pixel(x, y) for x, y in zip(line.x, line.y, strict=True)]
        segments += [(*start, *end) for start, end in pairwise(points)]
    return segments


def _bar(bar: Bar, pixel: Pixel) -> Box:
    (left, one), (right, other) = (
        pixel(bar.start, bar.row - bar.height / 2),
        pixel(bar.start + bar.length, bar.row + bar.height / 2),
    )
    return left, min(one, other), right, max(one, other)


def _across(rule: Rule, figure: Figure, pixel: Pixel, bounds: Box) -> Box:
    """A rule as a line from one side of the ground to the other."""
    if rule.across == "x":
        x, _ = pixel(rule.at, figure.y.low)
        return x, bounds[1], x, bounds[3]
    _, y = pixel(figure.x.low, rule.at)
    return bounds[0], y, bounds[2], y


class _Ground:
    """The plot's ground while labels are put on it one after the other."""

    def __init__(self, pixel: Pixel, measure: Measure, bounds: Box, point: float) -> None:
        self.pixel, self.measure, self.bounds, self.point = pixel, measure, bounds, point
        self.taken: list[Box] = []
        self.segments: list[Box] = []
        self.rules: list[Box] = []
        #: The lines that lead from labels to their marks.
        self.leaders: list[Box] = []
        self.bars: list[Box] = []

    def rule_label(self, rule: Rule, line: Box) -> Text | None:
        """Beside one of the rule's ends, the first where nothing else stands; left out where all are taken."""
        gap = 4 * self.point
        width, height = self.measure(rule.label, False)
        left, low, right, high = self.bounds
        x, y, *_ = line
        if rule.across == "x":
            sides, ends = (x + gap, x - gap - width), (low + gap, high - height - gap)
            spots = [(side, end) for end in ends for side in sides]
        else:
            spots = [(right - width - gap, y + gap / 2), (left + gap, y + gap / 2), (left + gap, y - height - gap / 2)]
        boxes = [(x, y, x + width, y + height) for x, y in spots]
        lines = self.segments + self.rules + self.leaders
        box = next(free(boxes, self.taken + self.bars, lines, self.bounds), None)
        if box is None:
            return None
        self.taken.append(box)
        return Text(rule.label, box, series=rule.series)

    def mark_labels(self, marks: tuple[Mark, ...], importance: int) -> list[Text]:
        """Beside marks of some importance, or off with a leader; the plan's own may lie on a rule, others without room
        are left out."""
        # those with a label here first; the others keep it away from themselves
        marks = tuple(sorted(marks, key=lambda mark: not (mark.label and _importance(mark) == importance)))
        anchors = [(*self.pixel(mark.x, mark.y), mark.size * self.point / 2) for mark in marks]
        wanted = [bool(mark.label) and _importance(mark) == importance for mark in marks]
        sizes = [
            self.measure(mark.label, mark.bold) if said else (0.0, 0.0)
            for mark, said in zip(marks, wanted, strict=True)
        ]
        gaps = tuple(gap * self.point for gap in (_NEAR if importance == _OTHER else _NEAR + _FAR))
        others = [box for box in self.taken if not any(_rim(*anchor) == box for anchor in anchors)]
        boxes = place(anchors, sizes, self.segments + self.rules, others, self.bounds, gaps, self.leaders)
        if importance == _OWN and None in boxes[: sum(wanted)]:
            boxes = place(anchors, sizes, self.segments, others, self.bounds, gaps, self.leaders)
        texts = []
        for mark, (x, y, radius), box in zip(marks, anchors, boxes, strict=True):
            if box:
                x0, y0, *_ = leader(box, (x, y))
                away = math.hypot(x0 - x, y0 - y)
                rim = (x + (x0 - x) * radius / away, y + (y0 - y) * radius / away) if away else (x, y)
                far = away > radius + 8 * self.point
                texts.append(Text(mark.label, box, mark.bold, patch=mark.bold, leader=rim if far else None))
                self.leaders += [(x0, y0, x, y)] if far else []
                self.taken.append(box)
        return texts

    def line_labels(self, lines: list[Line]) -> list[Text]:
        """Beside the end of their line, or further back along it."""
        texts = []
        for line in lines:
            corners = [self.pixel(x, y) for x, y in zip(line.x, line.y, strict=True)]
            size = self.measure(line.label, False)
            spots = (spot for corner in _backwards(corners) for spot in self._unparted(corner, size))
            box = next(free(spots, self.taken, self.segments + self.rules + self.leaders, self.bounds), None)
            if box:
                texts.append(Text(line.label, box, series=line.series))
                self.taken.append(box)
        return texts

    def _unparted(self, point: tuple[float, float], size: tuple[float, float]) -> Iterator[Box]:
        """Boxes beside a point of a line with no line between the two."""
        for box in beside(point, size, 4 * self.point):
            if not any(meet(leader(box, point), segment) for segment in self.segments):
                yield box


def _importance(mark: Mark) -> int:
    return _OWN if mark.bold else _LIMIT if mark.shape == "hollow" else _OTHER


def _rim(x: float, y: float, radius: float) -> Box:
    return x - radius, y - radius, x + radius, y + radius


def _backwards(corners: list[tuple[float, float]], parts: int = 8) -> Iterator[tuple[float, float]]:
    """Places along a line from its end to its start."""
    for (x1, y1), (x0, y0) in pairwise(reversed(corners)):
        for part in range(parts):
            yield x1 + (x0 - x1) * part / parts, y1 + (y0 - y1) * part / parts
    yield corners[0]
