"""Where a slider may stop: the values a field moves through, and their places on the groove."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from ..fields import Field
from ..units import UNITS

#: Steps within a decade that a person would write, 5 to 12 % apart.
_DECADE = (
    *(1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2, 3.5),
    *(4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5),
)

_DAY = 86400.0


@dataclass(frozen=True)
class Scale:
    """The stops of a slider in rising order, SI. `spacing` is linear, log or even (each stop as wide as the next)."""

    stops: tuple[float, ...]
    spacing: str = "linear"

    def place(self, value: float) -> float:
        """Where on the groove a value lies, 0 to 1; values between stops lie between, those outside at the ends."""
        stops = self.stops
        if len(stops) == 1 or value <= stops[0]:
            return 0.0
        if value >= stops[-1]:
            return 1.0
        if self.spacing == "even":
            left = bisect_right(stops, value) - 1
            share = math.log(value / stops[left]) / math.log(stops[left + 1] / stops[left])
            return (left + share) / (len(stops) - 1)
        if self.spacing == "log":
            return math.log(value / stops[0]) / math.log(stops[-1] / stops[0])
        return (value - stops[0]) / (stops[-1] - stops[0])

    def nearest(self, place: float) -> float:
        """The stop nearest to a place on the groove."""
        return min(self.stops, key=lambda stop: abs(self.place(stop) - place))

    def step(self, value: float, count: int) -> float:
        """The stop `count` steps up (down when negative) from a value, which need not be a stop itself."""
        index = bisect_right(self.stops, value) - 1 if count > 0 else bisect_left(self.stops, value)
        index += count
        return self.stops[min(max(index, 0), len(self.stops) - 1)]


def scale_of(field: Field, legal: tuple[float, ...] = ()) -> Scale:
    """The scale of a field that has a slider. `legal` values become stops of a divisor field beside powers of two."""
    assert field.slider is not None
    low, high = field.slider
    if field.scale == "divisor":
        return Scale(tuple(sorted({*_powers_of_two(low, high), *(v for v in legal if low <= v <= high)})), "even")
    if field.scale == "power2":
        return Scale(_powers_of_two(low, high), "log")
    if field.scale == "log":
        # Sizes of models and memories are round in binary, everything else in decimal.
        if field.unit in ("count", "bytes"):
            return Scale(_eighths(low, high), "log")
        unit = _DAY if field.unit == "duration" else 1.0
        return Scale(tuple(unit * value for value in _decades(low / unit, high / unit)), "log")
    if UNITS[field.unit].whole:
        return Scale(tuple(range(int(low), int(high) + 1)))
    step = _nice_step((high - low) / 100)
    count = math.floor((high - low) / step + 1e-9)
    return Scale(tuple(float(f"{low + i * step:.12g}") for i in range(count + 1)))


def _powers_of_two(low: float, high: float) -> tuple[float, ...]:
    return tuple(2**i for i in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1))


def _eighths(low: float, high: float) -> tuple[float, ...]:
    first, last = math.floor(math.log2(low)), math.floor(math.log2(high))
    every = (2**power * (8 + eighth) // 8 for power in range(first, last + 1) for eighth in range(8))
    return tuple(value for value in every if low <= value <= high)


def _decades(low: float, high: float) -> tuple[float, ...]:
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    every = (float(f"{mantissa}e{power}") for power in range(first, last + 1) for mantissa in _DECADE)
    return tuple(value for value in every if low <= value <= high)


def _nice_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * 0.999)
