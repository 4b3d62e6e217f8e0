"""A benchmark of an engine, iteration by iteration: what clients wait when all of them start together.

The schedule is counted (`schedule`), then all its iterations are timed at once by the same `Pass` as everything else.
Means and percentiles are over all requests, those of the first wave included, as benchmarks report them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numeric import Number, is_array
from ..scenario import Scenario
from ..terms import plain
from . import steady
from .iteration import Pass
from .plan import Plan
from .requests import Requests
from .schedule import Limits, Schedule, schedule

#: Requests of a benchmark for each client.
ROUNDS = 10
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
    serving, parallel = plan.scenario.serving, plan.scenario.parallelism
    pipeline = int(parallel.pp)
    asked, most = (_share(value, pipeline) for value in (plan.memory.asked, plan.steady.running))
    wanted = _share(requests, pipeline) if requests else round(rounds * min(asked, max(most, 1)))
    count = max(1, min(wanted, MOST_REQUESTS))
    clients = min(asked, count)
    sent = Requests.of(serving.prompt_tokens, serving.output_tokens, count, serving.lengths)
    limits = limits_of(plan)
    rows = schedule(sent.beyond(limits.shared), clients, limits)
    engine, engines = plan.settings.engine, plan.memory.busy * pipeline
    ends = _ends(plan.scenario, plan.passes, rows, engine.pipeline)
    total, outputs = ends[-1], rows.outputs.sum()
    tpot = _tpot(rows, ends)
    wait = engine.t_request + engine.t_api + (engine.lag * tpot.mean if tpot else 0.0)
    ttft = ends[rows.first] - ends[rows.came] + wait
    return Benchmark(
        requests=count * pipeline,
        clients=clients * pipeline,
        ttft=_spread(ttft),
        tpot=tpot,
        output=_one(engines * outputs / total),
        answered=_one(engines * count / total),
        seconds=_one(total),
    )


def limits_of(plan: Plan) -> Limits:
    """What holds back one engine, or one micro-batch of it in a pipeline."""
    serving, memory, engine = plan.scenario.serving, plan.memory, plan.settings.engine
    pipeline = int(plan.scenario.parallelism.pp)
    return Limits(
        tokens=int(serving.max_batched_tokens),
        sequences=_share(memory.most_sequences, pipeline),
        pool=_share(memory.room(steady.whole_sequence(serving.prompt_tokens, serving.output_tokens)), pipeline),
        reserve=engine.reserve,
        prefill_first=engine.prefill_first,
        shared=int(plain(memory.sharing.shared)),
    )


def _share(value: Number, pipeline: int) -> int:
    """The part of one micro-batch, at least one."""
    return max(1, round(plain(value) / pipeline))


def _ends(scenario: Scenario, passes: Pass, rows: Schedule, reached: Number) -> np.ndarray:
    """Seconds from the start to the end of each row, with a 0 before; a column for each value of array constants."""
    prompts, pipeline = rows.prompts > 0, scenario.parallelism.pp
    parts = []
    for mask in (~prompts, prompts):
        sequences, context, count, tokens, pairs, keys, repeats = (
            column[mask][:, None]
            for column in (
                rows.sequences,
                rows.context,
                rows.prompts,
                rows.tokens,
                rows.pairs,
                rows.keys,
                rows.repeats,
            )
        )
        if mask is prompts:
            iteration = passes.mixed(sequences, context, count, tokens / count, pairs / count, keys)
        else:
            iteration = passes.decode(sequences, context)
        parts.append(steady.pipelined_seconds(iteration.seconds, pipeline, sequences, reached) * repeats)
    seconds = np.zeros((len(prompts) + 1, max(part.shape[1] for part in parts)))
    seconds[1:][~prompts], seconds[1:][prompts] = parts
    return np.cumsum(seconds, axis=0)


def _tpot(rows: Schedule, ends: np.ndarray) -> Spread | None:
    """Time per token after the first; None where no request has a second one."""
    several = rows.outputs > 1
    if not several.any():
        return None
    spans = ends[rows.last[several]] - ends[rows.first[several]]
    return _spread(spans / (rows.outputs[several] - 1)[:, None])


def _spread(times: np.ndarray) -> Spread:
    return Spread(_one(times.mean(axis=0)), *(_one(each) for each in np.quantile(times, (0.5, 0.9, 0.99), axis=0)))


def _one(values: Number) -> Number:
    """A single value as a float."""
    return float(values[0]) if is_array(values) and len(values) == 1 else values
