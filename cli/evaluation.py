"""`triledger eval`: every number of a plan, or the working of one of them."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .arguments import InputError, add_scenario, scenario_of
from .text import aligned

if TYPE_CHECKING:
    from ..core.report import Report
    from ..core.unset import Unset


#: Formulas followed down where nothing is said.
_DEPTH = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    parser.add_argument("--format", choices=("text", "json", "csv"), default="text")
    parser.add_argument("--explain", metavar="KEY", help="the working of one result, for example time.step_s")
    parser.add_argument("--depth", type=_depth, metavar="N", help="formulas that --explain follows down (default 2)")


def _depth(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from ..core.engine import evaluate
    from ..core.unset import unset

    if options.depth is not None and not options.explain:
        raise InputError("--depth: belongs to --explain KEY, for example --explain time.step_s --depth 3")
    report = evaluate(scenario_of(options), record=bool(options.explain))
    if options.explain:
        _print_working(report, options.explain, options.format, _DEPTH if options.depth is None else options.depth)
    elif options.format == "json":
        assumed = [_assumption(each) for each in unset(report.scenario, evaluate)]
        print(json.dumps(report.flat() | {"assumptions": assumed}, indent=2))
    elif options.format == "csv":
        _print_csv(report)
    else:
        print("\n".join((*_text(report), *_assumed(unset(report.scenario, evaluate)))))
    return 0


def _print_working(report: Report, key: str, form: str, depth: int) -> None:
    from ..core.working import UnknownKeyError, explain

    try:
        explanation = explain(report, key, depth)
    except UnknownKeyError as error:
        raise InputError(f"--explain: {error.args[0]}") from None
    if form == "text":
        print("\n".join(explanation.lines()))
        return
    if form == "csv":
        raise InputError("--explain: the working of a number is text or json, not csv")
    from dataclasses import asdict

    print(json.dumps(asdict(explanation), indent=2, default=str))


def _assumption(each: Unset) -> dict[str, Any]:
    return {
        "field": each.field,
        "value": each.value,
        "effect_low": each.effect_low,
        "effect_high": each.effect_high,
        "tried": dict(each.tried),
    }


def _assumed(found: Sequence[Unset]) -> Iterator[str]:
    """The settings at their defaults, with what others would change."""
    if found:
        yield ""
        yield "assumed, as nothing else is set"
        yield from aligned([(each.message, each.field) for each in found], "<<")


def _print_csv(report: Report) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("key", "value"))
    for key, value in report.flat().items():
        writer.writerows(_cells(key, value))


def _cells(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """One row for a number or a word; rows of a list are numbered: communication.0.seconds."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _cells(f"{key}.{index}", entry)
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _cells(f"{key}.{name}", entry)
    else:
        yield key, value


def _text(report: Report) -> Iterator[str]:
    from ..core.headlines import headlines
    from ..core.ledgers.tables import tables
    from ..core.measured.band import band_of
    from ..core.measured.likeness import quantity_for
    from ..core.measured.seen import seen
    from ..core.model.anatomy import anatomy
    from ..core.model.layers import build
    from ..core.verdict import verdict

    yield f"{report['name']} ({report['kind']})"
    yield verdict(report).text
    yield ""
    yield report.scenario.model.name
    yield from (f"  {line}" for line in anatomy(build(report.scenario.model)).lines())
    yield ""
    rows = [(h.label, f"{h.number} {h.unit}".strip(), "; ".join(h.details)) for h in headlines(report)]
    yield from aligned(rows, "<><")
    if found := seen(report):
        yield ""
        yield from aligned([("", "measured", "predicted", "error"), *found], "<>>>")
        yield ""
    for of in ("time", "memory") if report.holds_a_request else ("memory",):
        yield f"  band of {of}: {band_of(report.scenario, quantity_for(report['kind'], of)).words}"
    for table in tables(report):
        yield ""
        yield table.title
        names = tuple(column.name for column in table.columns)
        sides = "".join(">" if column.unit else "<" for column in table.columns)
        yield from aligned([names, *map(table.texts, table.rows), *map(table.texts, table.totals)], sides)
        yield from table.notes
        if table.not_counted:
            yield f"not counted: {'; '.join(table.not_counted)}"
    if report.findings:
        yield ""
        yield from aligned([(f.severity, f.message, f.field) for f in report.findings], "<<<")
