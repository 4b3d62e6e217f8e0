"""What one in a hundred requests meets, and the largest request rate at which it still meets both targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..numeric import Number, both, is_array, where
from ..terms import unrecorded
from . import queueing, steady
from .loop import Full, Line, Prompt, line_of, most_answered, running_at
from .plan import Plan
from .requests import LONG
from .waits import Queues

#: Halvings of the interval in which the goodput is looked for.
_HALVINGS = 10


@dataclass(frozen=True)
class _Load:
    """One micro-batch at a request rate: running sequences; seconds of a prompt, to a settled first token, and each."""

    rate: Number
    running: Number
    prefill: Number
    prompt: Number
    settled: Number
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
    queues: Queues
    #: Requests a second of one micro-batch at which as many sequences run as can.
    alone: Number
    #: What a long prompt takes more than a mean one, in seconds.
    longer: Number


def tail_values(plan: Plan) -> dict[str, Any]:
    """The keys of tails and goodput; those of a token need more than one of them."""
    crowd = _crowd(plan)
    load, rate = _own_load(crowd), plan.scenario.serving.request_rate
    line, output = crowd.line, plan.mean.serving.output_tokens
    values = {
        "serving.p99_ttft_s": queueing.at_least_mean(_long_ttft(crowd, load, rate), plan.steady.ttft),
        "serving.goodput_requests_per_s": goodput(crowd),
        "serving.most_requests_per_s": crowd.queues.most,
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
            share = share + where(_kept(crowd, queueing.goodput_rate(share + step, crowd.queues.most)), step, 0.0)
            step /= 2
    return queueing.goodput_rate(share, crowd.queues.most)


def _kept(crowd: _Crowd, rate: Number) -> Any:
    """Whether 99 of 100 requests meet both targets at a rate."""
    serving, load = crowd.plan.scenario.serving, _load(crowd, rate)
    met = _long_tpot(crowd, load, rate) <= serving.tpot_target
    if is_array(met) or met:
        met = both(met, _long_ttft(crowd, load, rate) <= serving.ttft_target)
    return met


def _crowd(plan: Plan) -> _Crowd:
    full, line = plan.steady.full, _line(plan)
    engines = steady.in_all_micro_batches(plan.decoding, plan.scenario.parallelism.pp)
    output, pools = plan.mean.serving.output_tokens, plan.pools
    most = pools.capacity if pools else most_answered(full, line, output, engines)
    prefill = pools.prefill if pools else plan.memory.busy
    queues = Queues.of(plan.scenario, prefill, plan.decoding, full.most, most)
    slope, alone = steady.slope(line.added, line.crowded, full.most), most_answered(full, line, output, 1.0)
    return _Crowd(plan, full, line, slope, engines, queues, alone, _longer(plan))


def _line(plan: Plan) -> Line:
    """Decode iterations at any load, and what a prompt adds."""
    state, full = plan.steady, plan.steady.full
    if plan.pools:
        return plan.pools.line
    if state.line:
        return state.line
    line = line_of(plan.passes, full, state.added)
    return replace(line, crowded=where(full.most > 1, state.added, line.added))


def _longer(plan: Plan) -> Number:
    """What a long prompt takes more than a mean one; nothing where all are equal."""
    serving = plan.scenario.serving
    if serving.lengths == "fixed":
        return 0.0
    tokens = queueing.long_prompt(serving.prompt_tokens, LONG[serving.lengths])
    prompt = Prompt.of(tokens, plan.memory.cache.sharing.shared, serving.max_batched_tokens, 0.0)
    iteration = plan.passes.prefill(1.0, prompt.tokens, prompt.pairs, prompt.keys)
    return queueing.longer_prompt(steady.prompt_seconds(prompt.chunks, iteration.seconds), plan.steady.prompt_alone)


def _own_load(crowd: _Crowd) -> _Load:
    """The load of the plan itself, as its steady state found it."""
    plan = crowd.plan
    state, pipeline = plan.steady, plan.scenario.parallelism.pp
    rate = steady.rate_each(state.requests, plan.decoding, pipeline)
    running = steady.micro_batch(state.running, pipeline)
    return _Load(rate, running, _prefill(crowd, rate, running), _prompt(crowd, running), state.settled, state.tpot)


def _load(crowd: _Crowd, rate: Number) -> _Load:
    """The load of an open loop at a request rate."""
    plan, line = crowd.plan, crowd.line
    each = steady.rate_each(rate, plan.decoding, plan.scenario.parallelism.pp)
    output = plan.mean.serving.output_tokens
    running = running_at(crowd.full, line, output, each, steady.load_share(each, crowd.alone))
    prefill = _prefill(crowd, each, running)
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
    device = steady.device_seconds(_added(crowd, running), crowd.full.least)
    return queueing.utilisation(rate, device, queueing.FULLEST)


def _queue(crowd: _Crowd, load: _Load) -> Number:
    """Share of the time of those that run prompts that these take."""
    if crowd.plan.pools is None:
        return load.prefill
    return crowd.queues.busy(steady.in_all_micro_batches(load.rate, crowd.engines), crowd.full.alone)


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
    queues = crowd.queues
    behind = queueing.long_wait(*queues.of_prompts(_queue(crowd, load), load.prompt), queueing.TAIL)
    others = queueing.behind_all(behind, load.running, _added(crowd, load.running))
    behind = where(rate > 0, behind, others)
    place = queueing.long_wait(*queues.of_places(where(rate > 0, rate, 0.0)), queueing.TAIL)
    return queueing.long_ttft(load.settled, behind, place, crowd.longer)
