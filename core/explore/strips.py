"""Where along a slider a plan fits in memory: one evaluation on an array of its stops."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..fields import label_of
from ..legality import legal, violations
from ..report import Report
from ..scenario import Scenario

#: The verdict of a stop that the model or the cluster does not allow.
ILLEGAL = "illegal"


def strip(
    scenario: Scenario,
    path: str,
    stops: tuple[float, ...],
    evaluate: Callable[[Scenario], Report],
    legal: Collection[float] | None = None,
) -> tuple[str, ...]:
    """The verdict at each stop: fits, tight, does-not-fit or illegal; empty where the field does not bear on memory.

    `legal` are the values allowed (None: all). Only those are evaluated, in one call.
    """
    possible = [stop for stop in stops if legal is None or stop in legal]
    if not possible:
        return (ILLEGAL,) * len(stops)
    values = np.array(possible, dtype=float)
    report = evaluate(scenario.with_(path, values))
    verdicts = _verdicts(report, len(possible))
    if verdicts is None:
        return () if len(possible) == len(stops) else tuple("" if s in possible else ILLEGAL for s in stops)
    found = dict(zip(possible, verdicts, strict=True))
    return tuple(found.get(stop, ILLEGAL) for stop in stops)


def legal_stops(scenario: Scenario, path: str, stops: tuple[float, ...]) -> frozenset[float] | None:
    """The stops at which the plan breaks no rule of divisibility; None where it breaks one at every stop."""
    mask = np.broadcast_to(legal(scenario.with_(path, np.array(stops))), len(stops))
    return frozenset(stop for stop, holds in zip(stops, mask, strict=True) if holds) or None


def refusal(before: Scenario, after: Scenario, path: str) -> str:
    """The rule that a change at a path breaks, in one line that says what would do; empty where it breaks none anew.

    Another field that the rule speaks of is named.
    """
    known = {violation.field for violation in violations(before)}
    for broken in violations(after):
        if broken.field not in known:
            return broken.message if broken.field == path else f"{label_of(broken.field)}: {broken.message}"
    return ""


def _verdicts(report: Report, count: int) -> list[str] | None:
    total: Any = report.get("memory.total_bytes")
    if np.ndim(total) == 0 or np.ptp(total) == 0:
        return None
    return [str(verdict) for verdict in np.broadcast_to(report["memory.verdict"], (count,))]
