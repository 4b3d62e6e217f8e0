"""A chart is data: axes, bars, lines, bands, marks and labels, each with a name to hover and to link.

Builders make Figures from Reports; the screen and the paper renderer are two readers of them. Positions are in data
units (an axis says whether it is logarithmic); a renderer takes the logarithm, never the builder.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """One axis. `ticks` are (position, text) pairs chosen by the builder; `low` and `high` are the data range.

    `categories` names the rows of a bar chart (row i is centred at position i, row 0 at the top); `above` puts the
    names over their bars instead of left of them. `unit` is what the texts of the ticks count in (2**30: GiB).
    """

    label: str = ""
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    categories: tuple[str, ...] = ()
    above: bool = False
    unit: float = 1.0

    def view(self, position: float) -> float:
        """Data position to the linear coordinate a renderer plots in (log10 on a logarithmic axis)."""
        return math.log10(max(position, 1e-300)) if self.log else position


@dataclass(frozen=True)
class Bar:
    """A horizontal bar segment on row `row`, from `start` to `start + length` on the x axis.

    `pattern` is solid, pale (hidden behind compute), hatched (overflow) or ghost (a baseline's outline).
    `text` is written inside when it fits. `hover` is name, value and share in words. `link` is the key of the result
    whose working a click asks for.
    """

    name: str
    series: str
    row: float
    start: float
    length: float
    height: float = 0.62
    pattern: str = "solid"
    text: str = ""
    hover: str = ""
    link: str = ""


@dataclass(frozen=True)
class Line:
    """A polyline. `style` is solid, dashed or dotted; `label` is written at its end when given."""

    name: str
    series: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: str = "solid"
    width: float = 2.0
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Band:
    """The area between two curves over the same x."""

    name: str
    series: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    hover: str = ""


@dataclass(frozen=True)
class Mark:
    """A point; `shape` is dot, ring (the present plan) or hollow (a baseline, a limit)."""

    name: str
    series: str
    x: float
    y: float
    shape: str = "dot"
    size: float = 9.0
    label: str = ""
    bold: bool = False
    hover: str = ""


@dataclass(frozen=True)
class Rule:
    """A straight line across the plot at one position: capacity, knee, deadline. `across` is x or y."""

    name: str
    series: str
    across: str
    at: float
    style: str = "solid"
    label: str = ""
    hover: str = ""


@dataclass(frozen=True)
class Label:
    """Text at a data position; `align` is left, center or right, `rise` moves it up by text heights."""

    text: str
    x: float
    y: float
    align: str = "left"
    rise: float = 0.0
    bold: bool = False
    series: str = "text"


@dataclass(frozen=True)
class Figure:
    """One chart. `title` says what the chart says; `key` lists (series, text) pairs for a legend row below.

    `columns` and `rows` are the data behind the chart in SI units: the CSV, and the table that copies.
    """

    name: str
    title: str
    subtitle: str
    x: Axis
    y: Axis
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()
    labels: tuple[Label, ...] = ()
    key: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    #: Said in place of the chart when there is nothing to draw.
    empty: str = ""
    scenario: str = ""

    @staticmethod
    def without(name: str, title: str, reason: str, scenario: str = "") -> Figure:
        """A chart with nothing to draw, and why."""
        return Figure(name, title, "", Axis(), Axis(), empty=reason, scenario=scenario)


#: Series colours, colour-blind safe, the same in every chart and in the report. (light, dark)
SERIES = {
    "weights": ("#2563eb", "#5b8def"),
    "expert_weights": ("#1e3a8a", "#3b5db5"),
    "low_precision_weights": ("#7c3aed", "#a78bfa"),
    "gradients": ("#38bdf8", "#56c8fa"),
    "optimizer": ("#0f9d76", "#25b68d"),
    "activations": ("#f59e0b", "#f2ac33"),
    "logits": ("#e2542c", "#f0714b"),
    "kv": ("#7c3aed", "#a78bfa"),
    "states": ("#0f9d76", "#25b68d"),
    "gathered": ("#c084a8", "#d19cbd"),
    "workspace": ("#9aa5b4", "#8793a5"),
    "scale-up": ("#2563eb", "#5b8def"),
    "scale-out": ("#0f9d76", "#25b68d"),
    "compute": ("#2563eb", "#5b8def"),
    "memory": ("#0f9d76", "#25b68d"),
    "communication": ("#7c3aed", "#a78bfa"),
    "launch": ("#9aa5b4", "#8793a5"),
    "bubble": ("#f59e0b", "#f2ac33"),
    "uneven": ("#92510b", "#c98a3d"),
    "straggler": ("#c084a8", "#d19cbd"),
    "failures": ("#e2542c", "#f0714b"),
    "prompts": ("#c084a8", "#d19cbd"),
    "queue": ("#be185d", "#ec4899"),
    "interface": ("#57534e", "#d6d3d1"),
    "lag": ("#65a30d", "#a3e635"),
    "drafts": ("#0e7490", "#22d3ee"),
    "whole": ("#5b6675", "#9aa5b4"),
    "full": ("#2563eb", "#5b8def"),
    "window": ("#38bdf8", "#56c8fa"),
    "latent": ("#7c3aed", "#a78bfa"),
    "linear": ("#0f9d76", "#25b68d"),
    "state": ("#f59e0b", "#f2ac33"),
    "convolution": ("#b7791f", "#e0a43c"),
    "cross": ("#c084a8", "#d19cbd"),
    "dense": ("#9aa5b4", "#8793a5"),
    "experts": ("#e2542c", "#f0714b"),
    "matrix": ("#6b7280", "#9ca3af"),
    "none": ("#e3e7ee", "#28303b"),
    "plan": ("#e2542c", "#f0714b"),
    "prediction": ("#2563eb", "#5b8def"),
    "bound": ("#5b6675", "#9aa5b4"),
    "whiteboard": ("#b7791f", "#e0a43c"),
    "capacity": ("#d03b3b", "#f06a6a"),
    "roof": ("#111827", "#e5e7eb"),
    "baseline": ("#6b7280", "#9ca3af"),
    "text": ("#1f2937", "#e5e7eb"),
}
