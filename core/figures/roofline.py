"""The roofline: what each operator and the whole step reach, under what the device could do at their intensity.

Source: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from ..report import Point, Report
from ..units import digits, format_quantity
from ..words import percent
from .figure import Axis, Figure, Line, Mark, Rule
from .roofs import Roof, roofs
from .ticks import Ticks, log_ticks

#: Share of the axis by which the peak keeps off the tick below it.
_APART = 0.09
_COLUMNS = ("name", "phase", "FLOP", "bytes", "intensity [FLOP/B]", "attainable [FLOP/s]", "achieved [FLOP/s]",
            "time [s]", "bound")  # fmt: skip
#: Width of the line of a measured roof, and the column that says what it allows.
_THIN = 1.4
_MEASURED = ("attainable as measured [FLOP/s]",)
_BOUNDS = ("compute", "memory", "communication", "launch")


def roofline(report: Report, baseline: Report | None = None) -> Figure:
    """FLOP/s of one GPU against arithmetic intensity in FLOP/byte, both logarithmic; a baseline's step is hollow."""
    above = roofs(report)
    roof = above[0]
    whole, before = whole_step(report), whole_step(baseline) if baseline else None
    shown = [p for p in report.points if p is not whole and p.intensity > 0 and p.achieved_flops > 0]
    shown.sort(key=lambda p: -p.seconds)
    low_x, high_x, low_y, high_y = _ends(above, [*shown, *(p for p in (before, whole) if p)])
    lines = [roof.line(low_x, high_x, low_y)]
    lines += [measured.line(low_x, high_x, low_y, "dashed", _THIN) for measured in above[1:]]
    marks = [_mark(p, report, _named(p, shown[:i])) for i, p in enumerate(shown)]
    marks += [Mark("measured knee", "roof", r.knee, r.peak, "hollow", 7.0, hover=r.said) for r in above[1:]]
    if before:
        marks.append(_big_mark(before, "baseline", "hollow", ""))
    if whole:
        marks.append(_big_mark(whole, "plan", "ring", _whole_label(whole)))
        lines.append(_distance(whole))
    name = report.scenario.cluster.accelerator.name
    dashed = [f"dashed: {each.label}" for each in above[1:]]
    word, unit = ("TFLOP/s", 1e12) if roof.peak >= 1e12 else ("GFLOP/s", 1e9)
    points = report.points if whole in report.points else (*report.points, whole)
    return Figure(
        "roofline",
        _title(report, whole),
        "; ".join((f"one {name}", *dashed, "the larger a mark, the more of the step's time")),
        Axis("arithmetic intensity, FLOP/byte", low_x, high_x, True, log_ticks(low_x, high_x)),
        Axis(f"{word} per GPU", low_y, high_y, True, _rate_ticks(low_y, high_y, roof.peak, unit), unit=unit),
        lines=tuple(lines),
        marks=tuple(marks),
        rules=(_knee(roof),),
        labels=(roof.slope_label(lines[0]),),
        key=_key(shown, before),
        columns=(*_COLUMNS, *_MEASURED[: len(above) - 1]),
        rows=(*(_row(p, above[1:]) for p in points if p), *(_roof_row(r, roof) for r in above[1:])),
        scenario=report.scenario.name,
    )


def _ends(above: list[Roof], drawn: list[Point]) -> tuple[float, float, float, float]:
    """The ends of both axes: the decades that are drawn are those in which something is."""
    low_x = min([*(roof.knee / 10 for roof in above), *(p.intensity * 0.7 for p in drawn)])
    high_x = max([*(roof.knee * 12 for roof in above), *(p.intensity * 6 for p in drawn)])
    # the roof of a slow machine beside a fast one needs only its knee and a part of its slope
    lowest = min([above[0].peak / 30, *(roof.peak / 3 for roof in above[1:])])
    low_y = min([lowest, *(p.achieved_flops * 0.45 for p in drawn)])
    highest = max(roof.peak for roof in above)
    # above the roof there is room for names
    return low_x, high_x, low_y, highest * (highest / low_y) ** 0.25


def _knee(roof: Roof) -> Rule:
    return Rule("knee", "bound", "x", roof.knee, "dashed", f"knee {roof.knee:.0f}", f"knee: {roof.knee:.1f} FLOP/byte")


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


def _rate_ticks(low: float, high: float, peak: float, unit: float) -> Ticks:
    """Round rates, and the peak in place of those from just below it on."""
    near = (high / low) ** _APART
    others = [tick for tick in log_ticks(low, high, unit) if tick[0] * near < peak]
    return (*others, (peak, digits(peak / unit)))


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


def _row(p: Point, measured: list[Roof]) -> tuple[object, ...]:
    row = (p.name, p.phase, p.flops, p.bytes, p.intensity, p.attainable_flops, p.achieved_flops, p.seconds, p.bound)
    return (*row, *(roof.at(p.intensity) for roof in measured))


def _roof_row(measured: Roof, roof: Roof) -> tuple[object, ...]:
    """The knee of a measured roof under that of the data sheet."""
    knee, peak = measured.knee, measured.peak
    return ("measured knee", "", "", "", knee, roof.at(knee), peak, "", "", peak)
