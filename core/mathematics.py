"""A formula as mathematics, and with its values put in: written from the formula's own syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .notation import AND, ATOM, CHOICE, COMPARISON, NOT, OR, POWER, PRODUCT, SIGN, SUM, Notation, Piece
from .symbols import symbol
from .terms import Formula, Term, formula_of

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: " + ", ast.Sub: " − ", ast.Mult: " · ", ast.Div: " / "}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: "≠",
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "is one of",
    ast.NotIn: "is none of",
}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_EXTREMES = {"maximum": "max", "largest": "max", "minimum": "min", "smallest": "min"}
_FENCES = {"ceil": ("⌈", "⌉"), "floor": ("⌊", "⌋"), "abs": ("|", "|")}


def number_text(value: float) -> str:
    """A number of a formula's own text: 2, 0.5, 10⁹, 4.2·10⁻⁶."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == round(value) and abs(value) < 1e5 and abs(value) != 1e4:
        return str(int(value)).replace("-", "−")
    if 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}".replace("-", "−")
    mantissa, exponent = f"{value:.4e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", "−")
    power = "10" + str(int(exponent)).translate(_RAISED)
    return power if mantissa == "1" else f"{mantissa}·{power}"


class Mathematics(Notation):
    """Symbols, · and fractions on one line; `names` says how each parameter is written."""

    def __init__(self, formula: Formula, names: Callable[[str], str] = symbol) -> None:
        super().__init__(formula)
        self.names = names

    def operation(self, operator: ast.operator, left: str, right: str, binding: int) -> Piece:
        if isinstance(operator, ast.FloorDiv):
            return f"⌊{left} / {right}⌋", ATOM
        if isinstance(operator, ast.Mod):
            return f"{left} mod {right}", binding
        if isinstance(operator, ast.Pow):
            raised = right.replace("−", "-")
            return (left + raised.translate(_RAISED) if raised.isdecimal() else f"{left}^{right}"), POWER
        sign = _OPERATORS[type(operator)]
        if right.startswith("−") and isinstance(operator, (ast.Add, ast.Sub)):
            sign, right = (" − " if isinstance(operator, ast.Add) else " + "), right[1:]
        return left + sign + right, binding

    def write_unaryop(self, node: ast.UnaryOp) -> Piece:
        if isinstance(node.op, ast.Not):
            return f"not {self.text(node.operand, NOT)}", NOT
        return f"−{self.text(node.operand, POWER)}", SIGN

    def write_boolop(self, node: ast.BoolOp) -> Piece:
        word, binding = ("and", AND) if isinstance(node.op, ast.And) else ("or", OR)
        return f" {word} ".join(self.text(value, binding + 1) for value in node.values), binding

    def write_compare(self, node: ast.Compare) -> Piece:
        text = self.text(node.left, SUM)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            text += f" {_COMPARISONS[type(operator)]} {self.text(right, SUM)}"
        return text, COMPARISON

    def write_ifexp(self, node: ast.IfExp) -> Piece:
        return self._choice(node.test, node.body, node.orelse)

    def _choice(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Piece:
        return f"{self.text(then, OR)} if {self.text(test, OR)}, else {self.text(otherwise)}", CHOICE

    def write_constant(self, node: ast.Constant) -> Piece:
        if node.value is None:
            return "not given", ATOM
        if isinstance(node.value, str):
            return node.value, ATOM
        assert isinstance(node.value, (int, float))
        text = number_text(node.value)
        return text, PRODUCT if "·" in text else ATOM

    def write_name(self, node: ast.Name) -> Piece:
        if self.is_parameter(node):
            text = self.names(node.id)
            return text, SIGN if text.startswith("−") else PRODUCT if "·" in text else ATOM
        value = self.formula.function.__globals__.get(node.id)
        if isinstance(value, (int, float)):
            return number_text(value), ATOM
        return symbol(node.id.lower()), ATOM

    def write_attribute(self, node: ast.Attribute) -> Piece:
        return symbol(node.attr), ATOM

    def write_subscript(self, node: ast.Subscript) -> Piece:
        return f"{self.text(node.value, ATOM)}[{self.text(node.slice)}]", ATOM

    def write_tuple(self, node: ast.Tuple) -> Piece:
        return ", ".join(self.text(element) for element in node.elts), ATOM

    write_list = write_tuple

    def write_starred(self, node: ast.Starred) -> Piece:
        return self.text(node.value), ATOM

    def write_generatorexp(self, node: ast.GeneratorExp) -> Piece:
        return f"{self.text(node.elt)} for {self._each(node)}", CHOICE

    write_listcomp = write_generatorexp

    def _each(self, node: ast.GeneratorExp | ast.ListComp) -> str:
        loops = (f"{self.text(loop.target)} in {self.text(loop.iter)}" for loop in node.generators)
        conditions = (f"if {self.text(condition, OR)}" for loop in node.generators for condition in loop.ifs)
        return ", ".join((*loops, *conditions))

    def write_call(self, node: ast.Call) -> Piece:
        assert isinstance(node.func, ast.Name)
        name, arguments = node.func.id, node.args
        if name in _FENCES:
            left, right = _FENCES[name]
            return left + self.text(arguments[0]) + right, ATOM
        if name == "where":
            return self._choice(*arguments)
        if name == "ratio":
            return f"{self.text(arguments[0], PRODUCT)} / {self.text(arguments[1], SIGN)}", PRODUCT
        if name == "both":
            return " and ".join(self.text(argument, NOT) for argument in arguments), AND
        if name == "sqrt":
            return f"√{self.text(arguments[0], ATOM)}", ATOM
        if name == "sum":
            return self._sum(arguments[0])
        written = ", ".join(self.text(argument) for argument in arguments)
        return f"{_EXTREMES.get(name, 'ln' if name == 'log' else self._called(name))}({written})", ATOM

    def _sum(self, node: ast.expr) -> Piece:
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return f"Σ {self.text(node.elt, PRODUCT)} over {self._each(node)}", SUM
        return f"Σ {self.text(node, PRODUCT)}", PRODUCT

    def _called(self, name: str) -> str:
        called = formula_of(self.formula.function.__globals__.get(name))
        return called.symbol if called else symbol(name)


def left_side(formula: Formula) -> str:
    """What stands before the equals sign: the symbol, or the name where the symbol is itself an expression."""
    written = formula.symbol.split(" = ")[0]
    return symbol(formula.name) if any(mark in written for mark in "/·+(−⌊ ") else written


def math_text(formula: Formula) -> str:
    """The formula in the field's symbols: "F = 6 · N · T"."""
    return f"{left_side(formula)} = {Mathematics(formula).write()}"


def substituted(term: Term, value_text: Callable[[str], str], result: str) -> str:
    """The formula with values put in: "6 · 6.74B · 1.05M = 42.4 PFLOP"; `value_text` writes an input by its name."""
    return f"{Mathematics(term.formula, value_text).write()} = {result}"


def plain_text(value: Any) -> str:
    """A value that has no unit, as a reader sees it."""
    if value is None:
        return "not given"
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    return str(value)
