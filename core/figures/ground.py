"""The sheet of paper that a chart is painted on: its colours in three themes, and where data land on it."""

from __future__ import annotations

from dataclasses import dataclass

from .colour import mixed
from .figure import SERIES, Axis
from .placement import Box

_PALE = 0.34


@dataclass(frozen=True)
class Ground:
    """Colours of the sheet: what is not a series."""

    surface: str
    text: str
    muted: str
    grid: str
    dark: bool = False

    def series(self, name: str) -> str:
        return self.text if name == "text" else SERIES[name][self.dark]

    def pale(self, name: str, share: float = _PALE) -> str:
        return mixed(self.series(name), self.surface, share)


THEMES = {
    "print": Ground("#ffffff", "#000000", "#444c56", "#e2e6ec"),
    "light": Ground("#ffffff", "#111827", "#5b6675", "#e8ecf2"),
    "dark": Ground("#171e28", "#e6eaf0", "#9aa5b4", "#2b3542", dark=True),
}


@dataclass(frozen=True)
class Plot:
    """Where the data of a figure land on the sheet: left, low, right, high in points, and the axes."""

    box: Box
    x: Axis
    y: Axis

    def pixel(self, x: float, y: float) -> tuple[float, float]:
        left, low, right, high = self.box
        across, up = _share(self.x, x), _share(self.y, y)
        # rows of bars count from the top
        up = 1 - up if self.y.categories else up
        return left + across * (right - left), low + up * (high - low)


def _share(axis: Axis, position: float) -> float:
    low, high = axis.view(axis.low), axis.view(axis.high)
    return (axis.view(position) - low) / (high - low)
