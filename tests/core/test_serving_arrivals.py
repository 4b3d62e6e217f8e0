"""Requests that come at random, iteration by iteration: formulas of waits and tails, and the laws of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.model.layers import build
from triledger.core.serving.open_loop import arrivals, run
from triledger.core.serving.plan import Plan, plan_of
from triledger.core.serving.requests import Requests
from triledger.core.serving.schedule import Limits
from triledger.core.serving.simulation import Benchmark, arriving


def planned(model: str = "llama-3-8b", **changes: Any) -> Plan:
    scenario = serving(model, **changes)
    return plan_of(scenario, build(scenario.model))


def token(found: Benchmark):
    assert found.tpot is not None
    return found.tpot


@pytest.mark.parametrize(
    ("model", "rate", "changes"),
    [
        ("llama-3-8b", 10.22, {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 256}),
        ("llama-3-70b", 2.458, {"prompt_tokens": 2048, "output_tokens": 512, "concurrency": 1000, "lengths": "drawn"}),
        ("llama-3-8b", 7.52, {"prompt_tokens": 200, "output_tokens": 800, "concurrency": 256, "lengths": "log-normal"}),
        ("llama-3-8b", 3.13, {"prompt_tokens": 2000, "output_tokens": 400, "concurrency": 40}),
    ],
)
def test_means_and_tails_are_those_of_the_formulas(model: str, rate: float, changes: dict[str, Any]) -> None:
    """Within the ±20 % that the formulas of waits claim."""
    plan = planned(model, tp=4 if model == "llama-3-70b" else 1, request_rate=rate, **changes)
    found, said = arriving(plan), evaluate(plan.scenario)
    outside = 24e-3 + said["serving.tpot_s"]
    assert found.ttft.p99 - outside == pytest.approx(said["serving.p99_ttft_s"] - outside, rel=0.2)
    assert found.ttft.mean == pytest.approx(said["serving.ttft_s"], rel=0.2)
    assert token(found).p99 == pytest.approx(said["serving.p99_tpot_s"], rel=0.2)
    assert token(found).mean == pytest.approx(said["serving.tpot_s"], rel=0.1)


def test_seldom_requests_meet_nobody() -> None:
    plan = planned(request_rate=0.01, prompt_tokens=500, output_tokens=100)
    found, engine = arriving(plan, 50), plan.settings.engine
    prompt = plan.passes.mixed(0.0, 0.0, 1.0, 500.0, 500 * 501 / 2, 500.0).seconds
    steps = plan.passes.decode(1.0, 501 + 49).seconds
    assert token(found).mean == pytest.approx(steps, rel=1e-9)
    assert token(found).p99 == pytest.approx(steps, rel=1e-9)
    assert found.ttft.p99 == pytest.approx(prompt + engine.t_api + engine.lag * steps, rel=1e-9)


def test_a_run_is_the_same_every_time() -> None:
    plan = planned(request_rate=5.0)
    assert arriving(plan, 300) == arriving(plan, 300)


def test_waits_of_too_many_requests_grow_with_the_run() -> None:
    plan = planned(request_rate=1000.0)
    short, long = arriving(plan, 500), arriving(plan, 2000)
    assert long.ttft.mean > 2 * short.ttft.mean
    assert long.answered == pytest.approx(plan.steady.requests, rel=0.1)


def test_requests_in_flight_are_rate_times_latency() -> None:
    """Little 1961."""
    requests, rate = Requests.of(700, 200, 3000), 4.0
    times = arrivals(rate, 3000, 1)
    first, last = run(requests, times, Limits(8192, 256, 10**6, False, False), lambda _row, _mean: 5e-3)
    assert (first > times).all()
    assert last - first == pytest.approx(199 * 5e-3)
    steps = np.linspace(times[300], times[-300], 4000)
    running = ((times < steps[:, None]) & (steps[:, None] < last)).sum(axis=1).mean()
    assert running == pytest.approx(rate * (last - times).mean(), rel=0.05)


def test_engines_that_get_requests_in_turn_see_them_come_evenly() -> None:
    one, four = (np.diff(arrivals(8.0, 20000, engines)) for engines in (1, 4))
    assert one.mean() == pytest.approx(1 / 8, rel=0.03)
    assert four.mean() == pytest.approx(4 / 8, rel=0.03)
    assert one.std() / one.mean() == pytest.approx(1.0, rel=0.05)
    assert four.std() / four.mean() == pytest.approx(0.5, rel=0.05)


def test_a_rank_with_a_queue_of_its_own_has_the_others_wait_for_it() -> None:
    """Two ranks, one with a prompt: the other's step lasts as long, and experts see the rows of both."""
    seen = []

    def clock(row: tuple[float, ...], mean: float) -> float:
        seen.append((row[0] + row[3], mean))
        return row[0] + row[3]

    limits = Limits(8192, 1, 10**6, False, False)
    first, last = run(Requests((100, 100, 100), (3, 3, 3)), np.array([0.0, 100.0, 100.0]), limits, clock, 2)
    # the first is alone; the second comes when it decodes, on the other rank; the third has no place before one is done
    assert first.tolist() == [100, 200, 301]
    assert last.tolist() == [201, 301, 303]
    assert seen[0] == (100, 50)
    assert (100, 50.5) in seen


def test_a_lone_prompt_of_ranks_that_share_experts_is_alone() -> None:
    ranks = {
        "tp": 1,
        "cluster__gpus": 8,
        "attention_dp": 8,
        "parallelism__ep": 8,
        "prompt_tokens": 2000,
        "output_tokens": 100,
    }
    many = planned("deepseek-v3", request_rate=0.01, concurrency=64, **ranks)
    one = planned("deepseek-v3", concurrency=1, **ranks)
    found = arriving(many, 40)
    assert found.ttft.p50 == pytest.approx(one.steady.ttft, rel=0.02)
    assert token(found).p50 == pytest.approx(one.steady.tpot, rel=0.02)


def test_no_more_run_together_than_are_planned() -> None:
    few, many = (arriving(planned(request_rate=12.0, concurrency=places), 800) for places in (4, 256))
    assert few.ttft.p50 > many.ttft.p50
    assert token(few).mean < token(many).mean
