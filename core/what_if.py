"""What if: changes that people ask about, each answered by evaluating the plan with it.

Nothing here is a rule of its own; what a change brings is the difference between two reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ledgers.tables import MEMORY_ITEMS, Column, Table
from .legality import legal
from .report import Edit, Report
from .scenario import Scenario
from .training.days import speedup
from .units import format_quantity
from .words import plural

Evaluate = Callable[[Scenario], Report]

#: Sequences at which two formats are compared, and the gain below which the faster one is not worth its trouble.
_SEQUENCES = 2.0 ** np.arange(9, 23)
_WORTH = 1.05
#: A change of less than this share of a number is none.
_NOTHING = 1e-3
_TRAINING = (
    Column("what if"),
    Column("step", "seconds"),
    Column("faster", "times"),
    Column("days", "days"),
    Column("fullest GPU", "bytes"),
    Column("memory"),
    Column("cost", "USD"),
)
_SERVING = (
    Column("what if"),
    Column("per token", "seconds"),
    Column("first token", "seconds"),
    Column("output", "tokens/s"),
    Column("faster", "times"),
    Column("fullest GPU", "bytes"),
    Column("memory"),
    Column("most requests", "count"),
    Column("a million", "USD"),
)
_FP8 = ("training.precision", "fp8")
_DRAFTS = "serving.speculative.draft_tokens"
_TRAINING_KEYS = ("time.step_s", "training.days", "memory.total_bytes", "memory.verdict", "cost.usd")
_VERDICT = "memory.verdict"
_SERVING_KEYS = (
    "serving.tpot_s",
    "serving.ttft_s",
    "serving.output_tokens_per_s",
    "memory.total_bytes",
    "memory.verdict",
    "serving.held_requests",
    "cost.usd_per_million_output_tokens",
)


@dataclass(frozen=True)
class Answer:
    """A change and the report of the plan with it."""

    edit: Edit
    report: Report


def answers(scenario: Scenario, evaluate: Evaluate) -> list[Answer]:
    """The legal changes of a plan that bring anything, each evaluated."""
    training = scenario.kind == "training"
    edits = _training_edits(scenario) if training else _serving_edits(scenario)
    keys = _TRAINING_KEYS if training else _SERVING_KEYS
    changed = ((edit, edit.applied(scenario)) for edit in edits)
    found = [Answer(edit, evaluate(after)) for edit, after in changed if after != scenario and legal(after)]
    before = evaluate(scenario)
    return [each for each in found if any(_differ(each.report.get(key), before.get(key)) for key in keys)]


def _differ(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) > _NOTHING * abs(second)
    return first != second


def table(report: Report, found: list[Answer], evaluate: Evaluate) -> Table:
    """The plan and its changes as a table, with what the number formats come to in the notes."""
    training = report["kind"] == "training"
    row = _training_row if training else _serving_row
    rows = (row("this plan", report, report), *(row(each.edit.label, each.report, report) for each in found))
    title = "What if: the plan with one change at a time"
    notes = tuple(fp8_notes(report, found, evaluate) if training else draft_notes(report, found))
    return Table("what-if", title, _TRAINING if training else _SERVING, rows, (), notes)


def _training_row(name: str, report: Report, before: Report) -> tuple[Any, ...]:
    step, *rest = _results(report, _TRAINING_KEYS)
    days, then = before.get("training.days"), report.get("training.days")
    return (name, step, days / then if days and then else None, *rest)


def _serving_row(name: str, report: Report, before: Report) -> tuple[Any, ...]:
    each, first, output, *rest = _results(report, _SERVING_KEYS)
    now = before.get("serving.output_tokens_per_s")
    return (name, each, first, output, output / now if output and now else None, *rest)


def _results(report: Report, keys: tuple[str, ...]) -> list[Any]:
    """Results in their order; the verdict on memory as it is read."""
    return [str(report[key]).replace("-", " ") if key == _VERDICT else report.get(key) for key in keys]


# ---------------------------------------------------------------- changes


def _training_edits(scenario: Scenario) -> Iterator[Edit]:
    """Formats, memory for time, layout, and machines that are not there."""
    training, cluster = scenario.training, scenario.cluster
    if training.precision in ("bf16", "fp16") and cluster.accelerator.peak.fp8:
        yield Edit("fp8 products", (_FP8,))
    elif training.precision != "bf16":
        yield _set("bf16 products", "training.precision", "bf16")
    yield _set("16-bit gradients", "training.gradient_precision", "bf16")
    yield _set("8-bit optimizer", "training.optimizer", "adamw-8bit")
    for word, label in (("none", "no recompute"), ("selective", "selective recompute"), ("full", "full recompute")):
        yield _set(label, "training.recompute", word)
    for stage in (1, 2, 3):
        yield _set(f"ZeRO-{stage}", "parallelism.zero", stage)
    yield _times("twice the micro-batch", "training.micro_batch", scenario, 2)
    yield from _half_and_twice("TP", "parallelism.tp", scenario)
    yield from _half_and_twice("EP", "parallelism.ep", scenario)
    yield _times("twice the GPUs", "cluster.gpus", scenario, 2)
    yield _times("twice the global batch", "training.global_batch", scenario, 2)
    yield _times("twice the sequence", "training.sequence_length", scenario, 2)
    yield from _faster_parts(scenario)
    yield Edit(
        "no interruptions",
        (("reliability.node_failures_per_1000_days", 0.0), ("reliability.checkpoint_seconds", 0.0)),
    )


def _serving_edits(scenario: Scenario) -> Iterator[Edit]:
    yield _set("fp8 weights", "serving.weight_format", "fp8")
    yield _set("4-bit weights", "serving.weight_format", "int4-g128")
    yield _set("fp8 KV cache", "serving.kv_format", "fp8")
    drafts = scenario.serving.speculative.draft_tokens
    yield _set("no drafts" if drafts else "drafts of 4 tokens", _DRAFTS, 0 if drafts else 4)
    yield from _half_and_twice("the requests", "serving.concurrency", scenario)
    yield _times("twice the prompt", "serving.prompt_tokens", scenario, 2)
    yield from _half_and_twice("TP", "parallelism.tp", scenario)
    yield from _half_and_twice("EP", "parallelism.ep", scenario)
    yield from _faster_parts(scenario)


def _faster_parts(scenario: Scenario) -> Iterator[Edit]:
    """Parts that are twice as fast, the rest of the machine as it is."""
    device = "cluster.accelerator"
    peaks = (f"{device}.peak.{name}" for name in ("bf16", "fp16", "fp8", "fp4", "int8"))
    yield _all_times("units twice as fast", tuple(peaks), scenario)
    yield _all_times("memory twice as fast", (f"{device}.memory_bandwidth",), scenario)
    links = (f"{device}.link.bandwidth", f"{device}.pcie", "cluster.network.bandwidth")
    yield _all_times("links twice as fast", links, scenario)


def _set(label: str, path: str, value: Any) -> Edit:
    return Edit(label, ((path, value),))


def _times(label: str, path: str, scenario: Scenario, factor: float) -> Edit:
    """A count some times as large; no change where it would not be whole."""
    value = scenario.get(path) * factor
    return Edit(label, ((path, int(value)),) if value == int(value) and value >= 1 else ())


def _half_and_twice(name: str, path: str, scenario: Scenario) -> Iterator[Edit]:
    yield _times(f"half of {name}", path, scenario, 0.5)
    yield _times(f"twice {name}", path, scenario, 2)


def _all_times(label: str, paths: tuple[str, ...], scenario: Scenario) -> Edit:
    found = ((path, scenario.get(path)) for path in paths)
    return Edit(label, tuple((path, 2 * value) for path, value in found if value))


# ---------------------------------------------------------------- what 8-bit products bring


def fp8_notes(report: Report, found: list[Answer], evaluate: Evaluate) -> Iterator[str]:
    """What 8-bit products change, where they are among the answers: time, memory, and up to which sequence."""
    after = next((each.report for each in found if _FP8 in each.edit.changes), None)
    if after is None:
        return
    yield _fp8_time(report, after)
    yield _fp8_memory(report, after)
    if limit := fp8_limit(report.scenario, evaluate):
        yield limit


def _fp8_time(before: Report, after: Report) -> str:
    """The operators that fp8 makes faster, the gain that they alone would bring, and the gain that is left."""
    later = {(point.name, point.phase): point.seconds for point in after.points}
    pairs = [
        (point.seconds, later[point.name, point.phase])
        for point in before.points
        if point.bound and later.get((point.name, point.phase), point.seconds) < 0.999 * point.seconds
    ]
    old, new = (sum(times) for times in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    step, gain = before["time.step_s"], before["time.step_s"] / after["time.step_s"]
    if not new:
        return f"fp8: no operator is faster, the gain is {gain:.2f}×"
    alone = speedup(old / step, old / new)
    share = format_quantity(old / step, "ratio", 2)
    return (
        f"fp8: products that take {share} of the step are {old / new:.2f}× as fast; alone they would bring "
        f"{alone:.2f}×, with casts and everything else {gain:.2f}×"
    )


def _fp8_memory(before: Report, after: Report) -> str:
    """The items of the fullest GPU that change."""
    items = ("weights", "low_precision_weights", "gradients", "optimizer", "activations", "gathered", "workspace")
    deltas = {item: after[f"memory.{item}_bytes"] - before[f"memory.{item}_bytes"] for item in items}
    changed = {item: delta for item, delta in deltas.items() if abs(delta) > 2**20}
    if not changed:
        return "memory as before"
    signs = {item: "+" if delta > 0 else "" for item, delta in changed.items()}
    words = {item: MEMORY_ITEMS.get(item, item) for item in changed}
    return ", ".join(f"{words[item]} {signs[item]}{format_quantity(delta, 'bytes')}" for item, delta in changed.items())


def fp8_limit(scenario: Scenario, evaluate: Evaluate) -> str:
    """From which length of sequence on the gain of fp8 is below five per cent, the rest of the plan as it is."""
    lengths = np.array([n for n in _SEQUENCES if n % scenario.parallelism.cp == 0])
    plan = scenario.with_("training.sequence_length", lengths)
    slow, fast = (evaluate(each) for each in (plan, plan.with_(*_FP8)))
    gain = np.broadcast_to(slow["time.step_s"] / fast["time.step_s"], lengths.shape)
    best = f"at most {gain.max():.2f}× at {format_quantity(lengths[gain.argmax()], 'count')} tokens"
    small = gain < _WORTH
    if not small[-1]:
        return f"gain {best}"
    first = len(small) - int(np.argmin(small[::-1])) if not small.all() else 0
    return f"gain {best}, below 5 % from {format_quantity(lengths[first], 'count')} on"


# ---------------------------------------------------------------- what drafts bring


def draft_notes(report: Report, found: list[Answer]) -> Iterator[str]:
    """What drafts bring at the load of a plan, and up to how many requests."""
    reports = (report, *(each.report for each in found))
    drafted = next((each for each in reports if each.scenario.serving.speculative.draft_tokens), None)
    if drafted is None or "serving.speculative_speedup" not in drafted:
        return
    own, gain = drafted.scenario.serving.speculative, drafted["serving.speculative_speedup"]
    tokens = drafted["serving.speculative_tokens_per_cycle"]
    accepted = format_quantity(own.acceptance, "ratio", 2)
    words = f"drafts of {own.draft_tokens:.0f}: {tokens:.2f} tokens a cycle at {accepted} accepted"
    requests = round(drafted["serving.running"] / drafted["serving.busy_replicas"])
    words += f", {gain:.2f}× at {plural(requests, 'request')} an engine"
    end = drafted.get("serving.speculative_crossover_batch")
    yield f"{words}; nothing from {format_quantity(round(end), 'count')} on" if end is not None else words
