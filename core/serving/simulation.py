"""A benchmark of an engine, iteration by iteration: what requests meet.

Clients of a closed loop start together: the schedule is counted (`schedule`), then all its iterations are timed at once
by the same `Pass` as everything else. Means and percentiles are over all requests, those of the first wave included, as
benchmarks report them. Requests at a rate come at random (`open_loop`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..numeric import Number, is_array
from ..scenario import Scenario
from ..terms import plain
from . import steady
from .iteration import Pass
from .open_loop import arrivals, run
from .plan import Plan
from .requests import Requests
from .schedule import Limits, Schedule, schedule

#: Requests of a benchmark for each client.
ROUNDS = 10
#: Requests that come at random to each engine: twenty of them are the unlucky one in a hundred.
ARRIVALS = 2000
#: Most requests that are simulated; the mean of more is the same.
MOST_REQUESTS = 6000


@dataclass(frozen=True)
class Spread:
    """Mean and percentiles of a time over all requests, in seconds."""

    mean: Number
    p50: Number
    p90: Number
    p99: Number


@dataclass(frozen=True)
class Benchmark:
    """What a benchmark of a plan shows; times in seconds, rates of all engines together."""

    requests: int
    #: Requests that were asked for, of which at most `MOST_REQUESTS` an engine are simulated.
    asked: int
    #: Clients that ask again when they are answered; 0 at a request rate.
    clients: int
    ttft: Spread
    tpot: Spread | None
    output: Number
    answered: Number
    seconds: Number


def benchmark(plan: Plan, requests: float | None = None, rounds: float = ROUNDS) -> Benchmark:
    """A closed loop of the plan's concurrency, with so many requests an engine, or so many rounds of its clients.

    Clients beyond the requests stay idle. The plan's numbers are single; constants of machine and engine may be arrays,
    as they do not change the schedule.
    """
    pipeline = int(plan.scenario.parallelism.pp)
    asked, most = (_share(value, pipeline) for value in (plan.memory.asked, plan.steady.running))
    wanted = _share(requests, pipeline) if requests else round(rounds * min(asked, max(most, 1)))
    count = max(1, min(wanted, MOST_REQUESTS))
    clients = min(asked, count)
    limits = limits_of(plan)
    rows = schedule(_sent(plan, count, limits), clients, limits)
    ends = _ends(plan.scenario, plan.passes, rows, plan.settings.engine.pipeline)
    engines, total = plan.memory.busy * pipeline, ends[-1]
    met = _Met(ends[rows.came], ends[rows.first], ends[rows.last], rows.outputs)
    rates = engines * count / total, engines * rows.outputs.sum() / total
    return _found(plan, met, (wanted, clients), *rates, total)


def arriving(plan: Plan, requests: float | None = None) -> Benchmark:
    """Requests at random, at the plan's request rate, dealt to its engines in turn; so many to each engine.

    Attention data parallel ranks are one engine. The first tenth of the requests, which finds engines empty, is run and
    not counted. No number of the plan is an array.
    """
    serving, memory = plan.scenario.serving, plan.memory
    pipeline, ranks = int(plan.scenario.parallelism.pp), int(min(serving.attention_dp, memory.busy))
    wanted = _share(requests, pipeline) if requests else ARRIVALS
    count = min(wanted, MOST_REQUESTS)
    limits = limits_of(plan)
    limits = replace(limits, sequences=min(limits.sequences, _share(memory.asked, pipeline)))
    engines = int(memory.busy) // ranks * pipeline
    times, sent = arrivals(serving.request_rate, count, engines), _sent(plan, count, limits)

    def clock(row: tuple[float, ...], mean: float) -> float:
        shared = None if ranks == 1 else mean
        return _seconds(plan.scenario, plan.passes, plan.settings.engine.pipeline, *row, ranks=shared)

    first, last = run(sent, times, limits, clock, ranks)
    outputs, counted = np.array(sent.outputs), slice(count // 10, None)
    met = _Met(times[counted, None], first[counted, None], last[counted, None], outputs[counted])
    total = float(last.max())
    return _found(plan, met, (wanted, 0), engines * count / total, engines * outputs.sum() / total, total)


def _sent(plan: Plan, count: int, limits: Limits) -> Requests:
    serving = plan.scenario.serving
    return Requests.of(serving.prompt_tokens, serving.output_tokens, count, serving.lengths).beyond(limits.shared)


@dataclass(frozen=True)
class _Met:
    """Seconds at which requests came, and had their first and last token; and the tokens of their outputs."""

    came: np.ndarray
    first: np.ndarray
    last: np.ndarray
    outputs: np.ndarray

    @property
    def tpot(self) -> Spread | None:
        """Time per token after the first; None where no request has a second one."""
        several = self.outputs > 1
        if not several.any():
            return None
        return _spread((self.last[several] - self.first[several]) / (self.outputs[several] - 1)[:, None])


def _found(
    plan: Plan, met: _Met, each: tuple[int, int], answered: Number, output: Number, seconds: Number
) -> Benchmark:
    """What requests met, with what there is outside the iterations; `each` micro-batch has requests and clients."""
    pipeline, engine, tpot = int(plan.scenario.parallelism.pp), plan.settings.engine, met.tpot
    wait = engine.t_request + engine.t_api + (engine.lag * tpot.mean if tpot else 0.0)
    return Benchmark(
        requests=len(met.outputs) * pipeline,
        asked=each[0] * pipeline,
        clients=each[1] * pipeline,
        ttft=_spread(met.first - met.came + wait),
        tpot=tpot,
        output=_one(output),
        answered=_one(answered),
        seconds=_one(seconds),
    )


def limits_of(plan: Plan) -> Limits:
    """What holds back one engine, or one micro-batch of it in a pipeline."""
    serving, memory, engine = plan.scenario.serving, plan.memory, plan.settings.engine
    pipeline = int(plan.scenario.parallelism.pp)
    return Limits(
        tokens=int(serving.max_batched_tokens),
        sequences=_share(memory.most_sequences, pipeline),
        pool=_share(memory.cache.room(steady.whole_sequence(serving.prompt_tokens, serving.output_tokens)), pipeline),
        reserve=engine.reserve,
        prefill_first=engine.prefill_first,
        shared=int(plain(memory.cache.sharing.shared)),
    )


def _share(value: Number, pipeline: int) -> int:
    """The part of one micro-batch, at least one."""
    return max(1, round(plain(value) / pipeline))


def _ends(scenario: Scenario, passes: Pass, rows: Schedule, reached: Number) -> np.ndarray:
    """Seconds from the start to the end of each row, with a 0 before; a column for each value of array constants."""
    prompts, parts = rows.prompts > 0, []
    for mask in (~prompts, prompts):
        decoding = (rows.sequences, rows.context)
        chunks = (rows.prompts, rows.tokens, rows.pairs, rows.keys) if mask is prompts else ()
        repeats, *numbers = (column[mask][:, None] for column in (rows.repeats, *decoding, *chunks))
        parts.append(_seconds(scenario, passes, reached, *numbers) * repeats)
    seconds = np.zeros((len(prompts) + 1, max(part.shape[1] for part in parts)))
    seconds[1:][~prompts], seconds[1:][prompts] = parts
    return np.cumsum(seconds, axis=0)


def _seconds(
    scenario: Scenario,
    passes: Pass,
    reached: Number,
    sequences: Number,
    context: Number,
    count: Number = 0,
    tokens: Number = 0,
    pairs: Number = 0,
    keys: Number = 0,
    ranks: Number | None = None,
) -> Number:
    """Time of an iteration of decoding sequences and, where there are some, chunks of prompts; `ranks` as of a pass."""
    if is_array(count) or count:
        iteration = passes.mixed(sequences, context, count, tokens / count, pairs / count, keys, ranks)
    else:
        iteration = passes.decode(sequences, context, ranks)
    return steady.pipelined_seconds(iteration.seconds, scenario.parallelism.pp, sequences, reached)


def _spread(times: np.ndarray) -> Spread:
    return Spread(_one(times.mean(axis=0)), *(_one(each) for each in np.quantile(times, (0.5, 0.9, 0.99), axis=0)))


def _one(values: Number) -> Number:
    """A single value as a float."""
    return float(values[0]) if is_array(values) and len(values) == 1 else values
