"""What one in a hundred requests meets, and the largest request rate at which it still meets both targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..numeric import Number, both, is_array, minimum, where
from ..terms import unrecorded
from . import queueing, steady
from .loop import Full, Line, Prompt, beside_others, line_of
from .plan import Plan
from .requests import LONG, VARIATION

#: Halvings of the interval in which the goodput is looked for.
_HALVINGS = 10
#: Rounds in which sequences and the share of prompts, which hang on each other, are found.
_ROUNDS = 2


@dataclass(frozen=True)
class _Load:
    """One micro-batch at a request rate: sequences that run, and seconds of a prompt, to a first token and each."""

    rate: Number
    running: Number
    prefill: Number
    prompt: Number
    first: Number
    tpot: Number


@dataclass(frozen=True)
class _Crowd:
    """What the tails of a plan share at any request rate."""

    plan: Plan
    full: Full
    line: Line
    #: What a prompt takes of the device beside one more decoding sequence, in seconds.
    added_slope: Number
    engines: Number
    servers: Number
    #: Requests a second of all engines at which the queue grows without end.
    most: Number
    variability: Number
    #: Places in the batches of all engines, and seconds that a request holds one when all are taken.
    places: Number
    service: Number
    #: What a long prompt takes more than a mean one, in seconds.
    longer: Number


def tail_values(plan: Plan) -> dict[str, Any]:
    """The keys of tails and goodput; those of a token need more than one of them."""
    crowd = _crowd(plan)
    load, rate = _own_load(crowd), plan.scenario.serving.request_rate
    line, output = crowd.line, plan.mean.serving.output_tokens
    values = {
        "serving.p99_ttft_s": _long_ttft(crowd, load, rate),
        "serving.goodput_requests_per_s": goodput(crowd),
        "serving.most_requests_per_s": crowd.most,
        "serving.knee_requests": queueing.knee_requests(
            crowd.engines, crowd.full.most, line.one, line.slope, line.added, output
        ),
    }
    return values | ({"serving.p99_tpot_s": _long_tpot(crowd, load, rate)} if is_array(output) or output > 1 else {})


def goodput(crowd: _Crowd) -> Number:
    """Requests a second up to which 99 of 100 meet both targets; 0 where a lone one does not."""
    share, step = 0.0, 0.5
    with unrecorded():
        for _ in range(_HALVINGS):
            share = share + where(_kept(crowd, queueing.goodput_rate(share + step, crowd.most)), step, 0.0)
            step /= 2
    return queueing.goodput_rate(share, crowd.most)


def _kept(crowd: _Crowd, rate: Number) -> Any:
    """Whether 99 of 100 requests meet both targets at a rate."""
    serving, load = crowd.plan.scenario.serving, _load(crowd, rate)
    met = _long_tpot(crowd, load, rate) <= serving.tpot_target
    if is_array(met) or met:
        met = both(met, _long_ttft(crowd, load, rate) <= serving.ttft_target)
    return met


def _crowd(plan: Plan) -> _Crowd:
    full, pipeline = plan.steady.full, plan.scenario.parallelism.pp
    line, crowded = _ends(plan)
    engines = steady.in_all_micro_batches(plan.decoding, pipeline)
    step = queueing.step_at(line.one, line.slope, full.most)
    output = plan.mean.serving.output_tokens
    if plan.pools:
        most = plan.pools.capacity
    else:
        most = queueing.most_requests(engines, full.most, output, step, crowded, full.least)
    prefill = plan.pools.prefill if plan.pools else plan.memory.busy
    servers = queueing.servers(prefill, pipeline, queueing.MOST_SERVERS)
    variability = queueing.variability(1.0, VARIATION[plan.scenario.serving.lengths])
    places = steady.in_all_micro_batches(full.most, engines)
    return _Crowd(
        plan,
        full,
        line,
        steady.slope(line.added, crowded, full.most),
        engines,
        servers,
        most,
        variability,
        places,
        queueing.place_seconds(places, most),
        _longer(plan),
    )


def _ends(plan: Plan) -> tuple[Line, Number]:
    """Decode iterations at any load, and what a prompt adds where as many sequences run as can."""
    state, full = plan.steady, plan.steady.full
    if plan.pools:
        return plan.pools.line, 0.0
    if state.line is None:
        line = line_of(plan.passes, full)
        return line, where(full.most > 1, state.added, line.added)
    if plan.settings.engine.prefill_first:
        return state.line, full.alone
    beside, shared = queueing.all_others(full.most), plan.memory.sharing.shared
    return state.line, beside_others(plan.mean, plan.passes, shared, full.context, beside, full.decode)[1]


def _longer(plan: Plan) -> Number:
    """What a long prompt takes more than a mean one; nothing where all are equal."""
    serving = plan.scenario.serving
    if serving.lengths == "fixed":
        return 0.0
    tokens = queueing.long_prompt(serving.prompt_tokens, LONG[serving.lengths])
    prompt = Prompt.of(tokens, plan.memory.sharing.shared, serving.max_batched_tokens, 0.0)
    iteration = plan.passes.prefill(1.0, prompt.tokens, prompt.pairs, prompt.keys)
    return queueing.longer_prompt(steady.prompt_seconds(prompt.chunks, iteration.seconds), plan.steady.prompt_alone)


def _own_load(crowd: _Crowd) -> _Load:
    """The load of the plan itself, as its steady state found it."""
    plan = crowd.plan
    state, pipeline = plan.steady, plan.scenario.parallelism.pp
    rate = steady.rate_each(state.requests, plan.decoding, pipeline)
    running = steady.micro_batch(state.running, pipeline)
    return _Load(rate, running, _prefill(crowd, rate, running), _prompt(crowd, running), state.ttft, state.tpot)


def _load(crowd: _Crowd, rate: Number) -> _Load:
    """The load of an open loop at a request rate."""
    plan, line = crowd.plan, crowd.line
    each = steady.rate_each(rate, plan.decoding, plan.scenario.parallelism.pp)
    output, prefill, running = plan.mean.serving.output_tokens, 0.0, 1.0
    for _ in range(_ROUNDS):
        prefill = _prefill(crowd, each, running)
        running = steady.littles_batch(each, output, line.one, line.slope, prefill, crowd.full.most)
    step = queueing.step_at(line.one, line.slope, running)
    tpot = steady.shared_tpot(step, running, output, _added(crowd, running))
    prompt, engine = _prompt(crowd, running), plan.settings.engine
    wait = 0.0 if plan.pools else steady.iteration_wait(rate, tpot)
    first = steady.first_token_seconds(wait, prompt, engine.t_request, engine.t_api, engine.lag, tpot)
    return _Load(each, running, prefill, prompt, first, tpot)


def _added(crowd: _Crowd, running: Number) -> Number:
    """What a prompt takes of the device beside some decoding sequences."""
    return queueing.step_at(crowd.line.added, crowd.added_slope, running)


def _prefill(crowd: _Crowd, rate: Number, running: Number) -> Number:
    """Share of the time of those that decode that prompts take."""
    if crowd.plan.pools:
        return 0.0
    return minimum(queueing.FULLEST, steady.prefill_share(rate, _added(crowd, running), crowd.full.least))


def _queue(crowd: _Crowd, load: _Load) -> Number:
    """Share of the time of those that run prompts that these take."""
    pools = crowd.plan.pools
    if pools is None:
        return load.prefill
    rate = steady.in_all_micro_batches(load.rate, crowd.engines)
    each = steady.rate_each(rate, pools.prefill, crowd.plan.scenario.parallelism.pp)
    return queueing.utilisation(each, crowd.full.alone, queueing.FULLEST)


def _prompt(crowd: _Crowd, running: Number) -> Number:
    if crowd.plan.pools:
        return crowd.plan.steady.in_prompt
    if crowd.plan.settings.engine.prefill_first:
        return crowd.full.alone
    return queueing.prompt_beside(crowd.full.alone, crowd.full.chunks, crowd.line.slope, running)


def _long_tpot(crowd: _Crowd, load: _Load, rate: Number) -> Number:
    """Time per token of an unlucky request; a rate of 0 is a closed loop, whose sequences are as many as they are."""
    line, added = crowd.line, _added(crowd, load.running)
    large = queueing.large_batch(load.running, load.prefill, queueing.DEVIATIONS, crowd.full.most)
    batch = where(rate > 0, large, load.running)
    prompts = where(rate > 0, large, queueing.many_prompts(load.running, queueing.DEVIATIONS))
    step, output = queueing.step_at(line.one, line.slope, batch), crowd.plan.mean.serving.output_tokens
    return queueing.long_tpot(load.tpot, step, prompts, output, added, crowd.full.chunks)


def _long_ttft(crowd: _Crowd, load: _Load, rate: Number) -> Number:
    """Time to first token of an unlucky request, behind other prompts or without a place in the batch.

    Clients of a closed loop have a place, and at most each other's prompts before theirs; of separate pools the mean
    has their wait already.
    """
    queue = _queue(crowd, load)
    share = queueing.erlang_c(crowd.servers, queue)
    behind = queueing.long_wait(load.prompt, crowd.servers, queue, share, crowd.variability, queueing.TAIL)
    others = queueing.behind_all(behind, load.running, _added(crowd, load.running))
    behind = where(rate > 0, behind, others)
    busy = queueing.utilisation(where(rate > 0, rate, 0.0), 1 / crowd.most, queueing.FULLEST)
    taken = queueing.waiting_share_of_many(crowd.places, busy)
    place = queueing.long_wait(crowd.service, crowd.places, busy, taken, crowd.variability, queueing.TAIL)
    return queueing.long_ttft(load.first, behind, place, crowd.longer)
