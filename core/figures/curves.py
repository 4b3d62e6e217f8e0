"""What curves over a sweep have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

Curve = tuple[float, ...]


def along(value: Any, size: int) -> Curve:
    """A result along a sweep of some size; one that does not vary there is repeated, an absent one is empty."""
    return () if value is None else tuple(np.broadcast_to(np.asarray(value, dtype=float), (size,)).tolist())


def crossing(x: Curve, y: Curve, level: float) -> float | None:
    """Where a curve first falls from above a level to it, on straight lines between logarithms; None if it does not."""
    for (x0, y0), (x1, y1) in pairwise(zip(x, y, strict=True)):
        if y0 > level >= y1:
            return x0 * (x1 / x0) ** (math.log(y0 / level) / math.log(y0 / y1))
    return None


def runs(x: Curve, y: Curve, holds: Sequence[bool]) -> Iterator[tuple[Curve, Curve, bool]]:
    """The curve cut into pieces on which something holds or not: it holds on a stretch if it does at both ends."""
    start = 0
    for end in range(1, len(x)):
        kind = holds[end - 1] and holds[end]
        if end == len(x) - 1 or kind != (holds[end] and holds[end + 1]):
            yield x[start : end + 1], y[start : end + 1], kind
            start = end
