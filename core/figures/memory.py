"""The memory ledger of one GPU: stacked bars, the capacity, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ..ledgers.serving_memory import planned_length
from ..model.anatomy import kept_by_kind
from ..report import Report
from ..scenario_model import model_of
from ..serving.settings import settings_of
from ..training.stage_names import shown_stages, stage_number
from ..units import format_quantity
from ..words import GIB, gib, percent, plural
from .figure import Axis, Bar, Figure, Label, Rule
from .ticks import linear_ticks

#: Items of a training stage in their fixed order, and of a serving GPU: what is fixed first, then the cache.
_ITEMS = (
    "weights",
    "expert_weights",
    "low_precision_weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "gathered",
    "workspace",
)
_SERVING = ("weights", "expert_weights", "activations", "workspace", "kv_cache", "kv_free")
_OPTIMIZER = ("master_weights", "momentum", "variance")
_SERIES = {"kv_cache": "kv", "kv_free": "kv", "windows": "window"}
_WORDS = {
    "expert_weights": "expert weights",
    "low_precision_weights": "low-precision weights",
    "kv_cache": "KV cache",
    "latent": "latent cache",
    "windows": "KV of windows",
    "kv_free": "free for KV cache",
    "gathered": "gathered weights",
}
#: Items that are a part of the cache.
_CACHE = ("kv_cache", "latent", "windows", "states")
_MOST_ROWS = 8
#: Half the height of a bar in rows, and how far above it a label stands, in text heights.
_HALF_BAR, _RISE = 0.31, 0.8

Items = dict[str, float]


def memory(report: Report, baseline: Report | None = None) -> Figure:
    """Bytes of one GPU at its peak, one row a pipeline stage (serving: one row); a baseline's totals are ghosts."""
    rows = _rows(report)
    usable = float(report["memory.usable_bytes"])
    # What the fit rule lets the ledger's items take: the rest is context, communicators and slack.
    limit = float(report["memory.total_bytes"] + report["memory.headroom_bytes"])
    spread = max(0.0, 3 - len(rows)) / 2
    bars = [_kept(report, limit, usable, len(rows), spread)] if limit < usable else []
    peak = _name_of_peak(report, rows)
    bars += [bar for i, (name, items) in enumerate(rows) for bar in _stack(i, name, items, limit, name == peak)]
    longest = max(sum(items.values()) for _, items in rows)
    ghosts = _rows(baseline) if baseline else []
    if len(ghosts) == len(rows):
        bars += [_ghost(i, sum(items.values())) for i, (_, items) in enumerate(ghosts)]
    high = max(usable * 1.26, longest * 1.24)
    return Figure(
        "memory",
        _title(report, len(rows)),
        _subtitle(report),
        Axis("GiB per GPU", 0.0, high, ticks=linear_ticks(0.0, high, GIB), unit=GIB),
        Axis("", -0.6 - spread, len(rows) - 0.4 + spread, categories=tuple(name for name, _ in rows)),
        bars=tuple(bars),
        rules=(Rule("usable", "capacity", "x", usable, "solid", f"{gib(usable)} usable", _usable_hover(report)),),
        labels=tuple(label for i, (_, items) in enumerate(rows) for label in _labels(report, i, items)),
        key=_key(rows) + ((("baseline", "baseline"),) if ghosts else ()),
        columns=("GPU", *(f"{_WORDS.get(item, item)} [B]" for item in rows[0][1]), "total [B]", "usable [B]"),
        rows=tuple((name, *items.values(), sum(items.values()), usable) for name, items in _every_row(report)),
        scenario=report.scenario.name,
    )


def _rows(report: Report) -> list[tuple[str, Items]]:
    return _grouped(_every_row(report))


def _every_row(report: Report) -> list[tuple[str, Items]]:
    """Name and items in bytes of each pipeline stage, or of the one GPU that stands for all."""
    if report.scenario.kind == "serving":
        items = {item: float(report.get(f"memory.{item}_bytes", 0.0)) for item in _SERVING[:-2]}
        items["weights"] -= items["expert_weights"]
        kept, pool = float(report["memory.kv_cache_bytes"]), report.get("memory.kv_budget_bytes", 0.0)
        return [("each GPU", items | _cache(report, kept) | {"kv_free": max(0.0, pool - kept)})]
    if not report.stages:
        items = {item: float(report.get(f"memory.{item}_bytes", 0.0)) for item in _ITEMS}
        return [("fullest GPU", items)]
    stages = dict(report.stages)
    if "optimizer" not in stages:
        stages["optimizer"] = sum(stages[item] for item in _OPTIMIZER)
    experts = stages.setdefault("expert_weights", np.zeros(len(stages["weights"])))
    stages["weights"] = np.asarray(stages["weights"]) - experts
    shown = shown_stages(report.scenario, len(stages["weights"]))
    names = [f"stage {stage_number(report.scenario, i)}" for i in range(shown)]
    names = names if len(names) > 1 else ["each GPU"]
    return [(name, {item: float(stages[item][i]) for item in _ITEMS}) for i, name in enumerate(names)]


def _cache(report: Report, size: float) -> Items:
    """The cache by what keeps it; of one kind where the model has but one."""
    serving = report.scenario.serving
    width = settings_of(report.scenario).kv.bytes
    length = planned_length(serving.max_context, serving.prompt_tokens, serving.output_tokens)
    kept = kept_by_kind(model_of(report.scenario), length, width)
    total = sum(kept.values())
    return {item: size * share / total for item, share in kept.items() if share}


def _grouped(rows: list[tuple[str, Items]]) -> list[tuple[str, Items]]:
    """At most eight rows: the first stage, the last one, and the ones between in runs shown by their fullest."""
    if len(rows) <= _MOST_ROWS:
        return rows
    last, runs = len(rows) - 1, _MOST_ROWS - 2
    edges = [1 + (last - 1) * k // runs for k in range(runs + 1)]
    result = [rows[0]]
    for first, after in pairwise(edges):
        fullest = max(rows[first:after], key=lambda row: sum(row[1].values()))
        here, there = rows[first][0], rows[after - 1][0].removeprefix("stage ")
        result.append((here if after == first + 1 else f"stages {here.removeprefix('stage ')}–{there}", fullest[1]))
    return [*result, rows[last]]


def _name_of_peak(report: Report, rows: list[tuple[str, Items]]) -> str:
    """The row whose items are the results of the report, by itself or as the fullest of a run of stages."""
    stage = f"stage {stage_number(report.scenario, report.get('memory.peak_stage', 0))}"
    return stage if any(name == stage for name, _ in rows) else max(rows, key=lambda row: sum(row[1].values()))[0]


def _stack(row: int, name: str, items: Items, limit: float, linked: bool) -> Iterator[Bar]:
    """The segments of one row; what stands beyond the limit is hatched."""
    start, total = 0.0, sum(items.values())
    of_total = f" of {gib(total)} GiB"
    for item, size in items.items():
        if not size:
            continue
        words, series = _WORDS.get(item, item), _SERIES.get(item, item)
        text, link = gib(size), _link(item) if linked else ""
        hover = f"{name}, {words}: {text} GiB, {percent(size / total)}{of_total}"
        inside = min(max(0.0, limit - start), size) if limit < total else size
        if item == "kv_free":
            yield Bar(words, series, row, start, size, pattern="pale", text=f"{text} free", hover=hover)
        elif inside:
            yield Bar(words, series, row, start, inside, text=text, hover=hover, link=link)
        if inside < size:
            over = f"{hover}; {format_quantity(size - inside, 'bytes')} of it too much"
            yield Bar(words, series, row, start + inside, size - inside, pattern="hatched", hover=over, link=link)
        start += size


def _link(item: str) -> str:
    """The result that an item is, or is a part of; free cache is none."""
    if item == "kv_free":
        return ""
    whole = {"expert_weights": "weights"} | dict.fromkeys(_CACHE, "kv_cache")
    return f"memory.{whole.get(item, item)}_bytes"


def _labels(report: Report, row: int, items: Items) -> Iterator[Label]:
    """The total of a training GPU; over the cache of a serving one, the requests that it is to hold and can hold."""
    total = sum(items.values())
    if "kv_free" not in items:
        yield Label(f"{gib(total)} GiB", total, row, bold=True)
        return
    asked, held = int(report.scenario.serving.concurrency), int(report["serving.held_requests"])
    words = f"{plural(asked, 'request')}, room for {held}"
    yield Label(words, total, row - _HALF_BAR, "right", _RISE, series="kv")


def _kept(report: Report, limit: float, usable: float, rows: int, spread: float) -> Bar:
    """The strip before the capacity that the items cannot have."""
    hover = f"{_besides(report)}: {format_quantity(usable - limit, 'bytes')}"
    return Bar("kept", "baseline", (rows - 1) / 2, limit, usable - limit, rows + 0.2 + 2 * spread, "pale", hover=hover)


def _ghost(row: int, total: float) -> Bar:
    hover = f"baseline: {format_quantity(total, 'bytes')}"
    return Bar("baseline", "baseline", row, 0.0, total, 0.8, "ghost", hover=hover)


def _title(report: Report, rows: int) -> str:
    total, usable = report["memory.total_bytes"], report["memory.usable_bytes"]
    where = f"stage {stage_number(report.scenario, report['memory.peak_stage'])}" if rows > 1 else "each GPU"
    if not report["memory.fits"]:
        return f"Does not fit: {where} needs {gib(usable - report['memory.headroom_bytes'])} of {gib(usable)} GiB"
    if report["memory.verdict"] == "tight":
        return f"Tight: {where} holds {gib(total)} of {gib(usable)} GiB"
    claim = f"{where} holds the most:" if rows > 1 else f"{where} holds"
    return f"{claim[0].upper()}{claim[1:]} {gib(total)} of {gib(usable)} GiB"


def _subtitle(report: Report) -> str:
    """What is left, when the peak is, and what the strip before the capacity means."""
    headroom, instant = report["memory.headroom_bytes"], report.get("memory.peak_instant")
    spare = f"{format_quantity(abs(headroom), 'bytes')} {'to spare' if headroom >= 0 else 'too much'}"
    moment = f"; peak: {instant}" if instant else ""
    return f"{spare}{moment}; grey: {_besides(report)}"


def _besides(report: Report) -> str:
    """What the strip before the capacity is for."""
    return "outside the engine's share" if report.scenario.kind == "serving" else "driver and slack"


def _usable_hover(report: Report) -> str:
    return f"usable: {format_quantity(report['memory.usable_bytes'], 'bytes')}"


def _key(rows: list[tuple[str, Items]]) -> tuple[tuple[str, str], ...]:
    present = [item for item in rows[0][1] if item != "kv_free" and any(items[item] for _, items in rows)]
    return tuple((_SERIES.get(item, item), _WORDS.get(item, item)) for item in present)
