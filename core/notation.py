"""Walks the one expression of a formula and hands each piece to a notation (mathematics, spreadsheet cells)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .terms import Formula

#: How tightly a piece binds, loosest first: a piece is bracketed where its place asks for a tighter one.
CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)

#: A piece of text and how tightly it binds.
Piece = tuple[str, int]

_BINDING: dict[type[ast.operator], int] = {
    ast.Add: SUM,
    ast.Sub: SUM,
    ast.Mult: PRODUCT,
    ast.Div: PRODUCT,
    ast.FloorDiv: PRODUCT,
    ast.Mod: PRODUCT,
    ast.Pow: POWER,
}


def value_of(formula: Formula, node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of a piece of a formula for some values of its parameters (and loop variables)."""
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval")
    return eval(code, {**formula.function.__globals__, **names})


class Notation:
    """One way to write an expression. A subclass writes names, constants, calls, choices, tables and sums."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def write(self) -> str:
        return self.text(self.formula.expression)

    def text(self, node: ast.expr, place: int = CHOICE) -> str:
        """The text of a piece, in brackets where it binds less tightly than its place asks for."""
        text, binding = self.piece(node)
        return text if binding >= place else f"({text})"

    def piece(self, node: ast.expr) -> Piece:
        writer = getattr(self, f"write_{type(node).__name__.lower()}", None)
        if writer is None:
            raise TypeError(f"formula {self.formula.name}: no notation for {ast.unparse(node)}")
        return writer(node)

    def write_binop(self, node: ast.BinOp) -> Piece:
        binding = _BINDING[type(node.op)]
        # the right side of - and / and both sides of a power need brackets where an equal binding stands
        right_place = binding if isinstance(node.op, (ast.Add, ast.Mult)) else binding + 1
        left_place = binding + 1 if isinstance(node.op, ast.Pow) else binding
        return self.operation(node.op, self.text(node.left, left_place), self.text(node.right, right_place), binding)

    def operation(self, operator: ast.operator, left: str, right: str, binding: int) -> Piece:
        raise NotImplementedError

    def known(self, name: str) -> Any:
        """The value of a name that is not a parameter: a constant or a table of the formula's module."""
        return self.formula.function.__globals__[name]

    def is_parameter(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.formula.parameters
