"""Tick positions and their texts. Texts are plain numbers with thin thousands spaces, never in exponent notation."""

from __future__ import annotations

import math

Ticks = tuple[tuple[float, str], ...]


def tick_text(value: float) -> str:
    """A tick's number with no more digits than it has: 0.5, 10, 1 000."""
    if value == 0:
        return "0"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}".replace(",", "\u202f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def milliseconds(value: float) -> str:
    """A wanted time as it was set: 50 ms, 22.5 ms, 1 500 ms."""
    return f"{tick_text(value * 1e3)} ms"


def linear_ticks(low: float, high: float, unit: float = 1.0, count: int = 5) -> Ticks:
    """About `count` round positions within [low, high]; texts count in `unit`s (2**30 for GiB)."""
    span = (high - low) / unit
    if not span > 0:
        return ((low, tick_text(low / unit)),)
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * 0.999)
    first = math.ceil(low / unit / step - 1e-9)
    last = math.floor(high / unit / step + 1e-9)
    return tuple((k * step * unit, tick_text(k * step)) for k in range(first, last + 1))


def log_ticks(low: float, high: float, unit: float = 1.0, most: int = 7) -> Ticks:
    """Positions within [low, high] on a logarithmic axis: 1-2-5 or 1-3 where there are at most
    `most` of them, else decades; linear ones on less than a doubling.
    """
    first, last = math.floor(math.log10(low / unit)), math.ceil(math.log10(high / unit))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        values = [m * 10.0**k for k in range(first, last + 1) for m in steps]
        values = [v for v in values if low * 0.9999 <= v * unit <= high * 1.0001]
        if len(values) <= most:
            break
    if len(values) < 2:
        return linear_ticks(low, high, unit, 4)
    every = math.ceil(len(values) / most)
    return tuple((v * unit, tick_text(v)) for v in values[::every])


def power_ticks(low: float, high: float, most: int = 8) -> Ticks:
    """Powers of two within [low, high], every second or third where there are many."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    return tuple((2.0**k, tick_text(2.0**k)) for k in range(first, last + 1, every))
