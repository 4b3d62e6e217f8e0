"""The communication ledger: what one GPU sends in a step, and how much of it nothing hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..report import Report, Traffic
from ..units import format_quantity
from ..words import percent, seconds
from .figure import Axis, Bar, Figure, Label
from .ticks import linear_ticks

_MOST_ROWS = 6
_GB = 1e9


@dataclass(frozen=True)
class _Row:
    """One row of the chart: a row of the ledger, or the sum of the smallest ones."""

    name: str
    series: str
    sent: float
    seconds: float
    exposed: float
    #: The number of its row in the ledger; none for a sum.
    number: int | None = None

    @property
    def exposed_share(self) -> float:
        return min(1.0, self.exposed / self.seconds) if self.seconds else 0.0


def communication(report: Report, baseline: Report | None = None) -> Figure:
    """Bytes that one GPU sends in a step, row by row; the solid part of a bar is not hidden behind compute."""
    rows = _rows(report)
    if not rows:
        return Figure.without("communication", "Nothing is sent", _empty(report), report.scenario.name)
    longest = max(row.sent for row in rows)
    unit, unit_name = _unit(longest)
    high = longest * 2.0
    spread = max(0.0, 3 - len(rows)) / 2
    ghosts = {row.name: row for row in _rows(baseline)} if baseline else {}
    bars = [bar for i, row in enumerate(rows) for bar in _bars(i, row, ghosts.get(row.name))]
    return Figure(
        "communication",
        _title(report, rows),
        "by collective; solid: not hidden behind compute",
        Axis(f"{unit_name} sent by one GPU", 0.0, high, ticks=linear_ticks(0.0, longest * 1.25, unit, 4), unit=unit),
        Axis("", -0.85 - spread, len(rows) - 0.6 + spread, categories=tuple(row.name for row in rows), above=True),
        bars=tuple(bars),
        labels=tuple(Label(_words(row), row.sent, i, bold=True) for i, row in enumerate(rows)),
        key=_key(rows) + ((('baseline', 'baseline'),) if ghosts else ()),
        columns=("name", "collective", "group", "group size", "link", "times a step", "sent [B]", "time [s]",
                 "exposed [s]", "hides behind"),
        rows=tuple(_cells(t) for t in report.communication),
        scenario=report.scenario.name,
    )  # fmt: skip


def _rows(report: Report) -> list[_Row]:
    """The rows by bytes, the smallest ones summed where there are more than six."""
    sent = [(number, t) for number, t in enumerate(report.communication) if t.bytes_per_gpu > 0]
    traffic = sorted(sent, key=lambda row: -row[1].bytes_per_gpu)
    most = _MOST_ROWS - 1 if len(traffic) > _MOST_ROWS else _MOST_ROWS
    rows = [
        _Row(_name(t, report), t.link, t.bytes_per_gpu, t.seconds, t.exposed_seconds, number)
        for number, t in traffic[:most]
    ]
    if rest := [t for _, t in traffic[most:]]:
        sums = (sum(getattr(t, key) for t in rest) for key in ("bytes_per_gpu", "seconds", "exposed_seconds"))
        rows.append(_Row(f"{len(rest)} smaller ones", rest[0].link, *sums))
    return rows


def _name(traffic: Traffic, report: Report) -> str:
    link = report.scenario.cluster.accelerator.link.name if traffic.link == "scale-up" else "network"
    return f"{traffic.name}: {traffic.collective} · {link or 'scale-up link'}"


def _bars(index: int, row: _Row, before: _Row | None) -> Iterator[Bar]:
    """Exposed part first, so that the exposed parts of all rows start at one line."""
    hover = f"{row.name}: {_words(row)} ({percent(row.exposed_share)})"
    solid = row.sent * row.exposed_share
    if solid:
        link = _link(row, "exposed_seconds")
        yield Bar(f"{row.name}, exposed", row.series, index, 0.0, solid, 0.42, hover=hover, link=link)
    if solid < row.sent:
        pale, link = row.sent - solid, _link(row, "seconds")
        yield Bar(f"{row.name}, hidden", row.series, index, solid, pale, 0.42, "pale", hover=hover, link=link)
    if before:
        yield Bar("baseline", "baseline", index, 0.0, before.sent, 0.56, "ghost", hover=f"baseline: {_words(before)}")


def _link(row: _Row, cell: str) -> str:
    return "" if row.number is None else f"communication.{row.number}.{cell}"


def _words(row: _Row) -> str:
    tail = "hidden" if row.exposed_share < 0.005 else f"{seconds(row.exposed)} exposed"
    tail = "all exposed" if row.exposed_share > 0.995 else tail
    return f"{format_quantity(row.sent, 'decimal bytes')} in {seconds(row.seconds)}, {tail}"


def _title(report: Report, rows: list[_Row]) -> str:
    sent = f"Each GPU sends {format_quantity(sum(row.sent for row in rows), 'decimal bytes')}"
    exposed, step = sum(row.exposed for row in rows), report.get("time.step_s")
    if not exposed:
        return f"{sent} a step, all of it behind compute"
    return f"{sent} and waits {percent(exposed / step)} of the step" if step else f"{sent} and waits {seconds(exposed)}"


def _empty(report: Report) -> str:
    one = report.scenario.cluster.gpus == 1
    return "One GPU: nothing to send." if one else "Every GPU works alone: nothing to send."


def _unit(longest: float) -> tuple[float, str]:
    return next(
        ((size, name) for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if longest >= size), (1e3, "kB")
    )


def _key(rows: list[_Row]) -> tuple[tuple[str, str], ...]:
    present = {row.series for row in rows}
    names = {"scale-up": "scale-up link", "scale-out": "network"}
    return tuple((series, text) for series, text in names.items() if series in present)


def _cells(t: Traffic) -> tuple[object, ...]:
    return (t.name, t.collective, t.group, t.group_size, t.link, t.times_per_step, t.bytes_per_gpu, t.seconds,
            t.exposed_seconds, t.hides_behind)  # fmt: skip
