"""Speculative decoding: published gains, limits, and the batch from which there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.serving_plans import passes, serving
from triledger.core import evaluate
from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.core.serving import speculative
from triledger.core.verdict import verdict

SPEEDUP, CROSSOVER = "serving.speculative_speedup", "serving.speculative_crossover_batch"


def drafted(drafts: float, acceptance: float = 0.8, cost: float = 0.05, **changes: Any) -> Scenario:
    plan = serving("llama-3-70b", tp=8, **({"concurrency": 8} | changes))
    own = {"draft_tokens": drafts, "acceptance": acceptance, "draft_cost": cost}
    for name, value in own.items():
        plan = plan.with_(f"serving.speculative.{name}", value)
    return plan


def test_tokens_a_cycle_and_gain_of_the_paper():
    tokens = speculative.tokens_per_cycle(0.8, 5.0)
    assert tokens == pytest.approx(3.689, abs=5e-4)
    assert speculative.speedup(tokens, 5.0, 0.05, 1.0) == pytest.approx(2.95, abs=5e-3)
    assert speculative.tokens_per_cycle(1.0, 5.0) == 6.0


def test_published_gain_of_a_7b_draft_for_a_70b_model():
    """gpt-fast, int4: 25.25 tokens/s alone, 196.8 of the draft, 48.4 together with four drafts."""
    tokens = speculative.tokens_per_cycle(0.724, 4.0)
    assert speculative.speedup(tokens, 4.0, 25.25 / 196.8, 1.0) == pytest.approx(48.4 / 25.25, rel=0.002)


def test_without_drafts_nothing_changes():
    plain = evaluate(serving("llama-3-70b", tp=8, concurrency=8))
    assert evaluate(drafted(0, acceptance=0.3, cost=0.5)).values == plain.values
    assert plain[SPEEDUP] == plain["serving.speculative_tokens_per_cycle"] == 1.0


def test_a_lone_request_is_as_much_faster_as_the_gain():
    plain, report = evaluate(drafted(0, concurrency=1)), evaluate(drafted(4, concurrency=1))
    assert plain["serving.tpot_s"] / report["serving.tpot_s"] == pytest.approx(report[SPEEDUP], rel=1e-12)
    assert report["time.step_s"] == plain["time.step_s"]


def test_the_verdict_measures_a_token_against_its_own_bound():
    report = evaluate(drafted(4, concurrency=1))
    over = report["serving.tpot_s"] / report["serving.tpot_bound_s"]
    assert f"{over:.1f}× its physical bound" in verdict(report).text


def test_the_check_reads_weights_and_cache_once():
    timer = passes(drafted(0))
    step, check = timer.decode(8.0, 4000.0), timer.check(8.0, 4000.0, 5.0)
    core, several = step.operator("attention core"), check.operator("attention core")
    assert several.bytes == core.bytes
    assert several.flops == 5 * core.flops
    assert 1.0 <= check.seconds / step.seconds < 1.25
    assert timer.check(8.0, 4000.0, 1.0).seconds == step.seconds


@pytest.mark.parametrize("drafts", [1, 3, 8])
def test_a_gain_is_at_most_the_tokens_of_a_cycle_and_the_floor_holds(drafts: int):
    for concurrency in (1, 64, 1000):
        report = evaluate(drafted(drafts, acceptance=1.0, cost=0.0, concurrency=concurrency))
        assert 0 < report[SPEEDUP] <= drafts + 1
        assert report["serving.tpot_s"] >= report["serving.tpot_bound_s"]


def test_the_gain_ends_where_checked_tokens_fill_the_matrix_units():
    short = {"prompt_tokens": 128, "output_tokens": 128}
    report = evaluate(drafted(5, concurrency=4, **short))
    crossover = report[CROSSOVER]
    assert evaluate(drafted(5, concurrency=round(0.8 * crossover), **short))[SPEEDUP] > 1
    slower = evaluate(drafted(5, concurrency=round(1.25 * crossover), **short))
    assert slower[SPEEDUP] < 1
    [finding] = [each for each in slower.findings if each.code == "drafts-lose"]
    assert evaluate(finding.edits[0].applied(slower.scenario))[SPEEDUP] > slower[SPEEDUP]


def test_long_contexts_keep_the_check_cheap():
    def gain(prompt: int) -> float:
        return evaluate(drafted(4, concurrency=64, prompt_tokens=prompt))[SPEEDUP]

    assert gain(32768) > gain(2048) > gain(128)


def test_a_prediction_head_costs_a_layer_and_the_output_head():
    plan = drafted(1).with_("serving.speculative.drafter", "head")
    step = passes(plan).decode(8.0, 2048 + 256)
    tail = step.operator("head").seconds + step.operator("sampling").seconds + step.gather.seconds
    cost = ((step.seconds - tail) / 80 + tail) / step.seconds
    assert 1 / 80 < cost < 0.1
    check = passes(plan).check(8.0, 2048 + 256, 2.0).seconds / step.seconds
    assert evaluate(plan)[SPEEDUP] == pytest.approx(1.8 / (cost + check), rel=1e-9)


def test_drafts_of_an_array_answer_as_each_alone():
    drafts = np.array([0.0, 1.0, 4.0, 9.0])
    many = evaluate(drafted(0, concurrency=200).with_("serving.speculative.draft_tokens", drafts))

    def same(key: str, one: Report, place: int) -> None:
        assert many[key][place] == pytest.approx(one[key], rel=1e-12), key

    for place, each in enumerate(drafts):
        one = evaluate(drafted(float(each), concurrency=200))
        for key in (SPEEDUP, "serving.tpot_s", "serving.output_tokens_per_s", "serving.goodput_requests_per_s"):
            same(key, one, place)
        if CROSSOVER in one:
            same(CROSSOVER, one, place)
