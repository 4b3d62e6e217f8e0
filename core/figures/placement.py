"""Where the labels of points go, in pixels: next to their point, clear of one another, of points and of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

#: An axis-parallel rectangle, left, low, right, high; of a line the two ends, x0, y0, x1, y1.
Box = tuple[float, float, float, float]

#: Places around a point, best first: how far to go from it sideways and upwards, in shares of the way out of it, and
#: which part of the label (left 0 to right 1, low 0 to high 1) comes to stand there.
_BESIDE = (
    (1, 0, 0, 0.5), (0, -1, 0.5, 1), (0, 1, 0.5, 0), (-1, 0, 1, 0.5),
    (0.8, 0.8, 0, 0), (0.8, -0.8, 0, 1), (-0.8, 0.8, 1, 0), (-0.8, -0.8, 1, 1),
)  # fmt: skip
#: Further off, over and under the point also sideways by parts of the label.
_AROUND = (*_BESIDE, *((0, up, part, 0.5 - up / 2) for up in (-1, 1) for part in (0.25, 0.75, 0, 1, 0.4, 0.6)))


def place(
    anchors: Sequence[tuple[float, float, float]],
    sizes: Sequence[tuple[float, float]],
    segments: Sequence[Box] = (),
    boxes: Sequence[Box] = (),
    bounds: Box = (0.0, 0.0, 1e9, 1e9),
    gaps: Sequence[float] = (2.0,),
    led: Sequence[Box] = (),
) -> list[Box | None]:
    """The box of each label, or None where nothing is free. Labels come in order of importance.

    anchors: centre and radius (x, y, r) of each label's point. sizes: width and height of each label; width 0 is a
    point without a label. segments: lines to keep clear of. boxes: taken ground. bounds: the ground there is.
    gaps: distances between a point's rim and its label, tried in turn; from the second on nothing may stand between
    the two, and the lines that lead there keep clear of each other and of labels; at the first the label is nearer to
    its own point than to any other. led: lines that lead from labels of others to their points.
    All in pixels; y may grow up or down.
    """
    clear = gaps[0]
    rims = [(x - r, y - r, x + r, y + r) for x, y, r in anchors]
    wide = [(x - r - clear, y - r - clear, x + r + clear, y + r + clear) for x, y, r in anchors]
    taken = list(boxes)
    leaders = list(led)
    result: list[Box | None] = []
    for own, ((x, y, radius), size) in enumerate(zip(anchors, sizes, strict=True)):
        # a leader starts where marks overlap, so those it starts in do not count
        between = [b for b in (*taken, *rims) if not (b[0] < x < b[2] and b[1] < y < b[3])]
        around = [*taken, *wide[:own], *wide[own + 1 :]]
        box = None
        for gap in gaps if size[0] else ():
            spots = free(beside((x, y), size, radius + gap, far=gap > clear), around, [*segments, *leaders], bounds)
            if gap > clear:
                spots = (b for b in spots if not any(crosses(leader(b, (x, y)), other) for other in between))
                spots = (b for b in spots if not any(meet(leader(b, (x, y)), other) for other in leaders))
            else:
                spots = (b for b in spots if _nearest(b, anchors) == own)
            box = next(spots, None)
            if box:
                # words side by side would read as one
                taken.append((box[0] - 2 * clear, box[1], box[2] + 2 * clear, box[3]))
                if gap > clear:
                    leaders.append(leader(box, (x, y)))
                break
        result.append(box)
    return result


def _nearest(box: Box, anchors: Sequence[tuple[float, float, float]]) -> int:
    """Which point a reader would take the label for."""
    gaps = []
    for x, y, radius in anchors:
        x0, y0, *_ = leader(box, (x, y))
        gaps.append(math.hypot(x0 - x, y0 - y) - radius)
    return gaps.index(min(gaps))


def leader(box: Box, point: tuple[float, float]) -> Box:
    """The line from the nearest place of a box to a point."""
    x, y = point
    return min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3]), x, y


def beside(point: tuple[float, float], size: tuple[float, float], away: float, far: bool = False) -> Iterator[Box]:
    """The boxes of a size around a point, `away` from it, best first: eight, and some more where it is far."""
    x, y = point
    width, height = size
    for side, up, part, rise in _AROUND if far else _BESIDE:
        left, low = x + side * away - part * width, y + up * away - rise * height
        yield left, low, left + width, low + height


def free(candidates: Iterable[Box], taken: Iterable[Box], segments: Iterable[Box], bounds: Box) -> Iterator[Box]:
    """The boxes that lie within bounds and touch nothing taken and no segment."""
    for box in candidates:
        left, low, right, high = box
        if left < bounds[0] or low < bounds[1] or right > bounds[2] or high > bounds[3]:
            continue
        for a, b, r, h in taken:
            if left < r and right > a and low < h and high > b:
                break
        else:
            if not any(crosses(segment, box) for segment in segments):
                yield box


def crosses(segment: Box, box: Box) -> bool:
    """Whether a line passes through a box (Liang and Barsky 1984, doi:10.1145/357332.357333)."""
    left, low, right, high = box
    x0, y0, x1, y1 = segment
    if max(x0, x1) < left or min(x0, x1) > right or max(y0, y1) < low or min(y0, y1) > high:
        return False
    enter, leave = 0.0, 1.0
    for start, step, near, far in ((x0, x1 - x0, left, right), (y0, y1 - y0, low, high)):
        if step:
            a, b = (near - start) / step, (far - start) / step
            enter, leave = max(enter, min(a, b)), min(leave, max(a, b))
    return enter <= leave


def meet(first: Box, second: Box) -> bool:
    """Whether two lines cross each other."""
    ax, ay, bx, by = first
    cx, cy, dx, dy = second

    def side(x: float, y: float, line: Box) -> float:
        return (line[2] - line[0]) * (y - line[1]) - (line[3] - line[1]) * (x - line[0])

    apart = side(cx, cy, first) * side(dx, dy, first) < 0
    return apart and side(ax, ay, second) * side(bx, by, second) < 0
