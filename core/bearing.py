"""Which value carries the meaning of another: guards and sums say nothing of their own."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Any

from .notation import value_of
from .numeric import is_array
from .sums import MULTIPLES, SUMS
from .terms import Term, origin_of, plain


def bearer(value: Any) -> Any:
    """The value that a choice let through ("only where there is a pipeline"), or a sum with nothing else in it."""
    while isinstance(term := origin_of(value), Term):
        name = _passed(term)
        if name is None or origin_of(term.inputs[name]) is None:
            return value
        value = term.inputs[name]
    return value


def parts(value: Any, known: Container[int] = ()) -> list[Any]:
    """The values that a chain of additions adds up, without those that are zero; the value itself when it is none.

    A part whose Term (by its id) is `known` is a result of its own and is not taken apart.
    """
    value = bearer(value)
    term = origin_of(value)
    if not isinstance(term, Term) or term.formula not in SUMS:
        return [value]
    added = [term.inputs["first"], term.inputs["second"]]
    return [part for each in added if plain(each) != 0 for part in _taken_apart(each, known)] or [value]


def _taken_apart(value: Any, known: Container[int]) -> list[Any]:
    return [value] if id(origin_of(value)) in known else parts(value, known)


def multiple(value: Any) -> tuple[Any, Any] | None:
    """Count and thing of something done several times, or None."""
    term = origin_of(value)
    if not isinstance(term, Term) or term.formula not in MULTIPLES:
        return None
    count, thing = (term.inputs[name] for name in term.formula.parameters)
    return count, thing


def is_wrapper(term: Term) -> bool:
    """Whether a formula only adds up or repeats, so that its name says less than that of its place."""
    return term.formula in (*SUMS, *MULTIPLES)


def _passed(term: Term) -> str | None:
    """The parameter whose value came through unchanged because a condition chose it or the rest is neutral."""
    formula = term.formula
    node = _chosen(term, formula.expression)
    if node is formula.expression and not is_wrapper(term):
        return None
    node = _without_neutral(term, node) if is_wrapper(term) else node
    return node.id if isinstance(node, ast.Name) and node.id in term.inputs else None


def _chosen(term: Term, node: ast.expr) -> ast.expr:
    """The branch that the conditions of an expression took; the expression itself where it makes no choice."""
    while (choice := _choice(node)) is not None:
        test, then, otherwise = choice
        holds = value_of(term.formula, test, term.inputs)
        if is_array(holds):
            return node
        node = then if holds else otherwise
    return node


def _choice(node: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    if isinstance(node, ast.IfExp):
        return node.test, node.body, node.orelse
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "where":
        return node.args[0], node.args[1], node.args[2]
    return None


def _without_neutral(term: Term, node: ast.expr) -> ast.expr:
    """One side of a sum with zero or of a product with one."""
    if not isinstance(node, ast.BinOp):
        return node
    neutral = 0 if isinstance(node.op, ast.Add) else 1
    for side, other in ((node.left, node.right), (node.right, node.left)):
        found = value_of(term.formula, other, term.inputs)
        if not is_array(found) and found == neutral:
            return side
    return node
