"""Timing on one core, and a yardstick: a figure says little without what the same machine needs for something known."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np


def python_yardstick() -> None:
    """100,000 multiply-adds of Python floats."""
    total = 0.0
    for number in range(100_000):
        total += number * 0.5


def numpy_yardstick() -> None:
    """1,000 additions of 16,384 doubles."""
    values = np.ones(16_384)
    for _ in range(1_000):
        np.add(values, 1.0, out=values)


def seconds_of(call: Callable[[], object], repeats: int = 15) -> list[float]:
    """The seconds of each of some calls, after one that warms up."""
    call()
    result = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        result.append(time.perf_counter() - start)
    return result


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


class Table:
    """Prints one line a measurement: median, 95th percentile, and the median over a yardstick of this very run."""

    def __init__(self) -> None:
        self.yardsticks = {
            "python loop": statistics.median(seconds_of(python_yardstick)),
            "numpy loop": statistics.median(seconds_of(numpy_yardstick)),
        }
        for name, seconds in self.yardsticks.items():
            print(f"yardstick: {name} {seconds * 1e3:.2f} ms")

    def times(self, name: str, seconds: list[float], yardstick: str = "python loop") -> None:
        middle, high = statistics.median(seconds), percentile(seconds, 95)
        over = middle / self.yardsticks[yardstick]
        print(f"{name:<58} {middle * 1e3:10.3f} ms   p95 {high * 1e3:10.3f} ms   {over:8.3f} × {yardstick}")

    def amount(self, name: str, value: float, unit: str, note: str = "") -> None:
        print(f"{name:<58} {value:10,.0f} {unit}   {note}")
