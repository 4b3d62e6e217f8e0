"""The working shown is the working done.

`@formula` marks a function whose body is one expression. While a recorder is on, each call leaves a `Term`: the
formula, its inputs with where each came from, and the value. With no recorder a call costs one test.
Numbers carry their origin as a subclass of float, so composition code passes plain values around and the graph of
terms builds itself.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache, wraps
from typing import Any

from .numeric import is_array

#: Results of a remembered formula that are kept.
_KEPT = 1 << 16


@dataclass(frozen=True)
class Datum:
    """Where a value that no formula computed came from: a field of the scenario or a fact of a catalogue."""

    path: str
    source: str = ""


Origin = "Term | Datum | None"


class Traced(float):
    """A number that knows where it came from. Arithmetic on it gives plain floats again."""

    __slots__ = ("origin",)
    origin: Any


class TracedText(str):
    """A word that knows where it came from (a verdict, a bottleneck)."""

    origin: Any


class TracedTruth(int):
    """A yes or no that knows where it came from."""

    origin: Any

    def __repr__(self) -> str:
        return repr(bool(self))


def traced(value: Any, origin: Any) -> Any:
    """The value with its origin attached; values that cannot carry one come back as they are."""
    if isinstance(value, bool):
        result: Any = TracedTruth(value)
    elif isinstance(value, (int, float)):
        result = Traced(value)
    elif isinstance(value, str):
        result = TracedText(value)
    else:
        return value
    result.origin = origin
    return result


def origin_of(value: Any) -> Any:
    """The Term or Datum behind a value, or None for a constant written in the formula's call."""
    return getattr(value, "origin", None)


def plain(value: Any) -> Any:
    """The value without its origin, as an ordinary float, int, bool or str."""
    if isinstance(value, Traced):
        return float(value)
    if isinstance(value, TracedTruth):
        return bool(value)
    return str(value) if isinstance(value, TracedText) else value


@dataclass(frozen=True)
class Term:
    """One evaluated formula: what was computed, from what, and the value."""

    formula: Formula
    inputs: dict[str, Any]
    value: Any

    def origin(self, name: str) -> Any:
        """Where input `name` came from: a Term, a Datum, or None."""
        return origin_of(self.inputs[name])


class Recorder:
    """Collects the Terms of one evaluation, in the order in which they were computed."""

    def __init__(self) -> None:
        self.terms: list[Term] = []

    def record(self, called: Formula, arguments: dict[str, Any], value: Any) -> Any:
        term = Term(called, arguments, plain(value))
        self.terms.append(term)
        return traced(value, term)


_active: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


@contextmanager
def recording() -> Iterator[Recorder]:
    """Within this context every formula leaves a Term in the recorder it yields."""
    recorder = Recorder()
    token = _active.set(recorder)
    try:
        yield recorder
    finally:
        _active.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Within this context formulas leave no Terms: for values that are tried and thrown away."""
    token = _active.set(None)
    try:
        yield
    finally:
        _active.reset(token)


def is_recording() -> bool:
    return _active.get() is not None


@dataclass(eq=False)
class Formula:
    """What a reader asks of a formula: its function, symbol, unit, source, and what it leaves out."""

    function: Callable[..., Any]
    symbol: str
    unit: str
    source: str
    leaves_out: str = ""
    parameters: tuple[str, ...] = field(init=False)
    defaults: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        signature = inspect.signature(self.function).parameters
        self.parameters = tuple(signature)
        self.defaults = {n: p.default for n, p in signature.items() if p.default is not inspect.Parameter.empty}

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def meaning(self) -> str:
        """First sentence of the docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0].rstrip(".")

    @cached_property
    def expression(self) -> ast.expr:
        """The syntax tree of the one expression that is the body."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        body = [s for s in tree.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            raise TypeError(f"formula {self.name} must be one return statement")
        return body[0].value


def _looked_up(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose results for the same single numbers are kept; arrays are computed each time."""
    kept = lru_cache(maxsize=_KEPT)(function)

    def run(*args: Any) -> Any:
        return function(*args) if is_array(*args) else kept(*args)

    return run


def formula(
    symbol: str, unit: str, source: str = "definition", leaves_out: str = "", remembered: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function's body is one expression, rendered and explained from its own syntax tree.

    A costly one is `remembered`: single numbers that came before are looked up. Arguments are given by place: a
    thousand calls an evaluation make the cost of one count.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        made = Formula(function, symbol, unit, source, leaves_out)
        run, recorder = _looked_up(function) if remembered else function, _active.get

        @wraps(function)
        def call(*args: Any) -> Any:
            return run(*args) if recorder() is None else _recorded(made, args)

        call.__dict__["formula"] = made
        return call

    return decorate


def formula_of(value: Any) -> Formula | None:
    """The formula behind a function, None for any other value."""
    return getattr(value, "formula", None) if inspect.isfunction(value) else None


def _recorded(called: Formula, args: tuple[Any, ...]) -> Any:
    recorder = _active.get()
    assert recorder is not None
    arguments = called.defaults | dict(zip(called.parameters, args, strict=False))
    return recorder.record(called, arguments, called.function(*args))


def with_origins(value: Any, path: str, source: str = "") -> Any:
    """A copy of a tree of frozen dataclasses in which each number carries its path as origin.

    A dataclass with a `source` field gives that source to its own numbers.
    """
    if is_dataclass(value) and not isinstance(value, type):
        source = getattr(value, "source", source)
        changes = {
            f.name: with_origins(getattr(value, f.name), f"{path}.{f.name}" if path else f.name, source)
            for f in fields(value)
        }
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(with_origins(each, path, source) if is_dataclass(each) else each for each in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return traced(value, Datum(path, source))
    return value
