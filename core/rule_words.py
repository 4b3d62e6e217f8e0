"""How rules speak of whole numbers: which divide another, which would do; and of truths, or arrays of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .numeric import Number
from .terms import plain


def divisors(number: int) -> list[int]:
    """All divisors in ascending order."""
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return low + [number // d for d in reversed(low) if d * d != number]


def whole(value: Number) -> int:
    return int(plain(value))


def choice(values: list[int]) -> str:
    """ "1, 2, 4 or 8 do", cut in the middle where there are many."""
    if len(values) > 12:
        values = values[:11] + values[-1:]
    words = [str(value) for value in values]
    return f"{words[0]} does" if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]} do"


def does_not_divide(value: Number, total: Number, what: str) -> str:
    return f"{whole(value)} does not divide {whole(total)} {what} ({choice(divisors(whole(total)))})"


def multiples(value: Number, step: Number) -> str:
    """The multiples of `step` beside a value."""
    step = whole(step)
    below = whole(value) // step * step
    return choice([below, below + step] if below else [step])


def either(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.logical_or(first, second)
    return bool(first) or bool(second)
