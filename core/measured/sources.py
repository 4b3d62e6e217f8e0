"""Which settings each source of measurements used: one table of documented facts, read by columns and patterns.

The table (`presets/measured/sources.yaml`) says for the start of a row's id what the columns cannot say. A rule holds
where every pattern under `where` is found in its column; it may set fields of the plan, put cells, fill blank ones,
capture a cell from the text of another, derive one from others, or leave the row out with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..catalogue import table
from .comparison import NotExpressibleError
from .rows import Row

#: What a source may state outside its rules.
_OWN = ("set", "skip", "fill", "capture")


@dataclass(frozen=True)
class Settings:
    """What is known of one row: its source, its cells with blanks filled, and the fields of the plan to set."""

    source: str
    row: Row
    values: Mapping[str, Any] = field(default_factory=dict)


def settings_of(kind: str, row: Row) -> Settings:
    """The settings of a row by the table of sources. Raises NotExpressibleError where a rule leaves the row out."""
    data = _table()[kind]
    source = source_of(kind, row)
    values: dict[str, Any] = {}
    for rule in _rules(data, source):
        if not _holds(rule.get("where", {}), row):
            continue
        if "skip" in rule:
            raise NotExpressibleError(rule["skip"])
        row = (
            row.with_(rule.get("put", {})).filled(rule.get("fill", {})).filled(_captured(rule.get("capture", {}), row))
        )
        derived = {column: DERIVED[name](row) for column, name in rule.get("derive", {}).items()}
        row = row.with_(derived)
        stated = rule.get("set", {})
        if "model" in stated:  # a model of the catalogue has its own sizes and switches
            values = {path: value for path, value in values.items() if not path.startswith("model.")}
        values |= stated
    return Settings(source, row, values)


def source_of(kind: str, row: Row) -> str:
    """The source of a row: the longest start of its id that the table knows, else what stands before the first dash."""
    known = [prefix for prefix in _table()[kind]["sources"] if row.id.startswith(f"{prefix}-")]
    return max(known, key=len) if known else row.id.partition("-")[0]


def title_of(kind: str, source: str) -> str:
    """What a source is called; empty for one that the table does not know."""
    return str(_table()[kind]["sources"].get(source, {}).get("title", ""))


def figures_of(kind: str) -> list[dict[str, Any]]:
    """What the reported figures of a kind mean, each with the pattern of its metrics."""
    return _table()[kind]["figures"]


def name_of(kind: str, source: str) -> str:
    """A source's short name, for keys of charts."""
    return str(_table()[kind]["sources"].get(source, {}).get("name", source))


def software_of(kind: str, source: str) -> str:
    """The training stack of a source that has no profile of its own, but is planned with that of another."""
    return str(_table()[kind]["sources"].get(source, {}).get("software", ""))


@cache
def _table() -> dict[str, Any]:
    return table("measured/sources")


def _rules(data: Mapping[str, Any], source: str) -> Iterator[Mapping[str, Any]]:
    """The usual settings, those of the source and its stack, what the columns of any row state, and further rules."""
    own = data["sources"].get(source, {})
    stack = data.get("stacks", {}).get(own.get("stack"), {})
    yield {"set": data["usual"]}
    yield from ({key: part[key] for key in _OWN if key in part} for part in (stack, own))
    yield from data["columns"]
    yield from (*stack.get("rules", ()), *own.get("rules", ()))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _holds(where: Mapping[str, str], row: Row) -> bool:
    return all(_pattern(str(pattern)).search(row[column]) for column, pattern in where.items())


def _captured(capture: Mapping[str, tuple[str, str]], row: Row) -> dict[str, str]:
    """Cells that stand inside others: column -> (other column, pattern with one group)."""
    found = {column: _pattern(pattern).search(row[other]) for column, (other, pattern) in capture.items()}
    return {column: match[1] for column, match in found.items() if match}


def _given(row: Row, column: str) -> float:
    if not row[column]:
        raise NotExpressibleError(f"{column} is not stated")
    return row.positive(column)


def _one_per_chunk(row: Row) -> float:
    """Sequences of a micro-batch when a replica's batch is cut into as many as the pipeline has chunks."""
    chunks = _given(row, "dp") * row.number("pp", 1) * row.number("vpp", 1)
    return max(1, _given(row, "global_batch") // chunks)


def _layer_chunks(row: Row) -> float:
    """Virtual stages when every chunk is one layer."""
    return max(1, _given(row, "layers") // _given(row, "pp"))


def _depth_of_gpt(row: Row) -> float:
    """Layers of a GPT model (12 h² parameters each) from its parameters and width."""
    width = _given(row, "hidden")
    return round((_given(row, "params_b") * 1e9 - _given(row, "vocab") * width) / (12 * width * width))


#: Cells that follow from others, by the name a rule gives.
DERIVED: dict[str, Callable[[Row], float]] = {
    "one micro-batch for each pipeline chunk": _one_per_chunk,
    "one layer a chunk": _layer_chunks,
    "depth of a GPT model from its parameters": _depth_of_gpt,
    "replicas of its shard group": lambda row: max(1, _given(row, "dp") // _given(row, "shard_group")),
    "micro-batches of its local batch": lambda row: max(1, _given(row, "local_batch") // _given(row, "micro_batch")),
    "one stage a device": lambda row: _given(row, "num_gpus"),
    "one rank a device": lambda row: _given(row, "num_gpus"),
    "its attention data parallel ranks": lambda row: _given(row, "serving.attention_dp"),
    "ranks of its experts": lambda row: max(_given(row, "tp"), _given(row, "moe_tp") * _given(row, "parallelism.ep")),
    "its concurrency": lambda row: _given(row, "concurrency"),
}
