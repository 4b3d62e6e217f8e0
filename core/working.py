"""The working of a result: its formula, the values put in, where each came from, the source, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .bearing import bearer, is_wrapper, parts
from .cells import cell_text
from .errors import did_you_mean
from .mathematics import left_side, math_text
from .mathematics import substituted as _substituted
from .report import Point, Report, Traffic
from .symbols import numbered, symbol
from .terms import Term, origin_of, plain
from .value_text import clause, field_path, origin_text, quantity_text, value_text

__all__ = [
    "Explanation",
    "Input",
    "UnknownKeyError",
    "cell_text",
    "explain",
    "explain_input",
    "explain_value",
    "math_text",
    "result_keys",
    "substituted",
]


#: The cells of rows that have a working of their own.
_CELLS = ("flops", "bytes", "intensity", "bytes_per_gpu", "seconds", "exposed_seconds")
#: Inputs of an operator's seconds that are kernels.
_KERNELS = ("forward", "backward", "input_gradient", "weight_gradient")
_UNIT_OF_KEY = re.compile(r"_(s|bytes|seconds|bytes_per_gpu)$")


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
        row = self.rows.get(id(origin_of(value)))
        return f"{row[0]}: {row[1]}" if row else origin_text(value)

    def mark(self, value: Any) -> str:
        """A short name for a part of a sum."""
        if row := self.rows.get(id(origin_of(value))):
            return row[0]
        origin = origin_of(value)
        if key := self.key(value):
            return _label(key)
        return left_side(origin.formula) if isinstance(origin, Term) else "part"


def explain(report: Report, key: str, depth: int = 2) -> Explanation:
    """The working of a result key, with the working of its inputs down to `depth` formulas.

    A cell of a list goes by the number of its row, as in the table of all results: `communication.0.seconds`.
    Needs a report that was recorded. Raises UnknownKeyError for a key that the report does not have.
    """
    names, cells, lists = _names(report), _cells(report), _row_lists(report)
    if key in report:
        return explain_value(key, report[key], depth, names)
    if key in cells:
        return explain_value(key, cells[key][1], depth, names)
    if key not in lists:
        known = did_you_mean(key, result_keys(report))
        raise UnknownKeyError(f"no result is called {key!r}; {known}")
    inputs = tuple(_row_input(f"{key}.{place}", row, depth, names) for place, row in enumerate(lists[key]))
    return Explanation(key, "", f"{len(inputs)} row{'s' * (len(inputs) != 1)}", len(inputs), inputs=inputs)


def result_keys(report: Report) -> list[str]:
    """Every result of a report that can be explained, the lists last."""
    return [*(key for key in report.values if key not in ("name", "kind")), *_row_lists(report)]


def explain_input(report: Report, key: str, places: Sequence[int], depth: int = 1) -> Explanation:
    """The working of an input of an input of a result: `places` says which one at each step down."""
    names = _names(report)
    explanation, value = explain(report, key, depth), _value(report, key)
    for place in places:
        entries = _entries(key, value, names)
        if not 0 <= place < len(entries):
            break
        key, value = entries[place]
        explanation = explain_value(symbol(key), value, depth, names)
    return explanation


def _value(report: Report, key: str) -> Any:
    return report[key] if key in report else _cells(report).get(key, (None, None))[1]


def explain_value(key: str, value: Any, depth: int = 2, names: Names | None = None) -> Explanation:
    """The working of any value of a recorded report; `key` is what to call it."""
    names = names or Names()
    value = _subject(key, value, names)
    origin = origin_of(value)
    if not isinstance(origin, Term):
        return Explanation(key, "", value_text(value), plain(value), origin=origin_text(value), path=field_path(origin))
    inputs = tuple(_input(name, each, depth, names) for name, each in _entries(key, value, names))
    called, text = origin.formula, value_text(value)
    described = Explanation(key, names.origin(value), text, origin.value, called.unit, inputs=inputs)
    if len(parts(value, names.keys)) > 1:
        left, values = _label(key), " + ".join(entry.text for entry in inputs)
        formula = f"{left} = {' + '.join(entry.symbol for entry in inputs)}"
        return replace(described, formula=formula, substituted=f"{left} = {values} = {text}", source="definition")
    described = replace(described, source=called.source, leaves_out=called.leaves_out)
    if not inputs:
        return replace(described, origin=called.source, source="")
    left = _label(key) if is_wrapper(origin) else left_side(called)
    formula, put_in = (text.partition(" = ")[2] for text in (math_text(called), substituted(origin)))
    return replace(described, formula=f"{left} = {formula}", substituted=f"{left} = {put_in}")


def _subject(key: str, value: Any, names: Names) -> Any:
    """What is explained of a value: what a guard let through, unless the guard is itself the result asked for."""
    origin = origin_of(value)
    asked = isinstance(origin, Term) and key in names.keys.values() and not is_wrapper(origin)
    return value if asked else bearer(value)


def _entries(key: str, value: Any, names: Names) -> list[tuple[str, Any]]:
    """The inputs of a value's formula by name, or the parts of a chain of additions as one sum."""
    value = _subject(key, value, names)
    added = parts(value, names.keys)
    if len(added) > 1:
        return list(zip(numbered([names.mark(part) for part in added]), added, strict=True))
    origin = origin_of(value)
    return list(origin.inputs.items()) if isinstance(origin, Term) else []


def _label(key: str) -> str:
    """A result's or a parameter's name in a formula: the last part of its key, without its unit."""
    return _UNIT_OF_KEY.sub("", key.rpartition(".")[2]).replace("_", " ")


def _input(name: str, value: Any, depth: int, names: Names) -> Input:
    return Input(
        name.replace("_", " "),
        symbol(name),
        plain(value),
        value_text(value),
        names.origin(value),
        field_path(origin_of(bearer(value))),
        names.key(value),
        _deeper(symbol(name), value, depth, names),
    )


def _row_input(key: str, row: Any, depth: int, names: Names) -> Input:
    """A row of a list by its telling value: the seconds of traffic and operators, the words of a finding."""
    if not hasattr(row, "seconds"):
        return Input(row.code, row.code, row.message, row.message, row.severity)
    words = row.collective if isinstance(row, Traffic) else row.phase
    working = _deeper(row.name, row.seconds, depth, names)
    return Input(row.name, row.name, plain(row.seconds), value_text(row.seconds), words, "", f"{key}.seconds", working)


def _deeper(key: str, value: Any, depth: int, names: Names) -> Explanation | None:
    computed = isinstance(origin_of(bearer(value)), Term)
    return explain_value(key, value, depth - 1, names) if computed and depth > 1 else None


def substituted(term: Term) -> str:
    """The formula with its values put in, each with its unit, and the result."""
    result = quantity_text(term.value, term.formula.unit)
    return f"{left_side(term.formula)} = " + _substituted(term, lambda name: value_text(term.inputs[name]), result)


def _names(report: Report) -> Names:
    """Names of all results: cells of rows first, so that a result with a key of its own goes by that."""
    cells = _cells(report)
    keys = {name: value for name, (_, value) in cells.items()} | report.values
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


def _cells(report: Report) -> dict[str, tuple[Traffic | Point, Any]]:
    """The cells of traffic and operators that have a working, by key, each with its row."""
    return {
        f"{name}.{number}.{cell}": (row, getattr(row, cell))
        for name, rows in (("communication", report.communication), ("roofline.points", report.points))
        for number, row in enumerate(rows)
        for cell in _CELLS
        if hasattr(row, cell)
    }


def _row_lists(report: Report) -> dict[str, tuple[Any, ...]]:
    return {
        "communication": report.communication,
        "roofline.points": report.points,
        "findings": report.findings,
    }
