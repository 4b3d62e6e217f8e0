"""What the values of a report are called: results by their key, traffic and operators by their row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .bearing import bearer, parts
from .mathematics import left_side
from .report import Point, Report, Traffic
from .terms import Term, origin_of
from .value_text import clause, origin_text, together

#: The cells of rows that have a working of their own.
_CELLS = ("flops", "bytes", "intensity", "bytes_per_gpu", "seconds", "exposed_seconds")
#: Inputs of an operator's seconds that are kernels.
_KERNELS = ("forward", "backward", "input_gradient", "weight_gradient")
_UNIT_OF_KEY = re.compile(r"_(s|bytes|seconds|bytes_per_gpu)$")


@dataclass(frozen=True)
class Names:
    """What the results of a report are called, by the id of their Term."""

    #: The key under which a value can be explained.
    keys: Mapping[int, str] = field(default_factory=dict)
    #: Traffic and operators by their row: ("tensor parallel, forward", "all-gather of activations").
    rows: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def key(self, value: Any) -> str:
        """The key of the result that a value is, or that it let through; "" where it is none."""
        return self.keys.get(id(origin_of(value))) or self.keys.get(id(origin_of(bearer(value))), "")

    def origin(self, value: Any) -> str:
        """Where a value came from, in words."""
        if row := self.rows.get(id(origin_of(value))):
            return f"{row[0]}: {row[1]}"
        added = parts(value, self.keys)
        if len(added) > 1 and all(self.key(part) for part in added):
            return f"Sum of {together([self.mark(part) for part in added])}"
        return origin_text(value)

    def mark(self, value: Any) -> str:
        """A short name for a part of a sum."""
        if row := self.rows.get(id(origin_of(value))):
            return row[0].replace(",", "")
        origin = origin_of(value)
        if key := self.key(value):
            return label_of(key)
        return left_side(origin.formula) if isinstance(origin, Term) else "part"


def label_of(key: str) -> str:
    """A result's or a parameter's name in a formula: the last part of its key, without its unit."""
    return _UNIT_OF_KEY.sub("", key.rpartition(".")[2]).replace("_", " ")


def names_of(report: Report) -> Names:
    """The names of all results: cells of rows first, so that a result with a key of its own goes by that."""
    cells = cells_of(report)
    keys = {name: value for name, (_, value) in cells.items()} | dict(report.values)
    computed = {name: origin_of(value) for name, value in keys.items() if isinstance(origin_of(value), Term)}
    own = {id(computed[name]) for name in report.values if name in computed}
    rows = {
        id(computed[name]): _row_words(row)
        for name, (row, _) in cells.items()
        if name in computed and id(computed[name]) not in own
    }
    keys_by_id = {id(origin): name for name, origin in computed.items()}
    kernels = {key: words for point in report.points for key, words in _kernels(point) if key not in keys_by_id}
    return Names(keys_by_id, kernels | rows)


def _kernels(point: Point) -> Iterator[tuple[int, tuple[str, str]]]:
    """The kernels that make up the seconds of an operator, which go by its name."""
    term = origin_of(point.seconds)
    for name in _KERNELS if isinstance(term, Term) else ():
        kernel = term.inputs.get(name)
        if isinstance(origin_of(kernel), Term):
            yield id(origin_of(kernel)), (f"{point.name} {name.replace('_', ' ')}", clause(origin_text(kernel)))


def _row_words(row: Traffic | Point) -> tuple[str, str]:
    return row.name, f"{row.collective} of {row.what}" if isinstance(row, Traffic) else row.phase


def cells_of(report: Report) -> dict[str, tuple[Traffic | Point, Any]]:
    """The cells of traffic and operators that have a working, by key, each with its row."""
    return {
        f"{name}.{number}.{cell}": (row, getattr(row, cell))
        for name, rows in (("communication", report.communication), ("roofline.points", report.points))
        for number, row in enumerate(rows)
        for cell in _CELLS
        if hasattr(row, cell)
    }


def row_lists(report: Report) -> dict[str, tuple[Any, ...]]:
    """The results that are lists of rows."""
    return {
        "communication": report.communication,
        "roofline.points": report.points,
        "findings": report.findings,
    }
