"""Waits of random arrivals: Erlang's numbers, limits, and the largest rate at which targets are met."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate, load_scenario
from triledger.core.figures.latency import latency
from triledger.core.headlines import headlines
from triledger.core.scenario_model import model_of
from triledger.core.serving import queueing
from triledger.core.serving.plan import plan_of
from triledger.core.serving.requests import VARIATION, Requests
from triledger.core.serving.simulation import arriving
from triledger.core.working import UnknownKeyError, explain


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
    answered = rates <= report["serving.most_requests_per_s"]
    assert 0 < answered.sum() < len(rates)
    for name in ("ttft", "tpot"):
        tail, mean = report[f"serving.p99_{name}_s"], report[f"serving.{name}_s"]
        assert (np.diff(tail[answered]) >= 0).all()
        assert (np.diff(mean[answered]) >= 0).all()
        assert (tail >= mean).all()


INT4 = load_scenario("70b-int4-1xh100-serve")


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_mean_waits_are_those_of_simulated_arrivals(rate: float):
    plan = INT4.with_("serving.request_rate", rate)
    found = arriving(plan_of(plan, model_of(plan)))
    assert evaluate(plan)["serving.ttft_s"] == pytest.approx(found.ttft.mean, rel=0.1)


def test_the_first_token_waits_for_a_place_shortly_before_saturation():
    report = evaluate(INT4.with_("serving.request_rate", 0.84))
    assert report["serving.ttft_s"] > 20
    assert report["serving.over_ttft_target"] == report["serving.ttft_s"] / 0.5
    parts = ("prompt_alone", "prompt_beside", "iteration_wait", "interface", "step_lag", "prompt_queue", "place_wait")
    assert sum(report[f"serving.{part}_s"] for part in parts) == pytest.approx(report["serving.ttft_s"])
    [missed] = [each for each in report.findings if each.code == "ttft-target-missed"]
    assert "waiting for a place in the batch" in missed.message
    assert report["serving.ttft_low_s"] < report["serving.ttft_s"] < report["serving.ttft_high_s"]


def test_an_endless_queue_has_no_time_to_first_token():
    plan = INT4.with_("serving.request_rate", 0.86)
    report = evaluate(plan)
    assert report["serving.saturated"] is True
    for key in ("ttft_s", "ttft_high_s", "over_ttft_target", "p99_ttft_s", "place_wait_s"):
        assert f"serving.{key}" not in report
        assert f"serving.{key}" in report.withheld
    with pytest.raises(UnknownKeyError, match="waits have no end"):
        explain(evaluate(plan, record=True), "serving.ttft_s")
    first = next(each for each in headlines(report) if each.key == "serving.ttft_s")
    assert (first.number, first.details[0], first.state) == ("–", "endless queue", "bad")
    assert [row[0] for row in latency(report).rows] == ["each further token"] * len(latency(report).rows)
    many = evaluate(plan.with_("serving.request_rate", np.array([0.0, 0.5, 0.86])))
    assert np.isinf(many["serving.ttft_s"]).tolist() == [False, False, True]
    assert np.isinf(many["serving.p99_ttft_s"]).tolist() == [False, False, True]
    one = evaluate(INT4)["serving.ttft_s"]
    assert many["serving.ttft_s"][0] == pytest.approx(one, rel=1e-12)


def test_throughput_never_falls_when_more_requests_come_and_meets_the_most_that_are_answered():
    most = evaluate(INT4)["serving.most_requests_per_s"]
    rates = np.array([0.4, 0.8, 0.95 * most, 0.999 * most, most * (1 - 1e-9), most * (1 + 1e-9), 1.01 * most, 3.0])
    report = evaluate(INT4.with_("serving.request_rate", rates))
    assert (np.diff(report["serving.output_tokens_per_s"]) >= 0).all()
    assert report["serving.requests_per_s"].max() == pytest.approx(most, rel=1e-12)
    assert report["serving.saturated"].tolist() == [False] * 5 + [True] * 3
    for key in ("running", "tpot_s", "output_tokens_per_s"):
        assert report[f"serving.{key}"][4] == pytest.approx(report[f"serving.{key}"][5], rel=1e-6)


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
