"""Prompts with a common start, and the memory of drafts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.serving_plans import memory, serving
from triledger.core import evaluate
from triledger.core.model.layers import build
from triledger.core.serving.plan import plan_of
from triledger.core.serving.simulation import benchmark

SHARED = "serving.prefix_shared"


def test_a_shared_start_is_kept_once():
    """16 sequences of 4096 tokens, 1024 of them common: 16·3072 + 1024 tokens."""
    plan = serving("llama-3-8b", concurrency=16, max_context=4096, prompt_tokens=2048)
    alone, shared = memory(plan), memory(plan.with_(SHARED, 1024))
    token = alone.cache.token
    assert shared.kv_cache == (16 * 3072 + 1024) * token
    assert shared.full_sequences == (shared.cache.tokens - 1024) // 3072
    assert shared.full_sequences > alone.full_sequences
    assert shared.cache.tokens == alone.cache.tokens


def test_only_whole_blocks_are_shared_and_a_prompt_keeps_a_token():
    plan = serving("llama-3-8b", prompt_tokens=2048)
    assert memory(plan.with_(SHARED, 1030)).cache.sharing.shared == 1024
    assert memory(plan.with_(SHARED, 9999)).cache.sharing.shared == 2032
    assert memory(plan.with_(SHARED, 15)).cache.sharing.shared == 0


def test_a_shared_start_is_not_computed_again():
    plan = serving("llama-3-70b", tp=8, concurrency=32, prompt_tokens=4096, max_context=8192)
    whole, shared = evaluate(plan), evaluate(plan.with_(SHARED, 3072))
    short = evaluate(plan.with_("serving.prompt_tokens", 1024))
    assert short["serving.prompt_alone_s"] < shared["serving.prompt_alone_s"] < whole["serving.prompt_alone_s"] / 3
    assert shared["serving.ttft_s"] < whole["serving.ttft_s"]
    assert shared["time.step_s"] == whole["time.step_s"], "all keys are read, wherever they are kept"
    assert shared["serving.output_tokens_per_s"] > whole["serving.output_tokens_per_s"]


def test_a_benchmark_of_prompts_with_a_common_start():
    plan = serving("llama-3-70b", tp=8, concurrency=64, prompt_tokens=4096, max_context=8192, lengths="drawn")

    def run(shared: int):
        changed = plan.with_(SHARED, shared)
        return benchmark(plan_of(changed, build(changed.model)), rounds=20)

    whole, shared = run(0), run(3072)
    assert shared.ttft.mean < whole.ttft.mean
    steady = plan_of(plan.with_(SHARED, 3072), build(plan.model)).steady
    assert shared.output == pytest.approx(steady.output, rel=0.08)


def test_a_draft_takes_its_share_of_weights_and_cache():
    plan = serving("llama-3-8b", concurrency=8).with_("serving.speculative.draft_cost", 0.1)
    plain, drafted = memory(plan), memory(plan.with_("serving.speculative.draft_tokens", 3))
    assert drafted.weights == pytest.approx(1.1 * plain.weights, rel=1e-12)
    assert drafted.kv_per_token == plain.kv_per_token
    token = 1.1 * plain.cache.token
    assert drafted.kv_cache == pytest.approx(8 * (4096 + 16) * token, rel=1e-12), "4 places, in blocks of 16"
    assert drafted.cache.tokens == pytest.approx(drafted.cache.budget / token, rel=1e-3)
    head = memory(plan.with_("serving.speculative.draft_tokens", 3).with_("serving.speculative.drafter", "head"))
    assert head.weights == pytest.approx(plain.weights * 33 / 32, rel=1e-12)


def test_windows_and_states_share_and_draft_too():
    plan = serving("gemma-3-27b", tp=2, concurrency=8, prompt_tokens=8192, max_context=16384)
    alone = memory(plan)
    assert not alone.cache.even
    shared = memory(plan.with_(SHARED, 4096))
    assert shared.kv_cache < alone.kv_cache
    assert shared.full_sequences >= alone.full_sequences
    assert memory(plan.with_("serving.speculative.draft_tokens", 2)).full_sequences <= alone.full_sequences


def test_a_window_holds_what_a_sequence_keeps_alone():
    """Windows of 1024 tokens: of 8192 they hold the last, none of them shared; of 4608 the 528 that are its own."""
    plan = serving("megascale-175b", tp=16, concurrency=16, max_context=8192, prompt_tokens=4096, output_tokens=512)
    token = memory(plan).cache.token
    assert memory(plan).kv_cache == 16 * 1024 * token
    changed = plan.with_(SHARED, 4080)
    assert memory(changed).kv_cache == (16 * 1024 + 1024) * token
    assert memory(changed.with_("serving.max_context", 4608)).kv_cache == (16 * 528 + 1024) * token


@pytest.mark.parametrize("model", ["gemma-3-27b", "nemotron-h-56b", "megascale-175b"])
def test_a_shared_start_may_be_longer_than_what_is_planned_or_kept(model: str):
    plan = serving(model, tp=16, concurrency=8, prompt_tokens=8192, max_context=1024)
    shared = np.array([0.0, 1024.0, 6000.0])
    many = evaluate(plan.with_(SHARED, shared))
    for place in range(3):
        one = evaluate(plan.with_(SHARED, shared[place]))
        for key in ("memory.kv_cache_bytes", "serving.max_concurrency", "serving.held_requests"):
            assert many[key][place] == pytest.approx(one[key], rel=1e-12), key


def test_arrays_of_shared_tokens_and_drafts_answer_as_each_alone():
    plan = serving("llama-3-8b", concurrency=200, prompt_tokens=3000)
    shared, drafts = np.array([0.0, 512.0, 2999.0]), np.array([0.0, 4.0, 2.0])
    many = evaluate(plan.with_(SHARED, shared).with_("serving.speculative.draft_tokens", drafts))
    for place in range(3):
        single = plan.with_(SHARED, shared[place]).with_("serving.speculative.draft_tokens", drafts[place])
        one = evaluate(single)
        for key in ("serving.ttft_s", "serving.tpot_s", "memory.kv_cache_bytes", "serving.max_concurrency"):
            assert many[key][place] == pytest.approx(one[key], rel=1e-12), key
