"""Waits of random arrivals: Erlang's numbers, limits, and the largest rate at which targets are met."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.serving import queueing
from triledger.core.serving.requests import VARIATION, Requests


def test_erlang_of_four_servers():
    """c = 4, ρ = 0.7: 0.4287 wait, a mean of 0.357 of a service, 99 % within 3.13."""
    share = queueing.erlang_c(4.0, 0.7)
    assert share == pytest.approx(0.4287, abs=5e-5)
    assert share / (4 * (1 - 0.7)) == pytest.approx(0.357, abs=5e-4)
    assert queueing.long_wait(1.0, 4.0, 0.7, share, 1.0, 0.01) == pytest.approx(3.13, abs=5e-3)


def test_one_server_waits_with_its_utilisation():
    for busy in (0.1, 0.5, 0.9):
        assert queueing.erlang_c(1.0, busy) == pytest.approx(busy, rel=1e-12)
    assert queueing.erlang_c(np.array([1.0, 4.0]), np.array([0.5, 0.7])) == pytest.approx([0.5, 0.4287], abs=5e-5)


def test_many_servers_wait_as_erlang_says():
    for busy in (0.7, 0.9, 0.97):
        assert queueing.waiting_share_of_many(32.0, busy) == pytest.approx(queueing.erlang_c(32.0, busy), abs=0.05)


def test_variation_of_lengths_is_that_of_the_drawn_ones():
    for lengths, expected in VARIATION.items():
        prompts = np.array(Requests.of(4000, 1, 20000, lengths).prompts)
        assert prompts.var() / prompts.mean() ** 2 == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("plan", "rate", "ttft", "tpot"),
    [
        # simulated arrivals of 8000 requests, iteration by iteration; times without interface and step lag
        (("llama-3-8b", 1, 1024, 256, 256, "fixed"), 10.22, 0.096, 15.0),
        (("llama-3-70b", 4, 2048, 512, 1000, "drawn"), 2.458, 0.462, 36.8),
        (("llama-3-8b", 1, 200, 800, 256, "log-normal"), 7.52, 0.033, 12.0),
        (("llama-3-8b", 1, 2000, 400, 40, "fixed"), 3.13, 0.135, 12.4),
    ],
)
def test_tails_are_those_of_simulated_arrivals(plan: tuple, rate: float, ttft: float, tpot: float):
    model, tp, prompt, output, most, lengths = plan
    sizes = {"prompt_tokens": prompt, "output_tokens": output, "concurrency": most, "lengths": lengths}
    report = evaluate(serving(model, tp=tp, request_rate=rate, **sizes))
    outside = 24e-3 + report["serving.tpot_s"]
    assert report["serving.p99_ttft_s"] - outside == pytest.approx(ttft, rel=0.2)
    assert report["serving.p99_tpot_s"] == pytest.approx(tpot * 1e-3, rel=0.2)


def test_a_lone_client_waits_for_nobody():
    report = evaluate(serving("llama-3-8b", concurrency=1))
    assert report["serving.p99_ttft_s"] == pytest.approx(report["serving.ttft_s"], rel=1e-12)


def test_tails_grow_with_the_rate_and_never_fall_below_the_mean():
    rates = np.linspace(0.2, 9, 30)
    report = evaluate(serving("llama-3-8b", concurrency=256, request_rate=rates))
    for name in ("ttft", "tpot"):
        tail, mean = report[f"serving.p99_{name}_s"], report[f"serving.{name}_s"]
        assert (np.diff(tail) >= 0).all()
        assert (tail >= mean).all()


def test_goodput_is_where_a_tail_meets_its_target():
    plan = serving("llama-3-8b", concurrency=256, prompt_tokens=1024, output_tokens=256)
    for targets in ({"ttft_target": 0.2, "tpot_target": 10.0}, {"ttft_target": 100.0, "tpot_target": 0.02}):
        for name, value in targets.items():
            plan = plan.with_(f"serving.{name}", value)
        good = evaluate(plan)["serving.goodput_requests_per_s"]
        there = evaluate(plan.with_("serving.request_rate", good))
        over = [
            there["serving.p99_ttft_s"] / targets["ttft_target"],
            there["serving.p99_tpot_s"] / targets["tpot_target"],
        ]
        assert max(over) == pytest.approx(1.0, abs=0.06)


def test_goodput_is_below_the_rate_that_saturates_and_none_where_a_lone_request_misses():
    plan = serving("llama-3-70b", tp=8)
    report = evaluate(plan)
    assert 0 < report["serving.goodput_requests_per_s"] < report["serving.most_requests_per_s"]
    assert evaluate(plan.with_("serving.ttft_target", 1e-3))["serving.goodput_requests_per_s"] == 0


def test_more_requests_than_the_targets_bear_are_named_and_the_edits_help():
    plan = serving("llama-3-8b", concurrency=256)
    good = evaluate(plan)["serving.goodput_requests_per_s"]
    plan = plan.with_("serving.request_rate", 1.05 * good)
    [finding] = [each for each in evaluate(plan).findings if each.code == "over-goodput"]
    for edit in finding.edits:
        assert "over-goodput" not in {each.code for each in evaluate(edit.applied(plan)).findings}, edit.label
