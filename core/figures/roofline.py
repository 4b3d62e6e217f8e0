"""The roofline: what each operator and the whole step reach, under what the device could do at their intensity.

Source: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from ..report import Point, Report
from ..units import digits, format_quantity
from ..words import percent
from .figure import Axis, Figure, Label, Line, Mark, Rule
from .ticks import Ticks, log_ticks

_TERA = 1e12
#: Share of the axis by which the peak keeps off the tick below it.
_APART = 0.09
_BOUNDS = ("compute", "memory", "communication", "launch")


def roofline(report: Report, baseline: Report | None = None) -> Figure:
    """FLOP/s of one GPU against arithmetic intensity in FLOP/byte, both logarithmic; a baseline's step is hollow."""
    peak, bandwidth, knee = (float(report[f"roofline.{key}"]) for key in ("peak_flops", "bandwidth", "knee"))
    whole, before = whole_step(report), whole_step(baseline) if baseline else None
    shown = [p for p in report.points if p is not whole and p.intensity > 0 and p.achieved_flops > 0]
    shown.sort(key=lambda p: -p.seconds)
    drawn = [*shown, *(p for p in (before, whole) if p)]
    # the decades that are drawn are those in which something is
    low_x, high_x = (
        min([knee / 10, *(p.intensity * 0.7 for p in drawn)]),
        max([knee * 12, *(p.intensity * 6 for p in drawn)]),
    )
    low_y = min([peak / 30, *(p.achieved_flops * 0.45 for p in drawn)])
    # above the roof there is room for names
    high_y = peak * (peak / low_y) ** 0.25
    start = max(low_x, low_y / bandwidth)
    halfway = (start * knee) ** 0.5
    lines = [Line("roof", "roof", (start, knee, high_x), (start * bandwidth, peak, peak))]
    marks = [_mark(p, report, _named(p, shown[:i])) for i, p in enumerate(shown)]
    if before:
        marks.append(_big_mark(before, "baseline", "hollow", ""))
    if whole:
        marks.append(_big_mark(whole, "plan", "ring", _whole_label(whole)))
        lines.append(_distance(whole))
    return Figure(
        "roofline",
        _title(report, whole),
        f"one {report.scenario.cluster.accelerator.name}; the larger a mark, the more of the step's time",
        Axis("arithmetic intensity, FLOP/byte", low_x, high_x, True, log_ticks(low_x, high_x)),
        Axis("TFLOP/s per GPU", low_y, high_y, True, _rate_ticks(low_y, high_y, peak), unit=_TERA),
        lines=tuple(lines),
        marks=tuple(marks),
        rules=(Rule("knee", "bound", "x", knee, "dashed", f"knee {knee:.0f}", f"knee: {knee:.1f} FLOP/byte"),),
        labels=(Label(format_quantity(bandwidth, "bytes/s"), halfway, halfway * bandwidth, "right", 0.5),),
        key=_key(shown, before),
        columns=("name", "phase", "FLOP", "bytes", "intensity [FLOP/B]", "attainable [FLOP/s]", "achieved [FLOP/s]",
                 "time [s]", "bound"),
        rows=tuple(_row(p) for p in (report.points if whole in report.points else (*report.points, whole)) if p),
        scenario=report.scenario.name,
    )  # fmt: skip


def whole_step(report: Report) -> Point | None:
    """The whole training step, or all operators of the decode step together at the time of that step."""
    if report.scenario.kind == "training":
        return next((p for p in report.points if p.name == "whole step"), None)
    parts = [p for p in report.points if p.phase == "decode"]
    flops, size, time = sum(p.flops for p in parts), sum(p.bytes for p in parts), report.get("time.step_s")
    if not (flops and size and time):
        return None
    roof = min(report["roofline.peak_flops"], flops / size * report["roofline.bandwidth"])
    return Point("decode", "decode", flops, size, flops / size, roof, flops / time, time, "")


def _title(report: Report, whole: Point | None) -> str:
    bound = str(report.get("time.bottleneck", "balanced"))
    if not whole:
        return f"The roof bends at {report['roofline.knee']:.0f} FLOP/byte"
    claim = "Balanced" if bound == "balanced" else f"{bound.capitalize()} bound"
    name = whole.name if whole.name == "decode" else f"the {whole.name}"
    return f"{claim}: {name} reaches {percent(whole.achieved_flops / whole.attainable_flops)} of the roof"


def _rate_ticks(low: float, high: float, peak: float) -> Ticks:
    """Round rates, and the peak in place of those from just below it on."""
    near = (high / low) ** _APART
    others = [tick for tick in log_ticks(low, high, _TERA) if tick[0] * near < peak]
    return (*others, (peak, digits(peak / _TERA)))


def _named(point: Point, larger: list[Point]) -> bool:
    """Whether the mark needs its name: a larger one of that name close by, such as another phase, says it already."""
    return not any(p.name == point.name and 1 / 4 < p.intensity / point.intensity < 4 for p in larger)


def _mark(point: Point, report: Report, named: bool) -> Mark:
    """A mark whose area grows with the share of the step's time; prefill is no part of a decode step."""
    step, aside = report.get("time.step_s"), point.phase == "prefill"
    size = 6 + 9 * min(1.0, point.seconds / step) ** 0.5 if step and not aside else 8.0
    name = f"prefill {point.name}" if aside and "prefill" not in point.name else point.name
    x, y, label = point.intensity, point.achieved_flops, name if named else ""
    return Mark(point.name, point.bound, x, y, "dot", size, label, hover=_hover(point))


def _big_mark(point: Point, series: str, shape: str, label: str) -> Mark:
    size = 13 if shape == "ring" else 11
    x, y = point.intensity, point.achieved_flops
    return Mark(point.name, series, x, y, shape, size, label, bool(label), _hover(point))


def _whole_label(point: Point) -> str:
    share = percent(point.achieved_flops / point.attainable_flops)
    return f"{point.name}: {format_quantity(point.achieved_flops, 'FLOP/s')} ({share})"


def _distance(point: Point) -> Line:
    """From the step up to the roof."""
    share = percent(point.achieved_flops / point.attainable_flops)
    x, y = (point.intensity, point.intensity), (point.achieved_flops, point.attainable_flops)
    hover = f"{point.name}: {share} of the roof at {digits(point.intensity)} FLOP/byte"
    return Line("distance to the roof", "plan", x, y, width=1.2, hover=hover)


def _hover(point: Point) -> str:
    name = point.name if point.phase in ("", "step", point.name) else f"{point.name}, {point.phase}"
    share = percent(point.achieved_flops / point.attainable_flops)
    reached = (
        f"{format_quantity(point.achieved_flops, 'FLOP/s')}, {share} of the roof at {digits(point.intensity)} FLOP/byte"
    )
    time = format_quantity(point.seconds, "seconds")
    bound = f", {point.bound} bound" if point.bound else ""
    return f"{name}: {reached}; {time}{bound}{f'; {point.ceiling}' if point.ceiling else ''}"


def _key(points: list[Point], before: Point | None) -> tuple[tuple[str, str], ...]:
    present = {p.bound for p in points}
    bounds = tuple((bound, f"{bound} bound") for bound in _BOUNDS if bound in present)
    return (*bounds, ("baseline", "baseline")) if before else bounds


def _row(p: Point) -> tuple[object, ...]:
    return (p.name, p.phase, p.flops, p.bytes, p.intensity, p.attainable_flops, p.achieved_flops, p.seconds, p.bound)
