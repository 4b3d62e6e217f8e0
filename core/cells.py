"""A formula in spreadsheet grammar, so that a workbook computes what the program computed.

Tables and sums over tables are written out: a cell knows no loops and no look-ups by word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from .notation import ATOM, COMPARISON, POWER, PRODUCT, SIGN, SUM, Notation, Piece, value_of
from .numeric import FUNCTIONS
from .terms import Formula, Term, formula_of, plain

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "^",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_CALLS = FUNCTIONS | {"sum": "SUM", "max": "MAX", "min": "MIN", "abs": "ABS"}


def literal(value: Any) -> Piece:
    """A constant as a cell writes it: numbers to the last digit, words quoted."""
    value = plain(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE"), ATOM
    if value is None:
        return '""', ATOM
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"', ATOM
    return repr(value).upper(), SIGN if value < 0 else ATOM


class Cells(Notation):
    """The expression of a Term's formula; `names` says which cell (or name) holds each parameter."""

    def __init__(self, formula: Formula, inputs: Mapping[str, Any], names: Mapping[str, Piece]) -> None:
        super().__init__(formula)
        self.inputs = inputs
        self.names = names
        #: Values of the loop variables of the sum that is being written out.
        self.bound: dict[str, Any] = {}

    def piece(self, node: ast.expr) -> Piece:
        if not isinstance(node, (ast.Constant, ast.Tuple, ast.List)) and self._is_constant(node):
            return literal(self._value(node))
        return super().piece(node)

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether the value does not depend on a parameter that has a cell."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        return bool(names) and all(name in self.bound or name not in self.names for name in names)

    def _value(self, node: ast.expr) -> Any:
        return value_of(self.formula, node, {**self.inputs, **self.bound})

    def operation(self, operator: ast.operator, left: str, right: str, binding: int) -> Piece:
        if isinstance(operator, ast.FloorDiv):
            return f"FLOOR({left}/{right},1)", ATOM
        if isinstance(operator, ast.Mod):
            return f"MOD({left},{right})", ATOM
        return left + _OPERATORS[type(operator)] + right, binding

    def write_unaryop(self, node: ast.UnaryOp) -> Piece:
        if isinstance(node.op, ast.Not):
            return f"NOT({self.text(node.operand)})", ATOM
        # a cell reads -2^2 as (-2)^2
        return f"-{self.text(node.operand, ATOM)}", SIGN

    def write_boolop(self, node: ast.BoolOp) -> Piece:
        name = "AND" if isinstance(node.op, ast.And) else "OR"
        return f"{name}({','.join(self.text(value) for value in node.values)})", ATOM

    def write_compare(self, node: ast.Compare) -> Piece:
        lefts = [node.left, *node.comparators]
        pairs = [self._comparison(*pair) for pair in zip(lefts, node.ops, node.comparators, strict=False)]
        return pairs[0] if len(pairs) == 1 else (f"AND({','.join(text for text, _ in pairs)})", ATOM)

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Piece:
        if isinstance(operator, (ast.Is, ast.IsNot)):
            blank = f"ISBLANK({self.text(left)})"
            return (blank if isinstance(operator, ast.Is) else f"NOT({blank})"), ATOM
        if isinstance(operator, (ast.In, ast.NotIn)):
            equal = ",".join(f"{self.text(left, SUM)}={literal(value)[0]}" for value in self._value(right))
            return (f"OR({equal})" if isinstance(operator, ast.In) else f"NOT(OR({equal}))"), ATOM
        return f"{self.text(left, SUM)}{_COMPARISONS[type(operator)]}{self.text(right, SUM)}", COMPARISON

    def write_ifexp(self, node: ast.IfExp) -> Piece:
        return f"IF({self.text(node.test)},{self.text(node.body)},{self.text(node.orelse)})", ATOM

    def write_constant(self, node: ast.Constant) -> Piece:
        return literal(node.value)

    def write_name(self, node: ast.Name) -> Piece:
        return self.names[node.id]

    def write_attribute(self, node: ast.Attribute) -> Piece:
        return literal(self._value(node))

    def write_tuple(self, node: ast.Tuple) -> Piece:
        return ",".join(self.text(element) for element in node.elts), ATOM

    write_list = write_tuple

    def write_subscript(self, node: ast.Subscript) -> Piece:
        if not self._is_constant(node.value):
            return literal(self._value(node))
        table = self._value(node.value)
        entries = list(table.items() if isinstance(table, Mapping) else enumerate(table))
        key = self.text(node.slice, SUM)
        text = literal(entries[-1][1])[0]
        for name, value in reversed(entries[:-1]):
            text = f"IF({key}={literal(name)[0]},{literal(value)[0]},{text})"
        return text, ATOM

    def write_call(self, node: ast.Call) -> Piece:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        called = formula_of(self.formula.function.__globals__.get(name))
        if called:
            return self._inlined(called, node)
        if name == "ratio":
            over, under = self.text(node.args[0], PRODUCT), self.text(node.args[1], POWER)
            return f"IF({under}=0,0,{over}/{under})", ATOM
        if name in ("float", "int"):
            return self.piece(node.args[0])
        arguments = ",".join(text for argument in node.args for text in self._arguments(argument))
        return f"{_CALLS[name]}({arguments}{',1' if name in ('ceil', 'floor') else ''})", ATOM

    def _inlined(self, called: Formula, node: ast.Call) -> Piece:
        """A formula used inside another one, written out."""
        arguments = dict(zip(called.parameters, node.args, strict=False))
        arguments |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        names = {name: literal(value) for name, value in called.defaults.items()}
        names |= {name: self.piece(argument) for name, argument in arguments.items()}
        inputs = called.defaults | {name: self._value(argument) for name, argument in arguments.items()}
        return Cells(called, inputs, names).piece(called.expression)

    def _arguments(self, node: ast.expr) -> Iterator[str]:
        """The text of an argument; a loop over a table gives one text for each of its entries."""
        if not isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            yield self.text(node)
            return
        yield from self._loop(node.elt, node.generators)

    def _loop(self, element: ast.expr, loops: list[ast.comprehension]) -> Iterator[str]:
        if not loops:
            yield self.text(element)
            return
        before = self.bound
        for value in self._value(loops[0].iter):
            self.bound = before | _assigned(loops[0].target, value)
            if all(self._value(condition) for condition in loops[0].ifs):
                yield from self._loop(element, loops[1:])
        self.bound = before


def _assigned(target: ast.expr, value: Any) -> dict[str, Any]:
    """What a loop's target stands for in one round; targets may be tuples."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    assert isinstance(target, ast.Tuple)
    return {
        name: each
        for part, item in zip(target.elts, value, strict=True)
        for name, each in _assigned(part, item).items()
    }


def cell_text(term: Term, cells: Mapping[str, str] | None = None) -> str:
    """The Term's formula as a cell would hold it, without the leading "=".

    `cells` names the cell of each input ("Inputs!C4"); an input without one goes by its parameter's name. A list
    goes by the name of its range. Source of the grammar: ECMA-376 part 1, 18.17 (formulas).
    """
    names = {name: ((cells or {}).get(name, name), ATOM) for name, value in term.inputs.items() if _fills_a_cell(value)}
    return Cells(term.formula, term.inputs, names).write()


def _fills_a_cell(value: Any) -> bool:
    return not is_dataclass(value) and not isinstance(value, Mapping)
