"""What makes a published run like a plan: the criteria of `presets/measured/likeness.yaml` asked of plans and rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from ..catalogue import table
from ..numeric import is_array


@dataclass(frozen=True)
class Criterion:
    """One thing that likeness asks: the field, and what of its value counts."""

    name: str
    path: str
    #: Alike if both values or neither are above it; None: by their groups, else by the value itself.
    above: float | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def value(self) -> Callable[[Any], Any]:
        """The field of a plan."""
        return attrgetter(self.path)

    def of(self, value: Any) -> Any:
        """What of a value counts: a yes or no, or a word; an array of yes and no for an array of numbers."""
        if self.above is None:
            return self.groups.get(str(value), str(value))
        answer = value > self.above
        return answer if is_array(answer) else bool(answer)

    def met(self, plan: Mapping[str, Any], answer: Any) -> bool:
        """Whether the kept fields of a run give an answer."""
        return self.path in plan and self.of(plan[self.path]) == answer

    def said(self, answer: Any) -> str:
        """The criterion with its answer in words: "device generation hopper", "no pipeline"."""
        return f"{self.name} {answer}" if isinstance(answer, str) else self.name if answer else f"no {self.name}"


class Results(NamedTuple):
    """What a plan's report calls its own prediction, and the ends of its band."""

    predicted: str
    low: str
    high: str


@dataclass(frozen=True)
class Quantity:
    """What is compared: the plans that have it and what it is of ("time", "memory"), the results of a plan that are it,
    the metrics that measure it, each with the results that are the same figure (None: no result is), the fewest rows
    and sources of a band, how near an end of it may come to the prediction (ratio), and its criteria."""

    name: str
    kind: str
    of: str
    results: Results
    metrics: Mapping[str, Results | None]
    rows: int
    sources: int
    least: float
    criteria: tuple[Criterion, ...]
    #: Kept fields that it does not depend on.
    ignores: frozenset[str] = frozenset()


@cache
def quantities() -> dict[str, Quantity]:
    """The quantities by name."""
    data = table("measured/likeness")
    results = {name: Results(*keys) for name, keys in data["results"].items()}
    criteria = [(entry["of"], _criterion(entry)) for entry in data["criteria"]]
    return {
        name: Quantity(
            name,
            entry["kind"],
            entry["of"],
            results[entry["result"]],
            {metric: None if own == "none" else results[own] for metric, own in entry["metrics"].items()},
            entry["rows"],
            entry["sources"],
            entry["least"],
            tuple(criterion for of, criterion in criteria if name in of),
            frozenset(entry.get("ignores", ())),
        )
        for name, entry in data["quantities"].items()
    }


def quantity_for(kind: str, of: str = "time") -> str:
    """The quantity of a kind of plan that is of time or of memory."""
    return next(name for name, quantity in quantities().items() if (quantity.kind, quantity.of) == (kind, of))


@cache
def quantity_of(metric: str) -> str:
    """The quantity that a metric measures; empty for one that no band is made of."""
    return next((name for name, quantity in quantities().items() if metric in quantity.metrics), "")


def results_of(metric: str) -> Results | None:
    """The results of a plan that are the same figure as a metric; None where no result is."""
    name = quantity_of(metric)
    return quantities()[name].metrics[metric] if name else None


def kept_paths(kind: str) -> list[str]:
    """The fields that are kept of a run of a kind of plan."""
    return table("measured/likeness")["kept"][kind]


def _criterion(entry: Mapping[str, Any]) -> Criterion:
    groups = {value: name for name, values in entry.get("groups", {}).items() for value in values}
    return Criterion(entry["name"], entry["path"], entry.get("above"), groups)
