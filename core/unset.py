"""Settings that a plan leaves at their defaults, and what others would change: each is tried, none is guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .catalogue import table
from .fields import FIELDS, Field
from .legality import legal
from .report import Edit, Report
from .scenario import Scenario
from .scenario_values import default
from .units import format_quantity

#: The result that effects are told of, by kind of plan: key and words. The first that a report has.
RESULTS = {
    "training": (("time.step_s", "Step time"),),
    "serving": (("serving.tpot_s", "Time per token"), ("time.step_s", "Step time")),
}
#: An effect below this share of the time is not worth a line.
_WORTH_SAYING = 0.02


@dataclass(frozen=True)
class Unset:
    """A setting at its default: its value in words, and each value tried with the share of time that it adds.

    `edits` set the values tried, in the order of `tried`.
    """

    field: str
    label: str
    value: str
    what: str
    tried: tuple[tuple[str, float], ...]
    edits: tuple[Edit, ...]

    @property
    def effect_low(self) -> float:
        """The least change of the time, as a share of it; 0 where no value makes it shorter."""
        return min(0.0, *(effect for _, effect in self.tried))

    @property
    def effect_high(self) -> float:
        """The greatest change of the time, as a share of it; 0 where no value makes it longer."""
        return max(0.0, *(effect for _, effect in self.tried))

    @property
    def message(self) -> str:
        """The setting and what the other values would change, in a sentence."""
        changes = ", ".join(f"{name} {_signed(effect)}" for name, effect in self.tried)
        return f"{self.label}: {self.value} is assumed. {self.what} with {changes}."


def unset(scenario: Scenario, evaluate: Callable[[Scenario], Report]) -> list[Unset]:
    """The settings at their defaults that are worth a line, the most telling first."""
    return ordered(each_unset(scenario, evaluate))


def ordered(found: Iterable[Unset | None]) -> list[Unset]:
    """Settings, the most telling first."""
    return sorted(filter(None, found), key=lambda each: each.effect_low - each.effect_high)


def each_unset(scenario: Scenario, evaluate: Callable[[Scenario], Report]) -> Iterator[Unset | None]:
    """Setting after setting, None for one that is stated or worth no line: a few evaluations at a time."""
    report = evaluate(scenario)
    key, what = next((key, what) for key, what in RESULTS[scenario.kind] if key in report)
    for entry in table("unset")[scenario.kind]:
        path = entry["path"]
        if scenario.get(path) != default(path) or not _asked(scenario, entry.get("where", {})):
            yield None
            continue
        effects = [(edit, _effect(edit, scenario, report, key, evaluate)) for edit in _edits(scenario, entry)]
        telling = [(edit, effect) for edit, effect in effects if abs(effect) >= _WORTH_SAYING]
        yield _found(scenario, FIELDS[path], what, telling) if telling else None


def _found(scenario: Scenario, field: Field, what: str, telling: list[tuple[Edit, float]]) -> Unset:
    tried = tuple((_value(field, edit.changes[0][1]), effect) for edit, effect in telling)
    value = _value(field, scenario.get(field.path))
    return Unset(field.path, field.label, value, what, tried, tuple(edit for edit, _ in telling))


def _asked(scenario: Scenario, where: Mapping[str, list[Any]]) -> bool:
    return all(scenario.get(path) in values for path, values in where.items())


def _edits(scenario: Scenario, entry: Mapping[str, Any]) -> Iterator[Edit]:
    """The changes to other values that lead to a legal plan."""
    field, along = FIELDS[entry["path"]], tuple(entry.get("with", {}).items())
    for value in entry.get("try", _others(field)):
        edit = Edit(f"{field.label}: {_value(field, value)}", ((field.path, value), *along))
        if value != scenario.get(field.path) and legal(edit.applied(scenario)):
            yield edit


def _others(field: Field) -> tuple[Any, ...]:
    return (True, False) if field.unit == "flag" else field.choices


def _effect(edit: Edit, scenario: Scenario, report: Report, key: str, evaluate: Callable[[Scenario], Report]) -> float:
    """The share of the time that a change adds."""
    return float(evaluate(edit.applied(scenario)).get(key, report[key])) / float(report[key]) - 1


def _value(field: Field, value: Any) -> str:
    if value is None:
        return "the habit of the framework"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, (str, tuple)) else format_quantity(value, field.unit)


def _signed(effect: float) -> str:
    text = format_quantity(abs(effect), "ratio", 2)
    return f"{'−' if effect < 0 else '+'}{text}"
