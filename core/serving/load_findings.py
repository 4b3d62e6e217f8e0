"""Rules on the load of a serving plan: request rates, drafts and chunks of prompts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..report import Edit, Finding
from ..scenario import Scenario
from ..units import format_quantity
from .chunks import new_tokens, own_iteration
from .drafting import best_drafts
from .plan import Plan

#: A gain that another number of drafts must bring over the present one to be named.
_WORTH_IT = 1.05


def _count(value: float) -> str:
    return format_quantity(value, "count")


def saturated(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Requests come faster than the plan answers them."""
    path, rate = "serving.request_rate", plan.scenario.serving.request_rate
    answered = values["serving.requests_per_s"]
    if values["serving.saturated"]:
        message = (
            f"Saturated: {format_quantity(rate, '1/s')} requests come and {format_quantity(answered, '1/s')} are "
            "answered; the queue grows without end."
        )
        slower = float(f"{0.95 * answered:.2g}")
        edits = (_more_engines(plan.scenario, rate / slower), Edit(f"{slower:g} requests/s", ((path, slower),)))
        yield Finding("saturated", "error", message, path, edits)


def over_goodput(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Requests come faster than one in a hundred can bear within the targets."""
    path, rate = "serving.request_rate", plan.scenario.serving.request_rate
    good = values["serving.goodput_requests_per_s"]
    if values["serving.saturated"] or rate <= good:
        return
    if good <= 0:
        message = "At no request rate do 99 of 100 requests meet both targets."
        yield Finding("over-goodput", "hint", message, path)
        return
    message = (
        f"{format_quantity(rate, '1/s')} requests come; 99 of 100 meet both targets up to about "
        f"{format_quantity(good, '1/s')} (±20 %)."
    )
    slower = float(f"{0.95 * good:.2g}")
    edits = (_more_engines(plan.scenario, rate / slower), Edit(f"{slower:g} requests/s", ((path, slower),)))
    yield Finding("over-goodput", "warning", message, path, edits)


def _more_engines(scenario: Scenario, times: float) -> Edit:
    """As many more engines, each with as many requests as now."""
    factor = math.ceil(times)
    gpus, requests = int(scenario.cluster.gpus) * factor, int(scenario.serving.concurrency) * factor
    changes = (("cluster.gpus", gpus), ("serving.concurrency", requests))
    return Edit(f"{gpus} GPUs, concurrency {requests}", changes)


def separate_pools(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """What engines that either run prompts or decode do against the same engines doing both."""
    found, path = plan.pools, "serving.disaggregated"
    if found is None or "serving.tpot_s" not in values:
        return
    token, together = (format_quantity(each, "seconds") for each in (plan.steady.tpot, found.together.tpot))
    rate, before = (format_quantity(each, "1/s") for each in (plan.steady.requests, found.together.requests))
    message = (
        f"{_count(found.prefill)} engines for prompts and {_count(found.decode)} for decoding: a token takes {token}, "
        f"{together} if all did both; {rate} requests are answered, {before} if all did both."
    )
    yield Finding("separate-pools", "hint", message, path, (Edit("Every engine does both", ((path, False),)),))


def drafts(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """Drafts slow the plan down, or another number of them would gain clearly more."""
    path, own = "serving.speculative.draft_tokens", plan.scenario.serving.speculative.draft_tokens
    if own <= 0:
        return
    gain = values["serving.speculative_speedup"]
    best, most = best_drafts(plan)
    edits = (Edit(f"{best} draft tokens: {most:.3g} times" if best else "No drafts", ((path, best),)),)
    if gain < 1:
        message = (
            f"Drafts slow tokens down to {gain:.2f} of the rate without them: {_count(values['serving.running'])} "
            "sequences already fill the matrix units."
        )
        yield Finding("drafts-lose", "warning", message, path, edits)
    elif most > gain * _WORTH_IT:
        message = f"{_count(own)} draft tokens make tokens {gain:.3g} times faster, {_count(best)} {most:.3g} times."
        yield Finding("draft-tokens", "hint", message, path, edits)


def large_chunks(plan: Plan, values: dict[str, Any]) -> Iterator[Finding]:
    """One in a hundred requests misses its target, which smaller chunks of the prompts of others would prevent."""
    path, serving = "serving.max_batched_tokens", plan.scenario.serving
    chunk = values.get("serving.recommended_chunk_tokens")
    decoding = math.ceil(plan.steady.running / plan.scenario.parallelism.pp)
    own = min(new_tokens(plan), serving.max_batched_tokens - decoding)
    missed = values.get("serving.p99_tpot_s", 0.0) > serving.tpot_target
    if chunk is None or chunk >= own or not missed:
        return
    state, chunks = plan.steady, math.ceil(new_tokens(plan) / chunk)
    waits, target, then = (
        format_quantity(each, "seconds")
        for each in (
            own_iteration(state.decode.seconds, state.added, state.prompt.chunks),
            serving.tpot_target,
            chunks * serving.tpot_target,
        )
    )
    message = (
        f"The prompt of another request holds a token up for {waits}. In chunks of {_count(chunk)} tokens every token "
        f"keeps its target of {target}, and a prompt takes up to {then}."
    )
    budget = int(chunk) + decoding
    edit = Edit(f"Batched tokens {budget}", ((path, budget),))
    yield Finding("large-chunks", "hint", message, path, (edit,))
