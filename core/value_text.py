"""A value of a report as a reader sees it, with the unit that its origin gives it, and where it came from in words."""

from __future__ import annotations

import re
from typing import Any

from .bearing import bearer, is_wrapper, multiple, parts
from .constants import constant_of
from .fields import FACTS, FIELDS, Field
from .mathematics import plain_text
from .numeric import is_array
from .terms import Datum, Term, origin_of, plain
from .units import format_quantity

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
#: Units that stand behind a bare number.
_SUFFIXES = {"h": " GPU-h"}
_QUOTED = re.compile("`([^`]*)`")
_FINAL_ZEROS = re.compile(r"\.(\d*?)0+(?!\d)")
_CONSTANT = "a number of the method"
_CHOSEN = "by the choices of this plan"
#: Different parts of a sum that its description names.
_NAMED = 3


def unit_of(value: Any) -> str:
    """The unit that a value's origin gives it; "" where it has none."""
    origin = origin_of(bearer(value))  # a guard has the unit of what it lets through
    if isinstance(origin, Term):
        return origin.formula.unit
    if not isinstance(origin, Datum):
        return ""
    field = field_of(origin)
    return field.unit if field else constant_of(origin.path)[1]


def value_text(value: Any) -> str:
    """A value with the unit that its origin gives it."""
    return quantity_text(value, unit_of(value))


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
    text = text if base.startswith("USD") else _FINAL_ZEROS.sub(_without_zeros, text)
    return text + per + token + _SUFFIXES.get(unit, "")


def _without_zeros(match: re.Match[str]) -> str:
    return f".{match[1]}" if match[1] else ""


def origin_text(value: Any) -> str:
    """Where a value came from, in words: what its formula computes, its field, or its source."""
    if is_array(value) or isinstance(value, (tuple, list)):
        return _together([each for each in value if origin_of(each) is not None])
    added = parts(value)
    if len(added) > 1:
        return ("Sum of " if len({origin_text(part) for part in added}) > 1 else "") + _together(added)
    value = added[0]
    if (several := multiple(value)) is not None:
        return f"{quantity_text(several[0], 'count')} × {clause(origin_text(several[1]))}"
    origin = origin_of(value)
    if isinstance(origin, Term):
        nothing = is_wrapper(origin) and plain(value) == 0
        return "Nothing in this plan" if nothing else _QUOTED.sub(r"‘\1’", origin.formula.meaning)
    if isinstance(origin, Datum):
        return f"{_named(origin)}; {origin.source}" if origin.source else _named(origin)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    return _CHOSEN if value in (0, 1) else _CONSTANT


def _together(values: list[Any]) -> str:
    texts = list(dict.fromkeys(clause(origin_text(value)) for value in values))
    return f"{len(values)} × {texts[0]}" if len(texts) == 1 else together(texts)


def together(texts: list[str]) -> str:
    """Some descriptions, the first few of many."""
    named = texts[:_NAMED] + ([f"{len(texts) - _NAMED} more"] if len(texts) > _NAMED else [])
    return "; ".join(named)


def clause(text: str) -> str:
    """The first clause of a description, for the middle of a sentence; abbreviations keep their capitals."""
    text = re.split(r"[;:] ", text, maxsplit=1)[0]
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _named(origin: Datum) -> str:
    field = field_of(origin)
    words = field.label if field else constant_of(origin.path)[0]
    return f"{words[:1].upper()}{words[1:]} ({origin.path})" if words else origin.path


def field_of(origin: Any) -> Field | None:
    """The field or fact of a catalogue that a value is, or None."""
    return FIELDS.get(origin.path) or FACTS.get(origin.path) if isinstance(origin, Datum) else None


def field_path(origin: Any) -> str:
    """The path of the field that sets a value, "" where there is none."""
    return origin.path if isinstance(origin, Datum) and origin.path in FIELDS else ""
