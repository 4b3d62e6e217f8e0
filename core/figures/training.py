"""Days of training against the number of GPUs, with the prediction's band, the physical bound and the whiteboard."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np

from ..remedies import nearby_gpus
from ..report import Report
from ..scenario import Scenario
from ..units import digits, format_quantity, write_quantity
from ..words import count, plural, span
from .curves import Curve, along, runs
from .figure import Axis, Band, Figure, Line, Mark, Rule
from .ticks import log_ticks, power_ticks

#: Days asked for where a long plan has no deadline.
_USUAL = 90.0
#: Days up to which all of a chart is in hours.
_SHORT = 4.0
_HOVERS = {
    "physical bound": "physical bound: what no software can beat",
    "whiteboard": "whiteboard: 6 · parameters · tokens over peak and the stated MFU",
}


@dataclass(frozen=True)
class _Curve:
    """The curve over the legal numbers of GPUs, entry by entry; empty where the report has no such result."""

    gpus: Curve
    days: Curve
    low: Curve
    high: Curve
    bound: Curve
    ruled: Curve
    cost: Curve
    fits: tuple[bool, ...]

    def words(self, place: int) -> str:
        """One number of GPUs with its days, their range and the cost: "256 GPUs: 246 days (228–265), $2.72M"."""
        said = f"{plural(self.gpus[place], 'GPU')}: {span(self.days[place])}"
        if self.low and self.high:
            said += f" ({digits(self.low[place])}–{digits(self.high[place])})"
        said += f", {format_quantity(self.cost[place], 'USD')}" if self.cost else ""
        return said if self.fits[place] else f"{said}; does not fit in memory"


@dataclass(frozen=True)
class _Aim:
    """A deadline in days, and the place on the curve of the fewest GPUs that meet it, if any do."""

    days: float
    place: int | None

    @property
    def words(self) -> str:
        return span(round(self.days, 3))


def gpus_sweep(scenario: Scenario) -> Scenario:
    """The plan on the other numbers of GPUs on which it is legal, by data parallelism; everything else is kept.

    Its `cluster.gpus` is a rising array that holds the plan's own number.
    """
    gpus = sorted({*nearby_gpus(scenario), scenario.cluster.gpus})
    return scenario.with_("cluster.gpus", np.array(gpus, dtype=float))


def training_days(report: Report, curve: Report, baseline: Report | None = None) -> Figure:
    """Days against GPUs, both logarithmic. `curve` is the report of `gpus_sweep`."""
    if not report.progresses:
        empty = "Failures come faster than restarts: the training does not end."
        return Figure.without("training", "No progress", empty, report.scenario.name)
    line = _curve(curve)
    gpus, aim = line.gpus, _aim(report, line)
    marks = _marks(report, line, aim, baseline)
    columns = (line.days, line.low, line.high, line.bound, line.ruled)
    everything = [y for column in columns for y in column] + [mark.y for mark in marks] + ([aim.days] if aim else [])
    bottom, top = min(everything) / 1.3, max(everything) * 1.3
    # room on the right for the names of the lines
    left, right = gpus[0] / 1.1, gpus[-1] * 1.2 * (gpus[-1] / gpus[0]) ** 0.25
    word, unit = ("days", 1.0) if top > _SHORT else ("hours", 1 / 24)
    area = Band("band", "prediction", gpus, line.low, line.high, "range of the prediction")
    return Figure(
        "training",
        _title(report, line, aim),
        _subtitle(report, line),
        Axis("GPUs", left, right, True, power_ticks(left, gpus[-1] * 1.1)),
        Axis(word, bottom, top, True, log_ticks(bottom, top, unit), unit=unit),
        lines=tuple(_lines(line)) if len(gpus) > 1 else (),
        bands=(area,) if line.low and line.high else (),
        marks=tuple(marks),
        rules=(Rule("deadline", "capacity", "y", aim.days, "dashed", aim.words, f"time there is: {aim.words}"),)
        if aim
        else (),
        columns=(
            "GPUs",
            "days",
            "low [days]",
            "high [days]",
            "physical bound [days]",
            "whiteboard [days]",
            "cost [USD]",
        ),
        rows=tuple(zip(gpus, *(column or (None,) * len(gpus) for column in (*columns, line.cost)), strict=True)),
        scenario=report.scenario.name,
    )


def _curve(curve: Report) -> _Curve:
    gpus = tuple(np.atleast_1d(curve.scenario.cluster.gpus).tolist())
    days = ("training.days", "training.days_low", "training.days_high", "training.bound_days", "whiteboard.days")
    found = [along(curve.get(key), len(gpus)) for key in (*days, "cost.usd", "memory.fits")]
    # where failures outrun restarts a training does not end: no point of the curve
    ends = np.isfinite(found[0])
    planned, low, high, bound, ruled, cost, fits = (tuple(compress(each, ends)) for each in found)
    fits = tuple(bool(fit) for fit in fits) or (True,) * len(planned)
    return _Curve(tuple(compress(gpus, ends)), planned, low, high, bound, ruled, cost, fits)


def _aim(report: Report, line: _Curve) -> _Aim | None:
    """The plan's deadline; without one, the usual one where the plan takes longer and the curve answers it."""
    deadline = report.scenario.training.deadline
    wanted = _USUAL if deadline is None else deadline / 86400
    enough = (n for n, (days, fit) in enumerate(zip(line.days, line.fits, strict=True)) if fit and days <= wanted)
    place = next(enough, None)
    if deadline is None and (place is None or report["training.days"] <= wanted):
        return None
    return _Aim(wanted, place)


def _lines(line: _Curve) -> list[Line]:
    lines = []
    for name, curve in (("physical bound", line.bound), ("whiteboard", line.ruled)):
        if curve:
            style, width = ("dashed", 1.4) if name == "physical bound" else ("dotted", 1.6)
            series = "bound" if name == "physical bound" else name
            lines.append(Line(name, series, line.gpus, curve, style, width, name, _HOVERS[name]))
    for x, y, fit in runs(line.gpus, line.days, line.fits):
        style, name = ("solid", "prediction") if fit else ("dashed", "prediction, does not fit in memory")
        lines.append(Line(name, "prediction", x, y, style, 2.2, hover=name))
    return lines


def _marks(report: Report, line: _Curve, aim: _Aim | None, baseline: Report | None) -> list[Mark]:
    """Small dots that say what each number of GPUs takes and costs, the one that meets the deadline, and the plan."""
    own = float(report.scenario.cluster.gpus)
    marks = [
        Mark(count(n), "prediction", n, line.days[place], "dot", 5, hover=line.words(place))
        for place, n in enumerate(line.gpus)
        if n != own and (aim is None or place != aim.place)
    ]
    if len(line.gpus) == 1:
        marks += _single(line)
    if aim and aim.place is not None and line.gpus[aim.place] != own:
        n, days, words = line.gpus[aim.place], line.days[aim.place], line.words(aim.place)
        marks.append(
            Mark("deadline", "prediction", n, days, "hollow", 8, f"{plural(n, 'GPU')}: {span(days)}", hover=words)
        )
    if baseline and baseline.get("training.days"):
        gpus, days = float(baseline.scenario.cluster.gpus), float(baseline["training.days"])
        hover = f"baseline: {span(days)} on {plural(gpus, 'GPU')}"
        marks.append(Mark("baseline", "baseline", gpus, days, "hollow", 11, hover=hover))
    words = f"{span(report['training.days'])}{_band(report)} on {count(own)}"
    cost = report.get("cost.usd")
    hover = f"{words}, {format_quantity(cost, 'USD')}" if cost is not None else words
    marks.append(Mark("plan", "plan", own, float(report["training.days"]), "ring", 13, words, True, hover))
    return marks


def _single(line: _Curve) -> list[Mark]:
    """The physical bound and the whiteboard as points, where one number of GPUs makes no line."""
    found = (("physical bound", "bound", line.bound), ("whiteboard", "whiteboard", line.ruled))
    return [
        Mark(name, series, line.gpus[0], curve[0], "dot", 7, f"{name}: {span(curve[0])}", hover=_HOVERS[name])
        for name, series, curve in found
        if curve
    ]


def _band(report: Report) -> str:
    low, high = report.get("training.days_low"), report.get("training.days_high")
    return f" ({digits(low)}–{digits(high)})" if low and high and report["training.days"] >= 1 else ""


def _subtitle(report: Report, line: _Curve) -> str:
    words = f"{write_quantity(report.scenario.training.tokens, 'tokens')} tokens"
    words = f"{words}, by data parallelism" if all(line.fits) else f"{words}; dashed: does not fit in memory"
    return f"{words}; dotted: whiteboard" if line.ruled and len(line.gpus) > 1 else words


def _title(report: Report, line: _Curve, aim: _Aim | None) -> str:
    """The plan's days, and the GPUs that the deadline takes where they are others."""
    days, own = report["training.days"], float(report.scenario.cluster.gpus)
    now = f"{span(days)} on {plural(own, 'GPU')}"
    if not aim:
        return now
    if aim.place is None:
        return f"{now}; even {count(line.gpus[-1])} miss {aim.words}" if days > aim.days else now
    needed = line.gpus[aim.place]
    if needed == own:
        return now
    return f"{now}; {count(needed)} would take {span(line.days[aim.place])}"
