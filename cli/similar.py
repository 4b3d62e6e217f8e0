"""`triledger validate --like SCENARIO`: the published runs most like a plan, and the band that such runs leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .text import aligned

if TYPE_CHECKING:
    from ..core.measured.band import Band
    from ..core.measured.similar import Similar
    from ..core.report import Report

#: What a quantity is called, and its unit.
_NAMES = {
    "step": ("a step", "seconds"),
    "pace": ("a step", "seconds"),
    "peak": ("a peak", "bytes"),
    "cache": ("a cache on each GPU", "bytes"),
}
#: Differences named in the text; JSON names all.
_NAMED = 4


def print_similar(report: Report, of: str, form: str) -> None:
    """The runs like the plan of a report, compared in "time" or "memory", as text or JSON."""
    from ..core.measured.band import band_of
    from ..core.measured.likeness import quantity_for
    from ..core.measured.similar import most_similar

    quantity = quantity_for(report["kind"], of)
    band = band_of(report.scenario, quantity)
    found = most_similar(report.scenario, quantity=quantity)
    if form == "json":
        print(json.dumps({"band": asdict(band), "rows": [_row(each) for each in found]}, indent=2))
    else:
        print("\n".join(_text(report, quantity, band, found)))


def _text(report: Report, quantity: str, band: Band, found: list[Similar]) -> Iterator[str]:
    from ..core.measured.likeness import quantities
    from ..core.units import format_quantity

    what, unit = _NAMES[quantity]
    value, low, high = (format_quantity(report[key], unit) for key in quantities()[quantity].results)
    yield f"{report['name']}: {what} of {value}, band {low} to {high}"
    yield f"from {band.words}"
    yield ""
    table = [("row", "metric", "measured", "predicted", "error", "source", "differs")]
    for each in found:
        row = each.row
        figures = (f"{row.measured:.4g} {row.unit}", f"{row.predicted:.4g} {row.unit}")
        differs = "; ".join(difference.text for difference in each.differences[:_NAMED])
        table.append((row.id, row.metric, *figures, f"{row.error * 100:+.1f} %", each.title, differs))
    yield from aligned(table, "<<>>><<")


def _row(each: Similar) -> dict[str, Any]:
    row = each.row
    return {
        "id": row.id,
        "source": row.source,
        "title": each.title,
        "metric": row.metric,
        "unit": row.unit,
        "measured": row.measured,
        "predicted": row.predicted,
        "error": row.error,
        "criteria_missed": each.missed,
        "differs": {difference.path: [difference.plan, difference.run] for difference in each.differences},
    }
