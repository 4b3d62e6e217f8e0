"""Requests that come at random, iteration by iteration: a clock goes with the schedule, as it says who has come.

Source of the arrivals: a Poisson process, independent requests at a mean rate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from .requests import Requests
from .schedule import Limits, Loop, Schedule

_SEED = 2

#: Seconds of an iteration: decoding sequences, their mean context, and the numbers of chunks of prompts in it.
Clock = Callable[..., float]


def arrivals(rate: float, count: int, engines: int) -> np.ndarray:
    """Seconds at which the requests of one of some engines come that get them in turn; the same ones at every run."""
    gaps = np.random.Generator(np.random.PCG64(_SEED)).exponential(1 / rate, (count, engines))
    return np.cumsum(gaps.sum(axis=1))


def run(requests: Requests, times: np.ndarray, limits: Limits, clock: Clock) -> tuple[Schedule, np.ndarray]:
    """The iterations of an engine whose requests come at some times, and the seconds at which each row ends.

    The ends have that of the start before them. An engine without work waits for the next request.
    """
    loop, coming = Loop(requests, 0, limits), iter([*times.tolist(), np.inf])
    now, following, ends = 0.0, next(coming), [0.0]

    def until(sequences: int, context: float) -> int:
        return max(1, ceil(min((following - now) / clock(sequences, context), 1e9)))

    while loop.unanswered:
        if loop.idle:
            now = max(now, following)
        while following <= now:
            loop.send()
            following = next(coming)
        loop.iterate(until)
        repeats, *row = loop.rows[-1]
        now += repeats * clock(*row)
        ends.append(now)
    return loop.schedule(), np.array(ends)
