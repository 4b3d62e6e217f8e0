"""Values that runs report, with the units in which they may stand: what each metric is in, and others that do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ScenarioError
from ..units import DECIMAL, UNITS
from .rows import Row

#: Words for one device in the unit of a rate.
_EACH = ("/GPU", "/gpu", "/chip", "/device")


@dataclass(frozen=True)
class Quantity:
    """What a metric is: the unit of a bare number, and the factor of every unit to SI.

    Rates `each` device may say so in their unit or leave it to the metric; others may not. `most` is the greatest value
    that can be, in SI.
    """

    usual: str
    factors: Mapping[str, float]
    each: bool = False
    most: float = math.inf

    @property
    def written(self) -> str:
        """The usual unit with what it is of."""
        return self.usual + (_EACH[0] if self.each else "")

    def read(self, row: Row, column: str) -> float:
        """The value of a cell in SI, by the row's unit. ScenarioError with file, line and column for what cannot be."""
        value = row.positive(column) * self._factor(row)
        if value > self.most:
            said = f"{row[column]} {row['unit'] or self.usual}"
            most = f"{self.most / self.factors[self.usual]:g} {self.usual}"
            raise ScenarioError(row.file, row.line, column, f"{said} is too large: {most} or less would do")
        return value

    def _factor(self, row: Row) -> float:
        unit = row["unit"] or self.usual
        bare = next((unit.removesuffix(each) for each in _EACH if unit.endswith(each)), unit) if self.each else unit
        factor = self.factors.get(bare.strip())
        if factor is None:
            others = ", ".join(name for name in self.factors if name != self.usual)
            raise ScenarioError(row.file, row.line, "unit", f"{unit!r} is not one of {self.written}, {others}")
        return factor


def _rates(*names: str) -> dict[str, float]:
    return {f"{prefix}{name}/s": DECIMAL[prefix] for prefix in ("", "k", "M") for name in names}


_TOKENS = _rates("tokens", "tok")
SECONDS = Quantity("s", {name: UNITS["seconds"].factors[name] for name in ("s", "ms", "us", "µs", "min", "h")})
MILLISECONDS = Quantity("ms", SECONDS.factors)
TOKENS = Quantity("tokens/s", _TOKENS)
TOKENS_EACH = Quantity("tokens/s", _TOKENS, each=True)
SEQUENCES = Quantity("sequences/s", _rates("sequences", "samples"))
FLOPS_EACH = Quantity(
    "TFLOP/s",
    {name + word: DECIMAL[name] for name in ("T", "G", "P") for word in ("FLOP/s", "FLOPS", "FLOPs", "FLOPs/s")},
    each=True,
)
SHARE = Quantity("%", {"%": 0.01, "ratio": 1.0}, most=1.0)
