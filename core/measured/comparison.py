"""One measurement beside its prediction, and what is said of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..numeric import Number
from ..scenario import Scenario

#: Units of metrics: the formatter's name of the quantity, and what one is in SI.
_WRITTEN = {"s": ("seconds", 1.0), "GiB": ("bytes", 2.0**30)}


class NotExpressibleError(Exception):
    """A row that is no plan this program can evaluate; the message is the reason a person reads."""


@dataclass(frozen=True)
class Case:
    """A row as a plan: the scenario, how its metric is predicted from one, and what was measured, in `unit`."""

    scenario: Scenario
    predict: Callable[[Scenario], Number]
    source: str
    metric: str
    unit: str
    measured: float


@dataclass(frozen=True)
class Compared:
    """A measurement and its prediction, both in `unit`. `flagged` rows contradict themselves or their neighbours."""

    id: str
    kind: str
    source: str
    metric: str
    unit: str
    measured: float
    predicted: float
    flagged: bool = field(default=False, kw_only=True)

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1

    @property
    def written(self) -> str:
        """The quantity of both numbers as the formatter calls it."""
        return _WRITTEN.get(self.unit, (self.unit, 1.0))[0]

    @property
    def scale(self) -> float:
        """What one of `unit` is in SI."""
        return _WRITTEN.get(self.unit, (self.unit, 1.0))[1]


@dataclass(frozen=True)
class Comparison(Compared):
    """A row of measurements that was compared, with the plan that it stands for."""

    scenario: Scenario


@dataclass(frozen=True)
class Skipped:
    """A row that was not compared, and why."""

    id: str
    kind: str
    source: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """Whether a run fitted into memory, and whether it was said to."""

    id: str
    source: str
    ran: bool
    fits: bool
    flagged: bool = False


@dataclass(frozen=True)
class Statistics:
    """Of some errors: how many, median, mean and 90th percentile of the absolute error, bias, and the worst row."""

    count: int
    median: float
    mean: float
    percentile_90: float
    bias: float
    worst: float
    worst_id: str


def statistics(rows: Iterable[Compared]) -> Statistics | None:
    """What is said of the errors of some rows; None where there are none."""
    rows = list(rows)
    if not rows:
        return None
    errors = np.array([row.error for row in rows])
    size = np.abs(errors)
    worst = int(np.argmax(size))
    return Statistics(
        len(rows),
        float(np.median(size)),
        float(np.mean(size)),
        float(np.quantile(size, 0.9)),
        float(np.mean(errors)),
        float(errors[worst]),
        rows[worst].id,
    )


def by_source(rows: Iterable[Compared]) -> dict[tuple[str, str, str], Statistics]:
    """Statistics by kind, source and metric, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for row in rows:
        groups.setdefault((row.kind, row.source, row.metric), []).append(row)
    return {key: found for key, group in groups.items() if (found := statistics(group))}


@dataclass(frozen=True)
class Answers:
    """How often "does it fit" was answered rightly: runs that ran and fit, ran and did not, failed and did not, failed
    and fit."""

    counts: tuple[int, int, int, int]

    @property
    def right(self) -> float:
        """Share of the right answers."""
        ran, _, failed, _ = self.counts
        return (ran + failed) / sum(self.counts)


def fits_by_source(verdicts: Iterable[Verdict]) -> dict[str, Answers]:
    """The answers by source, flagged rows left out."""
    groups: dict[str, list[tuple[bool, bool]]] = {}
    for verdict in verdicts:
        if not verdict.flagged:
            groups.setdefault(verdict.source, []).append((verdict.ran, verdict.fits))
    right, wrong, refused, missed = (True, True), (True, False), (False, False), (False, True)
    return {
        source: Answers((group.count(right), group.count(wrong), group.count(refused), group.count(missed)))
        for source, group in groups.items()
    }
