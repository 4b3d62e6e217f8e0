"""Predicted against measured, one mark a row, by source; both axes logarithmic."""

from __future__ import annotations

from collections import Counter

from ..measured.comparison import Comparison, statistics
from ..measured.sources import name_of
from ..measured.validation import Validation
from .figure import Axis, Band, Figure, Line, Mark
from .ticks import log_ticks
from .words import percent, plural

#: Colours of the sources with the most rows; all others share the last.
_SERIES = ("weights", "optimizer", "activations", "logits", "kv", "gradients", "whiteboard")
_REST = "baseline"
#: Half width of the band around a perfect prediction.
_BAND = 0.10


def measured(validation: Validation) -> Figure:
    """The chart of the metric with the most rows; rows of other metrics are counted in the subtitle."""
    rows = [row for row in validation.comparisons if not row.flagged]
    found = statistics(rows)
    if found is None:
        return Figure("measured", "Nothing to compare", "", Axis(), Axis(), empty="no row could be compared")
    kind, metric, unit = Counter((row.kind, row.metric, row.unit) for row in rows).most_common(1)[0][0]
    shown = [row for row in rows if (row.kind, row.metric) == (kind, metric)]
    series = _series(shown)
    values = [value for row in shown for value in (row.measured, row.predicted) if value > 0]
    low, high = min(values) / 1.5, max(values) * 1.5
    return Figure(
        "measured",
        _title(shown),
        _subtitle(metric, len(rows) - len(shown)),
        Axis(f"measured {metric} [{unit}]", low, high, True, log_ticks(low, high)),
        Axis(f"predicted {metric} [{unit}]", low, high, True, log_ticks(low, high)),
        lines=(Line("equal", "bound", (low, high), (low, high), "dashed", 1.2, hover="predicted as measured"),),
        bands=(_band(low, high),),
        marks=tuple(_mark(row, series.get(row.source, _REST)) for row in shown),
        key=_key(kind, shown, series),
        columns=("id", "source", f"measured [{unit}]", f"predicted [{unit}]", "error"),
        rows=tuple((row.id, row.source, row.measured, row.predicted, row.error) for row in shown),
    )


def _series(rows: list[Comparison]) -> dict[str, str]:
    """A colour for each of the sources with the most rows."""
    common = Counter(row.source for row in rows).most_common(len(_SERIES))
    return {source: colour for (source, _), colour in zip(common, _SERIES, strict=False)}


def _band(low: float, high: float) -> Band:
    edges = (low, high)
    below, above = tuple(x * (1 - _BAND) for x in edges), tuple(x * (1 + _BAND) for x in edges)
    return Band("band", "bound", edges, below, above, f"within {percent(_BAND)}")


def _mark(row: Comparison, series: str) -> Mark:
    hover = f"{row.id}: measured {row.measured:.4g} {row.unit}, predicted {row.predicted:.4g} {row.unit}"
    return Mark(row.id, series, row.measured, row.predicted, "dot", 5, hover=f"{hover}, {row.error:+.1%}")


def _key(kind: str, rows: list[Comparison], series: dict[str, str]) -> tuple[tuple[str, str], ...]:
    named = [(colour, name_of(kind, source)) for source, colour in series.items()]
    others = len({row.source for row in rows} - set(series))
    return (*named, (_REST, plural(others, "other source"))) if others else tuple(named)


def _title(rows: list[Comparison]) -> str:
    found = statistics(rows)
    assert found is not None
    return f"{plural(len(rows), 'row')}: median error {found.median * 100:.1f} %"


def _subtitle(metric: str, others: int) -> str:
    return f"{metric}; band: ±{percent(_BAND)}" + (
        f"; {plural(others, 'row')} of other metrics not drawn" if others else ""
    )
