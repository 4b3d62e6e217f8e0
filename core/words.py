"""Phrases that charts, tables and sentences share."""

from __future__ import annotations

import re

from .units import digits, format_quantity

GIB = 2.0**30
#: Why a served plan has no rates, or no time to first token.
NO_ROOM = "Not one request fits into memory."
NO_END = "More requests come than are answered: waits have no end."
#: Units of long times: how many of them make a day.
SPANS = {"day": 1, "hour": 24, "minute": 1440}
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[^\d\W]|%)")
_INSTANTS = {
    "loss": "at the loss",
    "backward": "in the backward pass",
    "optimizer step": "in the optimizer step",
}


def gib(size: float) -> str:
    """A size in GiB without its unit, for values inside bars and pairs such as "56.4 of 79.2 GiB"."""
    return digits(size / GIB, 3 if size >= 9.95 * GIB else 2)


def percent(share: float) -> str:
    """A share with as many digits as are worth reading: 0.7 %, 8.4 %, 49 %."""
    return format_quantity(share, "ratio", 2 if share >= 0.01 else 1)


def count(value: float) -> str:
    return format_quantity(value, "count")


def plural(value: float, noun: str) -> str:
    """A count with its noun: 1 GPU, 64 GPUs, 2 micro-batches."""
    return f"{count(value)} {noun}" + ("" if value == 1 else "es" if noun.endswith("ch") else "s")


def span(days: float) -> str:
    """Days in words, hours or minutes where there is not one of them: 318 days, 1 day, 1.76 hours."""
    value, noun = next(((days * per, noun) for noun, per in SPANS.items() if days * per >= 1), (days * 1440, "minute"))
    text = count(value) if value == round(value) else digits(value)
    return f"{text} {noun}{'' if text == '1' else 's'}"


def when(instant: str) -> str:
    """When memory peaks, in words: at the loss, in the backward pass."""
    return _INSTANTS.get(str(instant), f"at {instant}")


def unbroken(text: str) -> str:
    """The text with each number on the line of its unit, whatever breaks lines at spaces."""
    return _BEFORE_UNIT.sub("\u00a0", text)


def seconds(value: float, significant: int = 2) -> str:
    return format_quantity(value, "seconds", significant)
