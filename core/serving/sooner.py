"""Edits after which the first token of a request comes sooner, each tried: places, chunks, wider engines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..legality import legal
from ..report import Edit
from ..terms import unrecorded
from ..units import format_quantity
from . import bounds
from .plan import Plan, plan_of
from .room import wider_groups

#: A time that an edit must come below, as a share of the present one, to be offered.
WORTH_IT = 0.95


def sooner(plan: Plan, waits: bool) -> Iterator[Edit]:
    """Changes that bring the first token clearly sooner, with its time then; `waits`: requests wait for others."""
    for edit in _candidates(plan, waits):
        changed = edit.applied(plan.scenario)
        if not legal(changed):
            continue
        with unrecorded():
            found = plan_of(changed, plan.model)
        endless = bounds.saturated(changed.serving.request_rate, found.steady.requests)
        fits = found.memory.headroom >= min(0.0, plan.memory.headroom)
        if fits and not endless and found.steady.ttft <= WORTH_IT * plan.steady.ttft:
            yield Edit(f"{edit.label}: {format_quantity(found.steady.ttft, 'seconds')}", edit.changes)


def _candidates(plan: Plan, waits: bool) -> Iterator[Edit]:
    """More places where requests come at random and wait, larger chunks of a cut prompt, the next wider engine."""
    scenario, held = plan.scenario, int(plan.memory.held_requests)
    serving = scenario.serving
    if waits and serving.request_rate > 0 and held > serving.concurrency:
        yield Edit(f"Concurrency {held}", (("serving.concurrency", held),))
    if plan.steady.prompt.chunks > 1:
        tokens = 2 * int(serving.max_batched_tokens)
        yield Edit(f"Batched tokens {tokens}", (("serving.max_batched_tokens", tokens),))
    yield from islice(wider_groups(scenario), 1)
