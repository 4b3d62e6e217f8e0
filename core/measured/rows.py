"""Tables of measurements: CSV to rows that know their line, and which kind of table it is."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from ..errors import ScenarioError, did_you_mean
from ..yaml_tree import read_text

MAX_BYTES = 50_000_000

#: The columns by which each kind of table is known.
KINDS = {
    "training": ("reported_metric", "reported_value", "gpu", "num_gpus", "global_batch"),
    "memory": ("mem_metric", "reported_value", "gpu", "num_gpus"),
    "serving": ("metric", "value", "gpu", "precision_weights", "input_len"),
    "vllm_kv": ("kv_tokens_or_blocks", "gpu_memory_utilization", "gpu"),
}


@dataclass(frozen=True)
class Row:
    """One measurement: the cells of a line by column, blank cells included."""

    file: str
    line: int
    cells: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.cells["id"]

    @property
    def flagged(self) -> bool:
        """Whether its notes say that the row contradicts itself or its neighbours."""
        return "FLAG" in self["notes"]

    def __getitem__(self, column: str) -> str:
        return self.cells.get(column, "").strip()

    def number(self, column: str, default: float | None = None) -> float:
        """The number of a cell, `default` where it is blank. ScenarioError names line and column otherwise."""
        text = self[column]
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ScenarioError(self.file, self.line, column, f"{text!r} is not a number" if text else "is blank")
        return value

    def positive(self, column: str) -> float:
        """The number of a cell, which must be above zero."""
        value = self.number(column)
        if value <= 0:
            raise ScenarioError(self.file, self.line, column, f"{self[column]} is not above zero")
        return value

    def filled(self, values: Mapping[str, object]) -> Row:
        """A copy in which blank cells have the given values."""
        blank = {column: str(value) for column, value in values.items() if not self[column]}
        return replace(self, cells={**self.cells, **blank}) if blank else self

    def with_(self, values: Mapping[str, object]) -> Row:
        """A copy in which some cells are others."""
        return replace(self, cells={**self.cells, **{column: str(value) for column, value in values.items()}})


@dataclass(frozen=True)
class Table:
    """A table of measurements of one kind."""

    kind: str
    rows: tuple[Row, ...]


def load_table(path: str | Path) -> Table:
    """The table of a CSV file. Raises ScenarioError with file, line and column for what is not such a table."""
    file = str(path)
    return read_table(read_text(Path(path), file, "a table of measurements is a CSV file", MAX_BYTES), file)


def shipped_tables() -> list[Table]:
    """The measurements that come with the program."""
    folder = files(__name__.replace(".core.measured.rows", ".presets.measured"))
    return [load_table(Path(str(folder)) / f"{kind}.csv") for kind in KINDS]


def read_table(text: str, file: str) -> Table:
    """The rows of a CSV text. Raises ScenarioError with file, line and column for what is not such a table."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        kind = _kind(header, file)
        rows = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                reason = f"{len(cells)} cells, but the header names {len(header)} columns"
                raise ScenarioError(file, reader.line_num, "", reason)
            rows.append(Row(file, reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise ScenarioError(file, reader.line_num, "", f"not CSV: {error}") from None
    if not rows:
        raise ScenarioError(file, 0, "", "has no rows below its header")
    return Table(kind, _named(rows, kind))


def _kind(header: list[str], file: str) -> str:
    if not any(header):
        raise ScenarioError(file, 0, "", "is empty; its first line names the columns")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise ScenarioError(file, 1, twice, "is the name of two columns")
    for kind, columns in KINDS.items():
        if set(columns) <= set(header):
            return kind
    nearest = max(KINDS, key=lambda kind: len(set(KINDS[kind]) & set(header)))
    missing = [name for name in KINDS[nearest] if name not in header]
    if len(missing) == len(KINDS[nearest]):
        kinds = "; ".join(f"{kind} needs {', '.join(columns)}" for kind, columns in KINDS.items())
        raise ScenarioError(file, 1, "", f"the columns are those of no table of measurements ({kinds})")
    are = "are" if len(missing) > 1 else "is"
    meant = did_you_mean(missing[0], header)
    raise ScenarioError(file, 1, ", ".join(missing), f"{are} missing in a {nearest} table; {meant}")


def _named(rows: list[Row], kind: str) -> tuple[Row, ...]:
    """Rows with ids: a row without one is called after its line. Two rows of one id are an error."""
    lines: dict[str, int] = {}
    named = []
    for row in rows:
        name = row["id"] or f"{kind}-{row.line}"
        if name in lines:
            raise ScenarioError(row.file, row.line, "id", f"{name} is also on line {lines[name]}")
        lines[name] = row.line
        named.append(row.with_({"id": name}))
    return tuple(named)
