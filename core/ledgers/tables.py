"""The three ledgers as tables: rows of SI numbers and words, totals under the line, and what is not counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..report import Point, Report
from ..training.stage_names import shown_stages, stage_number
from ..units import format_quantity
from ..words import when


@dataclass(frozen=True)
class Column:
    """One column; `unit` is a quantity `units.format_quantity` knows, or empty for words."""

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """One ledger. A cell is a number in SI, a word, or None where there is nothing to say.

    `title` says what the table says, `notes` compare its totals with the rules of thumb.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    totals: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    not_counted: tuple[str, ...] = ()

    def texts(self, row: tuple[Any, ...]) -> tuple[str, ...]:
        """The cells of a row as a person reads them, numbers with their unit."""
        return tuple(_text(cell, column.unit) for cell, column in zip(row, self.columns, strict=True))


def _text(cell: Any, unit: str) -> str:
    if cell is None:
        return ""
    return format_quantity(cell, unit) if unit else str(cell)


def tables(report: Report) -> tuple[Table, Table, Table]:
    """The compute, memory and communication ledgers of a report."""
    return compute_table(report), memory_table(report), communication_table(report)


def compute_table(report: Report) -> Table:
    """FLOPs, bytes and time of one GPU in one step, operator by operator (serving: one decode step, one prefill)."""
    columns = (
        Column("operator"),
        Column("phase"),
        Column("bound"),
        Column("FLOPs", "FLOP"),
        Column("bytes", "decimal bytes"),
        Column("intensity", "FLOP/B"),
        Column("time", "seconds"),
    )
    rows = tuple(_compute_row(point) for point in report.points if not _is_whole(point))
    not_counted = report.not_counted.get("compute", ())
    title = "Compute: one GPU, one step"
    return Table("compute", title, columns, rows, tuple(_compute_totals(report)), _rules(report), not_counted)


def _compute_row(p: Point) -> tuple[Any, ...]:
    return p.name, p.phase, p.bound or None, p.flops, p.bytes, p.intensity, p.seconds


def _is_whole(point: Point) -> bool:
    """Whether a point stands for all operators of its phase, with the time that traffic and waiting add."""
    return point.name in (point.phase, f"whole {point.phase}")


def _compute_totals(report: Report) -> Iterator[tuple[Any, ...]]:
    """The sum of the operators of each phase, then the points that stand for whole phases."""
    operators = [point for point in report.points if not _is_whole(point)]
    for phase in dict.fromkeys(point.phase for point in operators):
        parts = [point for point in operators if point.phase == phase]
        flops, size, seconds = (sum(getattr(p, name) for p in parts) for name in ("flops", "bytes", "seconds"))
        yield "all operators", phase, None, flops, size, flops / size if size else None, seconds
    yield from (_compute_row(point) for point in report.points if _is_whole(point))


def _rules(report: Report) -> tuple[str, ...]:
    """The exact count beside the rule of thumb (2, 4, 6 or 8 FLOPs a parameter and token) of the same passes."""
    exact = report.get("compute.training_flops_per_token", report.get("compute.forward_flops_per_token"))
    rule, did = report.get("compute.rule_flops_per_token"), ""
    model, hardware = report.get("compute.model_flops_per_step"), report.get("compute.hardware_flops_per_step")
    if exact and model and hardware and report.scenario.training.recompute == "full":
        exact, did = exact * hardware / model, " executed"  # the rule counts the second forward pass too
    notes = []
    if exact and rule:
        counted, ruled = format_quantity(exact, "FLOP"), format_quantity(rule, "FLOP")
        notes.append(f"{counted}{did} a token; the rule of thumb says {ruled} ({_difference(exact, rule)})")
    if model and hardware:
        step = f"all GPUs, one step: {format_quantity(model, 'FLOP')} of the model"
        again = f", {format_quantity(hardware - model, 'FLOP')} computed again" if hardware > model * 1.0005 else ""
        notes.append(step + again)
    return tuple(notes)


def _difference(value: float, reference: float) -> str:
    percent = 100 * (value / reference - 1)
    return f"{'+' if percent >= 0 else '−'}{abs(percent):.1f} %"


_MIB = 2.0**20
_MOST_STAGES = 16

#: Items of the memory ledger in the order of a GPU's life, with their words.
MEMORY_ITEMS = {
    "weights": "weights",
    "low_precision_weights": "low-precision weights",
    "gradients": "gradients",
    "master_weights": "master weights",
    "momentum": "momentum",
    "variance": "variance",
    "kv_cache": "KV cache",
    "activations": "activations",
    "logits": "logits",
    "gathered": "gathered weights",
    "workspace": "workspace",
}


def memory_table(report: Report) -> Table:
    """Bytes of the fullest GPU at its peak, item by item; GiB with GB beside it."""
    usable, total = report["memory.usable_bytes"], report["memory.total_bytes"]
    stages = _stages(report)
    columns = (
        Column("item"),
        Column("GiB", "bytes"),
        Column("GB", "decimal bytes"),
        Column("of usable", "ratio"),
        *(Column(f"stage {stage_number(report.scenario, stage)}", "bytes") for stage in range(stages)),
    )

    def row(words: str, size: float, by_stage: Sequence[float] | None = None) -> tuple[Any, ...]:
        others = (None,) * stages if by_stage is None else tuple(by_stage[:stages])
        return words, size, size, size / usable if usable else None, *others

    sizes = {item: report.get(f"memory.{item}_bytes", 0.0) for item in MEMORY_ITEMS}
    held = {item for item in MEMORY_ITEMS if sizes[item] or (stages and any(report.stages.get(item, ())))}
    rows = tuple(
        row(words, sizes[item], report.stages.get(item)) for item, words in MEMORY_ITEMS.items() if item in held
    )
    headroom = report["memory.headroom_bytes"]
    totals = [row("total", total, report.stages.get("total"))]
    if abs(besides := usable - total - headroom) > _MIB:
        serving = report["kind"] == "serving"
        totals.append(row("outside the engine's budget" if serving else "kept for driver and slack", besides))
    totals += [row("usable", usable), row("to spare" if headroom >= 0 else "short", abs(headroom))]
    not_counted = report.not_counted.get("memory", ())
    return Table("memory", _memory_title(report), columns, rows, tuple(totals), _on_host(report), not_counted)


def _on_host(report: Report) -> tuple[str, ...]:
    """What a GPU keeps in the memory of its host, in words."""
    size = report.get("memory.host_bytes")
    return (f"{format_quantity(size, 'bytes')} more in the memory of the host",) if size else ()


def _stages(report: Report) -> int:
    """How many pipeline stages get a column of their own: none where there is one, or more than a table can show."""
    stages = shown_stages(report.scenario, len(report.stages.get("weights", ())))
    return stages if 1 < stages <= _MOST_STAGES else 0


def _memory_title(report: Report) -> str:
    if "memory.peak_stage" not in report:
        return "Memory: one GPU"
    moment = when(report["memory.peak_instant"])
    if report.scenario.parallelism.pp == 1:
        return f"Memory: one GPU, {moment}"
    return f"Memory: stage {stage_number(report.scenario, report['memory.peak_stage'])} holds the most, {moment}"


def communication_table(report: Report) -> Table:
    """Bytes that one GPU sends in one step, group by group, with the seconds that nothing hides."""
    columns = (
        Column("traffic"),
        Column("collective"),
        Column("group"),
        Column("link"),
        Column("hides behind"),
        Column("times", "count"),
        Column("sent", "decimal bytes"),
        Column("time", "seconds"),
        Column("exposed", "seconds"),
    )
    rows = tuple(
        (
            t.name,
            t.collective,
            f"{t.group} {t.group_size:.0f}",
            t.link,
            t.hides_behind,
            t.times_per_step,
            t.bytes_per_gpu,
            t.seconds,
            t.exposed_seconds,
        )
        for t in report.communication
    )
    sums = ("bytes_per_gpu", "seconds", "exposed_seconds")
    sent, seconds, exposed = (sum(getattr(t, name) for t in report.communication) for name in sums)
    total = ("total", None, None, None, None, None, sent, seconds, exposed)
    not_counted = report.not_counted.get("communication", ())
    return Table("communication", "Communication: one GPU, one step", columns, rows, (total,), (), not_counted)
