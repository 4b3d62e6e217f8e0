"""What the time to first token and the time per token are made of, each as one bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..cycle import idles_in_pipeline, tokens_per_cycle
from ..report import Report
from ..words import NO_END, NO_ROOM, percent, seconds
from .figure import Axis, Bar, Figure, Label
from .ticks import linear_ticks, milliseconds

#: Parts in their order from left to right: result, name, series.
_FIRST = (
    ("serving.prompt_alone_s", "its prompt", "expert_weights"),
    ("serving.prompt_beside_s", "decoding of others", "gradients"),
    ("serving.iteration_wait_s", "running iteration", "whiteboard"),
    ("serving.prompt_queue_s", "prompts before it", "queue"),
    ("serving.place_wait_s", "no place in the batch", "failures"),
    ("serving.interface_s", "interface", "interface"),
    ("serving.step_lag_s", "step lag", "lag"),
)
_EACH = (
    ("time.compute_s", "arithmetic", "compute"),
    ("time.memory_s", "memory", "memory"),
    ("time.exposed_communication_s", "communication", "communication"),
    ("time.launch_s", "launches and host", "launch"),
)
_DRAFTS = ("serving.speculative_speedup", "drafts and checks", "drafts")
_OTHERS = ("serving.prefill_share", "prompts of others", "prompts")
_TITLES = {"serving.ttft_s": "the first token", "serving.tpot_s": "each further one"}
#: Parts below this share are left out, and those below the other have no number in the bar.
_LEAST, _NAMED = 2e-3, 0.08
#: Of a bar, which leaves room for the name above it.
_HEIGHT = 0.48


@dataclass(frozen=True)
class _Part:
    key: str
    name: str
    series: str
    seconds: float


@dataclass(frozen=True)
class _Row:
    """One time, its parts and what it should be."""

    name: str
    key: str
    total: float
    target: float
    parts: tuple[_Part, ...]

    @property
    def largest(self) -> _Part:
        return max(self.parts, key=lambda part: part.seconds)


def latency(report: Report, _baseline: Report | None = None) -> Figure:
    """Two bars of the same length, one for the first token and one for each further one, cut into their parts."""
    if not report.holds_a_request:
        return Figure.without("latency", "No times", NO_ROOM, report.scenario.name)
    rows = list(_rows(report))
    if not rows:
        return Figure.without("latency", "No times", NO_END, report.scenario.name)
    return Figure(
        "latency",
        _title(rows),
        "each bar is the whole of its time",
        Axis("% of the time", 0.0, 1.5, ticks=linear_ticks(0.0, 1.0, 0.01, 5), unit=0.01),
        Axis("", -0.9, len(rows) - 0.1, categories=tuple(row.name for row in rows), above=True),
        bars=tuple(bar for place, row in enumerate(rows) for bar in _bars(place, row)),
        labels=tuple(Label(_whole(row), 1.0, place, bold=True) for place, row in enumerate(rows)),
        key=tuple(dict.fromkeys((part.series, part.name) for row in rows for part in row.parts)),
        columns=("time", "part", "result", "time [s]", "share"),
        rows=tuple(
            (row.name, part.name, part.key, part.seconds, part.seconds / row.total)
            for row in rows
            for part in row.parts
        ),
        scenario=report.scenario.name,
    )


def _rows(report: Report) -> Iterator[_Row]:
    serving = report.scenario.serving
    first, each = report.get("serving.ttft_s"), report.get("serving.tpot_s")
    if first is not None:
        parts = tuple(_Part(*part, float(report[part[0]])) for part in _FIRST)
        yield _Row("first token", "serving.ttft_s", float(first), serving.ttft_target, _seen(parts, float(first)))
    if each is not None:
        own, tokens = report["serving.token_step_s"], tokens_per_cycle(report)
        step = tuple(_Part(*part, float(report[part[0]] / tokens)) for part in _each(report))
        drafts = _Part(*_DRAFTS, float(own - report["time.step_s"] / tokens))
        others = _Part(*_OTHERS, float(each - own))
        parts = _seen((*step, drafts, others), float(each))
        yield _Row("each further token", "serving.tpot_s", float(each), serving.tpot_target, parts)


def _each(report: Report) -> tuple[tuple[str, str, str], ...]:
    """The parts of a decode step."""
    idle = "pipeline" if idles_in_pipeline(report) else "waiting of attention ranks"
    return (*_EACH, ("time.bubble_s", idle, "bubble"))


def _seen(parts: tuple[_Part, ...], total: float) -> tuple[_Part, ...]:
    return tuple(part for part in parts if part.seconds > _LEAST * total)


def _bars(place: int, row: _Row) -> Iterator[Bar]:
    start = 0.0
    for part in row.parts:
        share = part.seconds / row.total
        hover = f"{row.name}, {part.name}: {seconds(part.seconds, 3)}, {percent(share)} of {seconds(row.total, 3)}"
        text = seconds(part.seconds, 3) if share >= _NAMED else ""
        yield Bar(part.name, part.series, place, start, share, _HEIGHT, text=text, hover=hover, link=part.key)
        start += share


def _whole(row: _Row) -> str:
    return f"{seconds(row.total, 3)}, target {milliseconds(row.target)}"


def _title(rows: list[_Row]) -> str:
    """What takes most of each time."""
    words = (
        f"{row.largest.name} {'take' if row.largest.name.endswith('s') else 'takes'} "
        f"{percent(row.largest.seconds / row.total)} of {_TITLES[row.key]}"
        for row in rows
    )
    text = "; ".join(words)
    return text[0].upper() + text[1:]
