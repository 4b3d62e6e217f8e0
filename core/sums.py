"""Sums and multiples, one of each unit, as formulas, so that the working shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .numeric import Number
from .terms import formula, formula_of


@formula("Σ t", "s")
def add_seconds(first: Number, second: Number) -> Number:
    """Two things one after the other."""
    return first + second


@formula("n·t", "s")
def times_seconds(count: Number, seconds: Number) -> Number:
    """Something done several times."""
    return count * seconds


@formula("Σ bytes", "B")
def add_bytes(first: Number, second: Number) -> Number:
    """Two sets of bytes together."""
    return first + second


@formula("n·bytes", "B")
def times_bytes(count: Number, moved: Number) -> Number:
    """Bytes of something done several times."""
    return count * moved


@formula("Σ bytes", "B/token")
def add_token_bytes(first: Number, second: Number) -> Number:
    """Bytes of a token in two things."""
    return first + second


@formula("Σ F", "FLOP")
def add_flops(first: Number, second: Number) -> Number:
    """FLOPs of two things."""
    return first + second


@formula("n·F", "FLOP")
def times_flops(count: Number, flops: Number) -> Number:
    """FLOPs of something done several times."""
    return count * flops


@formula("Σ F", "FLOP/token")
def add_token_flops(first: Number, second: Number) -> Number:
    """FLOPs of a token in two things."""
    return first + second


@formula("Σ ψ", "parameters")
def add_parameters(first: Number, second: Number) -> Number:
    """Parameters of two things."""
    return first + second


@formula("Σ", "elements")
def add_elements(first: Number, second: Number) -> Number:
    """Elements of two things."""
    return first + second


@formula("Σ n", "times")
def add_times(first: Number, second: Number) -> Number:
    """How often two things happen."""
    return first + second


@formula("n·m", "times")
def times_count(count: Number, each: Number) -> Number:
    """How often something happens that is done several times in each of several."""
    return count * each


#: The sums and the multiples; a result made of them alone says less than that of its place.
SUMS, MULTIPLES = (
    tuple(map(formula_of, each))
    for each in (
        (add_seconds, add_bytes, add_token_bytes, add_flops, add_token_flops, add_parameters, add_elements, add_times),
        (times_seconds, times_bytes, times_flops, times_count),
    )
)


def total_seconds(values: Sequence[Number]) -> Number:
    """Sum of some times, as a chain of additions; 0 where there are none."""
    return reduce(add_seconds, values) if values else 0.0


def total_bytes(values: Sequence[Number]) -> Number:
    """Sum of some bytes, as a chain of additions; 0 where there are none."""
    return reduce(add_bytes, values) if values else 0.0
