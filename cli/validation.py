"""`triledger validate`: predictions beside measurements, row by row, as text or JSON, and as a chart."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .arguments import InputError, add_settings, scenario_of
from .text import aligned

if TYPE_CHECKING:
    from ..core.measured.comparison import Comparison, Skipped, Statistics
    from ..core.measured.rows import Table
    from ..core.measured.validation import Validation

#: Rows named for each reason in the text; JSON names all.
_NAMED = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..core.measured.columns import own_runs

    parser.epilog = own_runs()
    kinds = "training runs, memory, serving or vLLM start-ups, told by the columns"
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--data", metavar="FILE.csv", help=f"measurements of {kinds}; default: the shipped ones")
    either.add_argument("--like", dest="scenario", metavar="SCENARIO", help="only the published runs most like a plan")
    parser.add_argument("--of", choices=("time", "memory"), default="time", help="what --like compares")
    add_settings(parser)
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument("--write", metavar="FILE.csv", help="the errors as the table that bands are made from")
    parser.add_argument("--plot", metavar="FILE", help="predicted against measured as FILE.svg, .png, .pdf or .csv")


def run(options: argparse.Namespace) -> int:
    return _print_similar(options) if options.scenario else _validate(options)


def _print_similar(options: argparse.Namespace) -> int:
    from ..core.engine import evaluate
    from .similar import print_similar

    print_similar(evaluate(scenario_of(options)), options.of, options.format)
    return 0


def _validate(options: argparse.Namespace) -> int:
    from ..core.errors import OutputError, ScenarioError
    from ..core.export import write_figure
    from ..core.figures.measured import measured
    from ..core.files import write_whole
    from ..core.measured.errors import errors_text, read_errors
    from ..core.measured.summary import claims, markdown
    from ..core.measured.validation import validate

    try:
        validation = validate(_tables(options.data))
        if options.plot:
            write_figure(measured(validation.comparisons), options.plot, "print", 2.0)
        if options.write:
            write_whole(options.write, errors_text(validation.comparisons).encode())
    except (ScenarioError, OutputError) as error:
        raise InputError(str(error)) from None
    if options.format == "json":
        print(json.dumps(_json(validation), indent=2, allow_nan=False))
    elif options.format == "markdown":
        table = markdown(read_errors(errors_text(validation.comparisons)))
        print("\n".join((*table, "", *claims(validation))))
    else:
        print("\n".join(_text(validation)))
    return 0 if validation.comparisons or validation.verdicts else 1


def _tables(path: str | None) -> list[Table]:
    from ..core.measured.rows import load_table, shipped_tables

    return [load_table(path)] if path else shipped_tables()


# ---------------------------------------------------------------- text


def _text(validation: Validation) -> Iterator[str]:
    from ..core.measured.comparison import statistics

    rows = validation.comparisons
    plain = [row for row in rows if not row.flagged]
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [row for row in plain if row.kind == kind]
        yield f"{kind}: predicted over measured, {len(of_kind)} rows"
        yield from _sources(of_kind)
        yield ""
    flagged = [row for row in rows if row.flagged]
    if flagged:
        yield "rows that contradict themselves or their neighbours in the source, apart"
        yield from _sources(flagged)
        yield ""
    yield from _verdicts(validation)
    yield from _ranking(validation)
    yield from _skipped(validation.skipped)
    found = statistics(plain)
    if found:
        yield f"{found.count} rows compared; median error {_percent(found.median)}, bias {_signed(found.bias)}"
    elif not validation.verdicts:
        yield "no row could be compared"


def _sources(rows: Sequence[Comparison]) -> Iterator[str]:
    from ..core.measured.comparison import by_source, statistics
    from ..core.measured.sources import title_of

    table: list[tuple[str, ...]] = [
        ("source", "metric", "rows", "median", "mean", "90 %", "bias", "worst", "in row", "")
    ]
    for (kind, source, metric), found in by_source(rows).items():
        table.append((source, metric, *_cells(found), title_of(kind, source)))
    together = statistics(rows)
    if together and len(table) > 2:
        table.append(("together", "", *_cells(together), ""))
    yield from aligned(table, "<<>>>>>><<")


def _cells(found: Statistics) -> tuple[str, ...]:
    sizes = (found.median, found.mean, found.percentile_90)
    return (str(found.count), *map(_percent, sizes), _signed(found.bias), _signed(found.worst), found.worst_id)


def _percent(value: float) -> str:
    return f"{value * 100:.1f} %"


def _signed(value: float) -> str:
    return f"{value * 100:+.1f} %".replace("-", "−")


def _verdicts(validation: Validation) -> Iterator[str]:
    from ..core.measured.comparison import fits_by_source

    table: list[tuple[str, ...]] = [
        ("source", "ran, said so", "ran, said no", "failed, said so", "failed, said it fits", "right")
    ]
    for source, found in fits_by_source(validation.verdicts).items():
        table.append((source, *map(str, found.counts), _percent(found.right)))
    if len(table) > 1:
        yield "memory: does it fit"
        yield from aligned(table, "<>>>>>")
        yield ""


def _ranking(validation: Validation) -> Iterator[str]:
    from ..core.measured.ranking import called_best, rankings
    from ..core.units import digits

    found = rankings(validation.comparisons)
    if not found:
        return
    yield "ranking of layouts by GPU-seconds per token and L·h²; the one called best takes so much more than the best"
    table: list[tuple[str, ...]] = [("source", "runs", "τ", "inside", "sweep", "runs", "layouts", "τ", "best is off")]
    for ranking in found:
        of_all = (ranking.source, str(ranking.runs), digits(ranking.tau, 2), digits(ranking.tau_inside, 2))
        for sweep in ranking.sweeps:
            counts = (str(sweep.runs), str(sweep.layouts), digits(sweep.tau, 2))
            table.append((*of_all, sweep.name, *counts, _percent(sweep.excess)))
            of_all = ("", "", "", "")
    yield from aligned(table, "<>>><>>>>")
    yield called_best(found)
    yield ""


def _skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    if not skipped:
        return
    yield f"not compared, {len(skipped)} rows"
    reasons: dict[str, list[str]] = {}
    for row in skipped:
        reasons.setdefault(row.reason, []).append(row.id)
    ordered = sorted(reasons.items(), key=lambda item: -len(item[1]))
    table = [(str(len(ids)), reason, _some(ids)) for reason, ids in ordered]
    yield from aligned(table, "><<")
    yield ""


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NAMED]) + (" …" if len(ids) > _NAMED else "")


# ---------------------------------------------------------------- JSON


def _json(validation: Validation) -> dict[str, Any]:
    from ..core.measured.comparison import by_source, fits_by_source, statistics
    from ..core.measured.ranking import rankings

    plain = [row for row in validation.comparisons if not row.flagged]
    sources: dict[str, dict[str, Any]] = {}
    for (kind, source, metric), found in by_source(plain).items():
        sources.setdefault(source, {})[f"{kind}: {metric}"] = _errors(found)
    for source, found in fits_by_source(validation.verdicts).items():
        ran, wrongly, failed, missed = found.counts
        verdicts = {"ran_fits": ran, "ran_does_not_fit": wrongly, "failed_does_not_fit": failed, "failed_fits": missed}
        sources.setdefault(source, {})["memory: fits"] = {**verdicts, "right": found.right}
    return {
        "rows": [_row(row) for row in validation.comparisons],
        "fits": [
            {"id": verdict.id, "source": verdict.source, "ran": verdict.ran, "fits": verdict.fits}
            for verdict in validation.verdicts
        ],
        "skipped": [
            {"id": row.id, "kind": row.kind, "source": row.source, "reason": row.reason} for row in validation.skipped
        ],
        **_errors(statistics(plain)),
        "by_source": sources,
        "ranking": {found.source: asdict(found) for found in rankings(validation.comparisons)},
    }


def _row(row: Comparison) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "source": row.source,
        "metric": row.metric,
        "unit": row.unit,
        "measured": row.measured,
        "predicted": row.predicted,
        "error": row.error,
        "flagged": row.flagged,
    }


def _errors(found: Statistics | None) -> dict[str, Any]:
    if found is None:
        names = ("mean_abs_error", "median_abs_error", "p90_abs_error", "bias", "max_abs_error", "worst")
        return {"count": 0, **dict.fromkeys(names)}
    return {
        "count": found.count,
        "mean_abs_error": found.mean,
        "median_abs_error": found.median,
        "p90_abs_error": found.percentile_90,
        "bias": found.bias,
        "max_abs_error": abs(found.worst),
        "worst": found.worst_id,
    }
