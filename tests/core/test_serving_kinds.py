"""Serving of every kind of layer: what sequences keep, what a step reads, and what a format leaves in 16 bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.huggingface_files import published
from tests.core.plans import with_all
from tests.core.serving_plans import GIB, memory, passes, prefill, serving
from tests.core.spreadsheet import computed
from triledger.core.catalogue import catalogue
from triledger.core.cells import cell_text
from triledger.core.engine import evaluate
from triledger.core.ledgers.serving_stages import stages_of
from triledger.core.legality import violations
from triledger.core.model.layers import build
from triledger.core.scenario import Scenario
from triledger.core.training.stage_kinds import StageKinds
from triledger.core.training.stages import EvenStages

V3 = "deepseek-v3"
#: Published models that together hold every kind of mixing.
HYBRIDS = (
    *("deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3.5-35B-A3B", "state-spaces/mamba-2.8b-hf"),
    *("MiniMaxAI/MiniMax-Text-01", "meta-llama/Llama-3.2-90B-Vision-Instruct"),
    *("ai21labs/Jamba-v0.1", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"),
)


def of(repository: str, accelerator: str = "h200-sxm-141gb", tp: float = 1, pp: float = 1, **changes) -> Scenario:
    return serving(published(repository).spec, accelerator, tp, pp, **changes)


def legal_plan(model) -> Scenario:
    plan = serving(model, "h200-sxm-141gb", tp=8)
    return plan if not violations(plan) else serving(model, "h200-sxm-141gb")


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("model", [*catalogue().models, *HYBRIDS])
def test_every_model_is_served(model):
    plan = legal_plan(catalogue().models.get(model) or published(model).spec)
    assert not violations(plan)
    report = evaluate(plan)
    numbers = {key: value for key, value in report.flat().items() if isinstance(value, float)}
    assert all(map(math.isfinite, numbers.values()))
    assert 0 < report["time.bound_s"] <= report["time.step_s"]
    assert 0 < report["serving.ttft_bound_s"] <= report.get("serving.ttft_s", math.inf)
    parts = ("compute_s", "memory_s", "launch_s", "exposed_communication_s", "bubble_s")
    assert sum(report[f"time.{part}"] for part in parts) == pytest.approx(report["time.step_s"], rel=1e-9)


@pytest.mark.parametrize("model", [V3, "gpt-oss-120b", "llama-4-maverick", "gemma-3-27b", *HYBRIDS])
def test_arrays_are_the_scalars_side_by_side(model):
    plan = legal_plan(catalogue().models.get(model) or published(model).spec)
    rows = {
        "serving.concurrency": (1.0, 7.0, 300.0),
        "serving.max_context": (100.0, 5000.0, 40000.0),
        "parallelism.pp": (1.0, 2.0, 5.0),
        "cluster.gpus": (40.0, 80.0, 80.0),
    }
    many = evaluate(with_all(plan, {path: np.array(values) for path, values in rows.items()})).values
    for index in range(3):
        one = evaluate(with_all(plan, {path: values[index] for path, values in rows.items()})).flat()
        for key in ("memory.total_bytes", "memory.kv_budget_bytes", "time.step_s", "time.bound_s", "serving.ttft_s"):
            found, expected = np.broadcast_to(many[key], 3)[index], one.get(key, math.nan)
            assert found == pytest.approx(expected, rel=1e-12, nan_ok=True), key


@pytest.mark.parametrize("model", [V3, "gpt-oss-20b", *HYBRIDS])
def test_every_formula_recomputes_its_value(model):
    plan = legal_plan(catalogue().models.get(model) or published(model).spec)
    report = evaluate(with_all(plan, {"parallelism.pp": 2.0, "cluster.gpus": 16.0}), record=True)
    for term in report.terms:
        found = computed(cell_text(term), dict(term.inputs))
        if not isinstance(term.value, (str, bool)):
            assert float(found) == pytest.approx(float(term.value), rel=1e-9, abs=1e-300), term.formula.name


# ---------------------------------------------------------------- weights


def test_the_checkpoint_of_deepseek_v3_is_held_to_the_byte():
    """Blocks of 128 with 32-bit scales, whole at the edges of matrices; a 32-bit steering bias an expert."""
    assert memory(serving(V3, weight_format="fp8-block")).weights == 673_150_611_808


def test_ranks_split_all_but_router_norms_and_the_way_down_to_the_latent():
    one, eight = (memory(serving(V3, tp=tp)).weights for tp in (1, 8))
    whole_layer = 7168 * (1536 + 512 + 64) + 2 * 7168 + 1536 + 512
    whole = 2 * (61 * whole_layer + 58 * (256 * 7168 + 2 * 256) + 7168)
    assert 8 * eight == pytest.approx(one + 7 * whole, rel=1e-12)


def test_formats_leave_parts_of_a_checkpoint_in_16_bits():
    """DeepSeek in NVFP4 keeps latent attention in 16 bits; gpt-oss has experts only in MXFP4, padded to 3072."""
    model = build(catalogue().models[V3])
    attention = 61 * model.groups[0][1].mixer.matrices()
    half, plain = memory(serving(V3, weight_format="nvfp4")).weights, memory(serving(V3)).weights
    outside = plain - 2 * (model.parameters - model.embedding - model.head - attention)
    quantised = (half - outside) / (4.5 / 8)
    experts = 58 * (256 + 1) * 3 * 7168 * 2048 + 3 * 3 * 7168 * 18432
    assert quantised == pytest.approx(experts, rel=3e-3)
    oss = serving("gpt-oss-120b")
    kept = memory(oss.with_("serving.weight_format", "mxfp4-experts")).weights
    routed = 36 * 128 * 3 * 2880 * 2880
    assert memory(oss).weights - kept == pytest.approx(2 * routed - routed * 3072 / 2880 * 4.25 / 8, rel=1e-12)


def test_biases_of_experts_stay_with_their_experts():
    """gpt-oss: 128 experts a layer, each with biases on 5760 inner and 2880 outer columns."""
    own = {"serving.attention_dp": 4.0, "cluster.gpus": 4.0}
    sliced, dealt = (
        memory(with_all(serving("gpt-oss-120b"), {**own, "parallelism.ep": groups})).weights for groups in (1.0, 4.0)
    )
    assert sliced - dealt == 2 * 36 * 128 * 3 / 4 * (5760 + 2880)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
def test_stages_of_a_hybrid_hold_every_layer_once(stages):
    model = build(catalogue().models[V3])
    kinds = StageKinds(model, EvenStages(model.layers, stages, 1), stages)
    every = [kinds.on(float(stage)) for stage in range(stages)]
    assert np.sum(every, axis=0).tolist() == [3, 58]
    found, ends = (list(map(tuple, each)) for each in stages_of(model, stages))
    assert set(found) == set(every)
    assert [ends[0], ends[-1]] == [every[0], every[-1]]
    sizes = [sum(stage) for stage in every]
    assert max(sizes) - min(sizes) <= 1
    assert sizes[-1] == min(sizes)


# ---------------------------------------------------------------- what sequences keep


def test_a_window_caps_what_a_sequence_keeps():
    """62 layers of 16 heads of 128, 10 of them global, a window of 1024, 32 768 tokens: 2.906 of 15.5 GiB."""
    held = memory(serving("gemma-3-27b", max_context=32768))
    assert held.kv_per_token * 32768 / GIB == 15.5
    assert held.kv_per_sequence / GIB == pytest.approx(2.906, abs=5e-4)


def test_more_sequences_with_a_window_are_held_than_its_tokens_say():
    held = memory(serving("gemma-3-27b", "h200-sxm-141gb", max_context=32768))
    assert held.full_sequences == math.floor(held.cache.budget / held.kv_per_sequence)
    assert held.cache.tokens > 5 * held.cache.budget / held.kv_per_token
    assert held.cache.held(1024.0) == pytest.approx(held.cache.budget / (1024 * held.kv_per_token))


def test_states_take_as_much_as_thousands_of_tokens():
    """Qwen3.5-35B-A3B: 30 delta net layers of 2 162 688 B, as much as 3168 tokens of its 10 full layers."""
    held = memory(of("Qwen/Qwen3.5-35B-A3B", max_context=16))
    assert held.kv_per_token == 20_480
    assert held.kv_per_sequence == 64_880_640 + 16 * 20_480


def test_keys_of_an_index_are_cached_beside_the_latent():
    """DeepSeek-V3.2: 70 272 B a token and 61 keys of 128; with 8-bit keys and their scales 78 324 B."""
    plan = of("deepseek-ai/DeepSeek-V3.2")
    assert memory(plan).kv_per_token == 70_272 + 61 * 256
    eight = with_all(plan, {"assumptions.index_bytes": 1.0, "assumptions.index_head_bytes": 4.0})
    assert memory(eight).kv_per_token == 78_324


def test_every_rank_keeps_the_whole_latent():
    assert memory(serving(V3, tp=8)).cache.token == memory(serving(V3)).kv_per_token == 70_272
    report = evaluate(serving(V3, "h200-sxm-141gb", tp=8))
    assert any(each.code == "kv-heads-replicated" and "kept 8 times" in each.message for each in report.findings)


def test_text_keeps_nothing_in_layers_that_attend_to_images():
    assert memory(of("meta-llama/Llama-3.2-90B-Vision-Instruct", tp=8)).kv_per_token == 327_680


# ---------------------------------------------------------------- what a step reads


def test_a_window_caps_what_a_step_reads():
    """gpt-oss: every second layer looks back 128 tokens, 8 heads of 64."""
    timer = passes(serving("gpt-oss-120b"))
    for context in (100.0, 5000.0):
        read = 18 * 2 * 8 * 64 * 2 * (context + min(context, 128))
        assert timer.decode(1.0, context).operator("attention core").bytes == read


def test_a_prompt_in_windows_costs_less():
    timer = passes(serving("gemma-3-27b"))
    short, long = (prefill(timer, 1.0, tokens).operator("attention") for tokens in (1024.0, 32768.0))
    causal = 32768 * 32769 / (1024 * 1025)
    windowed = (1024 * 1025 / 2 + (32768 - 1024) * 1024) / (1024 * 1025 / 2)
    assert long.flops / short.flops == pytest.approx((10 * causal + 52 * windowed) / 62)


def test_decoding_attends_to_the_latent_itself():
    """278 528 FLOP a pair over 1152 B: 241.8 FLOP/B with all heads on one rank."""
    core = passes(serving(V3)).decode(1.0, 1e6).operator("attention core")
    assert core.bytes == 61 * 1152 * 1e6
    assert core.flops == pytest.approx(61 * 278_528 * 1e6, rel=1e-5)
    assert core.flops / core.bytes == pytest.approx(241.8, abs=0.05)
    assert core.seconds == pytest.approx(61 * 278_528 * 1e6 / (0.6 * 989.4e12), rel=1e-4)
    shared = passes(serving(V3, tp=8)).decode(1.0, 1e6).operator("attention core")
    assert shared.seconds == pytest.approx(61 * 1152 * 1e6 / (0.85 * 3.35e12))


def test_prompts_make_keys_and_values_of_heads():
    """81 920 FLOP a pair; latents of earlier chunks are expanded again."""
    timer = passes(serving(V3))
    whole = prefill(timer, 1.0, 1000.0)
    assert whole.operator("attention").flops == 61 * 81_920 * 1000 * 1001 / 2
    assert whole.operator("latent expansion").seconds == 0
    later = timer.prefill(1.0, 1000.0, 1000.0 * 3000 + 1000 * 1001 / 2, 4000.0).operator("latent expansion")
    assert later.flops == 61 * 2 * 3000 * 512 * 128 * 256


def test_an_index_reads_its_keys_and_the_picked_ones():
    timer = passes(of("deepseek-ai/DeepSeek-V3.2"))
    short, long = (timer.decode(1.0, context).operator("attention core").bytes for context in (2048.0, 100_000.0))
    assert short == 61 * 2048 * (1152 + 256)
    assert long == 61 * (2048 * 1152 + 100_000 * 256)


def test_a_state_is_read_and_written_however_long_the_sequence_is():
    timer = passes(of("state-spaces/mamba-2.8b-hf"))
    one, other = (timer.decode(4.0, context) for context in (10.0, 1e6))
    assert one.seconds == other.seconds
    state = memory(of("state-spaces/mamba-2.8b-hf")).kv_per_sequence
    assert one.cache_bytes == 2 * 4 * state


@pytest.mark.parametrize(
    ("model", "engine", "kernels"),
    [
        ("llama-3-8b", "vllm-v1", 32 * 8),
        ("qwen3-30b-a3b", "vllm-v1", 48 * 11),
        (V3, "vllm-v1", 3 * 13 + 58 * 16),
        (V3, "trtllm-1.1-serve", 3 * 24 + 58 * 27),
        (V3, "trtllm-1.2-serve", 3 * 13 + 58 * 21),
    ],
)
def test_kernels_of_a_step(model, engine, kernels):
    timer = passes(serving(model, engine=engine))
    assert timer.decode(1.0, 1.0).launches == pytest.approx((kernels + 4) * timer.settings.engine.t_k)


@pytest.mark.parametrize(
    ("plan", "batch", "milliseconds"),
    [
        (serving(V3, "h200-sxm-141gb", tp=8, weight_format="fp8-block"), 1.0, 7.336),
        (serving(V3, "h200-sxm-141gb", tp=8, weight_format="fp8-block"), 64.0, 27.612),
        (serving("gpt-oss-120b", tp=2, weight_format="mxfp4-experts"), 8.0, 6.347),
        (serving("llama-4-maverick", "h200-sxm-141gb", 8, weight_format="fp8", kv_format="fp8"), 64.0, 10.417),
    ],
)
def test_steps_of_published_models(plan, batch, milliseconds):
    """Decode of vLLM at 1536 tokens of context, as a second program makes it of the same formulas."""
    assert passes(plan).decode(batch, 1536.0).seconds * 1e3 == pytest.approx(milliseconds, abs=1e-3)
