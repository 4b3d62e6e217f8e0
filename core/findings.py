"""Rules that look at a plan and its results and say what a person should know, each with an edit that would help."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .catalogue import table
from .fields import FIELDS
from .idle_settings import idle_settings
from .legality import Violation, allowed, legal, violations
from .machine.rates import rates
from .measured.band import unlike_findings
from .remedies import deadline_edits, memory_edits
from .report import Edit, Finding, Report, Sheet
from .scenario import Scenario
from .training.expert_findings import expert_launches, idle_routing_limit
from .training.stage_names import stage_number
from .units import digits, format_quantity
from .words import GIB, gib, span, when

#: A rule: scenario and result values to findings.
Rule = Callable[[Scenario, dict[str, Any]], Iterator[Finding]]


#: Fields whose legal values can be listed.
_LISTED = ("tp", "pp", "cp", "vpp", "hsdp_replicas", "micro_batch", "global_batch", "gpus")


def findings(
    scenario: Scenario, values: dict[str, Any], sheet: Sheet, evaluate: Callable[[Scenario], Report]
) -> list[Finding]:
    """All findings of a single plan, errors first. No edit makes an illegal plan; `evaluate` tries what needs it."""
    found = [
        Finding("illegal-layout", "error", v.message, v.field, tuple(_legal_values(scenario, v)))
        for v in violations(scenario)
    ]
    if scenario.kind == "training":
        for rule in TRAINING_RULES:
            found += rule(scenario, values)
        found += deadline_missed(scenario, values, evaluate)
    found += unlike_findings(scenario)
    found += idle_settings(scenario)
    found = [_possible(scenario, finding) for finding in (*found, *sheet.findings)]
    order = {"error": 0, "warning": 1, "hint": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _possible(scenario: Scenario, finding: Finding) -> Finding:
    """The finding with those of its edits that lead to a legal plan."""
    if not finding.edits:
        return finding
    return replace(finding, edits=tuple(edit for edit in finding.edits if legal(edit.applied(scenario))))


def _legal_values(scenario: Scenario, violation: Violation) -> Iterator[Edit]:
    """The nearest values below and above that mend a layout."""
    path = violation.field
    if path.rpartition(".")[2] not in _LISTED:
        return
    possible, now = allowed(scenario, path), scenario.get(path)
    for value in (max((v for v in possible if v < now), default=0), min((v for v in possible if v > now), default=0)):
        if value:
            yield Edit(f"{FIELDS[path].label} {format_quantity(value, 'count')}", ((path, value),))


def _bytes(value: float) -> str:
    return format_quantity(value, "bytes")


def deadline_missed(
    scenario: Scenario, values: dict[str, Any], evaluate: Callable[[Scenario], Report]
) -> Iterator[Finding]:
    """The training takes longer than there is time."""
    deadline, over = scenario.training.deadline, values.get("training.over_deadline", 0.0)
    if deadline is None or over <= 1:
        return
    late = f"Late: {span(values['training.days'])}, {format_quantity(over, 'number', 2)} times the deadline"
    message = f"{late} of {span(deadline / 86400)}."
    if values["training.bound_days"] * 86400 > deadline:
        message += " The physical bound of these GPUs alone is over it."
    edits = tuple(deadline_edits(scenario, values, evaluate))
    yield Finding("deadline-missed", "error", message, "training.deadline", edits)


def does_not_fit(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """The plan needs more memory than a device has, or nearly all of it."""
    if values["memory.verdict"] == "fits":
        return
    where = when(values["memory.peak_instant"])
    if scenario.parallelism.pp > 1:
        where = f"on stage {stage_number(scenario, values['memory.peak_stage'])} {where}"
    fits = bool(values["memory.fits"])
    edits = memory_edits(scenario, fits)
    if fits:
        spare = _bytes(values["memory.headroom_bytes"])
        message = f"Tight: {spare} to spare {where}; the allocator retries and steps slow down."
        yield Finding("memory-tight", "warning", message, "training.micro_batch", edits)
        return
    short, usable = -values["memory.headroom_bytes"], values["memory.usable_bytes"]
    message = (
        f"Does not fit: needs {gib(usable + short)} of {gib(usable)} GiB with driver and slack {where}, "
        f"{digits(short / GIB)} GiB too much."
    )
    yield Finding("does-not-fit", "error", message, "training.micro_batch", edits)


def _reduces_once(scenario: Scenario) -> bool:
    """Whether gradients stay whole until the last micro-batch, so that ZeRO-2 has nothing to save."""
    return bool(scenario.parallelism.pp > 1 or table("frameworks")[scenario.training.framework]["accumulate_whole"])


def impossible_measurement(_scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """A measured utilisation above the peak is a slip in the number that was typed."""
    if "measured.mfu" not in values:
        return
    least = min(values["measured.mfu"], values["measured.mfu_rule"])
    seconds = values["measured.step_s"]
    if least < 0.01:
        message = f"A measured MFU of {format_quantity(least, 'ratio')} is below 1 %: check the unit of the time."
        yield Finding("measured-mfu-low", "warning", message, "measured.step_time")
    if least <= 1:
        return
    possible = seconds * least
    factor = next((f for f in (10, 60, 1000) if 0.01 <= least / f <= 1), None)
    guess = f" {seconds * factor:.3g} s would be {least / factor * 100:.3g} %." if factor else ""
    message = f"MFU {least * 100:.0f} % is not possible: this step takes at least {possible:.4g} s.{guess}"
    edits = (Edit(f"{seconds * factor:.3g} s", (("measured.step_time", seconds * factor),)),) if factor else ()
    yield Finding("measured-mfu-over-100", "error", message, "measured.step_time", edits)


def group_leaves_node(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """Tensor parallel traffic over the network is waited for in every block."""
    domain = min(scenario.cluster.gpus_per_node, scenario.cluster.accelerator.link.domain)
    tp = scenario.parallelism.tp
    if tp > domain:
        fits = max((d for d in range(1, int(domain) + 1) if tp % d == 0 and scenario.model.heads % d == 0), default=1)
        message = (
            f"Tensor parallel {int(tp)} leaves the scale-up domain of {int(domain)}: its traffic crosses the network."
        )
        edits = (Edit(f"TP {fits}", (("parallelism.tp", fits),)),)
        yield Finding("tp-leaves-node", "warning", message, "parallelism.tp", edits)


def below_hiding_point(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """Too few tokens a GPU for the data parallel traffic to hide behind compute."""
    parallel, training, gpus = scenario.parallelism, scenario.training, scenario.cluster.gpus
    data = gpus / (parallel.tp * parallel.pp)
    whole = _reduces_once(scenario)
    if data <= 1 or not scenario.overlap.dp:
        return
    if parallel.zero == 3 and parallel.pp == 1:
        tokens = training.micro_batch * training.sequence_length / parallel.cp
        point = values["hiding.zero3_tokens_per_micro_batch"]
        field, what = (
            "training.micro_batch",
            "weights and gradients hide above {} tokens a micro-batch and GPU; this plan has {}.",
        )
    else:
        # a reduction after every micro-batch hides only behind that micro-batch
        repeats = (
            1 if whole or parallel.zero != 2 else training.global_batch * parallel.cp / (training.micro_batch * data)
        )
        tokens = training.global_batch * training.sequence_length / gpus / max(1, repeats)
        point = values["hiding.gradients_tokens_per_gpu"] / (parallel.tp * parallel.pp)
        field, what = (
            "training.global_batch",
            "gradients hide behind the backward pass above {} tokens a GPU; this plan has {}.",
        )
    if tokens >= point:
        return
    message = "Below the hiding point: " + what.format(
        *(format_quantity(math.ceil(v), "tokens") for v in (point, tokens))
    )
    edits = ()
    if parallel.zero == 2 and not whole:
        edits = (Edit("ZeRO-1: reduce once a step", (("parallelism.zero", 1),)),)
    yield Finding("below-hiding-point", "warning", message, field, edits)


def few_micro_batches(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """A pipeline with fewer micro-batches than it can hide its fill behind."""
    parallel, training = scenario.parallelism, scenario.training
    if parallel.pp <= 1:
        return
    data = scenario.cluster.gpus / (parallel.tp * parallel.pp * parallel.cp)
    micro_batches = training.global_batch / (training.micro_batch * data)
    share = values["time.bubble_s"] / values["time.step_s"]
    if share < 0.1:
        return
    edits: list[Edit] = []
    layers = int(scenario.model.layers // parallel.pp)
    chunks = next((v for v in range(int(parallel.vpp) + 1, layers + 1) if layers % v == 0), 0)
    if chunks and micro_batches % parallel.pp == 0 and parallel.schedule in ("1f1b", "interleaved"):
        edits.append(
            Edit(f"Interleave ×{chunks}", (("parallelism.vpp", chunks), ("parallelism.schedule", "interleaved")))
        )
    edits.append(Edit("Double the global batch", (("training.global_batch", int(2 * training.global_batch)),)))
    message = (
        f"{int(micro_batches)} micro-batches fill {int(parallel.pp)} stages badly: "
        f"the bubble is {format_quantity(share, 'ratio', 2)} of the step."
    )
    yield Finding("few-micro-batches", "warning", message, "training.global_batch", tuple(edits))


def replicated_kv_heads(scenario: Scenario, _values: dict[str, Any]) -> Iterator[Finding]:
    """More tensor parallel ranks than key and value heads."""
    tp, heads = scenario.parallelism.tp, scenario.model.kv_heads
    if 0 < heads < tp:
        copies = int(tp / heads)
        message = f"{int(heads)} KV heads on {int(tp)} tensor parallel ranks: each is kept and computed {copies} times."
        yield Finding("kv-heads-replicated", "hint", message, "parallelism.tp")


def partial_node(scenario: Scenario, _values: dict[str, Any]) -> Iterator[Finding]:
    """GPUs that do not fill whole nodes."""
    gpus, node = scenario.cluster.gpus, scenario.cluster.gpus_per_node
    if gpus > node and gpus % node:
        whole = int(-(-gpus // node) * node)
        message = f"{int(gpus)} GPUs do not fill nodes of {int(node)}; {whole} would."
        yield Finding("partial-node", "hint", message, "cluster.gpus")


def uncalibrated(scenario: Scenario, _values: dict[str, Any]) -> Iterator[Finding]:
    """A device without published matrix rates."""
    if not rates(scenario).calibrated:
        message = f"No published sustained rates of {scenario.cluster.accelerator.name}: results are uncalibrated."
        yield Finding("uncalibrated", "hint", message, "cluster.accelerator")


def no_fp8_units(scenario: Scenario, _values: dict[str, Any]) -> Iterator[Finding]:
    """8-bit or 4-bit products on a part without units for them."""
    recipe, device = table("precisions")[scenario.training.precision], scenario.cluster.accelerator
    if recipe["cast"] and getattr(device.peak, recipe["peak"]) is None:
        message = f"{device.name} has no {recipe['peak']} matrix units: products run at the 16-bit rate."
        edits = (Edit("bf16", (("training.precision", "bf16"),)),)
        yield Finding("no-fp8", "warning", message, "training.precision", edits)


def low_effective_ratio(_scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """Failures and checkpoints eat a good part of the time."""
    ratio = values["training.effective_ratio"]
    if ratio <= 0:
        yield Finding(
            "no-progress", "error", "No progress: failures come faster than restarts.", "reliability.restart_seconds"
        )
    elif ratio < 0.9:
        share = format_quantity(ratio, "ratio")
        message = f"Only {share} of the time trains: failures, lost work and checkpoints take the rest."
        yield Finding("low-effective-ratio", "warning", message, "reliability.restart_seconds")


def slow_storage(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """A checkpoint is still being written when the next one is due."""
    write, interval = values["reliability.checkpoint_write_s"], values["training.checkpoint_interval_s"]
    if scenario.reliability.checkpointing == "asynchronous" and write >= interval > 0:
        message = (
            f"Writing a checkpoint takes {format_quantity(write, 'seconds')}, the next one is due after "
            f"{format_quantity(interval, 'seconds')}: storage has to be faster."
        )
        yield Finding("slow-storage", "warning", message, "reliability.storage_bandwidth")


TRAINING_RULES: tuple[Rule, ...] = (
    does_not_fit,
    impossible_measurement,
    group_leaves_node,
    below_hiding_point,
    few_micro_batches,
    expert_launches,
    idle_routing_limit,
    replicated_kv_heads,
    partial_node,
    uncalibrated,
    no_fp8_units,
    low_effective_ratio,
    slow_storage,
)
