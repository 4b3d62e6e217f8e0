"""`triledger calibrate`: machine constants fitted to a person's own runs, with the error before and after."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

from .arguments import InputError
from .text import aligned

if TYPE_CHECKING:
    from ..core.measured.calibration import Calibration
    from ..core.measured.comparison import Case
    from ..core.measured.rows import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..core.measured.columns import own_runs

    parser.epilog = own_runs()
    parser.add_argument("data", metavar="DATA.csv", help="own training or serving runs; the columns are named below")
    parser.add_argument("-o", "--output", metavar="ASSUMPTIONS.yaml", help="writes the section for a scenario file")


def run(options: argparse.Namespace) -> int:
    from ..core.errors import OutputError, ScenarioError
    from ..core.files import write_whole
    from ..core.measured.calibration import calibrate
    from ..core.measured.rows import load_table

    try:
        table = load_table(options.data)
        cases, left_out = _cases(table)
        if not cases:
            print("\n".join((f"{options.data}: no run could be turned into a plan", *aligned(left_out, "<<"))))
            return 1
        found = calibrate(cases)
        print("\n".join(_text(found, left_out)))
        usable = bool(found.fits) and found.describes
        if options.output and usable:
            write_whole(options.output, _yaml(found).encode())
    except (ScenarioError, OutputError) as error:
        raise InputError(str(error)) from None
    return 0 if usable else 1


def _cases(table: Table) -> tuple[list[Case], list[tuple[str, str]]]:
    """The runs that are plans, rows that contradict themselves left out, and why the others are none."""
    from ..core.errors import ScenarioError
    from ..core.measured.comparison import NotExpressibleError
    from ..core.measured.validation import CASES

    if table.kind not in CASES:
        known = " or ".join(CASES)
        raise ScenarioError(table.rows[0].file, 1, "", f"is a {table.kind} table; constants are fitted to {known} runs")
    cases, left_out = [], []
    for row in table.rows:
        try:
            if row.flagged:
                raise NotExpressibleError("its notes say that it contradicts itself or its neighbours")
            cases.append(CASES[table.kind](row))
        except NotExpressibleError as reason:
            left_out.append((row.id, str(reason)))
    return cases, left_out


def _text(found: Calibration, left_out: Sequence[tuple[str, str]]) -> Iterator[str]:
    from ..core.measured.calibration import DESCRIBED

    yield f"{len(found.before)} runs"
    table: list[tuple[str, ...]] = [("", "median error", "mean error", "bias")]
    for name, errors in (("before", found.before), ("after", found.after)):
        size = [abs(error) for error in errors]
        cells = (median(size), sum(size) / len(size), sum(errors) / len(errors))
        table.append((name, *(f"{cell * 100:.1f} %".replace("-", "−") for cell in cells)))
    yield from aligned(table, "<>>>")
    if found.fits:
        yield ""
        rows = [("constant", "published", "fitted", "moves predictions by")]
        rows += [
            (f.name, f"{f.published:.4g}", f"{f.fitted:.4g}", f"{f.elasticity:.2f} of its change") for f in found.fits
        ]
        yield from aligned(rows, "<>>>")
    if found.fits and not found.describes:
        yield ""
        yield (
            f"these constants do not describe the runs, half of which are off by more than {DESCRIBED * 100:.0f} %, "
            "and are not written; units, layouts and formats of the rows may not be those of the runs"
        )
    if found.refusals:
        yield ""
        yield "not fitted"
        yield from aligned([(refusal.name, refusal.reason) for refusal in found.refusals], "<<")
    if left_out:
        yield ""
        yield f"left out, {len(left_out)} rows"
        yield from aligned(left_out, "<<")


def _yaml(found: Calibration) -> str:
    lines = (f"  {fit.name}: {fit.fitted:.4g}" for fit in found.fits)
    return "\n".join((f"# fitted to {len(found.before)} runs", "assumptions:", *lines, ""))
