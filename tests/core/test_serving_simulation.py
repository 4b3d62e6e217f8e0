"""A benchmark iteration by iteration: published waits, the laws of a schedule, and the limits of an engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.model.layers import build
from triledger.core.scenario import Scenario
from triledger.core.serving.plan import Plan, plan_of
from triledger.core.serving.requests import LENGTHS, Requests
from triledger.core.serving.schedule import Limits, Schedule, schedule
from triledger.core.serving.simulation import benchmark, limits_of


def planned(scenario: Scenario) -> Plan:
    return plan_of(scenario, build(scenario.model))


def qwen(**changes: Any) -> Scenario:
    """64 clients of Qwen3-32B on four H100 under SGLang, 1024 tokens in and 256 out."""
    sizes = {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 64, "max_batched_tokens": 16384}
    return serving("qwen3-32b", tp=4, engine="sglang-0.5", **(sizes | changes))


def test_equal_lengths_keep_clients_in_lockstep():
    """Published: 1.30 s and 16.3 ms."""
    run = benchmark(planned(qwen()))
    assert run.ttft.mean == pytest.approx(1.40, rel=0.01)
    assert run.tpot is not None
    assert run.tpot.mean == pytest.approx(16.5e-3, rel=0.01)


def test_drawn_lengths_spread_the_prompts_over_the_decoding():
    run = benchmark(planned(qwen(lengths="drawn")))
    assert run.ttft.mean == pytest.approx(0.32, rel=0.03)
    assert run.tpot is not None
    assert run.tpot.mean == pytest.approx(22.0e-3, rel=0.02)


def test_a_lone_request_takes_its_prompt_and_its_steps():
    plan = planned(serving("llama-3-8b", concurrency=1, prompt_tokens=500, output_tokens=100))
    run = benchmark(plan, requests=1)
    assert (run.clients, run.requests) == (1, 1)
    timer, engine = plan.passes, plan.settings.engine
    prompt = timer.mixed(0.0, 0.0, 1.0, 500.0, 500 * 501 / 2, 500.0).seconds
    steps = timer.decode(1.0, 501 + 49).seconds
    assert run.tpot is not None
    assert run.tpot.mean == pytest.approx(steps, rel=1e-9)
    assert run.ttft.mean == pytest.approx(prompt + engine.t_api + engine.lag * steps, rel=1e-9)
    assert run.output == pytest.approx(100 / (prompt + 99 * steps), rel=1e-9)


def test_clients_of_a_closed_loop_are_throughput_times_latency():
    """Little 1961; at the end of a run some clients have nothing left to ask."""
    plan = planned(serving("llama-3-8b", concurrency=32, prompt_tokens=700, output_tokens=200, lengths="drawn"))
    run = benchmark(plan, rounds=40)
    engine = plan.settings.engine
    assert run.tpot is not None
    outside = engine.t_api + engine.lag * run.tpot.mean
    latency = run.ttft.mean - outside + 179 * run.tpot.mean
    assert run.answered * latency == pytest.approx(32, rel=0.03)


def test_a_benchmark_and_the_steady_state_agree_on_throughput():
    for engine in ("vllm-v1", "trtllm-1.1-serve"):
        plan = planned(serving("llama-3-70b", tp=8, engine=engine, concurrency=64, lengths="drawn"))
        assert benchmark(plan, rounds=30).output == pytest.approx(plan.steady.output, rel=0.08)


def test_lengths_have_their_means():
    plan = serving("llama-3-8b", prompt_tokens=1000, output_tokens=400)
    drawn = evaluate(plan.with_("serving.lengths", "drawn"))
    shorter = evaluate(plan.with_("serving.prompt_tokens", 900).with_("serving.output_tokens", 360))
    for key in ("serving.tpot_s", "serving.ttft_s", "cost.usd_per_million_input_tokens"):
        assert drawn[key] == pytest.approx(shorter[key], rel=1e-12)
    assert np.mean(Requests.of(1000, 400, 5000, "drawn").prompts) == pytest.approx(900, rel=0.01)
    assert np.mean(Requests.of(1000, 400, 5000, "log-normal").outputs) == pytest.approx(400, rel=0.01)
    assert set(Requests.of(1000, 400, 50).prompts) == {1000}


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("reserve", [True, False])
@pytest.mark.parametrize("prefill_first", [True, False])
def test_a_schedule_keeps_to_the_limits_and_serves_every_token_once(lengths: str, reserve: bool, prefill_first: bool):
    requests = Requests.of(900, 120, 200, lengths)
    limits = Limits(tokens=512, sequences=12, pool=12000, reserve=reserve, prefill_first=prefill_first)
    rows = schedule(requests, 30, limits)
    assert rows.tokens.sum() == sum(requests.prompts)
    assert rows.pairs.sum() == sum(n * (n + 1) / 2 for n in requests.prompts)
    assert (rows.repeats * rows.sequences).sum() == sum(n - 1 for n in requests.outputs)
    assert rows.sequences.max() <= 12
    assert (rows.tokens + (0 if prefill_first else rows.sequences)).max() <= 512
    assert (rows.came < rows.first).all()
    assert (rows.first <= rows.last).all()
    if prefill_first:
        assert (rows.sequences[rows.prompts > 0] == 0).all()


def test_an_engine_that_reserves_runs_fewer_sequences():
    requests = Requests.of(500, 500, 400)
    most = {
        reserve: schedule(requests, 400, Limits(8192, 256, 40000, reserve, False)).sequences.max()
        for reserve in (True, False)
    }
    assert most[True] == 40
    assert 60 <= most[False] <= 80


def test_a_request_that_is_larger_than_the_cache_runs_alone():
    rows: Schedule = schedule(Requests.of(500, 50, 3), 3, Limits(8192, 256, 100, False, False))
    assert rows.sequences.max() == 1
    assert rows.last.max() == len(rows.repeats)


def test_single_tokens_have_a_first_one_only():
    run = benchmark(planned(serving("llama-3-8b", output_tokens=1)))
    assert run.tpot is None
    assert run.output == run.answered


def test_constants_may_be_arrays():
    values = np.array([0.5e-3, 1e-3, 2e-3])
    many = benchmark(planned(qwen(lengths="drawn").with_("assumptions.t_host", values)))
    for place, value in enumerate(values):
        one = benchmark(planned(qwen(lengths="drawn").with_("assumptions.t_host", value)))
        assert many.ttft.mean[place] == pytest.approx(one.ttft.mean, rel=1e-12)
        assert many.output[place] == pytest.approx(one.output, rel=1e-12)


def test_a_pipeline_shares_clients_and_cache_among_its_micro_batches():
    plan = planned(serving("llama-3-70b", pp=4, concurrency=64))
    assert limits_of(plan).pool == round(plan.memory.cache.tokens / 4)
    run = benchmark(plan)
    assert (run.clients, run.requests) == (64, 640)
    assert run.output == pytest.approx(plan.steady.output, rel=0.1)
