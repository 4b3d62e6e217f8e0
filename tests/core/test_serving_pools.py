"""Engines for prompts apart from engines that decode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.legality import violations
from triledger.core.scenario import Scenario
from triledger.core.serving import pools

APART = "serving.disaggregated"


def apart(gpus: int = 16, **changes: Any) -> Scenario:
    """Llama-3-70B on four H100 an engine, prompts apart from decoding."""
    return serving("llama-3-70b", tp=4, **({"concurrency": 256, "cluster__gpus": gpus} | changes)).with_(APART, True)


def test_engines_are_shared_out_by_work():
    """0.128 s a prompt, and 512 tokens of 20 ms in batches of 64 (0.16 s): 0.44 of the work is prompts."""
    work = pools.decode_seconds(513, 0.02, 64)
    assert work == pytest.approx(0.16)
    assert pools.prefill_engines(10, 0.128, work) == 4
    assert pools.prefill_engines(2, 10.0, 0.01) == 1
    assert pools.prefill_engines(8, 1e-4, 1.0) == 1
    assert pools.engines_needed(12.0, 0.128, 0.8) == 2


def test_the_cache_of_a_prompt_moves_behind_its_prompt():
    """2048 tokens of 320 KiB over four cards of 40 GB/s: 4.2 ms, of which the last of 80 layers is waited for."""
    report = evaluate(apart())
    moved = 2048 * 327680
    assert report["serving.kv_transfer_s"] == pytest.approx(moved / (4 * 50e9 * 0.8), rel=1e-9)
    assert report["serving.kv_transfer_exposed_s"] == pytest.approx(report["serving.kv_transfer_s"] / 80, rel=1e-9)
    slow = evaluate(apart().with_("cluster.network.bandwidth", 1e9))
    behind = slow["serving.kv_transfer_s"] - slow["serving.prompt_alone_s"]
    assert slow["serving.kv_transfer_exposed_s"] == pytest.approx(behind, rel=1e-9)


def test_no_prompt_holds_a_token_up():
    report = evaluate(apart(prompt_tokens=6000, output_tokens=200))
    assert report["serving.tpot_s"] == report["serving.token_step_s"]
    assert report["serving.prefill_share"] == 0
    assert report["serving.tpot_over_together"] < 0.5
    assert {finding.code for finding in report.findings} >= {"separate-pools"}


@pytest.mark.parametrize("changes", [{}, {"concurrency": 8}, {"output_tokens": 4}, {"prompt_tokens": 64}])
def test_clients_are_throughput_times_latency(changes: dict[str, Any]):
    report = evaluate(apart(**changes))
    output, clients = changes.get("output_tokens", 512), changes.get("concurrency", 256)
    latency = report["serving.ttft_s"] + (output - 1) * report["serving.tpot_s"]
    assert report["serving.requests_per_s"] * latency == pytest.approx(clients, rel=1e-9)
    assert report["serving.prefill_engines"] + report["serving.decode_engines"] == 4


def test_a_rate_beyond_either_pool_saturates_the_plan():
    most = evaluate(apart())["serving.most_requests_per_s"]
    assert not evaluate(apart(request_rate=0.9 * most))["serving.saturated"]
    report = evaluate(apart(request_rate=1.1 * most))
    assert report["serving.saturated"]
    assert report["serving.requests_per_s"] == pytest.approx(most, rel=1e-9)
    needed = report["serving.prefill_engines_needed"] + report["serving.decode_engines_needed"]
    assert needed > 4


def test_targets_are_kept_further_with_long_prompts_and_a_tight_target():
    """Long prompts between tight tokens: what prompts cost tokens outweighs the idle time of two pools."""
    plan = apart(64, prompt_tokens=6000, output_tokens=300, ttft_target=4.0, tpot_target=0.03)
    together = evaluate(plan.with_(APART, False))["serving.goodput_requests_per_s"]
    assert evaluate(plan)["serving.goodput_requests_per_s"] > 1.3 * together


def test_two_pools_need_two_engines():
    [violation] = violations(apart(4))
    assert violation.field == APART
    assert "8 or more do" in violation.message
    assert not violations(apart(8))


def test_arrays_answer_as_each_plan_alone():
    rates, clients = np.array([0.0, 3.0, 0.0, 50.0]), np.array([16.0, 200.0, 900.0, 200.0])
    many = evaluate(apart(request_rate=rates, concurrency=clients))
    for place in range(len(rates)):
        one = evaluate(apart(request_rate=float(rates[place]), concurrency=float(clients[place])))
        for key in ("ttft_s", "tpot_s", "requests_per_s", "prefill_engines", "p99_ttft_s", "running"):
            name = f"serving.{key}"
            assert np.broadcast_to(many[name], 4)[place] == pytest.approx(one.get(name, np.inf), rel=1e-9), name
