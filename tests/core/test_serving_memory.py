"""Memory of serving engines: weights by format, cache, and the budget that engines log at start-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.serving_plans import GIB, memory, serving
from triledger.core.catalogue import catalogue, table
from triledger.core.engine import evaluate
from triledger.core.fields import FIELDS
from triledger.core.ledgers import serving_activations as widest
from triledger.core.ledgers import serving_memory as ledger
from triledger.core.ledgers import serving_pool as pool
from triledger.core.serving.settings import device_row, engine_row, weight_format_row


@pytest.mark.parametrize(
    ("model", "number", "gigabytes"),
    [
        ("deepseek-r1-distill-llama-70b", "bf16", 141.107),
        ("deepseek-r1-distill-llama-70b", "int8-g128", 73.726),
        ("llama-3-70b", "int4-g128", 39.768),
        # published sizes of GPTQ checkpoints
        ("llama-2-70b", "gptq-g128", 36.64),
        ("llama-2-70b", "gptq-g64", 37.98),
        ("llama-2-70b", "gptq-g32", 40.65),
    ],
)
def test_weights_weigh_what_their_format_says(model, number, gigabytes):
    assert memory(serving(model, weight_format=number)).weights / 1e9 == pytest.approx(gigabytes, abs=0.0051)


def test_tensor_parallel_shares_make_up_the_whole():
    """Norms stand on every rank; everything else is split."""
    whole, share = (memory(serving("llama-3-70b", tp=tp)).weights for tp in (1, 8))
    norms = 2 * 8192 * (2 * 80 + 1)
    assert 8 * share == pytest.approx(whole + 7 * norms, rel=1e-12)


def test_fullest_stage_of_a_pipeline_holds_embedding_or_the_longest_run_of_layers():
    one, four = (memory(serving("llama-3.1-405b", pp=pp)).weights for pp in (1, 16))
    embedding = 128256 * 16384 * 2
    layer = (2 * 405_853_388_800 - 2 * embedding - 2 * 16384) / 126
    assert one == pytest.approx(126 * layer + 2 * embedding + 2 * 16384, rel=1e-12)
    # 126 layers on 16 stages: 7, then 14 stages of 8, then 7; 8 layers weigh more than 7 and an embedding
    assert four == pytest.approx(8 * layer, rel=1e-12)


def test_tied_embedding_is_kept_twice_with_a_pipeline():
    model = replace(catalogue().models["llama-3-8b"], tied=True, layers=2)
    embedding = 128256 * 4096 * 2
    one, two = (memory(serving(model, pp=pp)).weights for pp in (1, 2))
    block = (one - embedding - 2 * 4096) / 2
    assert two == pytest.approx(block + embedding + 2 * 4096, rel=1e-12)


def test_cache_of_a_token():
    """Llama-3-70B: 320 KiB a token; Llama-3.1-405B: 516 096 B (arXiv 2505.09343 prints 516.096 kB)."""
    assert memory(serving("llama-3-70b")).kv_per_token == 320 * 1024
    assert memory(serving("llama-3.1-405b")).kv_per_token == 516_096
    assert memory(serving("llama-3-70b", kv_format="fp8")).kv_per_token == 160 * 1024
    # 4 bits, and 4 bytes of scale and zero for each head of 128
    assert memory(serving("llama-3-70b", kv_format="int4")).kv_per_token == 2 * 80 * 8 * (64 + 4)


@pytest.mark.parametrize("model", ["llama-3-70b", "gemma-3-27b"])
def test_requests_longer_than_the_context_fit_at_their_own_length(model: str):
    """Where all tokens take the same and where windows do not; the number at the longest length stays."""
    plan = serving(model, tp=8, max_context=4096, prompt_tokens=30000, output_tokens=2000, concurrency=1)
    most = int(evaluate(plan)["serving.held_requests"])
    full, over = (evaluate(plan.with_("serving.concurrency", asked)) for asked in (most, most + 1))
    assert (full["memory.fits"], over["memory.fits"]) == (True, False)
    planned = evaluate(plan.with_("serving.max_context", 32000).with_("serving.concurrency", most))
    assert full["memory.kv_cache_bytes"] == planned["memory.kv_cache_bytes"]
    short = evaluate(plan.with_("serving.prompt_tokens", 1000))
    assert full["serving.max_concurrency"] == short["serving.max_concurrency"]
    assert "longer-than-context" in {finding.code for finding in full.findings}
    lengths = np.array([1000.0, 30000.0])
    many = evaluate(plan.with_("serving.prompt_tokens", lengths).with_("serving.concurrency", float(most + 1)))
    assert many["memory.fits"].tolist() == [True, False]


def test_cache_of_thirty_two_full_sequences_is_forty_gib():
    held = memory(serving("llama-3-70b", concurrency=32, max_context=4096))
    assert held.kv_cache == 42_949_672_960 == 40 * GIB


def test_sequences_fill_whole_blocks():
    shorter, longer = (memory(serving("llama-3-8b", max_context=n)).kv_per_sequence for n in (4081, 4096))
    assert shorter == longer == 4096 * 2 * 32 * 8 * 128 * 2


def test_heads_are_replicated_when_ranks_outnumber_them():
    eight, sixteen = (memory(serving("llama-3-70b", tp=tp)).cache.token for tp in (8, 16))
    assert eight == sixteen == 40 * 1024


@pytest.mark.parametrize(
    ("budget", "sequences"), [(50e9, 298), (50 * GIB, 320), ((80 - 4.5 - 8) * GIB - 17.638e9, 326)]
)
def test_guaranteed_concurrency_moves_with_the_unit_of_the_budget(budget, sequences):
    """Llama-3-70B on 8 A100, 4096 tokens each, 40 KiB a token and GPU: 50 GB is not 50 GiB."""
    assert pool.full_sequences(pool.pool_tokens(budget, 40 * 1024, 16), 4096) == sequences


def test_profiled_activations():
    forward = widest.forward_bytes(8192, 8192, 2 * (64 + 8) * 128, 2, 28672, 8)
    assert forward + widest.sampler_bytes(6, 256, 128256) == pytest.approx(0.64e9, rel=5e-3)
    # vLLM logs 4.76 to 4.84 GiB with Llama-3 and 5.64 with Qwen3, at any degree of tensor parallelism
    assert widest.sampler_bytes(39, 1024, 128256) / GIB == pytest.approx(4.77, abs=5e-3)
    assert widest.sampler_bytes(39, 1024, 151936) / GIB == pytest.approx(5.65, abs=6e-3)


@pytest.mark.parametrize(
    ("model", "tp", "number", "logged"),
    [
        ("llama-3.1-8b", 1, "bf16", 51.38),
        ("qwen3-32b", 1, "bf16", 4.45),
        ("qwen3-32b", 2, "bf16", 34.49),
        ("llama-3.3-70b", 2, "fp8", 32.0),
    ],
)
def test_cache_budget_is_what_vllm_logs_on_an_h100(model, tp, number, logged):
    """Start-up logs of vLLM 0.11, 0.9 of the 79.18 GiB that the runtime sees."""
    held = memory(serving(model, tp=tp, weight_format=number))
    found = ledger.budget_of_device(79.18 * GIB, 0.9, held.weights, held.activations, held.workspace) / GIB
    assert found == pytest.approx(logged, rel=5e-3)


def test_usable_memory_is_below_what_the_vendors_tool_shows():
    assert memory(serving("llama-3-8b")).usable == pytest.approx(0.989 * 80 * GIB, rel=1e-12)
    assert memory(serving("llama-3-8b", "l40s")).usable / GIB == pytest.approx(44.7, abs=0.05)


def test_tensorrt_takes_a_share_of_what_is_free():
    held = memory(serving("llama-3-8b", engine="trtllm-1.0", memory_utilization=0.95))
    assert held.cache.budget == pytest.approx(0.95 * (held.usable - held.weights - 9e9), rel=1e-12)


def test_large_devices_profile_more_sequences_except_a100():
    assert memory(serving("llama-3-8b", "h100-sxm-80gb")).most_sequences == 1024
    assert memory(serving("llama-3-8b", "a100-sxm-80gb")).most_sequences == 256
    assert memory(serving("llama-3-8b", "l40s")).most_sequences == 256


def test_replicas_share_the_requests():
    one, two = (memory(serving("llama-3-8b", concurrency=32, cluster__gpus=gpus)) for gpus in (1, 2))
    assert two.replicas == 2
    assert two.kv_cache == one.kv_cache / 2


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    concurrency=st.integers(1, 500),
    context=st.integers(16, 32768),
    utilization=st.floats(0.3, 1.0),
)
@settings(deadline=None)
def test_ledger_sums_and_more_memory_never_fits_less(tp, concurrency, context, utilization):
    plan = serving("llama-3-70b", tp=tp, concurrency=concurrency, max_context=context, memory_utilization=utilization)
    held = memory(plan)
    assert held.total == held.weights + held.kv_cache + held.activations + held.workspace
    assert held.headroom == pytest.approx(held.usable * utilization - held.total, abs=1.0)
    roomier = memory(
        plan.with_("cluster.accelerator.memory", 2 * plan.cluster.accelerator.memory).with_(
            "cluster.accelerator.memory_reported", None
        )
    )
    assert roomier.headroom > held.headroom
    assert roomier.full_sequences >= held.full_sequences


def test_verdict_follows_the_headroom():
    def verdict(concurrency):
        report = evaluate(serving("llama-3-8b", concurrency=concurrency, max_context=4096))
        return report["memory.fits"], report["memory.verdict"], report["serving.max_concurrency"]

    most = verdict(1)[2]
    assert verdict(1)[:2] == (True, "fits")
    assert verdict(most)[:2] == (True, "tight")
    assert verdict(most + 1)[:2] == (False, "does-not-fit")


def test_edits_of_a_plan_that_does_not_fit_make_it_fit():
    plan = serving("llama-3-70b", concurrency=32, max_context=4096)
    [finding] = [f for f in evaluate(plan).findings if f.code == "does-not-fit"]
    assert finding.severity == "error"
    assert finding.edits
    for edit in finding.edits:
        changed = plan
        for path, value in edit.changes:
            changed = changed.with_(path, value)
        assert evaluate(changed)["memory.fits"], edit.label


def test_the_fullest_engine_holds_whole_requests():
    one, two = (memory(serving("llama-3-8b", concurrency=n)) for n in (1, 2))
    assert memory(serving("llama-3-8b", concurrency=3, cluster__gpus=2)).kv_cache == two.kv_cache
    assert memory(serving("llama-3-8b", concurrency=1, cluster__gpus=128)).kv_cache == one.kv_cache


def test_every_choice_has_a_row_with_its_source():
    """What a person can pick exists in the tables."""
    for number in FIELDS["serving.weight_format"].choices:
        assert weight_format_row(number).source
    for number in FIELDS["serving.kv_format"].choices:
        assert table("formats")["kv"][number]["source"]
    for name in table("engines"):
        assert engine_row(name).source
    for accelerator in catalogue().accelerators.values():
        assert device_row(accelerator.id, accelerator.generation).source
