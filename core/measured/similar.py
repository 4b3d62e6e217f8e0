"""The published runs that are most like a plan, with what was measured and predicted, and what differs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..fields import FACTS, FIELDS
from ..scenario import Scenario
from ..units import format_quantity
from .errors import ErrorRow, shipped_errors
from .likeness import kept_paths, quantities, quantity_for
from .sources import title_of

#: Numbers nearer than this (ratio) are the same.
_SAME = 1e-6
#: How far two different words, or a number and none, lie apart; e times as much of a number lies 1 apart.
_WORDS_APART = 1.0


@dataclass(frozen=True)
class Difference:
    """A field in which a run differs from the plan, with both values as a person reads them."""

    path: str
    label: str
    plan: str
    run: str

    @property
    def text(self) -> str:
        return f"{self.label} {self.run}, not {self.plan}"


@dataclass(frozen=True)
class Similar:
    """A published run: its row, how many criteria of likeness it misses, and how it differs, most telling first."""

    row: ErrorRow
    missed: int
    differences: tuple[Difference, ...]

    @property
    def title(self) -> str:
        """The publication."""
        return title_of(self.row.kind, self.row.source)


def most_similar(scenario: Scenario, count: int = 10, quantity: str = "") -> list[Similar]:
    """The runs most like a plan, most similar first: by criteria met, then by how near their fields are."""
    asked = quantities()[quantity or quantity_for(scenario.kind)]
    plan = {path: scenario.get(path) for path in kept_paths(scenario.kind) if path not in asked.ignores}
    answers = [(criterion, criterion.of(plan[criterion.path])) for criterion in asked.criteria]

    def far(row: ErrorRow) -> tuple[int, float]:
        missed = sum(not criterion.met(row.plan, answer) for criterion, answer in answers)
        return missed, sum(_apart(plan[path], row.plan.get(path)) for path in plan)

    rows = sorted((row for row in shipped_errors() if row.quantity == asked.name), key=far)[:count]
    missed = [[c.path for c, answer in answers if not c.met(row.plan, answer)] for row in rows]
    return [
        Similar(row, len(paths), tuple(_differences(plan, row, paths))) for row, paths in zip(rows, missed, strict=True)
    ]


def _apart(plan: Any, run: Any) -> float:
    """How far two values lie apart: logarithm of their ratio, or a fixed distance for words."""
    if isinstance(plan, (int, float)) and isinstance(run, (int, float)):
        if plan > 0 and run > 0:
            distance = abs(math.log(plan / run))
            return distance if distance > _SAME else 0.0
        return 0.0 if plan == run else _WORDS_APART
    return 0.0 if str(plan) == str(run) else _WORDS_APART


def _differences(plan: dict[str, Any], row: ErrorRow, missed: list[str]) -> Iterator[Difference]:
    """What differs, the fields of missed criteria first, then the farthest apart."""
    paths = [path for path in plan if path in row.plan and _apart(plan[path], row.plan[path])]
    for path in sorted(paths, key=lambda path: (path not in missed, -_apart(plan[path], row.plan[path]))):
        yield Difference(path, _label(path), _text(path, plan[path]), _text(path, row.plan[path]))


def _label(path: str) -> str:
    entry, _, name = path.rpartition(".")
    field = FIELDS.get(path) or FACTS.get(path) or (FIELDS.get(entry) if name == "name" else None)
    return field.label if field else name.replace("_", " ").capitalize()


def _text(path: str, value: Any) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    field = FIELDS.get(path) or FACTS.get(path)
    return f"{value:g}" if field is None or field.unit == "choice" else format_quantity(value, field.unit)
