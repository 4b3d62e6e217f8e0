"""Where time goes, as a waterfall: a training step from the arithmetic at peak down to what failures cost, or a token
of a served request from the physical bound down to the prompts of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..cycle import idles_in_pipeline, tokens_per_cycle
from ..report import Report
from ..words import NO_ROOM, percent, plural, seconds
from .figure import Axis, Bar, Figure, Label
from .ticks import linear_ticks

#: What comes on top of the kernels of a training step, in this order: result, name, series.
_TRAINING = (
    ("time.bubble_s", "bubble", "bubble"),
    ("time.uneven_s", "uneven stages", "uneven"),
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
class _Part:
    """One row: a part of the time, with where it starts; `link` is the result that it is."""

    link: str
    name: str
    series: str
    start: float
    length: float

    @property
    def end(self) -> float:
        """Where the time stands after the part."""
        return self.start + self.length


@dataclass(frozen=True)
class _Whole:
    """The time in its parts, the kernels first. `floor` of the kernels is the least they could take, called `bound`."""

    parts: tuple[_Part, ...]
    link: str
    floor_link: str
    floor: float
    bound: str
    subtitle: str

    @property
    def total(self) -> float:
        return self.parts[-1].end


def waterfall(report: Report, baseline: Report | None = None) -> Figure:
    """The parts of the time of a step or a token, each where the one above ends; the whole last."""
    if not report.holds_a_request:
        return Figure.without("waterfall", "No times", NO_ROOM, report.scenario.name)
    whole = _whole(report)
    before = _whole(baseline).parts if baseline and baseline.holds_a_request else ()
    total, rows = whole.total, (*whole.parts, _Part(whole.link, "in all", "whole", 0.0, whole.total))
    names = [row.name for row in rows]
    bars = [bar for place, row in enumerate(rows) for bar in _bars(place, row, report, whole)]
    ghosts = [_ghost(names.index(row.name), row) for row in before if row.name in names]
    unit, unit_name = next((unit for unit in _UNITS if total >= unit[0]), _UNITS[-1])
    high = max(row.start + row.length for row in (*rows, *before)) * 1.36
    noun = "step" if report["kind"] == "training" else "token"
    return Figure(
        "waterfall",
        _title(whole),
        whole.subtitle,
        Axis(f"{unit_name} of a {noun}", 0.0, high, ticks=linear_ticks(0.0, high / 1.33, unit, 5), unit=unit),
        Axis("", -0.6, len(rows) - 0.4, categories=tuple(names)),
        bars=(*bars, *ghosts),
        labels=tuple(_label(place, row, total) for place, row in enumerate(rows)),
        key=(("compute", whole.bound),) + ((("baseline", "baseline"),) if ghosts else ()),
        columns=("part", "result", "start [s]", "time [s]", "share"),
        rows=(
            (whole.bound, whole.floor_link, 0.0, whole.floor, whole.floor / total),
            *((row.name, row.link, row.start, row.length, row.length / total) for row in rows),
        ),
        scenario=report.scenario.name,
    )


def _whole(report: Report) -> _Whole:
    return _step(report) if report["kind"] == "training" else _token(report)


def _step(report: Report) -> _Whole:
    ends = "time.effective_s" in report
    parts = tuple(
        _stacked(report, float(report["time.ideal_s"]), "time.ideal_s", _TRAINING if ends else _TRAINING[:-1])
    )
    whole = "time.effective_s" if ends else "time.step_s"
    total, gpus = seconds(report[whole], 3), plural(report.scenario.cluster.gpus, "GPU")
    subtitle = f"one step of {total} on {gpus}, failures {'included' if ends else 'outrun restarts'}"
    floor = "time.compute_floor_s"
    return _Whole(parts, whole, floor, float(report[floor]), "arithmetic at peak rate", subtitle)


def _token(report: Report) -> _Whole:
    """A token is a decode step and what prompts of other requests put between two of them."""
    tokens = tokens_per_cycle(report)
    times = {key: float(report[key]) / tokens for key in ("time.compute_s", "time.memory_s")}
    kernels = sum(times.values())
    parts = list(_stacked(report, kernels, max(times, key=lambda key: times[key]), _serving_losses(report), tokens))
    step, decode = (
        float(report.get("serving.token_step_s", report["time.step_s"])),
        float(report["time.step_s"]) / tokens,
    )
    if step - decode > _LEAST * step:
        parts.append(_Part("serving.speculative_speedup", "drafts and checks", "drafts", decode, step - decode))
    each = float(report.get("serving.tpot_s", step))
    if each - step > _LEAST * step:
        parts.append(_Part("serving.tpot_s", "other prompts", "prompts", step, each - step))
    requests = plural(round(float(report["serving.running"])), "request")
    bound = "serving.tpot_bound_s" if "serving.tpot_bound_s" in report else "time.bound_s"
    floor = min(kernels, float(report[bound]))
    link = "serving.tpot_s" if "serving.tpot_s" in report else "time.step_s"
    subtitle = f"one token of each of {requests}, every {seconds(each, 3)}"
    return _Whole(tuple(parts), link, bound, floor, "physical bound", subtitle)


def _serving_losses(report: Report) -> tuple[tuple[str, str, str], ...]:
    """What comes on top of the kernels of a decode step, in this order."""
    return (
        ("time.launch_s", "launches", "launch"),
        ("time.bubble_s", "bubble" if idles_in_pipeline(report) else "waiting ranks", "bubble"),
        ("time.exposed_communication_s", "exposed traffic", "communication"),
    )


def _stacked(
    report: Report, kernels: float, link: str, losses: tuple[tuple[str, str, str], ...], tokens: float = 1.0
) -> Iterator[_Part]:
    """The kernels and what comes on top of them, of `tokens` that share them."""
    total = kernels + sum(float(report[key]) for key, _, _ in losses) / tokens
    yield _Part(link, "kernels", "compute", 0.0, kernels)
    start = kernels
    for key, name, series in losses:
        length = float(report[key]) / tokens
        if length > _LEAST * total:
            yield _Part(key, name, series, start, length)
        start += length


def _bars(place: int, row: _Part, report: Report, whole: _Whole) -> Iterator[Bar]:
    def said(name: str, length: float) -> str:
        return f"{name}: {seconds(length, 3)}, {percent(length / whole.total)} of the time"

    if row.name == "kernels":
        text = f"{seconds(whole.floor, 3)} at {'peak' if report['kind'] == 'training' else 'bound'}"
        least = said(whole.bound, whole.floor)
        yield Bar(whole.bound, row.series, place, 0.0, whole.floor, text=text, hover=least, link=whole.floor_link)
        rest = row.length - whole.floor
        hover = said("kernels beyond that", rest)
        yield Bar(row.name, row.series, place, whole.floor, rest, pattern="pale", hover=hover, link=row.link)
        return
    hover = said(row.name, row.length)
    if row.name == "interruptions":
        parts = (f"{name} {percent(report[f'reliability.{key}'])}" for name, key in _SHARES.items())
        hover = f"{hover}: {', '.join(parts)}"
    yield Bar(row.name, row.series, place, row.start, row.length, hover=hover, link=row.link)


def _label(place: int, row: _Part, total: float) -> Label:
    share = "" if row.name == "in all" else f", {percent(row.length / total)}"
    return Label(f"{seconds(row.length, 3)}{share}", row.start + row.length, place, bold=True)


def _ghost(place: int, row: _Part) -> Bar:
    hover = f"baseline, {row.name}: {seconds(row.length, 3)}"
    return Bar("baseline", "baseline", place, row.start, row.length, 0.8, "ghost", hover=hover)


def _title(whole: _Whole) -> str:
    """How much of the time nothing can take away, and what takes most of the rest."""
    peak, total = whole.bound.startswith("arithmetic"), whole.total
    lost = {row.name: row.length for row in whole.parts[1:]}
    lost |= {"kernels below it" if peak else "kernels beyond it": whole.parts[0].length - whole.floor}
    name = max(lost, key=lambda each: lost[each])
    verb = "cost" if name.endswith(("s", "it")) else "costs"
    start = f"{percent(whole.floor / total)} of the time is {'at peak' if peak else 'its bound'}"
    return f"{start}; {name} {verb} {percent(lost[name] / total)}"
