"""Chunks of prompts beside decoding: the largest that keeps a target, and the knee of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.model.layers import build
from triledger.core.scenario import Scenario
from triledger.core.serving.chunks import iteration_seconds
from triledger.core.serving.plan import plan_of

CHUNK = "serving.recommended_chunk_tokens"
PLANS = (
    {"model": "llama-3-70b", "tp": 8, "concurrency": 64},
    {"model": "llama-3-8b", "concurrency": 32, "prompt_tokens": 16000, "max_context": 20000},
    {"model": "llama-3-70b", "accelerator": "a100-sxm-80gb", "tp": 8, "concurrency": 128},
    {"model": "llama-3-8b", "concurrency": 8, "prompt_tokens": 500, "tpot_target": 10.0},
)


def seconds(plan: Scenario, tokens: float) -> float:
    return iteration_seconds(plan_of(plan, build(plan.model)), tokens)


@pytest.mark.parametrize("changes", PLANS)
def test_the_chunk_keeps_the_target_and_twice_of_it_would_not(changes: dict[str, Any]):
    plan = serving(**changes)
    report = evaluate(plan)
    chunk, target = report[CHUNK], plan.serving.tpot_target
    assert seconds(plan, chunk) <= target
    assert chunk == plan.serving.prompt_tokens or seconds(plan, 2 * chunk) > target


def test_no_chunk_is_recommended_where_decoding_alone_takes_too_long_or_prompts_run_alone():
    assert CHUNK not in evaluate(serving("llama-3-70b", tp=8, tpot_target=5e-3))
    assert CHUNK not in evaluate(serving("llama-3-8b", engine="sglang-0.5"))


def test_the_edit_of_the_hint_takes_that_chunk():
    plan = serving("llama-3-70b", "a100-sxm-80gb", tp=8, concurrency=128)
    report = evaluate(plan)
    [finding] = [each for each in report.findings if each.code == "large-chunks"]
    changed = finding.edits[0].applied(plan)
    assert changed.serving.max_batched_tokens == report[CHUNK] + 128
    assert "large-chunks" not in {each.code for each in evaluate(changed).findings}


def test_targets_of_an_array_have_their_chunks():
    targets = np.array([1e-3, 0.02, 0.03, 0.06, 0.2, 5.0])
    plan = serving("llama-3-70b", tp=8, concurrency=64)
    many = evaluate(plan.with_("serving.tpot_target", targets))[CHUNK]
    one = [evaluate(plan.with_("serving.tpot_target", target)).get(CHUNK, 0.0) for target in targets]
    assert many.tolist() == one
    assert one == sorted(one)


def test_at_the_knee_throughput_over_latency_is_largest():
    plan = serving("llama-3-70b", tp=8, prompt_tokens=64, output_tokens=1000, concurrency=512)
    knee = evaluate(plan)["serving.knee_requests"]
    around = np.array([knee / 2, knee, knee * 2])
    report = evaluate(plan.with_("serving.concurrency", around))
    power = report["serving.output_tokens_per_s"] / report["serving.tpot_s"]
    assert power[1] > power[0]
    assert power[1] > power[2]


def test_a_single_request_among_many_plans_has_a_prompt_of_its_own():
    base = serving("llama-3-8b", concurrency=1, prompt_tokens=1, output_tokens=64, tpot_target=0.012)
    many = evaluate(base.with_("serving.concurrency", np.array([1.0, 8.0])))
    alone = [evaluate(base.with_("serving.concurrency", requests)) for requests in (1.0, 8.0)]
    expected = [report.get("serving.recommended_chunk_tokens", 0.0) for report in alone]
    assert expected == [0.0, 1.0]
    assert list(many["serving.recommended_chunk_tokens"]) == expected
