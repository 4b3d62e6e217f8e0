"""Results over the values of some fields: every combination, legal ones computed as arrays, others with a reason."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..fields import FIELDS
from ..legality import violations
from ..report import Report
from ..scenario import Scenario
from ..scenario_file import set_field
from ..terms import plain
from ..units import UNITS


@dataclass(frozen=True)
class Row:
    """One combination: the values as they were written, the results by key (SI), or the reason why it has none."""

    settings: tuple[str, ...]
    results: dict[str, Any]
    reason: str = ""


#: The results of a sweep that asks for none.
METRICS = {
    "training": (
        "memory.total_bytes",
        "memory.verdict",
        "time.step_s",
        "time.mfu",
        "time.tokens_per_s",
        "training.days",
        "cost.usd",
    ),
    "serving": (
        "memory.total_bytes",
        "memory.verdict",
        "serving.ttft_s",
        "serving.tpot_s",
        "serving.output_tokens_per_s",
        "cost.usd_per_million_output_tokens",
    ),
}


def sweep(
    scenario: Scenario,
    over: Sequence[tuple[str, Sequence[str]]],
    metrics: Sequence[str],
    evaluate: Callable[[Scenario], Report],
) -> list[Row]:
    """A row for every combination of the values of some fields, the last field changing fastest.

    `over` pairs a path with its values as a person writes them. Combinations that differ in numbers only are one
    evaluation. A metric that a plan does not have is absent from its row. Raises ScenarioError for a path or a value
    that cannot be read; a combination that is not legal is a row with a reason.
    """
    paths = [path for path, _ in over]
    rows: list[Row] = []
    plans: list[Scenario] = []
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for settings in product(*(values for _, values in over)):
        plans.append(_changed(scenario, paths, settings))
        reason = next((f"{broken.field}: {broken.message}" for broken in violations(plans[-1])), "")
        if not reason:
            groups[_alike(plans[-1], paths, settings)].append(len(rows))
        rows.append(Row(settings, {}, reason))
    for members in groups.values():
        results = _results(evaluate(_together([plans[index] for index in members], paths)), metrics, len(members))
        for index, result in zip(members, results, strict=True):
            rows[index].results.update(result)
    return rows


def _changed(scenario: Scenario, paths: Sequence[str], settings: Sequence[str]) -> Scenario:
    for path, text in zip(paths, settings, strict=True):
        scenario = set_field(scenario, path, text)
    return scenario


def _alike(plan: Scenario, paths: Sequence[str], settings: Sequence[str]) -> tuple[Any, ...]:
    """What must be equal for two plans to share an evaluation: every value that is not a number, and whether a number
    is 0, which often stands for what is absent."""
    pairs = zip(paths, settings, strict=True)
    return tuple(bool(plan.get(path)) if _is_quantity(path) else text for path, text in pairs)


def _is_quantity(path: str) -> bool:
    return path in FIELDS and FIELDS[path].unit in UNITS and not FIELDS[path].optional


def _together(plans: list[Scenario], paths: Sequence[str]) -> Scenario:
    """One scenario that stands for several which differ in numbers only."""
    together = plans[0]
    if len(plans) == 1:
        return together
    for path in paths:
        if _is_quantity(path):
            together = together.with_(path, np.array([plan.get(path) for plan in plans], dtype=float))
    return together


def _results(report: Report, metrics: Sequence[str], count: int) -> list[dict[str, Any]]:
    present = {
        key: np.broadcast_to(np.asarray(plain(report[key])), (count,)).tolist() for key in metrics if key in report
    }
    return [
        {key: values[index] for key, values in present.items() if _is_result(values[index])} for index in range(count)
    ]


def _is_result(value: Any) -> bool:
    """Whether a plan has a result: among many, one that does not end has infinite days and costs."""
    return not isinstance(value, float) or math.isfinite(value)
