"""Days of training against the number of GPUs, with the prediction's band, the physical bound and the whiteboard."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..legality import legal
from ..report import Report
from ..scenario import Scenario
from ..units import digits, write_quantity
from .curves import Curve, along, crossing, runs
from .figure import Axis, Band, Figure, Line, Mark, Rule
from .ticks import log_ticks, power_ticks, tick_text
from .words import count, plural

#: Doublings shown on each side of the plan.
_DOUBLINGS = 4
#: Days asked for where a long plan has no deadline.
_USUAL = 90.0


@dataclass(frozen=True)
class _Aim:
    """A deadline in days, and the GPUs with which the curve meets it, if it does."""

    days: float
    gpus: float | None

    @property
    def words(self) -> str:
        return f"{tick_text(round(self.days, 1))} days"


def gpus_sweep(scenario: Scenario) -> Scenario:
    """The plan on other numbers of GPUs: data parallelism halved and doubled, everything else kept.

    Its `cluster.gpus` is a rising array of the legal numbers that holds the plan's own.
    """
    parallelism = scenario.parallelism
    shard = int(parallelism.tp * parallelism.pp * parallelism.cp)
    own = max(1, int(scenario.cluster.gpus) // shard)
    doublings = {own * 2**k for k in range(_DOUBLINGS + 1)}
    halvings = {own // 2**k for k in range(1, _DOUBLINGS + 1) if own % 2**k == 0}
    gpus = np.array(sorted(doublings | halvings), dtype=float) * shard
    keep = np.broadcast_to(legal(scenario.with_("cluster.gpus", gpus)), gpus.shape) | (gpus == own * shard)
    return scenario.with_("cluster.gpus", gpus[keep])


def training_days(report: Report, curve: Report, baseline: Report | None = None) -> Figure:
    """Days against GPUs, both logarithmic. `curve` is the report of `gpus_sweep`."""
    gpus = tuple(np.atleast_1d(curve.scenario.cluster.gpus).tolist())
    keys = ("training.days", "training.days_low", "training.days_high", "training.bound_days", "whiteboard.days")
    columns = [along(curve.get(key), len(gpus)) for key in keys]
    days, low, high, bound, ruled = columns
    fits = [bool(fit) for fit in along(curve.get("memory.fits", True), len(gpus))]
    aim = _aim(report, gpus, days, fits)
    marks = _marks(report, aim, baseline)
    everything = [y for column in columns for y in column] + [mark.y for mark in marks] + ([aim.days] if aim else [])
    bottom, top = min(everything) / 1.3, max(everything) * 1.3
    # room on the right for the names of the lines
    left, right = gpus[0] / 1.1, gpus[-1] * 1.2 * (gpus[-1] / gpus[0]) ** 0.25
    return Figure(
        "training",
        _title(report, aim),
        _subtitle(report, fits),
        Axis("GPUs", left, right, True, power_ticks(left, gpus[-1] * 1.1)),
        Axis("days", bottom, top, True, log_ticks(bottom, top)),
        lines=tuple(_lines(gpus, days, bound, ruled, fits)),
        bands=(Band("band", "prediction", gpus, low, high, "range of the prediction"),) if low and high else (),
        marks=tuple(marks),
        rules=(Rule("deadline", "capacity", "y", aim.days, "dashed", aim.words),) if aim else (),
        columns=("GPUs", "days", "low [days]", "high [days]", "physical bound [days]", "whiteboard [days]"),
        rows=tuple(zip(gpus, *(column or (None,) * len(gpus) for column in columns), strict=True)),
        scenario=report.scenario.name,
    )


def _aim(report: Report, gpus: Curve, days: Curve, fits: list[bool]) -> _Aim | None:
    """The plan's deadline; without one, the usual one where the plan takes longer and the curve answers it."""
    deadline = report.scenario.training.deadline
    possible = [(n, d) for n, d, fit in zip(gpus, days, fits, strict=True) if fit]
    wanted = _USUAL if deadline is None else deadline / 86400
    enough = crossing(tuple(n for n, _ in possible), tuple(d for _, d in possible), wanted)
    if deadline is None and (not enough or report["training.days"] <= wanted):
        return None
    return _Aim(wanted, enough)


def _lines(gpus: Curve, days: Curve, bound: Curve, ruled: Curve, fits: list[bool]) -> list[Line]:
    lines = []
    if bound:
        hover = "physical bound: what no software can beat"
        lines.append(Line("physical bound", "bound", gpus, bound, "dashed", 1.4, "physical bound", hover))
    if ruled:
        hover = "whiteboard: 6 · parameters · tokens over peak and the stated MFU"
        lines.append(Line("whiteboard", "whiteboard", gpus, ruled, "dotted", 1.6, "whiteboard", hover))
    for x, y, fit in runs(gpus, days, fits):
        style, name = ("solid", "prediction") if fit else ("dashed", "prediction, does not fit in memory")
        lines.append(Line(name, "prediction", x, y, style, 2.2, hover=name))
    return lines


def _marks(report: Report, aim: _Aim | None, baseline: Report | None) -> list[Mark]:
    marks = []
    if aim and aim.gpus:
        needed = f"about {plural(_whole(report, aim.gpus), 'GPU')}"
        hover = f"{needed} would take {aim.words}"
        marks.append(Mark("deadline", "prediction", aim.gpus, aim.days, "hollow", 8, needed, hover=hover))
    if baseline and baseline.get("training.days"):
        gpus, days = float(baseline.scenario.cluster.gpus), float(baseline["training.days"])
        hover = f"baseline: {digits(days)} days on {plural(gpus, 'GPU')}"
        marks.append(Mark("baseline", "baseline", gpus, days, "hollow", 11, hover=hover))
    gpus, days = float(report.scenario.cluster.gpus), float(report["training.days"])
    words = f"{digits(days)} days{_band(report)} on {count(gpus)}"
    marks.append(Mark("plan", "plan", gpus, days, "ring", 13, words, True, words))
    return marks


def _band(report: Report) -> str:
    low, high = report.get("training.days_low"), report.get("training.days_high")
    return f" ({digits(low)}–{digits(high)})" if low and high else ""


def _whole(report: Report, gpus: float) -> int:
    """The least number of GPUs from `gpus` on that makes whole replicas."""
    parallelism = report.scenario.parallelism
    shard = int(parallelism.tp * parallelism.pp * parallelism.cp)
    return math.ceil(gpus / shard - 1e-6) * shard


def _subtitle(report: Report, fits: list[bool]) -> str:
    words = f"{write_quantity(report.scenario.training.tokens, 'tokens')} tokens, by data parallelism"
    return words if all(fits) else f"{words}; dashed: does not fit in memory"


def _title(report: Report, aim: _Aim | None) -> str:
    days = report["training.days"]
    now = f"{digits(days)} days on {plural(float(report.scenario.cluster.gpus), 'GPU')}"
    if not aim:
        return now
    if not aim.gpus:
        return f"{now}; {aim.words} out of reach" if days > aim.days else now
    needed = f"about {count(_whole(report, aim.gpus))}"
    return f"{now}; {aim.words} would take {needed}" if days > aim.days else f"{now}; {needed} would do for {aim.words}"
