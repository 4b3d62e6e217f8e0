"""A small spreadsheet: computes a formula of cells with a parser and functions of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

_TOKEN = re.compile(
    r"(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?)"
    r'|"(?P<text>(?:[^"]|"")*)"'
    r"|(?P<name>[^\W\d][\w.]*)"
    r"|(?P<sign><=|>=|<>|[-+*/^=<>(),])"
)
_BINARY: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "=": (1, lambda a, b: a == b),
    "<>": (1, lambda a, b: a != b),
    "<": (1, lambda a, b: a < b),
    ">": (1, lambda a, b: a > b),
    "<=": (1, lambda a, b: a <= b),
    ">=": (1, lambda a, b: a >= b),
    "+": (2, lambda a, b: a + b),
    "-": (2, lambda a, b: a - b),
    "*": (3, lambda a, b: a * b),
    "/": (3, lambda a, b: a / b if b else math.nan),
    "^": (4, lambda a, b: a**b),
}


def _flat(values: Iterable[Any]) -> list[Any]:
    return [each for value in values for each in (_flat(value) if isinstance(value, (list, tuple)) else [value])]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "MAX": lambda *values: max(_flat(values)),
    "MIN": lambda *values: min(_flat(values)),
    "SUM": lambda *values: math.fsum(_flat(values)),
    "CEILING": lambda value, step: math.ceil(value / step) * step,
    "FLOOR": lambda value, step: math.floor(value / step) * step,
    "SQRT": math.sqrt,
    "LN": math.log,
    "ABS": abs,
    "MOD": lambda value, divisor: value - divisor * math.floor(value / divisor),
    "IF": lambda test, then, otherwise: then if test else otherwise,
    "AND": lambda *values: all(values),
    "OR": lambda *values: any(values),
    "NOT": lambda value: not value,
    "ISBLANK": lambda value: value is None,
}


class _Cell:
    def __init__(self, text: str, names: dict[str, Any]) -> None:
        self.tokens = list(_TOKEN.finditer(text))
        assert "".join(match[0] for match in self.tokens) == text, f"not a formula: {text}"
        self.names = names
        self.at = 0

    def sign(self) -> str | None:
        return self.tokens[self.at]["sign"] if self.at < len(self.tokens) else None

    def take(self, sign: str) -> bool:
        taken = self.sign() == sign
        self.at += taken
        return taken

    def expression(self, least: int = 1) -> Any:
        value = self.signed()
        while (sign := self.sign()) in _BINARY and _BINARY[sign][0] >= least:
            self.at += 1
            binding, operation = _BINARY[sign]
            # every operator of a spreadsheet, the power too, binds to the left
            value = operation(value, self.expression(binding + 1))
        return value

    def signed(self) -> Any:
        # a spreadsheet binds the sign before the power: -2^2 is 4
        return -self.signed() if self.take("-") else self.operand()

    def operand(self) -> Any:
        if self.take("("):
            value = self.expression()
            assert self.take(")")
            return value
        token = self.tokens[self.at]
        self.at += 1
        if token["number"]:
            return float(token["number"])
        if token["text"] is not None:
            return token["text"].replace('""', '"')
        assert token["name"], f"unexpected {token[0]}"
        if self.take("("):
            return self.call(token["name"])
        return {"TRUE": True, "FALSE": False}.get(token["name"], self.names.get(token["name"]))

    def call(self, name: str) -> Any:
        arguments = []
        while not self.take(")"):
            arguments.append(self.expression())
            self.take(",")
        return _FUNCTIONS[name](*arguments)


def computed(text: str, names: dict[str, Any]) -> Any:
    """The value of a cell's formula (without "=") where `names` says what the named cells hold."""
    cell = _Cell(text, names)
    value = cell.expression()
    assert cell.at == len(cell.tokens), f"left over in {text}"
    return value
