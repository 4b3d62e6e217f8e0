"""All results of a serving plan: ledgers, decode step, steady state, bound, and their keys. Composition only."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..ledgers import compute, serving_memory
from ..ledgers.serving_weights import expert_weights
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..numeric import Number, is_array
from ..report import Sheet
from ..roofline import knee, right_of_knee
from ..scenario import Scenario
from ..sums import add_token_flops, total_bytes, total_seconds
from ..terms import is_recording
from ..training import days
from ..training.bottleneck import binding, longest, second_longest
from . import bounds, points, speculative
from .bands import pool_band, step_band
from .collectives import Transfer
from .expert_ranks import expert_ranks
from .findings import serving_findings
from .iteration import Iteration
from .measured import measured_values
from .operators import Operator
from .plan import Plan, plan_of
from .request_values import ENDLESS, later_values, request_values
from .traffic import traffic

NOT_COUNTED = {
    "compute": ("biases, norms, activations, softmax and rotary embedding (counted in bytes)", "embedding lookup"),
    "memory": (
        "graphs captured after the cache is sized",
        "blocks the allocator caches",
        "rotary tables and other buffers",
    ),
    "communication": ("tokens and logits between device and host", "collectives of a group of one"),
    "time": (
        "random arrivals, but as mean waits and in the values for 99 of 100 requests",
        "preemption",
        "tokeniser beyond the interface's fixed time",
    ),
}


def evaluate_serving(scenario: Scenario, model: Model) -> Sheet:
    """The sheet of a serving scenario (numbers or arrays)."""
    plan = plan_of(scenario, model)
    sheet = Sheet(not_counted=NOT_COUNTED)
    values = sheet.values
    values |= _whiteboard(plan) | _compute(plan) | _memory(plan)
    sheet.communication = traffic(scenario, plan.passes, plan.steady.decode)
    values |= _time(plan, values)
    values |= _capacity(plan, values["time.bound_s"])
    values |= measured_values(plan, values)
    _add_requests(sheet, plan)
    if not is_array(*values.values()):
        sheet.points = points.points(plan)
        sheet.findings = serving_findings(plan, values)
    return sheet


def _add_requests(sheet: Sheet, plan: Plan) -> None:
    """What requests see; of many plans the costly part waits until it is asked for.

    Absent where not one of them fits, as are waits that have no end. Plans of an array have "not a number" and infinite
    ones in their place.
    """
    values, held = sheet.values, sheet.values["serving.held_requests"]
    found = request_values(plan, values)
    if is_array(*values.values(), *found.values()) and not is_recording():
        sheet.later = lambda: _where_held(held, _where_answered(found["serving.saturated"], later_values(plan)))
    else:
        found |= later_values(plan)
    if not is_array(held) and held < 1:
        sheet.withheld, sheet.later = tuple(found), None
        return
    saturated = found["serving.saturated"]
    if not is_array(saturated) and saturated:
        sheet.withheld = ENDLESS
        found = {key: value for key, value in found.items() if key not in ENDLESS}
    values |= _where_held(held, _where_answered(saturated, found))


def _where_answered(saturated: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The same of many plans, where requests that come faster than they are answered wait without end."""
    if not is_array(saturated):
        return found
    return {key: np.where(saturated, np.inf, value) if key in ENDLESS else value for key, value in found.items()}


def _where_held(held: Number, found: dict[str, Any]) -> dict[str, Any]:
    if not is_array(held) or (held >= 1).all():
        return found
    return {key: np.where(held >= 1, value, np.nan) for key, value in found.items()}


def _whiteboard(plan: Plan) -> dict[str, Any]:
    scenario, number = plan.scenario, plan.settings.weights
    parallel, accelerator = scenario.parallelism, scenario.cluster.accelerator
    stated = scenario.whiteboard.parameters
    label = plan.model.parameters if stated is None else stated
    ranks, met = expert_ranks(scenario).ranks, _met_parameters(plan, label)
    step = bounds.whiteboard_step(label, number.nominal_bits, ranks, accelerator.memory_bandwidth)
    work = bounds.whiteboard_compute(met, plan.memory.sequences, parallel.tp, plan.passes.rates.blocks.peak)
    return {
        "whiteboard.parameters": label,
        "whiteboard.static_bytes": bounds.whiteboard_weights(label, number.nominal_bits, ranks, parallel.pp),
        "whiteboard.step_floor_s": step,
        "whiteboard.compute_s": work,
        "whiteboard.tokens_per_s": bounds.whiteboard_rate(scenario.serving.concurrency, step, work),
    }


def _met_parameters(plan: Plan, label: Number) -> Number:
    """Parameters that a token meets: the label where it meets all."""
    experts = any(block.experts for _, block in plan.model.groups)
    return plan.model.met_parameters if experts else label


def _compute(plan: Plan) -> dict[str, Any]:
    """FLOPs of a decoded token at the mean context, and of one decode step of all GPUs."""
    model = plan.model
    linear, core = (
        reduce(add_token_flops, [compute.layers_flops(layers, each(block)) for layers, block in model.groups])
        for each in (
            lambda block: compute.linear_flops(block.matrix_parameters()),
            lambda block: block.mixer.decode_core_flops(plan.steady.context),
        )
    )
    head = compute.head_flops(model.width, model.spec.vocabulary)
    padded = compute.head_flops(model.width, plan.passes.vocabulary)
    forward = compute.forward_flops(linear, core, head)
    tokens = bounds.step_tokens(plan.decoding, plan.steady.running)
    return {
        "compute.forward_flops_per_token": forward,
        "compute.linear_flops_per_token": linear,
        "compute.attention_flops_per_token": core,
        "compute.head_flops_per_token": head,
        "compute.rule_flops_per_token": compute.rule_flops(2.0, model.met_parameters),
        "compute.tokens_per_step": tokens,
        "compute.model_flops_per_step": compute.step_flops(forward, tokens),
        "compute.hardware_flops_per_step": compute.step_flops(compute.forward_flops(linear, core, padded), tokens),
    }


def _memory(plan: Plan) -> dict[str, Any]:
    memory = plan.memory
    values = {
        "memory.weights_bytes": memory.weights,
        "memory.kv_cache_bytes": memory.kv_cache,
        "memory.activations_bytes": memory.activations,
        "memory.workspace_bytes": memory.workspace,
        "memory.total_bytes": memory.total,
        "memory.kv_budget_bytes": memory.cache.budget,
        "memory.usable_bytes": memory.usable,
        "memory.headroom_bytes": memory.headroom,
        "memory.fits": serving_memory.fits(memory.headroom),
        "memory.verdict": serving_memory.verdict(memory.total, memory.headroom, serving_memory.TIGHT),
    }
    pipeline = plan.scenario.parallelism.pp
    if any(block.experts for _, block in plan.model.groups) and not is_array(pipeline) and pipeline == 1:
        values["memory.expert_weights_bytes"] = expert_weights(plan.scenario, plan.model, plan.settings)
    return values


def _time(plan: Plan, values: dict[str, Any]) -> dict[str, Any]:
    """The decode step: bound, prediction with its band, utilisation, and what binds it."""
    scenario, steady, device = plan.scenario, plan.steady, plan.settings.device
    cluster, accelerator, decode = scenario.cluster, scenario.cluster.accelerator, steady.decode
    peak, step = plan.passes.rates.blocks.peak, steady.step
    flops, tokens = values["compute.model_flops_per_step"], values["compute.tokens_per_step"]
    read = plan.passes.read_weights(plan.memory.pass_weights, steady.running)
    moved = bounds.step_bytes(read, decode.cache_bytes)
    exposed = bounds.communication_part(
        decode.allreduces.seconds, decode.gather.seconds, decode.exchange.seconds, decode.hops.seconds
    )
    across = _across(decode)
    link = bounds.link_peak(accelerator.link.bandwidth, accelerator.pcie, device.nvls)
    bound = bounds.step_floor(
        days.compute_floor(flops, cluster.gpus, peak),
        days.memory_floor(moved, accelerator.memory_bandwidth),
        days.link_floor(_inside(decode.allreduces, decode.gather, decode.exchange), link),
        days.link_floor(across, cluster.network.bandwidth),
        days.link_floor(decode.hops.inside_bytes, accelerator.pcie),
    )
    inside = _inside(decode.allreduces, decode.gather, decode.exchange, decode.hops)
    rule = compute.step_flops(values["compute.rule_flops_per_token"], tokens)
    return {
        "communication.bytes_per_gpu": total_bytes([inside, across]),
        "communication.scale_up_bytes_per_gpu": inside,
        "communication.adapter_bytes_per_gpu": across,
        "communication.exposed_seconds": exposed,
        "roofline.peak_flops": peak,
        "roofline.bandwidth": accelerator.memory_bandwidth,
        "roofline.knee": knee(peak, accelerator.memory_bandwidth),
        "time.bytes_per_step": moved,
        "time.bound_s": bound,
        "time.step_s": step,
        **step_band(scenario, device, step, bound),
        "time.bubble_s": steady.idle,
        "time.exposed_communication_s": exposed,
        "time.mfu": days.utilisation(flops, cluster.gpus, peak, step),
        "time.hfu": days.utilisation(values["compute.hardware_flops_per_step"], cluster.gpus, peak, step),
        "time.mfu_rule": days.utilisation(rule, cluster.gpus, peak, step),
        "time.mbu": days.bandwidth_utilisation(moved, accelerator.memory_bandwidth, step),
        **_shares(plan, exposed),
    }


def _inside(*transfers: Transfer) -> Number:
    return total_bytes([each.inside_bytes for each in transfers])


def _across(decode: Iteration) -> Number:
    """Bytes that pass the network card of one GPU."""
    transfers = (decode.allreduces, decode.gather, decode.exchange, decode.hops)
    return total_bytes([each.across_bytes for each in transfers])


def _shares(plan: Plan, exposed: Number) -> dict[str, Any]:
    """The five shares of the decode step, which sum to it, and the word for the largest."""
    steady, bandwidth = plan.steady, plan.scenario.cluster.accelerator.memory_bandwidth
    decode = steady.decode

    def right(each: Operator) -> Any:
        return right_of_knee(each.flops, each.peak, each.bytes, bandwidth)

    kinds = [(right(each), each.seconds) for each in decode.operators]
    math = total_seconds([bounds.compute_part(*each) for each in kinds])
    moved = total_seconds([bounds.memory_part(*each) for each in kinds])
    launch = bounds.launch_part(decode.launches, decode.seconds, decode.device)
    shares = (math, moved, exposed, launch)
    five = (*shares, steady.idle)
    return {
        "time.compute_s": math,
        "time.memory_s": moved,
        "time.launch_s": launch,
        "time.bottleneck": binding(longest(*five), second_longest(*five), *shares),
    }


def _capacity(plan: Plan, bound: Number) -> dict[str, Any]:
    """What the engines hold, and the physical bounds of what they would run."""
    memory, steady, accelerator = plan.memory, plan.steady, plan.scenario.cluster.accelerator
    serving, peak = plan.mean.serving, plan.passes.rates.blocks.peak
    read = plan.passes.read_weights(memory.pass_weights, serving.prompt_tokens)
    output, drafting = serving.output_tokens, steady.drafting
    values = {
        "serving.ttft_bound_s": bounds.prompt_floor(
            steady.prefill.flops, steady.prompt.chunks, peak, read, accelerator.memory_bandwidth
        ),
        "serving.replicas": memory.replicas,
        "serving.busy_replicas": memory.busy,
        "serving.kv_bytes_per_token": memory.kv_per_token,
        "serving.kv_bytes_per_sequence": memory.kv_per_sequence,
        "serving.kv_bytes_per_token_per_gpu": memory.cache.token,
        "serving.kv_capacity_tokens": serving_memory.all_tokens(memory.cache.tokens, memory.replicas),
        "serving.max_concurrency": serving_memory.all_sequences(memory.full_sequences, memory.replicas),
        "serving.held_requests": memory.held_requests,
        "serving.held_own_requests": memory.own_requests,
    }
    if present(memory.kv_per_image_token):
        values["serving.kv_bytes_per_image_token"] = memory.kv_per_image_token
    # a single token has no other before it
    if is_array(output) or output > 1:
        values["serving.tpot_bound_s"] = speculative.token_floor(bound, drafting.tokens) if drafting else bound
    return values | pool_band(plan.scenario, memory.cache.budget, values["serving.kv_capacity_tokens"])
