"""The accuracy in a few lines, for the README: groups of published figures by `presets/measured/summary.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..catalogue import table
from ..engine import evaluate
from ..words import count, percent
from .band import coverage
from .comparison import Statistics, statistics
from .errors import ErrorRow
from .ranking import called_best, rankings
from .validation import Validation


def summary(rows: Iterable[ErrorRow]) -> Iterator[tuple[str, Statistics]]:
    """The groups that have rows, each with its errors."""
    rows = list(rows)
    for figures, group in table("measured/summary").items():
        if found := statistics(row for row in rows if _belongs(row, group)):
            yield figures, found


def markdown(rows: Iterable[ErrorRow]) -> Iterator[str]:
    """The groups as the lines of a table."""
    yield "| figures | rows | median | 90th percentile | bias |"
    yield "|---|---|---|---|---|"
    for figures, found in summary(rows):
        sizes = (found.median, found.percentile_90, found.bias)
        yield f"| {figures} | {found.count} | {' | '.join(map(_percent, sizes))} |"


def claims(validation: Validation) -> Iterator[str]:
    """What the README says of accuracy in words beside the table."""
    rows = [row for row in validation.comparisons if not row.flagged]
    verdicts = [verdict for verdict in validation.verdicts if not verdict.flagged]
    wrong = sum(verdict.ran != verdict.fits for verdict in verdicts)
    yield f"{count(len(rows))} published figures are compared with predictions"
    yield f"{count(len(validation.skipped))} more cannot be expressed yet"
    yield called_best(rankings(rows))
    yield f"whether a run fits is answered wrongly for {wrong} of {count(len(verdicts))} runs"
    timed = [row for row in rows if row.kind == "training"]
    denied = sum(not evaluate(row.scenario)["memory.fits"] for row in timed)
    yield f"{denied} of {len(timed)} timed trainings are said not to fit"
    times, peaks = (percent(coverage(quantity)) for quantity in ("step", "peak"))
    yield f"made without a source, bands hold for {times} of its step times and {peaks} of its memory peaks"


def _belongs(row: ErrorRow, group: Mapping[str, Any]) -> bool:
    return (
        row.kind == group["kind"]
        and row.metric in group.get("metrics", [row.metric])
        and row.source in group.get("sources", [row.source])
        and bool(row.plan["model.experts"]) == group.get("experts", bool(row.plan["model.experts"]))
        and row.plan.get("training.finetune") in group.get("trained", [row.plan.get("training.finetune")])
    )


def _percent(error: float) -> str:
    text = f"{abs(error) * 100:.1f} %"
    return f"−{text}" if error < 0 and text != "0.0 %" else text
