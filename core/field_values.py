"""The value of one field from what a person wrote, and back; unit, range and choices come from the field itself."""

from __future__ import annotations

from typing import Any

from .errors import nearest
from .fields import Field
from .terms import plain
from .units import UNITS, QuantityError, format_quantity, parse_quantity, write_quantity

#: Words for "not set" in an optional field.
UNSET = ("auto", "none", "null", "~", "")
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_value(field: Field, text: str, default: Any = None) -> Any:
    """The value that `text` gives a field, in SI; `default` tells the type of a choice and the value of "not set".

    Raises QuantityError, whose message says what would do, for a wrong unit, a value out of range or an unknown word.
    """
    text = text.strip()
    if field.optional and text.lower() in UNSET:
        return default
    if field.unit == "text":
        return _printable(text)
    if text == "":
        raise QuantityError(f"has no value; write for example {example(field)}")
    if field.takes_list and (text.startswith("[") or "," in text or text.isdecimal()):
        return parse_list(field, text.strip("[]").split(","))
    if field.unit == "flag":
        if text.lower() not in _FLAGS:
            raise QuantityError(f"{text!r} is neither true nor false")
        return _FLAGS[text.lower()]
    if field.unit == "choice":
        return _choice(field, text, default)
    return _within_range(field, text, parse_quantity(text, field.unit))


def _printable(text: str) -> str:
    """A text without control characters, which would do things to a terminal."""
    if strange := next((letter for letter in text if not letter.isprintable()), None):
        raise QuantityError(f"character {ord(strange):#x} is not text")
    return text


def parse_list(field: Field, items: list[str]) -> tuple[int, ...]:
    """The whole numbers of at least one of a field that also takes a list. Raises QuantityError."""
    if not field.takes_list:
        raise QuantityError(f"takes one value, not a list; write for example {example(field)}")
    values = tuple(int(parse_quantity(item, "count")) for item in items)
    if not values or min(values) < 1:
        raise QuantityError("every number of the list must be 1 or more")
    return values


def example(field: Field) -> str:
    """A value that would do, for messages."""
    if field.unit in UNITS:
        return UNITS[field.unit].example
    return {"flag": "true", "choice": " or ".join(field.choices), "text": "a word"}.get(field.unit, "an id")


def _choice(field: Field, text: str, default: Any) -> Any:
    if text not in field.choices:
        meant = nearest(text, field.choices)
        raise QuantityError(
            f"{text!r} is not one of {', '.join(field.choices)}" + (f"; did you mean {meant}?" if meant else "")
        )
    return int(text) if isinstance(default, int) else text


def _within_range(field: Field, text: str, value: float) -> float:
    if field.minimum <= value <= field.maximum:
        return value
    lowest, highest = (format_quantity(end, field.unit) for end in (field.minimum, field.maximum))
    if value < field.minimum:
        raise QuantityError(f"{text} is too small: {lowest} or more would do")
    per_cent = f"; for {text} per cent write {text}%" if field.unit == "ratio" and text[-1].isdecimal() else ""
    raise QuantityError(f"{text} is too large: {highest} or less would do{per_cent}")


def write_value(field: Field, value: Any) -> Any:
    """What a file says for a value: a quantity with its unit, a word, a number, a flag or a list."""
    value = plain(value)
    if value is None or (field.optional and isinstance(value, str)):
        return "none" if value is None else value
    if isinstance(value, tuple):
        return value
    if field.unit == "choice" and isinstance(value, int):
        return int(value)
    if field.unit in UNITS:
        return write_quantity(value, field.unit)
    return value
