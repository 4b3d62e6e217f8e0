"""All results of a training plan: ledgers, time, days, bound, and their keys. Composition only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..ledgers import compute, fit
from ..ledgers import training_memory as held
from ..ledgers.instants import INSTANTS, ITEMS
from ..ledgers.training_items import optimizer_bytes, static_bytes
from ..ledgers.usable import usable_memory
from ..machine.device import machine_of
from ..machine.rates import Rates, peak_flops, rates
from ..measured.band import band_of, ends_of, rows_of
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..numeric import Number, is_array, maximum, where
from ..report import Sheet
from ..roofline import knee
from ..scenario import Scenario
from ..sums import total_bytes, total_seconds
from ..terms import formula, is_recording
from . import days, operators
from .bottleneck import bottleneck
from .floor import LinkBytes, physical_floor
from .hiding import hiding_points
from .layout import Layout, layout_of, step_tokens
from .step import StepTime, balanced, step_time, time_parts
from .straggling import delayed
from .traffic import Row, traffic

NOT_COUNTED = {
    "compute": ("biases, norms, activations, softmax and rotary embedding (counted in bytes)", "embedding lookup"),
    "memory": (
        "device context and communicators (in the fit rule only)",
        "blocks the allocator caches",
        "rotary tables and other buffers",
    ),
    "communication": ("logging and checkpoint traffic", "data loading", "collectives of a group of one"),
    "time": ("data loading, evaluation, logging", "host launch gaps", "fabric contention by other jobs"),
}


def evaluate_training(scenario: Scenario, model: Model) -> Sheet:
    """The sheet of a training scenario (numbers or arrays)."""
    constants = rates(scenario)
    machine = machine_of(scenario, constants)
    layout = layout_of(scenario, constants)
    parts = time_parts(scenario, model, layout, machine)
    layout = balanced(scenario, layout, parts)
    memory = held.TrainingMemory(scenario, model, layout)
    step = step_time(scenario, model, layout, memory, parts, machine)
    sheet = Sheet(not_counted=NOT_COUNTED)
    flops = _compute(sheet.values, scenario, model)
    _memory(sheet, scenario, layout, memory, constants)
    rows, step = delayed(traffic(scenario, model, layout, step), step, scenario.reliability)
    sent = _communication(sheet, rows)
    step = _not_below_links(step, sent, layout)
    _time(sheet, scenario, model, layout, memory, step, sent, flops, constants)
    _roofline(sheet, scenario, model, layout, step, flops)
    return sheet


def _compute(values: dict[str, Any], scenario: Scenario, model: Model) -> Number:
    training = scenario.training
    ledger = compute.forward_ledger(model, training.sequence_length)
    tokens = step_tokens(training.global_batch, training.sequence_length)
    trained = compute.trained_flops(ledger, model, training)
    executed = compute.executed_by_ranks(trained.executed, model, scenario)
    flops = compute.step_flops(trained.model, tokens)
    rule = compute.rule_flops(compute.rule_factor(training), model.met_parameters)
    values |= {
        "compute.forward_flops_per_token": ledger.forward,
        "compute.linear_flops_per_token": ledger.linear,
        "compute.attention_flops_per_token": ledger.core,
        "compute.head_flops_per_token": ledger.head,
        "compute.training_flops_per_token": trained.model,
        "compute.rule_flops_per_token": rule,
        "compute.full_mask_flops_per_token": trained.full_mask,
        "compute.tokens_per_step": tokens,
        "compute.model_flops_per_step": flops,
        "compute.hardware_flops_per_step": compute.step_flops(executed, tokens),
    }
    return flops


@formula("instant", "word")
def instant_word(instant: Number, words: tuple[str, ...]) -> Any:
    """The instant of the peak: the loss, the backward pass of a block, or the optimizer step."""
    return words[int(instant)]


@formula("i", "stage", "the largest peak over the stages")
def fullest_stage(stage: Number) -> Number:
    """Index of the stage that holds the most."""
    return stage


def _memory(sheet: Sheet, scenario: Scenario, layout: Layout, memory: held.TrainingMemory, constants: Rates) -> None:
    peak = held.peak_memory(memory)
    device = scenario.cluster.accelerator
    usable = usable_memory(device)
    need = fit.needed_bytes(
        peak.total, constants.peak_margin, constants.context_bytes, constants.communicator_bytes, scenario.cluster.gpus
    )
    items = peak.items
    sheet.values |= {f"memory.{name}_bytes": items[name] for name in ITEMS}
    sheet.values |= {
        "memory.optimizer_bytes": optimizer_bytes(items["master_weights"], items["momentum"], items["variance"]),
        "memory.static_bytes": _static(memory),
        "memory.total_bytes": peak.total,
        **_memory_band(scenario, peak.total),
        "memory.needed_bytes": need,
        "memory.usable_bytes": usable,
        "memory.headroom_bytes": fit.headroom_bytes(usable, need),
        "memory.fits": fit.fits(need, usable),
        "memory.verdict": fit.verdict(need, usable, constants.tight),
        "memory.peak_stage": fullest_stage(peak.stage),
        "memory.peak_instant": _words(peak.instant, INSTANTS),
        "memory.parameters_per_gpu": memory.parameters(peak.stage),
    }
    if scenario.training.offload_optimizer or present(scenario.training.offload_layers):
        sheet.values["memory.host_bytes"] = memory.on_host(peak.stage)
    if not is_array(layout.pipeline, peak.total) and not is_recording():
        sheet.stages = _stages(memory, layout)


def _memory_band(scenario: Scenario, total: Number) -> dict[str, Any]:
    band = band_of(scenario, "peak")
    low, high = ends_of(band, None, None)
    return {
        "memory.low_bytes": fit.band_end(total, low),
        "memory.high_bytes": fit.band_end(total, high),
        "memory.band_rows": rows_of(band),
    }


def _static(memory: held.TrainingMemory) -> Number:
    static = memory.static(0.0)
    return static_bytes(*static.values())


def _words(instant: Number, words: tuple[str, ...]) -> Any:
    return np.asarray(words)[instant] if is_array(instant) else instant_word(float(instant), words)


def _stages(memory: held.TrainingMemory, layout: Layout) -> dict[str, Any]:
    """Items of every stage at its own peak, for the chart: one vectorised evaluation over the stage index."""
    count = int(layout.pipeline)
    index = np.arange(count, dtype=float) if count > 1 else 0.0
    found = memory.stage(index)
    stages = {name: np.broadcast_to(np.asarray(value, dtype=float), count) for name, value in found.items.items()}
    return stages | {
        "expert_weights": np.broadcast_to(np.asarray(memory.expert_weights(index), dtype=float), count),
        "total": np.broadcast_to(np.asarray(found.total, dtype=float), count),
        "instant": np.broadcast_to(np.asarray(found.instant), count),
    }


def _communication(sheet: Sheet, rows: list[Row]) -> LinkBytes:
    """The ledger of what is sent, and what of it no link is spared."""
    sheet.communication += [row for row, _ in rows]
    across = total_bytes([bytes_outside(row.bytes_per_gpu, outside) for row, outside in rows])
    sheet.values |= {
        "communication.bytes_per_gpu": total_bytes([row.bytes_per_gpu for row, _ in rows]),
        "communication.scale_up_bytes_per_gpu": total_bytes(
            [bytes_inside(row.bytes_per_gpu, outside) for row, outside in rows]
        ),
        "communication.adapter_bytes_per_gpu": across,
        "communication.exposed_seconds": total_seconds([row.exposed_seconds for row, _ in rows]),
    }
    return LinkBytes(total_bytes([bytes_within(row.bytes_per_gpu, outside) for row, outside in rows]), across)


@formula("S·(1 − x)", "B", "the rest of what passes the adapter")
def bytes_inside(sent: Number, outside: Number) -> Number:
    """Bytes one GPU sends inside its scale-up domain."""
    return sent * (1 - outside)


@formula("S, if x = 0", "B", leaves_out="what groups that cross the network send inside: their algorithm decides")
def bytes_within(sent: Number, outside: Number) -> Number:
    """Bytes one GPU sends in a group that stays inside its scale-up domain, which no other way can carry."""
    return where(outside > 0, 0.0, sent)


@formula("S·x", "B", "a ring over q local ranks leaves the node on one of q rails")
def bytes_outside(sent: Number, outside: Number) -> Number:
    """Bytes that pass the network adapter of one GPU."""
    return sent * outside


@formula("max(T, C/W)", "s", "all traffic of a step shares the links, whatever it hides behind")
def not_below_links(seconds: Number, inside: Number, link_rate: Number, across: Number, network_rate: Number) -> Number:
    """Time of a step, at least that of all its traffic over the sustained rates of the links."""
    return maximum(seconds, maximum(inside / link_rate, across / network_rate))


def _not_below_links(step: StepTime, sent: LinkBytes, layout: Layout) -> StepTime:
    fabric = layout.fabric
    seconds = not_below_links(step.seconds, sent.within, fabric.link_rate, sent.across, fabric.network_rate)
    return replace(step, seconds=seconds)


def _time(
    sheet: Sheet,
    scenario: Scenario,
    model: Model,
    layout: Layout,
    memory: held.TrainingMemory,
    step: StepTime,
    sent: LinkBytes,
    flops: Number,
    constants: Rates,
) -> None:
    values, cluster, training = sheet.values, scenario.cluster, scenario.training
    peak = peak_flops(cluster.accelerator, training.precision)
    tokens = values["compute.tokens_per_step"]
    rate = days.throughput(tokens, step.seconds)
    bound, moved = physical_floor(sent, scenario, model, layout, memory, flops, peak)
    rule = compute.step_flops(compute.rule_flops(6, model.met_parameters), tokens)
    full = compute.step_flops(values["compute.full_mask_flops_per_token"], tokens)
    band = band_of(scenario, "step")
    low, high = ends_of(band, constants.band_low, constants.band_high)
    mfu = days.utilisation(flops, cluster.gpus, peak, step.seconds)
    fast, slow = days.fast_end(step.seconds, low, bound), days.slow_end(step.seconds, high)
    exposed = days.share_of_step(values["communication.exposed_seconds"], step.seconds)
    values |= {
        "time.bound_s": bound,
        "time.step_s": step.seconds,
        "time.low_s": fast,
        "time.high_s": slow,
        "time.band_rows": rows_of(band),
        "time.steady_s": step.steady,
        "time.bubble_s": step.pipeline.bubble,
        "time.exposed_communication_s": values["communication.exposed_seconds"],
        "time.optimizer_s": step.optimizer,
        "time.straggler_factor": step.straggler,
        "time.mfu": mfu,
        "time.mfu_low": days.utilisation(flops, cluster.gpus, peak, slow),
        "time.mfu_high": days.utilisation(flops, cluster.gpus, peak, fast),
        "time.hfu": days.utilisation(values["compute.hardware_flops_per_step"], cluster.gpus, peak, step.seconds),
        "time.mfu_rule": days.utilisation(rule, cluster.gpus, peak, step.seconds),
        "time.mfu_full_mask": days.utilisation(full, cluster.gpus, peak, step.seconds),
        "time.mbu": days.bandwidth_utilisation(moved, cluster.accelerator.memory_bandwidth, step.seconds),
        "time.unavoidable_bytes": moved,
        "speedup.links_twice_as_fast": days.speedup(exposed, 2.0),
        "speedup.nothing_exposed": days.speedup_bound(exposed),
        "time.tokens_per_s": rate,
        "time.tokens_per_s_low": days.throughput(tokens, slow),
        "time.tokens_per_s_high": days.throughput(tokens, fast),
        "time.tokens_per_s_per_gpu": days.throughput_per_gpu(rate, cluster.gpus),
    }
    values |= hiding_points(scenario, model, layout, step.machine, memory.widths.gathered)
    values |= {
        "time.block_forward_s": step.pipeline.block.forward_seconds,
        "time.block_backward_s": step.pipeline.block.backward_seconds,
        "time.stage_s": step.pipeline.slowest_stage,
        "time.mean_stage_s": step.pipeline.mean_stage,
    }
    if memory.rank.any_routed:
        values["time.expert_launches_s"] = operators.expert_launches(scenario, model, layout, step)


def _roofline(sheet: Sheet, scenario: Scenario, model: Model, layout: Layout, step: StepTime, flops: Number) -> None:
    device = scenario.cluster.accelerator
    peak = peak_flops(device, scenario.training.precision)
    sheet.values |= {
        "roofline.peak_flops": peak,
        "roofline.bandwidth": device.memory_bandwidth,
        "roofline.knee": knee(peak, device.memory_bandwidth),
    }
    if not is_array(step.seconds):
        found = operators.block_operators(scenario, model, layout, step)
        sheet.points = operators.operator_points(scenario, model, layout, step, found, (flops, peak))
        sheet.values["time.bottleneck"] = bottleneck(layout, step, sheet.points, found, sheet.values)
