"""The band around a prediction: where the middle 80 % of the errors lie that were made on published runs like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ..numeric import Number, is_array
from ..report import Finding
from ..scenario import Scenario
from ..terms import Datum, is_recording, traced
from .errors import ErrorRow, shipped_errors
from .likeness import Criterion, Quantity, quantities, quantity_for

#: Ends of the band, as shares of the errors below them.
_ENDS = (0.1, 0.9)


@dataclass(frozen=True)
class Band:
    """How much less and how much more time or memory than predicted (ratios, ≤ 0 and ≥ 0), and the rows that say so.

    `alike` rows meet every criterion; `held` and `open` name the criteria that the rows share and those left open.
    """

    low: Number
    high: Number
    rows: Number
    alike: Number
    sources: Number
    held: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Where the band comes from, in a sentence."""
        alike = "" if self.alike else "no published run is like this plan; "
        shared = f" with {', '.join(self.held)}" if self.held else ""
        left = f"; left open: {', '.join(self.open)}" if self.open else ""
        return f"{alike}errors of {self.rows} published runs of {self.sources} sources{shared}{left}"


def band_of(scenario: Scenario, quantity: str = "") -> Band:
    """The band of a plan's quantity ("step", "peak", "pace", "first token", "cache"; by default that of its time).

    For arrays of plans too."""
    quantity = quantity or quantity_for(scenario.kind)
    answers = tuple([criterion.of(criterion.value(scenario)) for criterion in quantities()[quantity].criteria])
    return _of_arrays(quantity, answers) if is_array(*answers) else band_of_answers(quantity, answers)


def unlike_findings(scenario: Scenario) -> Iterator[Finding]:
    """Says that nothing like the plan was measured, and whose errors its band is made of."""
    quantity = quantity_for(scenario.kind)
    band = band_of(scenario, quantity)
    if band.alike:
        return
    asked = {criterion.name: criterion.path for criterion in quantities()[quantity].criteria}
    shared = f" with {', '.join(band.held)}" if band.held else ""
    message = f"Nothing like this plan was published; the band is that of {band.rows} runs{shared}."
    yield Finding("nothing-like-it-measured", "hint", message, asked[band.open[0]])


def ends_of(band: Band, stated_low: Number | None, stated_high: Number | None) -> tuple[Number, Number]:
    """The ends of a band, a person's own in place of those of the published runs; with their origin while recording."""
    low, high = band.low, band.high
    if is_recording():
        low, high = (
            traced(end, Datum(f"assumptions.band_{n}", band.words)) for n, end in (("low", low), ("high", high))
        )
    return low if stated_low is None else stated_low, high if stated_high is None else stated_high


def rows_of(band: Band) -> Number:
    """How many published runs a band is made of; with their origin while recording."""
    return traced(band.rows, Datum("published runs", band.words)) if is_recording() else band.rows


def _of_arrays(quantity: str, answers: tuple[Any, ...]) -> Band:
    """One band an entry. Only yes and no vary along an array, so there are few different ones."""
    places = [place for place, answer in enumerate(answers) if is_array(answer)]
    code = sum(answers[place].astype(int) << digit for digit, place in enumerate(places))
    bands = []
    for bits in product((False, True), repeat=len(places)):
        chosen = dict(zip(places, reversed(bits), strict=True))
        each = tuple(chosen.get(place, answer) for place, answer in enumerate(answers))
        bands.append(band_of_answers(quantity, each))
    return Band(*(np.array([getattr(band, name) for band in bands])[code] for name in _NUMBERS))


_NUMBERS = ("low", "high", "rows", "alike", "sources")


@cache
def band_of_answers(quantity: str, answers: tuple[Any, ...]) -> Band:
    """The band of the shipped rows for a plan that answers the criteria so."""
    return _band([row for row in shipped_errors() if row.quantity == quantity], quantities()[quantity], answers)


def coverage(quantity: str) -> float:
    """Share of the published rows that lie within a band made without the rows of their source."""
    rows, asked = [row for row in shipped_errors() if row.quantity == quantity], quantities()[quantity]
    inside = (_inside(source, rows, asked) for source in {row.source for row in rows})
    return sum(inside) / len(rows)


def _inside(source: str, rows: list[ErrorRow], asked: Quantity) -> int:
    """How many rows of a source lie within the bands that the other sources make."""
    others = [row for row in rows if row.source != source]
    own: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row.source == source:
            answers = tuple(criterion.of(row.plan.get(criterion.path, "")) for criterion in asked.criteria)
            own.setdefault(answers, []).append(row.slowdown - 1)
    made = ((_band(others, asked, answers), errors) for answers, errors in own.items())
    return sum(band.low <= error <= band.high for band, errors in made for error in errors)


def _band(rows: list[ErrorRow], asked: Quantity, answers: tuple[Any, ...]) -> Band:
    """The band of the rows that answer the criteria alike, as many of them as leave enough rows and sources."""
    alike = rows
    held, left_open = [], []
    for criterion, answer in zip(asked.criteria, answers, strict=True):
        alike = _answering(alike, criterion, answer)
        fewer = _answering(rows, criterion, answer)
        enough = len(fewer) >= asked.rows and len({row.source for row in fewer}) >= asked.sources
        rows = fewer if enough else rows
        (held if enough else left_open).append(criterion.said(answer) if enough else criterion.name)
    slowdowns = np.array([row.slowdown for row in rows])
    counts = Counter(row.source for row in rows)
    low, high = quantiles(slowdowns, np.array([counts[row.source] ** -0.5 for row in rows]))
    ends = min(low - 1, -asked.least), max(high - 1, asked.least)
    return Band(*ends, len(rows), len(alike), len(counts), tuple(held), tuple(left_open))


def _answering(rows: list[ErrorRow], criterion: Criterion, answer: Any) -> list[ErrorRow]:
    return [row for row in rows if criterion.met(row.plan, answer)]


def quantiles(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The two ends below which a tenth and nine tenths of the weight lie; of each value's own weight half is below."""
    order = np.argsort(values)
    share = np.cumsum(weights[order]) - weights[order] / 2
    low, high = np.interp(_ENDS, share / np.sum(weights), values[order])
    return float(low), float(high)
