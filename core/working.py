"""The working of a result: its formula, the values put in, where each came from, the source, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .bearing import bearer, is_wrapper, parts
from .cells import cell_text
from .errors import did_you_mean
from .mathematics import left_side, math_text
from .mathematics import substituted as _substituted
from .report import Report, Traffic
from .result_names import Names, cells_of, label_of, names_of, row_lists
from .symbols import numbered, symbol
from .terms import Term, origin_of, plain
from .value_text import field_path, origin_text, quantity_text, unit_of, value_text

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

    A cell of a list goes by the number of its row, as in the table of all results: `communication.0.seconds`.
    Needs a report that was recorded. Raises UnknownKeyError for a key that the report does not have.
    """
    names, cells, lists = names_of(report), cells_of(report), row_lists(report)
    if key in report:
        return explain_value(key, report[key], depth, names)
    if key in cells:
        return explain_value(key, cells[key][1], depth, names)
    if key in report.withheld:
        why = report.why_withheld
        raise UnknownKeyError(f"there is no {key} in this plan: {why[0].lower()}{why[1:-1]}")
    if key not in lists:
        known = did_you_mean(key, result_keys(report))
        raise UnknownKeyError(f"no result is called {key!r}; {known}")
    inputs = tuple(_row_input(f"{key}.{place}", row, depth, names) for place, row in enumerate(lists[key]))
    return Explanation(key, "", f"{len(inputs)} row{'s' * (len(inputs) != 1)}", len(inputs), inputs=inputs)


def result_keys(report: Report) -> list[str]:
    """Every result of a report that can be explained, the lists last."""
    return [*(key for key in report.values if key not in ("name", "kind")), *row_lists(report)]


def explain_input(report: Report, key: str, places: Sequence[int], depth: int = 1) -> Explanation:
    """The working of an input of an input of a result: `places` says which one at each step down."""
    names = names_of(report)
    explanation, value = explain(report, key, depth), _value(report, key)
    for place in places:
        entries = _entries(key, value, names)
        if not 0 <= place < len(entries):
            break
        _, key, value = entries[place]
        explanation = explain_value(key, value, depth, names)
    return explanation


def _value(report: Report, key: str) -> Any:
    return report[key] if key in report else cells_of(report).get(key, (None, None))[1]


def explain_value(key: str, value: Any, depth: int = 2, names: Names | None = None) -> Explanation:
    """The working of any value of a recorded report; `key` is what to call it."""
    names = names or Names()
    row = names.rows.get(id(origin_of(value)))
    left = names.mark(value) if row else label_of(key)
    value = _subject(key, value, names)
    origin = origin_of(value)
    if not isinstance(origin, Term):
        return Explanation(key, "", value_text(value), plain(value), origin=origin_text(value), path=field_path(origin))
    inputs = tuple(_input(*entry, depth, names) for entry in _entries(key, value, names))
    called, text = origin.formula, value_text(value)
    described = Explanation(key, names.origin(value), text, origin.value, unit_of(value), inputs=inputs)
    if len(parts(value, names.keys)) > 1:
        values = " + ".join(entry.text for entry in inputs)
        formula = f"{left} = {' + '.join(entry.symbol for entry in inputs)}"
        return replace(described, formula=formula, substituted=f"{left} = {values} = {text}", source="definition")
    described = replace(described, source=called.source, leaves_out=called.leaves_out)
    if not inputs:
        return replace(described, origin=called.source, source="")
    left = left if is_wrapper(origin) else left_side(called)
    formula, put_in = (text.partition(" = ")[2] for text in (math_text(called), substituted(origin)))
    return replace(described, formula=f"{left} = {formula}", substituted=f"{left} = {put_in}")


def _subject(key: str, value: Any, names: Names) -> Any:
    """What is explained of a value: what a guard let through, unless the guard is itself the result asked for."""
    origin = origin_of(value)
    result = key in names.keys.values() and id(origin) not in names.rows
    asked = isinstance(origin, Term) and result and not is_wrapper(origin)
    return value if asked else bearer(value)


def _entries(key: str, value: Any, names: Names) -> list[tuple[str, str, Any]]:
    """Name, symbol and value of the inputs of a value's formula, or of the parts of a chain of additions."""
    value = _subject(key, value, names)
    added = parts(value, names.keys)
    if len(added) > 1:
        marks = numbered([names.mark(part) for part in added])
        return list(zip(marks, marks, added, strict=True))
    inputs = origin.inputs if isinstance(origin := origin_of(value), Term) else {}
    return [(name.replace("_", " "), symbol(name), each) for name, each in inputs.items()]


def _input(name: str, mark: str, value: Any, depth: int, names: Names) -> Input:
    row = names.rows.get(id(origin_of(value)))
    return Input(
        name,
        mark,
        plain(value),
        value_text(value),
        row[1] if row and mark == names.mark(value) else names.origin(value),
        field_path(origin_of(bearer(value))),
        names.key(value),
        _deeper(mark, value, depth, names),
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
