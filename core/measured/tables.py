"""What is known of the numbers as tables for people: the runs most like a plan, and the errors by publication."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ledgers.tables import Column, Table
from ..report import Report
from ..units import format_quantity
from ..words import percent, plural
from .band import band_of
from .comparison import Compared, Statistics, by_source, statistics
from .likeness import quantities
from .similar import Similar
from .sources import name_of, title_of

#: Differences named in a row.
_NAMED = 5
_ABOUT = (
    "Settings are those that a source documents; no row has constants of its own",
    "Constants of training are published rates of kernels and links, one set a device generation",
    "Those of serving engines were fitted to runs of their generation",
    "Not predicted: data loading, other jobs on the network, a slow node",
)


def similar_table(report: Report, quantity: str, similar: Sequence[Similar]) -> Table:
    """The runs most like a plan, of a quantity, with their source and what differs; the note says whose errors the band
    is."""
    units = {each.row.written for each in similar}
    unit = units.pop() if len(units) == 1 else ""
    several = len({each.row.metric for each in similar}) > 1
    columns = (
        *(Column("source"), Column("run"), *([Column("figure")] if several else [])),
        *(Column("measured", unit), Column("predicted", unit), Column("error", "ratio")),
        *(Column("differs from this plan in"), Column("publication")),
    )
    band = band_of(report.scenario, quantity)
    ends = f"{percent(-band.low)} less to {percent(band.high)} more {quantities()[quantity].of} than predicted"
    found = statistics([each.row for each in similar])
    error = f": median error {percent(found.median)}" if found else ""
    return Table(
        "similar",
        f"Published runs most like this plan{error}",
        columns,
        tuple(_similar_row(each, several, bool(unit)) for each in similar),
        (),
        (f"Band: {ends}; {band.words}",),
    )


def _similar_row(each: Similar, several: bool, numbers: bool) -> tuple[object, ...]:
    row = each.row
    values = [row.measured * row.scale, row.predicted * row.scale]
    figures = values if numbers else [format_quantity(value, row.written) for value in values]
    differs = ", ".join(f"{each.label} {each.run}" for each in each.differences[:_NAMED])
    named = (name_of(row.kind, row.source), row.id, *([row.metric] if several else []))
    return (*named, *figures, row.error, differs or "nothing", each.title)


def sources_table(rows: Iterable[Compared]) -> Table:
    """The errors of predictions by publication and figure."""
    rows = [row for row in rows if not row.flagged]
    columns = (
        *(Column("source"), Column("figure"), Column("rows", "count")),
        *(Column("median error", "ratio"), Column("90 % within", "ratio"), Column("bias", "ratio")),
        *(Column("worst", "ratio"), Column("of row"), Column("publication")),
    )
    cells = tuple(
        (name_of(kind, source), metric, *_figures(found), title_of(kind, source))
        for (kind, source, metric), found in by_source(rows).items()
    )
    whole = statistics(rows)
    title = "No published figures"
    if whole:
        sources = plural(len({row.source for row in rows}), "source")
        title = f"{plural(whole.count, 'published figure')} of {sources}: median error {percent(whole.median)}"
    totals = (("together", "", *_figures(whole), ""),) if whole else ()
    return Table("sources", title, columns, cells, totals, _ABOUT)


def _figures(found: Statistics) -> tuple[object, ...]:
    return (found.count, found.median, found.percentile_90, found.bias, found.worst, found.worst_id)
