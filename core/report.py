"""The result of an evaluation: one flat table of keys, the rows of the ledgers, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from .numeric import Number
from .scenario import Scenario
from .terms import Term, origin_of, plain
from .words import NO_END, NO_ROOM


@dataclass(frozen=True)
class Edit:
    """A change of the scenario that would answer a finding: what the button says, and (path, value) pairs."""

    label: str
    changes: tuple[tuple[str, Any], ...]

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario with the changes made, in their order."""
        return reduce(lambda changed, change: changed.with_(*change), self.changes, scenario)


@dataclass(frozen=True)
class Finding:
    """Something a person should know of the plan. `severity` is error, warning or hint."""

    code: str
    severity: str
    message: str
    field: str = ""
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Traffic:
    """One row of the communication ledger; bytes are sent by one GPU in one step."""

    name: str
    what: str
    collective: str
    group: str
    group_size: Number
    link: str
    times_per_step: Number
    bytes_per_gpu: Number
    seconds: Number
    hides_behind: str
    exposed_seconds: Number


@dataclass(frozen=True)
class Point:
    """One operator or phase on the roofline; FLOPs, bytes and seconds are those of one GPU in one step."""

    name: str
    phase: str
    flops: Number
    bytes: Number
    intensity: Number
    attainable_flops: Number
    achieved_flops: Number
    seconds: Number
    bound: str
    #: What keeps its kernel below the roof, in words; empty where the roof itself does.
    ceiling: str = ""


class Deferred(Mapping[str, Any]):
    """Results of which the last are computed when one is asked for that is not among the first."""

    def __init__(self, first: dict[str, Any], later: Callable[[], dict[str, Any]]) -> None:
        self._first, self._later = first, later

    @cached_property
    def _all(self) -> dict[str, Any]:
        return self._first | self._later()

    def __getitem__(self, key: str) -> Any:
        return self._first[key] if key in self._first else self._all[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


@dataclass(frozen=True)
class Report:
    """What `evaluate` answers. `values` holds the contract's keys; numbers are SI, absent keys do not apply."""

    scenario: Scenario
    values: Mapping[str, Any]
    communication: tuple[Traffic, ...] = ()
    points: tuple[Point, ...] = ()
    #: Memory items by pipeline stage: item -> array with one entry a stage, bytes per GPU at that stage's own peak.
    stages: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    #: What the ledgers do not count, by ledger name.
    not_counted: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Results that the plan would have if one request fitted, or all that come were answered.
    withheld: tuple[str, ...] = ()
    #: All Terms in order of computation; empty unless recorded.
    terms: tuple[Term, ...] = ()

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    @property
    def progresses(self) -> bool:
        """Whether a training gets on at all: where failures outrun restarts its days and cost mean nothing."""
        return not any(finding.code == "no-progress" for finding in self.findings)

    @property
    def holds_a_request(self) -> bool:
        """Whether one request fits at all: a served plan without room for one has no rates. True of a training."""
        return self.get("serving.held_requests", 1.0) >= 1

    @property
    def why_withheld(self) -> str:
        """Why it has no withheld results, as a sentence."""
        return NO_END if self.holds_a_request else NO_ROOM

    def explain(self, key: str) -> Any:
        """The Term or Datum behind a result key; None for a plain constant. Needs a recorded report."""
        return origin_of(self.values[key])

    def flat(self) -> dict[str, Any]:
        """The contract's flat object: plain numbers, words and lists of rows."""
        result = {key: _plain(value) for key, value in self.values.items()}
        result["communication"] = [_row(row) for row in self.communication]
        result["roofline.points"] = [_row(row) for row in self.points]
        result["findings"] = [
            {"code": f.code, "severity": f.severity, "message": f.message, "field": f.field} for f in self.findings
        ]
        return result


def _plain(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value


def _row(row: Any) -> dict[str, Any]:
    return {key: _plain(value) for key, value in asdict(row).items()}


@dataclass
class Sheet:
    """What one kind of plan contributes to a Report while it is being put together."""

    values: dict[str, Any] = field(default_factory=dict)
    #: Results for many plans at once that few ask for.
    later: Callable[[], dict[str, Any]] | None = None
    withheld: tuple[str, ...] = ()
    communication: list[Traffic] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    stages: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    not_counted: dict[str, tuple[str, ...]] = field(default_factory=dict)
