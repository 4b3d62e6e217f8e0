"""Where a step's wall time goes: from the arithmetic at peak down to what failures cost, as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..report import Report
from .figure import Axis, Bar, Figure, Label
from .ticks import linear_ticks
from .words import percent, plural, seconds

#: What comes on top of the kernels, in this order: result, name, series.
_LOSSES = (
    ("time.bubble_s", "bubble", "bubble"),
    ("time.exposed_communication_s", "exposed traffic", "communication"),
    ("time.optimizer_s", "optimizer", "optimizer"),
    ("time.straggler_s", "stragglers", "straggler"),
    ("time.interruptions_s", "interruptions", "failures"),
)
_SHARES = {"checkpoints": "checkpoint_share", "lost work": "lost_share", "restarts": "restart_share"}
#: Parts below this share of the whole are left out.
_LEAST = 5e-4
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class _Step:
    """One row: a part of the wall time of a step, with where it starts."""

    key: str
    name: str
    series: str
    start: float
    length: float


def waterfall(report: Report, baseline: Report | None = None) -> Figure:
    """The parts of a step's wall time, each where the one above ends; the kernels first, the whole last."""
    total, peak = float(report["time.effective_s"]), float(report["time.compute_floor_s"])
    rows = list(_rows(report))
    names = [row.name for row in rows]
    before = {row.name: row for row in _rows(baseline)} if baseline else {}
    bars = [bar for place, row in enumerate(rows) for bar in _bars(place, row, report, total, peak)]
    ghosts = [_ghost(names.index(row.name), row) for row in before.values() if row.name in names]
    unit, unit_name = next((unit for unit in _UNITS if total >= unit[0]), _UNITS[-1])
    high = max(total, *(row.start + row.length for row in before.values()), 0.0) * 1.36
    return Figure(
        "waterfall",
        _title(rows, total, peak),
        f"one step of {seconds(total, 3)} on {plural(report.scenario.cluster.gpus, 'GPU')}, failures included",
        Axis(f"{unit_name} of a step", 0.0, high, ticks=linear_ticks(0.0, total * 1.02, unit, 5), unit=unit),
        Axis("", -0.6, len(rows) - 0.4, categories=tuple(names)),
        bars=(*bars, *ghosts),
        labels=tuple(_label(place, row, total) for place, row in enumerate(rows)),
        key=(("compute", "arithmetic at peak rate"),) + ((("baseline", "baseline"),) if ghosts else ()),
        columns=("part", "result", "start [s]", "time [s]", "share"),
        rows=(
            ("at peak rate", "time.compute_floor_s", 0.0, peak, peak / total),
            *((row.name, row.key, row.start, row.length, row.length / total) for row in rows),
        ),
        scenario=report.scenario.name,
    )


def _rows(report: Report) -> Iterator[_Step]:
    start, total = float(report["time.ideal_s"]), float(report["time.effective_s"])
    yield _Step("time.ideal_s", "kernels", "compute", 0.0, start)
    for key, name, series in _LOSSES:
        length = float(report[key])
        if length > _LEAST * total:
            yield _Step(key, name, series, start, length)
        start += length
    yield _Step("time.effective_s", "in all", "whole", 0.0, total)


def _bars(place: int, row: _Step, report: Report, total: float, peak: float) -> Iterator[Bar]:
    hover = f"{row.name}: {seconds(row.length, 3)}, {percent(row.length / total)} of the wall time"
    if row.name == "kernels":
        floor = f"arithmetic at peak rate: {seconds(peak, 3)}, {percent(peak / total)} of the wall time"
        below = f"kernels below the peak rate, recomputation: {seconds(row.length - peak, 3)}"
        text = f"{seconds(peak, 3)} at peak"
        yield Bar("at peak rate", row.series, place, 0.0, peak, text=text, hover=floor, link="time.compute_floor_s")
        yield Bar(row.name, row.series, place, peak, row.length - peak, pattern="pale", hover=below, link=row.key)
        return
    if row.name == "interruptions":
        parts = (f"{name} {percent(report[f'reliability.{key}'])}" for name, key in _SHARES.items())
        hover = f"{hover}: {', '.join(parts)}"
    yield Bar(row.name, row.series, place, row.start, row.length, hover=hover, link=row.key)


def _label(place: int, row: _Step, total: float) -> Label:
    share = f", {percent(row.length / total)}" if row.length < total else ""
    return Label(f"{seconds(row.length, 3)}{share}", row.start + row.length, place, bold=True)


def _ghost(place: int, row: _Step) -> Bar:
    hover = f"baseline, {row.name}: {seconds(row.length, 3)}"
    return Bar("baseline", "baseline", place, row.start, row.length, 0.8, "ghost", hover=hover)


def _title(rows: list[_Step], total: float, peak: float) -> str:
    """How much of the time is arithmetic, and what takes most of the rest."""
    lost = {row.name: row.length for row in rows[1:-1]} | {"kernels below it": rows[0].length - peak}
    name = max(lost, key=lambda each: lost[each])
    verb = "cost" if name.endswith(("s", "it")) else "costs"
    return f"{percent(peak / total)} of the time is at peak; {name} {verb} {percent(lost[name] / total)}"
