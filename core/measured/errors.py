"""The errors of predictions on published rows, as a table that is made by `triledger validate --write` and shipped.

A row holds what was measured and predicted, and the fields of its plan that say what it is like; so bands and similar
runs are known at once, without evaluating thousands of plans.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from .comparison import Compared, Comparison
from .likeness import kept_paths, quantity_of
from .sources import software_of

_ABOUT = ("id", "kind", "source", "metric", "unit", "measured", "predicted")
_FOLDER = __name__.replace(".core.measured.errors", ".presets.measured")


@dataclass(frozen=True)
class ErrorRow(Compared):
    """A kept row: no flagged one. `cells` are those of the table, which hold the kept fields of its plan."""

    cells: Mapping[str, str]

    @cached_property
    def plan(self) -> dict[str, Any]:
        """Numbers and words of the plan, by path."""
        return {path: _value(text) for path, text in self.cells.items() if text and path not in _ABOUT}

    @property
    def slowdown(self) -> float:
        """Measured time over predicted time; of a rate, the inverse."""
        ratio = self.measured / self.predicted
        return 1 / ratio if self.unit == "tokens/s" else ratio

    @property
    def quantity(self) -> str:
        """The quantity it measures; empty where no band is made of it."""
        return quantity_of(self.metric)


@cache
def shipped_errors() -> tuple[ErrorRow, ...]:
    """The rows that come with the program."""
    return read_errors(files(_FOLDER).joinpath("errors.csv").read_text(encoding="utf-8"))


def read_errors(text: str) -> tuple[ErrorRow, ...]:
    """The rows of a table that `errors_text` wrote."""
    columns, *rows = csv.reader(io.StringIO(text))
    return tuple(_row(dict(zip(columns, cells, strict=True))) for cells in rows)


def _row(cells: dict[str, str]) -> ErrorRow:
    words = cells["id"], cells["kind"], cells["source"], cells["metric"], cells["unit"]
    return ErrorRow(*words, float(cells["measured"]), float(cells["predicted"]), cells)


@cache
def _value(text: str) -> Any:
    """The number or the word of a cell. There are few different ones, and each row has two dozen."""
    try:
        return float(text)
    except ValueError:
        return text


def errors_text(rows: Iterable[Comparison]) -> str:
    """The table of some comparisons as CSV; flagged rows are left out."""
    paths = list(dict.fromkeys(path for kind in ("training", "serving") for path in kept_paths(kind)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_ABOUT, *paths))
    for row in rows:
        if not row.flagged:
            kept = {path: row.scenario.get(path) for path in kept_paths(row.scenario.kind)}
            if software := software_of(row.kind, row.source):
                kept["training.framework"] = software
            cells = (_cell(kept[path]) if path in kept else "" for path in paths)
            figures = (f"{row.measured:.5g}", f"{row.predicted:.5g}")
            writer.writerow((row.id, row.kind, row.source, row.metric, row.unit, *figures, *cells))
    return text.getvalue()


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)
