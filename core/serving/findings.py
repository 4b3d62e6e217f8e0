"""Rules that look at a serving plan and say what a person should know, each with an edit that would help."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..report import Edit, Finding
from ..units import format_quantity
from . import layout_findings
from .load_findings import drafts, large_chunks, over_goodput, saturated, separate_pools
from .plan import Plan, with_requests
from .points import below_roof, ceiling
from .rates import has_units
from .room import memory_edits
from .sooner import WORTH_IT, sooner

MOST_EDITS = 3
#: Share of a token's time from which the prompts of other requests are worth naming.
MUCH_PREFILL = 0.5
#: Slips of a typed time: an exponent, minutes for seconds, milliseconds for seconds.
SLIPS = (10, 60, 1000)


def serving_findings(plan: Plan, values: dict[str, Any]) -> list[Finding]:
    """All findings of a single plan."""
    running = RUNNING_RULES if values["serving.held_requests"] >= 1 else ()
    return [finding for rule in (memory, *running, *RULES) for finding in rule(plan, values)]


def _bytes(value: float) -> str:
    return format_quantity(value, "bytes")


def _count(value: float) -> str:
    return format_quantity(value, "count")


def memory(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """The plan needs more memory than the engine may use, or nearly all of it."""
    if values["memory.verdict"] == "fits":
        return
    serving, budget = plan.scenario.serving, values["memory.kv_budget_bytes"]
    edits = tuple(islice(memory_edits(plan.scenario, values), MOST_EDITS))
    if values["memory.fits"]:
        message = (
            f"Tight: {_bytes(values['memory.headroom_bytes'])} of the cache's {_bytes(budget)} are to spare "
            f"with {_count(serving.concurrency)} sequences at full length."
        )
        yield Finding("memory-tight", "warning", message, "serving.concurrency", edits)
    elif budget <= 0:
        message = f"Does not fit: weights and engine need {_bytes(-budget)} more than a GPU has, before any cache."
        yield Finding("does-not-fit", "error", message, "serving.weight_format", edits)
    else:
        own = serving.prompt_tokens + serving.output_tokens
        message = (
            f"Does not fit: {_count(serving.concurrency)} sequences of {_count(max(own, serving.max_context))} tokens "
            f"need {_bytes(values['memory.kv_cache_bytes'])} of cache, there are {_bytes(budget)}: "
            f"room for {_count(values['serving.held_requests'])}."
        )
        room = values["serving.held_own_requests"]
        if room > values["serving.held_requests"]:
            runs = "all run" if room >= serving.concurrency else f"there is room for {_count(room)} and others wait"
            message += f" At the {_count(own)} tokens that these requests have, {runs}; rates are of these."
        yield Finding("does-not-fit", "error", message, "serving.concurrency", edits)


def missed_targets(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Time to first token or time per token is over its target."""
    serving = plan.scenario.serving
    tpot, ttft = values.get("serving.tpot_s", 0.0), values.get("serving.ttft_s", 0.0)
    places = (values.get("serving.place_wait_s", 0.0), "for a place in the batch")
    waits, what = max(places, (values["serving.prompt_queue_s"], "behind the prompts of other requests"))
    slow, late = tpot > serving.tpot_target, ttft > serving.ttft_target
    opened = serving.request_rate > 0  # where fewer places make requests wait longer
    half = _half(plan) if slow or (late and waits and not opened) else None
    if slow:
        message = f"A token takes {_over(tpot, serving.tpot_target)}."
        if values["serving.tpot_bound_s"] > serving.tpot_target:
            message += " The physical bound alone is over it: smaller weights or more GPUs would help."
        elif values["serving.prefill_share"] >= MUCH_PREFILL:
            message += f" {_prefill(values)}"
        yield Finding("tpot-target-missed", "warning", message, "serving.tpot_target", _fewer(half, "tpot", tpot))
    if late:
        message = f"The first token takes {_over(ttft, serving.ttft_target)}."
        if waits > ttft / 2:
            message += f" {format_quantity(waits, 'seconds')} of it are spent waiting {what}."
        edits = _fewer(half, "ttft", ttft) if waits and not opened else ()
        edits = (*edits, *sooner(plan, bool(waits)))[:MOST_EDITS]
        yield Finding("ttft-target-missed", "warning", message, "serving.ttft_target", edits)


def _half(plan: Plan) -> Plan | None:
    """The plan with half the requests; None for a single one."""
    requests = int(plan.scenario.serving.concurrency) // 2
    return with_requests(plan, requests) if requests else None


def _fewer(half: Plan | None, time: str, now: float) -> tuple[Edit, ...]:
    """Half the requests, with the time that a token or the first one takes then, where that is worth it."""
    then = getattr(half.steady, time) if half else now
    if half is None or then > WORTH_IT * now:
        return ()
    path, requests = "serving.concurrency", half.scenario.serving.concurrency
    return (Edit(f"Concurrency {requests}: {format_quantity(then, 'seconds')}", ((path, requests),)),)


def _over(seconds: float, target: float) -> str:
    return f"{format_quantity(seconds, 'seconds')}, over its target of {format_quantity(target, 'seconds')}"


def _prefill(values: dict[str, Any]) -> str:
    share, step = values["serving.prefill_share"], values["serving.decode_step_s"]
    return (
        f"Prompts of other requests take {format_quantity(share, 'ratio', 2)} of it; "
        f"a decode step takes {format_quantity(step, 'seconds')}."
    )


def much_prefill(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """A token waits longer for the prompts of other requests than for its own step."""
    met = values.get("serving.over_tpot_target", 1.0) <= 1
    if values.get("serving.prefill_share", 0.0) >= MUCH_PREFILL and met:
        message = f"A token takes {format_quantity(values['serving.tpot_s'], 'seconds')}. {_prefill(values)}"
        yield Finding("prefill-share", "hint", message, "serving.prompt_tokens")


def kernel_ceiling(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Left of the knee, most of the step goes by the mathematics of kernels that reach little of the peak."""
    held = [each for each in plan.steady.decode.operators if below_roof(each, plan)]
    if sum(each.seconds for each in held) < values["time.step_s"] / 2:
        return
    largest = max(held, key=lambda each: each.seconds)
    words = f"{largest.name} meets a {ceiling(largest, plan)}"
    message = f"Decoding is left of the knee, yet more bandwidth would help little: {words}."
    yield Finding("kernel-ceiling", "hint", message, "serving.concurrency")


def longer_than_context(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Prompt and output do not fit into the longest sequence, or that not into the model's."""
    serving, longest = plan.scenario.serving, plan.model.spec.max_context
    whole = int(serving.prompt_tokens + serving.output_tokens)
    if whole > serving.max_context:
        message = f"Prompt and output are {_count(whole)} tokens, more than the {_count(serving.max_context)} planned."
        message += f" The cache holds {_count(values['serving.held_requests'])} such requests."
        edit = Edit(f"Max context {whole}", (("serving.max_context", whole),))
        yield Finding("longer-than-context", "warning", message, "serving.max_context", (edit,))
    if 0 < longest < serving.max_context:
        message = f"The model was made for {_count(longest)} tokens; {_count(serving.max_context)} are planned."
        edit = Edit(f"Max context {int(longest)}", (("serving.max_context", int(longest)),))
        yield Finding("longer-than-model", "warning", message, "serving.max_context", (edit,))


def foreign_format(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """The device has no matrix units for the weight format."""
    number, accelerator = plan.settings.weights, plan.scenario.cluster.accelerator
    if not number.expanded and number.bits < 16 and not has_units(accelerator, number):
        message = (
            f"{accelerator.name} has no {number.peak} units: "
            f"{plan.scenario.serving.weight_format} saves memory and bandwidth, products run in 16 bits."
        )
        yield Finding("format-not-native", "hint", message, "serving.weight_format")


def padded_vocabulary(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """Embedding and head are padded by more than a hundredth."""
    own, padded = plan.model.spec.vocabulary, plan.passes.vocabulary
    if padded > 1.01 * own:
        message = f"The vocabulary of {_count(own)} is padded to {_count(padded)} to split it over the ranks."
        yield Finding("vocabulary-padded", "hint", message, "model.vocabulary")


def uncalibrated(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """A device without published serving rows."""
    if not plan.settings.device.calibrated:
        message = f"No published serving rates of {plan.scenario.cluster.accelerator.name}: results are uncalibrated."
        yield Finding("uncalibrated", "hint", message, "cluster.accelerator")


def impossible_measurement(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """A measured time below the physical bound is a slip in the number that was typed."""
    over, measured = values.get("measured.over_bound"), plan.scenario.measured
    if over is None or over >= 1:
        return
    path, typed = next(
        (f"measured.{name}", value)
        for name in ("tpot", "tokens_per_s", "ttft")
        if (value := getattr(measured, name)) is not None
    )
    rate = path == "measured.tokens_per_s"
    factor = next((slip for slip in SLIPS if 1 <= over * slip < 100), None)
    possible = format_quantity(typed * over, "tokens/s") if rate else format_quantity(typed / over, "seconds")
    message = f"Not possible: {'at most' if rate else 'it takes at least'} {possible}, {1 / over:.3g} times the bound."
    edits = ()
    if factor:
        meant = typed / factor if rate else typed * factor
        label = format_quantity(meant, "tokens/s" if rate else "seconds")
        edits = (Edit(label, ((path, meant),)),)
    yield Finding("measured-below-bound", "error", message, path, edits)


#: Rules that look at what requests see, of a plan that holds one.
RUNNING_RULES = (
    missed_targets,
    much_prefill,
    saturated,
    over_goodput,
    drafts,
    separate_pools,
    large_chunks,
    kernel_ceiling,
)
RULES = (
    longer_than_context,
    *layout_findings.RULES,
    foreign_format,
    padded_vocabulary,
    uncalibrated,
    impossible_measurement,
)
