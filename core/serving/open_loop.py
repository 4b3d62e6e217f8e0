"""Requests that come at random, iteration by iteration: a clock goes with the schedule, as it says who has come.

Attention data parallel ranks have a queue each, and a request goes to the one with the fewest; an iteration lasts as
long as that of the rank with most rows. Source of the arrivals: a Poisson process, independent requests at a mean rate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from .requests import Requests
from .schedule import Limits, Loop

_SEED = 2

#: Seconds of an iteration: the row of the rank that has most of them, and the mean rows of a rank.
Clock = Callable[[tuple[float, ...], float], float]


def arrivals(rate: float, count: int, engines: int) -> np.ndarray:
    """Seconds at which the requests of one of some engines come that get them in turn; the same ones at every run."""
    gaps = np.random.Generator(np.random.PCG64(_SEED)).exponential(1 / rate, (count, engines))
    return np.cumsum(gaps.sum(axis=1))


def run(requests: Requests, times: np.ndarray, limits: Limits, clock: Clock, ranks: int = 1) -> np.ndarray:
    """Seconds at which the requests of an engine have their first and their last token, as two rows.

    They come at `times` (s). An engine without work waits for the next one.
    """
    loops = [Loop(requests, 0, limits) for _ in range(ranks)]
    coming = iter([*times.tolist(), np.inf])
    now, following, sent, ends = 0.0, next(coming), 0, [0.0]
    while sent < len(times) or any(loop.held for loop in loops):
        if not any(loop.held for loop in loops):
            now = max(now, following)
        while following <= now:
            min(loops, key=lambda loop: loop.held).send(sent)
            following, sent = next(coming), sent + 1
        now += _iterate(loops, clock, following - now)
        ends.append(now)
    told = (sum(np.array(getattr(loop, name)) for loop in loops) for name in ("first", "last"))
    return np.array([np.array(ends)[each] for each in told])


def _iterate(loops: list[Loop], clock: Clock, time: float) -> float:
    """Seconds of equal iterations of all ranks, until one has something else to do or about a time has gone by."""
    for loop in loops:
        loop.admit()
    steps = min(filter(None, (loop.steps for loop in loops)))
    if steps > 1:
        steps = min(steps, max(1, ceil(min(time / _seconds(loops, clock, 1), 1e9))))
    seconds = steps * _seconds(loops, clock, steps)
    for loop in loops:
        loop.work(steps)
    return seconds


def _seconds(loops: list[Loop], clock: Clock, steps: int) -> float:
    rows = [loop.numbers(steps) for loop in loops]
    sizes = [(sequences + tokens, context) for sequences, context, _, tokens, *_ in rows]
    most = max(range(len(rows)), key=lambda rank: sizes[rank])
    return clock(rows[most], sum(size for size, _ in sizes) / len(rows))
