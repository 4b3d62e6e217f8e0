"""The working of a result: its formula, the values put in, where each came from, the source, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .cells import cell_text
from .errors import did_you_mean
from .fields import FACTS, FIELDS, Field
from .mathematics import left_side, math_text, plain_text
from .mathematics import substituted as _substituted
from .numeric import is_array
from .report import Report
from .symbols import symbol
from .terms import Datum, Term, origin_of, plain
from .units import format_quantity

__all__ = [
    "Explanation",
    "Input",
    "UnknownKeyError",
    "cell_text",
    "explain",
    "explain_value",
    "math_text",
    "substituted",
]


#: Units as formulas write them, as the formatter names them; a formula's other units are words or its own names.
_UNITS = {
    "s": "seconds",
    "B": "bytes",
    "B/s": "bytes/s",
    "d": "days",
    "W": "watts",
    "share": "ratio",
    "fraction of peak": "ratio",
    "factor": "number",
    "relative rate": "number",
    "choice": "",
}


_FINAL_ZEROS = re.compile(r"\.(\d*?)0+(?!\d)")


class UnknownKeyError(LookupError):
    """A result that does not exist; the message names the nearest ones."""


@dataclass(frozen=True)
class Input:
    """One value that went into a formula.

    `path` is the field that sets it and `key` the result that it is, "" where there is none.
    """

    name: str
    symbol: str
    value: Any
    text: str
    origin: str
    path: str = ""
    key: str = ""
    working: Explanation | None = None


@dataclass(frozen=True)
class Explanation:
    """How a value came about. `formula` and `substituted` are empty for a value that no formula computed.

    `path` is the field behind such a value; `origin` says in words where it came from.
    """

    key: str
    meaning: str
    text: str
    value: Any
    unit: str = ""
    formula: str = ""
    substituted: str = ""
    inputs: tuple[Input, ...] = ()
    source: str = ""
    leaves_out: str = ""
    origin: str = ""
    path: str = ""

    def lines(self, indent: str = "") -> Iterator[str]:
        """The explanation as lines of text, the working of its inputs below it, indented."""
        yield f"{indent}{self.key} = {self.text}" + (f"   {self.meaning}" if self.meaning else "")
        for label, text in (
            ("formula", self.formula),
            ("values", self.substituted),
            ("from", self.origin),
            ("source", self.source),
            ("not counted", self.leaves_out),
        ):
            if text:
                yield f"{indent}  {label:<12}{text}"
        width = max((len(entry.symbol) for entry in self.inputs), default=0)
        values = max((len(entry.text) for entry in self.inputs), default=0)
        for entry in self.inputs:
            result = f" ({entry.key})" if entry.key else ""
            yield f"{indent}    {entry.symbol:<{width}} = {entry.text:<{values}}   {entry.origin}{result}".rstrip()
        for entry in self.inputs:
            if entry.working is not None:
                yield ""
                yield from entry.working.lines(indent + "    ")


def explain(report: Report, key: str, depth: int = 2) -> Explanation:
    """The working of a result key, with the working of its inputs down to `depth` formulas.

    Needs a report that was recorded. Raises UnknownKeyError for a key that the report does not have.
    """
    keys = {id(origin_of(value)): name for name, value in report.values.items() if isinstance(origin_of(value), Term)}
    if key in report:
        return explain_value(key, report[key], depth, keys)
    rows = _row_lists(report).get(key)
    if rows is None:
        known = did_you_mean(key, [*report.values, *_row_lists(report)])
        raise UnknownKeyError(f"no result is called {key!r}; {known}")
    inputs = tuple(_row_input(row, depth, keys) for row in rows)
    return Explanation(key, "", f"{len(rows)} rows", len(rows), inputs=inputs)


def explain_value(key: str, value: Any, depth: int = 2, keys: Mapping[int, str] | None = None) -> Explanation:
    """The working of any value of a recorded report; `key` is what to call it.

    `keys` names the results of the report by the id of their Term, so that inputs that are results say so.
    """
    origin = origin_of(value)
    if not isinstance(origin, Term):
        return Explanation(
            key, "", value_text(value), plain(value), origin=origin_text(value), path=_field_path(origin)
        )
    formula = origin.formula
    return Explanation(
        key,
        formula.meaning,
        value_text(value),
        origin.value,
        formula.unit,
        math_text(formula),
        substituted(origin),
        tuple(_input(origin, name, depth, keys or {}) for name in formula.parameters),
        formula.source,
        formula.leaves_out,
    )


def _input(term: Term, name: str, depth: int, keys: Mapping[int, str]) -> Input:
    value = term.inputs[name]
    return Input(
        name.replace("_", " "),
        symbol(name),
        plain(value),
        value_text(value),
        origin_text(value),
        _field_path(origin_of(value)),
        keys.get(id(origin_of(value)), ""),
        _deeper(symbol(name), value, depth, keys),
    )


def _row_input(row: tuple[str, str, Any], depth: int, keys: Mapping[int, str]) -> Input:
    name, kind, value = row
    return Input(name, name, plain(value), value_text(value), kind, working=_deeper(name, value, depth, keys))


def _deeper(key: str, value: Any, depth: int, keys: Mapping[int, str]) -> Explanation | None:
    computed = isinstance(origin_of(value), Term)
    return explain_value(key, value, depth - 1, keys) if computed and depth > 1 else None


def substituted(term: Term) -> str:
    """The formula with its values put in, each with its unit, and the result."""
    result = quantity_text(term.value, term.formula.unit)
    return f"{left_side(term.formula)} = " + _substituted(term, lambda name: value_text(term.inputs[name]), result)


def value_text(value: Any) -> str:
    """A value with the unit that its origin gives it."""
    origin = origin_of(value)
    if isinstance(origin, Term):
        return quantity_text(value, origin.formula.unit)
    field = _field(origin)
    return quantity_text(value, field.unit if field else "")


def quantity_text(value: Any, unit: str) -> str:
    """A value in a unit as a reader sees it; several values (a stage each) as their range."""
    if is_array(value) or isinstance(value, (tuple, list)):
        values = [value_text(each) if origin_of(each) else quantity_text(each, unit) for each in value]
        return values[0] if len(set(values)) == 1 else f"[{', '.join(values)}]"
    value = plain(value)
    if isinstance(value, (bool, str)) or value is None or _UNITS.get(unit, unit) == "":
        return plain_text(value)
    base, per, token = unit.partition("/token")
    text = format_quantity(float(value), _UNITS.get(base, base), 4)
    # four digits, but 312 and not 312.0; money keeps its cents
    return (text if base.startswith("USD") else _FINAL_ZEROS.sub(_without_zeros, text)) + per + token


def _without_zeros(match: re.Match[str]) -> str:
    return f".{match[1]}" if match[1] else ""


def origin_text(value: Any) -> str:
    """Where a value came from, in words."""
    origin = origin_of(value)
    if isinstance(origin, Term):
        return origin.formula.meaning
    if isinstance(origin, Datum):
        field = _field(origin)
        named = f"{field.label} ({origin.path})" if field else origin.path
        return f"{named}; {origin.source}" if origin.source else named
    return "a constant" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def _field(origin: Any) -> Field | None:
    return FIELDS.get(origin.path) or FACTS.get(origin.path) if isinstance(origin, Datum) else None


def _field_path(origin: Any) -> str:
    return origin.path if isinstance(origin, Datum) and origin.path in FIELDS else ""


def _row_lists(report: Report) -> dict[str, list[tuple[str, str, Any]]]:
    """The results that are lists: name, symbol and telling value of each row."""
    return {
        "communication": [(row.name, row.collective, row.seconds) for row in report.communication],
        "roofline.points": [(point.name, point.phase, point.seconds) for point in report.points],
        "findings": [(finding.code, finding.severity, finding.message) for finding in report.findings],
    }
