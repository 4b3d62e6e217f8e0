"""How large chunks of prompts may be so that those who decode beside them keep their target.

Source: Agrawal 2024 (Sarathi-Serve, arXiv 2403.02310).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ledgers.serving_sharing import own_tokens
from ..numeric import Number, both, floor, is_array, log, maximum, minimum, ratio, where
from ..terms import formula, unrecorded
from . import kernels, steady
from .plan import Plan

#: Smallest chunk that is recommended, and how often the first guess is doubled or halved.
SMALLEST = 64.0
_TRIES = 4


@formula("t_q", "s")
def own_iteration(step: Number, added: Number, chunks: Number) -> Number:
    """Time of an iteration with a chunk of a prompt as the plan cuts it."""
    return step + added / chunks


@formula("q", "tokens")
def likely_chunk(target: Number, step: Number, own: Number, tokens: Number) -> Number:
    """Power of two of tokens that meets the target on a straight line from none to the plan's own chunk."""
    return 2 ** floor(log(maximum(1.0, tokens * ratio(maximum(0.0, target - step), own - step))) / log(2.0) + 1e-9)


@formula("q", "tokens", "Agrawal 2024 (Sarathi-Serve, arXiv 2403.02310)", "found among powers of two")
def recommended_chunk(tokens: Number, prompt: Number) -> Number:
    """Largest chunk of a prompt whose iteration keeps the target of those that decode beside it."""
    return minimum(tokens, prompt)


def chunk_values(plan: Plan) -> dict[str, Any]:
    """The recommended chunk, where prompts run together with decoding and some chunk keeps the target."""
    if plan.settings.engine.prefill_first or plan.pools:
        return {}
    with unrecorded():
        tokens = _largest(plan)
    if not is_array(tokens) and tokens <= 0:
        return {}
    return {"serving.recommended_chunk_tokens": recommended_chunk(tokens, new_tokens(plan))}


def iteration_seconds(plan: Plan, tokens: Number) -> Number:
    """Time of an iteration that decodes the plan's sequences and runs the first chunk of a prompt."""
    micro = steady.micro_batch(plan.steady.running, plan.scenario.parallelism.pp)
    shared = plan.memory.cache.sharing.shared
    pairs, keys = kernels.chunk_pairs(tokens, shared), steady.keys_after(shared, tokens)
    return plan.passes.mixed(micro, plan.steady.context, 1.0, tokens, pairs, keys).seconds


def new_tokens(plan: Plan) -> Number:
    """Tokens of a prompt that it does not share."""
    return own_tokens(plan.mean.serving.prompt_tokens, plan.memory.cache.sharing.shared)


def _largest(plan: Plan) -> Number:
    """The largest chunk that keeps the target, a power of two or the whole prompt; 0 where the smallest does not."""
    state, target, prompt = plan.steady, plan.scenario.serving.tpot_target, new_tokens(plan)
    step, chunks = state.decode.seconds, state.prompt.chunks
    own = own_iteration(step, state.added, chunks)
    found = both(own <= target, chunks == 1)
    tokens = where(found, prompt, likely_chunk(target, step, own, state.prompt.tokens))
    growing = found if _all(found) else iteration_seconds(plan, tokens) <= target
    for _ in range(_TRIES):
        if _all(found):
            break
        tried = where(growing, 2 * tokens, tokens / 2)
        keeps = iteration_seconds(plan, tried) <= target
        tokens = where(found, tokens, where(growing, where(keeps, tried, tokens), tried))
        found = where(found, True, growing != keeps)
    return where(both(found, tokens >= minimum(SMALLEST, prompt)), tokens, 0.0)


def _all(truths: Any) -> bool:
    return bool(np.all(truths))
