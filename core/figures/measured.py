"""Predicted against measured, one mark a row; both axes logarithmic. All rows by source, or those most like a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..measured.comparison import Compared, statistics
from ..measured.errors import shipped_errors
from ..measured.likeness import results_of
from ..measured.similar import Similar
from ..measured.sources import name_of
from ..report import Report
from ..units import format_quantity
from ..words import percent, plural
from .figure import Axis, Band, Figure, Line, Mark
from .ticks import log_ticks

#: Colours of the sources with the most rows; all others share the last.
_SERIES = ("weights", "optimizer", "activations", "logits", "kv", "gradients", "whiteboard")
_REST = "baseline"
#: Half width of the band around a perfect prediction.
_BAND = 0.10
_NOTHING = Figure.without("measured", "Nothing to compare", "no row could be compared")


def measured(compared: Iterable[Compared]) -> Figure:
    """The chart of the metric with the most rows; rows of other metrics are counted in the subtitle."""
    rows = [row for row in compared if not row.flagged]
    if not rows:
        return _NOTHING
    kind, metric, _ = Counter((row.kind, row.metric, row.unit) for row in rows).most_common(1)[0][0]
    shown = [row for row in rows if (row.kind, row.metric) == (kind, metric)]
    series = _series(shown)
    others = len(rows) - len(shown)
    left_out = f"; {plural(others, 'row')} of other metrics not drawn" if others else ""
    marks = tuple(_mark(row, series.get(row.source, _REST)) for row in shown)
    subtitle = f"{metric}; band: ±{percent(_BAND)}{left_out}"
    return _chart(plural(len(shown), "row"), subtitle, shown, marks, _ends(marks), key=_key(kind, shown, series))


def measured_like(report: Report, similar: Sequence[Similar]) -> Figure:
    """The runs most like a plan, in the crowd of their metric; the plan's own prediction with its band across."""
    if not similar:
        return _NOTHING
    metric = Counter(each.row.metric for each in similar).most_common(1)[0][0]
    near = [each.row for each in similar if each.row.metric == metric]
    names = {row.id for row in near}
    crowd = [row for row in shipped_errors() if row.metric == metric and row.id not in names]
    own = tuple(_own(report, near[0]))
    told = (*(_mark(row, "prediction", 7, True) for row in near), *(mark for _, mark in own))
    low, high = _ends(told)
    within = (
        row for row in crowd if low <= min(row.measured, row.predicted) <= max(row.measured, row.predicted) <= high
    )
    title, subtitle = f"The {plural(len(near), 'run')} most like this plan", f"{metric}; other runs are grey"
    marks = (*(_mark(row, _REST, 3) for row in within), *told)
    chart = _chart(title, subtitle, near, marks, (low, high), tuple(line for line, _ in own))
    return replace(chart, scenario=report.scenario.name)


def _own(report: Report, like: Compared) -> Iterator[tuple[Line, Mark]]:
    """What a run measured, predicted of the plan: at its height, from one end of its band to the other."""
    keys = results_of(like.metric)
    if keys is None or any(key not in report for key in keys):
        return
    predicted, least, most = (format_quantity(report[key], like.written) for key in keys)
    value, low, high = (float(report[key]) / like.scale for key in keys)
    words = f"this plan: predicted {predicted}, band {least} to {most}"
    yield (
        Line("this plan", "plan", (low, high), (value, value), width=3.0, hover=words),
        Mark("this plan", "plan", value, value, "ring", 9, label="this plan", bold=True, hover=words),
    )


def _chart(
    what: str,
    subtitle: str,
    rows: Sequence[Compared],
    marks: tuple[Mark, ...],
    ends: tuple[float, float],
    lines: tuple[Line, ...] = (),
    key: tuple[tuple[str, str], ...] = (),
) -> Figure:
    """The square of measured and predicted values; `rows` are those that the title speaks of."""
    metric, unit, found = rows[0].metric, rows[0].unit, statistics(rows)
    low, high = ends
    return Figure(
        "measured",
        f"{what}: median error {found.median * 100:.1f} %" if found else what,
        subtitle,
        Axis(f"measured {metric} [{unit}]", low, high, True, log_ticks(low, high)),
        Axis(f"predicted {metric} [{unit}]", low, high, True, log_ticks(low, high)),
        lines=(Line("equal", "bound", (low, high), (low, high), "dashed", 1.2, hover="predicted as measured"), *lines),
        bands=(_band(low, high),),
        marks=marks,
        key=key,
        columns=("id", "source", f"measured [{unit}]", f"predicted [{unit}]", "error"),
        rows=tuple((row.id, row.source, row.measured, row.predicted, row.error) for row in rows),
    )


def _ends(marks: Sequence[Mark]) -> tuple[float, float]:
    """Ends of both axes, around some marks."""
    values = [mark.x for mark in marks] + [mark.y for mark in marks]
    return min(value for value in values if value > 0) / 1.5, max(values) * 1.5


def _series(rows: Sequence[Compared]) -> dict[str, str]:
    """A colour for each of the sources with the most rows."""
    common = Counter(row.source for row in rows).most_common(len(_SERIES))
    return {source: colour for (source, _), colour in zip(common, _SERIES, strict=False)}


def _band(low: float, high: float) -> Band:
    edges = (low, high)
    below, above = tuple(x * (1 - _BAND) for x in edges), tuple(x * (1 + _BAND) for x in edges)
    return Band("band", "bound", edges, below, above, f"within {percent(_BAND)}")


def _mark(row: Compared, series: str, size: float = 5, bold: bool = False) -> Mark:
    hover = f"{row.id}: measured {row.measured:.4g} {row.unit}, predicted {row.predicted:.4g} {row.unit}"
    return Mark(row.id, series, row.measured, row.predicted, "dot", size, bold=bold, hover=f"{hover}, {row.error:+.1%}")


def _key(kind: str, rows: Sequence[Compared], series: dict[str, str]) -> tuple[tuple[str, str], ...]:
    named = [(colour, name_of(kind, source)) for source, colour in series.items()]
    others = len({row.source for row in rows} - set(series))
    return (*named, (_REST, plural(others, "other source"))) if others else tuple(named)
