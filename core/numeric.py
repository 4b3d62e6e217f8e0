"""Mathematics that takes a float or a numpy array alike.

numpy costs about two microseconds for a ufunc on a single number, a Python float operation a tenth of that.
Every formula is written once with these functions: on floats they stay in Python, on arrays they are numpy's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy import ndarray

#: A float, or an array of them with one entry a scenario.
Number = Any


def is_array(*values: Number) -> bool:
    """Whether any of the values is a numpy array."""
    for value in values:  # noqa: SIM110 (a generator takes twice as long, and this is asked hundreds of times)
        if type(value) is ndarray:
            return True
    return False


def ceil(value: Number) -> Number:
    return np.ceil(value) if isinstance(value, ndarray) else math.ceil(value)


def floor(value: Number) -> Number:
    return np.floor(value) if isinstance(value, ndarray) else math.floor(value)


def sqrt(value: Number) -> Number:
    return np.sqrt(value) if isinstance(value, ndarray) else math.sqrt(value)


def log(value: Number) -> Number:
    return np.log(value) if isinstance(value, ndarray) else math.log(value)


def maximum(first: Number, second: Number) -> Number:
    if isinstance(first, ndarray) or isinstance(second, ndarray):
        return np.maximum(first, second)
    return first if first >= second else second


def minimum(first: Number, second: Number) -> Number:
    if isinstance(first, ndarray) or isinstance(second, ndarray):
        return np.minimum(first, second)
    return first if first <= second else second


def largest(values: Iterable[Number]) -> Number:
    """The largest of some values, entry by entry where one of them is an array."""
    iterator = iter(values)
    result = next(iterator)
    for value in iterator:
        result = maximum(result, value)
    return result


def smallest(values: Iterable[Number]) -> Number:
    """The smallest of some values, entry by entry where one of them is an array."""
    iterator = iter(values)
    result = next(iterator)
    for value in iterator:
        result = minimum(result, value)
    return result


def where(condition: Number, then: Number, otherwise: Number) -> Number:
    """`then` where the condition holds, else `otherwise`. Both are computed, so neither may divide by zero."""
    if isinstance(condition, ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def ratio(numerator: Number, denominator: Number) -> Number:
    """numerator / denominator, and 0 where the denominator is 0."""
    if isinstance(denominator, ndarray):
        nonzero = denominator != 0
        return np.where(nonzero, numerator / np.where(nonzero, denominator, 1.0), 0.0)
    return numerator / denominator if denominator else 0.0 * numerator


def both(first: Number, second: Number) -> Number:
    """Logical and."""
    if isinstance(first, ndarray) or isinstance(second, ndarray):
        return np.logical_and(first, second)
    return bool(first) and bool(second)


#: The functions a formula may call, by name, with the spreadsheet function of the same meaning.
FUNCTIONS = {
    "ceil": "CEILING",
    "floor": "FLOOR",
    "sqrt": "SQRT",
    "log": "LN",
    "maximum": "MAX",
    "minimum": "MIN",
    "largest": "MAX",
    "smallest": "MIN",
    "where": "IF",
    "ratio": "RATIO",
    "both": "AND",
}
