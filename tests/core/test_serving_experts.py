"""Serving of models with routed experts: which experts a batch meets, their weights and their time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.plans import with_all
from tests.core.serving_plans import memory, passes, prefill, serving
from tests.core.spreadsheet import computed
from triledger.core.catalogue import catalogue
from triledger.core.cells import cell_text
from triledger.core.engine import evaluate
from triledger.core.legality import violations
from triledger.core.scenario import Scenario
from triledger.core.serving.experts import fullest_group, imbalance, touched_experts

MIXTRAL = "mixtral-8x7b"


@pytest.mark.parametrize(("experts", "each", "rows", "found"), [(128, 4, 16, 50.98), (256, 8, 64, 222.4)])
def test_a_batch_soon_meets_most_experts(experts, each, rows, found):
    assert touched_experts(experts, each, rows) == pytest.approx(found, rel=3e-4)


def test_weights_of_mixtral_in_16_bits_are_all_its_parameters():
    """46.7 billion parameters of the model card at two bytes; with TP 8 only router and norms are whole on each."""
    whole = memory(serving(MIXTRAL)).weights
    assert whole == 2 * 46_702_792_704
    extra = 2 * 7 * (32 * (4096 * 8 + 2 * 4096) + 4096)
    assert 8 * memory(serving(MIXTRAL, tp=8)).weights == pytest.approx(whole + extra, rel=1e-12)


def test_router_and_norms_stay_in_16_bits():
    plain, half = memory(serving(MIXTRAL)).weights, memory(serving(MIXTRAL, weight_format="fp8")).weights
    unquantised = 32 * (4096 * 8 + 2 * 4096) + 4096 + 2 * 32000 * 4096
    assert half == (plain - 2 * unquantised) / 2 + 2 * unquantised


def test_one_row_reads_its_own_experts_and_many_read_all():
    plan = serving(MIXTRAL, "a100-sxm-80gb", tp=8)
    timer, held = passes(plan), memory(plan).pass_weights
    expert = 3 * 4096 * 14336 / 8 * 2
    assert timer.read_weights(held, 1.0) == pytest.approx(held - 32 * 6 * expert)
    assert timer.read_weights(held, 1000.0) == pytest.approx(held)
    one = timer.decode(1.0, 100.0).operator("experts")
    assert one.flops == 2 * 32 * 2 * 3 * 4096 * 14336 / 8
    assert one.bytes == pytest.approx(32 * (2 * expert + 2 * (6 * 4096 + 6 * 14336 / 8)))


@pytest.mark.parametrize(
    ("tp", "number", "published"),
    [(2, "bf16", 96.67), (8, "bf16", 227.82), (2, "int8", 155.03), (4, "int8", 216.87), (8, "int8", 279.35)],
)
def test_decode_of_mixtral_with_gpt_fast(tp, number, published):
    """Table of the gpt-fast README: Mixtral-8x7B on A100, one request, 5 tokens in, 200 out."""
    load = {"prompt_tokens": 5, "output_tokens": 200, "concurrency": 1}
    plan = serving(MIXTRAL, "a100-sxm-80gb", tp, engine="gpt-fast", weight_format=number, **load)
    assert 1 / evaluate(plan)["serving.tpot_s"] == pytest.approx(published, rel=0.08)


@pytest.mark.parametrize("model", [MIXTRAL, "qwen3-30b-a3b"])
@pytest.mark.parametrize("concurrency", [1, 40, 1000])
def test_no_prediction_beats_the_bound(model, concurrency):
    report = evaluate(serving(model, "h200-sxm-141gb", tp=4, concurrency=concurrency))
    assert report["time.bound_s"] <= report["time.step_s"]
    assert report["serving.ttft_bound_s"] <= report["serving.ttft_s"]


def test_arrays_are_the_scalars_side_by_side():
    plan = serving(MIXTRAL, "h100-sxm-80gb", tp=8, weight_format="fp8")
    values = (1.0, 7.0, 300.0)
    many = evaluate(with_all(plan, {"serving.concurrency": np.array(values)})).values
    for index, value in enumerate(values):
        one = evaluate(plan.with_("serving.concurrency", value)).flat()
        for key in ("time.step_s", "time.bound_s", "serving.ttft_s", "serving.tpot_s", "memory.weights_bytes"):
            assert np.broadcast_to(many[key], 3)[index] == pytest.approx(one[key], rel=1e-9), key


def test_every_formula_recomputes_its_value():
    report = evaluate(serving(MIXTRAL, tp=4, weight_format="gptq-g128"), record=True)
    assert "E_touched" in {term.formula.symbol for term in report.terms}
    for term in report.terms:
        found = computed(cell_text(term), dict(term.inputs))
        if not isinstance(term.value, (str, bool)):
            assert float(found) == pytest.approx(float(term.value), rel=1e-9, abs=1e-300), term.formula.name


def test_a_prompt_meets_experts_once_and_costs_more_than_a_step():
    timer = passes(serving(MIXTRAL, tp=8))
    assert (
        prefill(timer, 1.0, 4096.0).operator("experts").seconds > timer.decode(1.0, 4096.0).operator("experts").seconds
    )


# ---------------------------------------------------------------- experts over ranks


def spread(tp: float, groups: float, attention: float = 1.0, gpus: float = 8.0, **changes) -> Scenario:
    """DeepSeek-V3 on H200 with experts in so many groups of ranks."""
    usual = {"cluster.gpus": gpus, "parallelism.ep": groups, "serving.attention_dp": attention}
    return with_all(serving("deepseek-v3", "h200-sxm-141gb", tp, weight_format="fp8-block", **changes), usual)


def test_experts_weigh_the_same_in_slices_and_dealt_out():
    sliced, dealt, own = (memory(spread(*layout)).weights for layout in ((8, 1), (8, 8), (1, 8, 8)))
    assert dealt == pytest.approx(sliced, rel=1e-12)
    attention = 61 * 187_107_328 * (1 + 1 / 4096)
    assert own - dealt == pytest.approx(7 / 8 * (attention + 2 * 2 * 129_280 * 7168 + 58 * 3 * 7168 * 2048), rel=0.09)


def test_ranks_with_sequences_of_their_own_keep_each_token_once():
    """The latent has no heads to split: tensor parallel ranks keep it eight times."""
    together, own = evaluate(spread(8, 8)), evaluate(spread(1, 8, 8))
    assert own["serving.kv_capacity_tokens"] > 5 * together["serving.kv_capacity_tokens"]
    assert own["serving.kv_capacity_tokens"] == 8 * memory(spread(1, 8, 8)).cache.tokens


def test_tokens_travel_to_experts_only_between_ranks_with_their_own():
    timer = passes(spread(1, 8, 8, concurrency=512))
    step = timer.decode(64.0, 1000.0)
    sent = 58 * 8 * 7 / 8 * 64 * 7168 * 3
    assert step.exchange.inside_bytes == pytest.approx(sent)
    assert step.exchange.seconds == pytest.approx(58 * 2 * 20e-6 + sent / (0.78 * 450e9))
    assert step.allreduces.seconds == 0
    assert passes(spread(8, 8)).decode(64.0, 1000.0).exchange.seconds == 0


def test_all_to_alls_across_nodes():
    """128 tokens of each of 64 ranks: 163 and 305 µs; kernels of DeepSeek take 173 and 314 (arXiv 2412.19437)."""
    timer = passes(spread(1, 64, 64, gpus=64.0, concurrency=8192))
    each = timer.exchange.send(128.0, 7168, 8)
    assert each.seconds == pytest.approx(163e-6 + 305e-6, rel=2e-3)
    assert each.across_bytes == pytest.approx(3 * 8 * 128 * 7168 * 7 / 8)
    codes = {finding.code for finding in evaluate(spread(1, 64, 64, gpus=64.0)).findings}
    assert "experts-leave-node" in codes
    assert "tp-leaves-node" not in codes


@pytest.mark.parametrize(
    ("ranks", "published", "error"),
    [(8, 77e-6 + 114e-6, -0.14), (64, 173e-6 + 314e-6, -0.04), (256, 194e-6 + 360e-6, -0.07)],
)
def test_published_times_of_low_latency_kernels(ranks: float, published: float, error: float):
    """Dispatch and combine of 128 tokens on H800 with 50 GB/s adapters: the table of DeepEP."""
    plan = serving("deepseek-v3", "h800-sxm-80gb", 1, weight_format="fp8-block", concurrency=128 * ranks)
    many = {"cluster.gpus": ranks, "parallelism.ep": ranks, "serving.attention_dp": ranks}
    each = passes(with_all(plan, many)).exchange.send(128.0, 7168, 8)
    assert each.seconds / published - 1 == pytest.approx(error, abs=0.015)


def test_ranks_wait_for_the_one_with_a_prompt():
    step = passes(spread(1, 8, 8)).decode(8.0, 1000.0)
    assert step.waiting == pytest.approx(0.2 * step.device)
    report = evaluate(spread(1, 8, 8))
    parts = ("compute_s", "memory_s", "launch_s", "exposed_communication_s", "bubble_s")
    assert report["time.bubble_s"] > 0
    assert sum(report[f"time.{part}"] for part in parts) == pytest.approx(report["time.step_s"], rel=1e-9)


def test_the_busiest_group_of_experts_has_more_than_the_mean():
    """Largest of 8 sums of 50 rows: 1 + √(2·ln 8/50), and 0.1 that is not chance."""
    assert imbalance(50.0, 8.0, 0.1) == pytest.approx(1.388, abs=5e-4)
    assert imbalance(50.0, 1.0, 0.1) == 1
    assert fullest_group(20.0, 256.0, 8.0) == pytest.approx(20 * (1 + (2 * 2.0794 / 20) ** 0.5), rel=1e-4)
    assert fullest_group(31.9, 256.0, 8.0) == 32


def test_a_lone_request_meets_its_own_experts_wherever_they_are():
    timer = passes(spread(1, 8, 8, concurrency=1))
    held = memory(spread(1, 8, 8)).pass_weights
    expert = 3 * 7168 * 2048 * (8 + 32 / 16384) / 8
    assert timer.read_weights(held, 1.0) == pytest.approx(held - 58 * (256 - 8) / 8 * expert)


@pytest.mark.parametrize(
    ("plan", "field", "words"),
    [
        (spread(8, 3), "parallelism.ep", "3 does not divide 256 experts"),
        (spread(8, 16), "parallelism.ep", "16 does not divide 8 ranks of tp·attention_dp (1, 2, 4 or 8 do)"),
        (spread(2, 1, 3), "cluster.gpus", "8 is not a multiple of tp·pp·attention_dp = 2·1·3 = 6 (6 or 12 do)"),
        (spread(1, 1, 8).with_("model", catalogue().models["llama-3-8b"]), "serving.attention_dp", "no experts"),
    ],
)
def test_layouts_of_experts_that_cannot_be(plan, field, words):
    assert any(words in each.message for each in violations(plan) if each.field == field)


def test_arrays_of_layouts_are_the_scalars_side_by_side():
    rows = {
        "parallelism.tp": (8.0, 1.0, 2.0),
        "parallelism.ep": (1.0, 8.0, 4.0),
        "serving.attention_dp": (1.0, 8.0, 4.0),
        "serving.concurrency": (3.0, 256.0, 5.0),
    }
    plan = spread(8, 1)
    many = evaluate(with_all(plan, {path: np.array(values) for path, values in rows.items()})).values
    for index in range(3):
        one = evaluate(with_all(plan, {path: values[index] for path, values in rows.items()})).flat()
        for key in ("time.step_s", "time.bound_s", "time.bubble_s", "serving.ttft_s", "memory.total_bytes"):
            assert np.broadcast_to(many[key], 3)[index] == pytest.approx(one[key], rel=1e-12), key


def test_a_cache_kept_often_is_offered_once():
    report = evaluate(spread(8, 1, concurrency=256))
    for code in ("does-not-fit", "kv-heads-replicated"):
        (finding,) = (each for each in report.findings if each.code == code)
        (edit,) = (each for each in finding.edits if each.label == "Attention DP 8, EP 8")
        assert evaluate(with_all(spread(8, 1, concurrency=256), dict(edit.changes)))["memory.fits"]
