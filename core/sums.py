"""Sums and multiples of times and bytes, as formulas, so that the working shows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .numeric import Number
from .terms import formula


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


def total_seconds(values: Sequence[Number]) -> Number:
    """Sum of some times, as a chain of additions."""
    return reduce(add_seconds, values)


def total_bytes(values: Sequence[Number]) -> Number:
    """Sum of some bytes, as a chain of additions."""
    return reduce(add_bytes, values)
