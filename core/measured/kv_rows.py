"""A vLLM start-up as a plan: the cache that the engine reserves on each device, and the bytes of a cached token."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..engine import evaluate
from ..scenario import Scenario
from .comparison import Comparison, NotExpressibleError
from .plans import within_range
from .rows import Row
from .serving_plan import serving_plan
from .sources import Settings, settings_of

GIB = 2.0**30
#: Share of the printed capacity that runtimes see; the logs give what they see.
_SEEN = 0.989
_LOGGED = re.compile(r"\bkv(?:_cache_gib=| )(\d+(?:\.\d+)?)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) (GiB|tokens|blocks)")


def kv_plan(row: Row) -> tuple[Scenario, Settings]:
    """The plan of a start-up. Raises NotExpressibleError with the reason where there is none."""
    settings = settings_of("vllm_kv", row)
    row = settings.row
    scenario = serving_plan(settings)
    if not row["gpu_mem_gib"]:
        raise NotExpressibleError("the memory that the device reports is not stated")
    changes = {
        "cluster.accelerator.memory": row.positive("gpu_mem_gib") * GIB / _SEEN,
        "serving.memory_utilization": row.number("gpu_memory_utilization", 0.9),
        "serving.max_context": row.number("max_model_len", 4096.0),
        "serving.concurrency": 1.0,
    }
    if row["batched_tokens"]:
        changes["serving.max_batched_tokens"] = row.positive("batched_tokens")
    for path, value in changes.items():
        scenario = scenario.with_(path, within_range(row, path, value))
    if row["sequences"]:
        for name in ("max_sequences", "large_sequences"):
            scenario = scenario.with_(f"assumptions.{name}", row.positive("sequences"))
    return scenario, settings


def compare_kv(row: Row) -> Iterator[Comparison]:
    """Bytes of the cache on a device; and bytes of a token where the log prints both the bytes and the tokens."""
    scenario, settings = kv_plan(row)
    report = evaluate(scenario)
    each = float(report["serving.kv_bytes_per_token_per_gpu"])
    size, unit = _size(row)
    block = row.positive("block_size") if row["block_size"] else 16.0
    tokens = size * (block if unit == "blocks" else 1.0)
    measured = size * GIB if unit == "GiB" else tokens * each
    predicted = float(report["memory.kv_budget_bytes"])
    about, told = (row.id, "vllm_kv", settings.source), ("cache", "GiB", measured / GIB, predicted / GIB)
    yield Comparison(*about, *told, scenario, flagged=row.flagged)
    logged = _LOGGED.search(row["notes"])
    if logged and unit != "GiB":
        seen = float(logged[1]) * GIB / tokens
        yield Comparison(*about, "cache of a token", "B", seen, each, scenario, flagged=row.flagged)


def _size(row: Row) -> tuple[float, str]:
    found = _SIZE.match(row["kv_tokens_or_blocks"])
    if not found or not float(found[1]):
        raise NotExpressibleError(f"{row['kv_tokens_or_blocks']!r} is no number of tokens, blocks or GiB")
    return float(found[1]), found[2]
