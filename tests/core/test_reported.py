"""Wrong numbers that users of other calculators reported, each with the right one."""

from __future__ import annotations

import pytest

from tests.core.huggingface_files import CONFIGS, PLAIN, imported, published
from tests.core.plans import plan, with_all
from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.legality import violations
from triledger.core.model.layers import build

GIB = 2.0**30


# ---------------------------------------------------------------- caches


def test_a_decode_step_reads_the_cache_once_by_its_kv_heads() -> None:
    # LLM-Viewer #12: 181 GB with flash kernels; 327 680 B of each of 8 x 2048 tokens, and the weights
    report = evaluate(serving("llama-2-70b", "h100-sxm-80gb", tp=8, concurrency=8, prompt_tokens=2047, output_tokens=2))
    read = {point.name: 8 * point.bytes for point in report.points if point.phase == "decode" and point.bound}
    assert read["attention core"] == pytest.approx(5_368_709_120, rel=1e-3)
    assert sum(read.values()) == pytest.approx(143e9, rel=0.01)


@pytest.mark.parametrize(
    ("model", "each"), [("llama-2-7b", 524_288), ("llama-3-8b", 131_072), ("llama-2-70b", 327_680)]
)
def test_keys_and_values_of_grouped_heads(model: str, each: int) -> None:
    # vllm-fit #2, #14; llm-d-benchmark #400
    assert build(catalogue().models[model]).kv_bytes_per_token(2.0) == each


def test_a_latent_cache_is_whole_on_every_rank() -> None:
    # unsloth #4757: 10.72 GiB for 163 840 tokens, not 2.08; llm-calc: not divided by TP
    model = build(catalogue().models["deepseek-v3"])
    assert model.kv_bytes_per_token(2.0) == 70_272
    assert model.kv_bytes_per_sequence(163_840, 2.0) / GIB == pytest.approx(10.72, abs=0.005)
    mixer = model.block.mixer
    assert mixer.kv_share(8) == mixer.kv_elements()


@pytest.mark.parametrize(("tokens", "size"), [(32_768, 4.5), (262_144, 36.0)])
def test_a_cache_of_36_layers_with_8_heads_of_128(tokens: int, size: float) -> None:
    # ODS #3324, #3375: it had been guessed from the number of parameters
    model = build(catalogue().models["qwen3-8b"])
    assert model.kv_bytes_per_sequence(tokens, 2.0) / GIB == size


def test_the_cache_is_of_the_context_that_is_chosen() -> None:
    # llmfit #302: the longest context had been charged
    plans = [
        serving("llama-3-8b", concurrency=1, prompt_tokens=n, output_tokens=1, max_context=n + 1) for n in (999, 9999)
    ]
    held = [evaluate(each)["memory.kv_cache_bytes"] for each in plans]
    assert held[1] / held[0] == pytest.approx(10, rel=0.02)


def test_the_total_moves_with_the_batch() -> None:
    # hf-vram-calc: 1.2 times the weights whatever the batch; 5 GiB of cache for 8 sequences of 2048 tokens
    base = serving("llama-2-70b", "h100-sxm-80gb", prompt_tokens=2047, output_tokens=1, max_context=2048)
    few, many = (evaluate(base.with_("serving.concurrency", count)) for count in (1, 8))
    more = many["memory.total_bytes"] - few["memory.total_bytes"]
    assert more >= many["memory.kv_cache_bytes"] - few["memory.kv_cache_bytes"]
    assert many["memory.kv_cache_bytes"] / GIB == pytest.approx(5.0, rel=0.02)


def test_training_keeps_no_cache() -> None:
    # LLM-Tools #6
    assert "memory.kv_cache_bytes" not in evaluate(plan("llama-3-8b", cluster__gpus=8))


# ---------------------------------------------------------------- weights


def test_all_experts_are_held_whatever_a_token_meets() -> None:
    # llmfit #230, vllm-fit #27: memory from active parameters, or Mixtral as 13B
    report = evaluate(serving("mixtral-8x7b", "h100-sxm-80gb", tp=8))
    assert report["model.parameters"] == 46_702_792_704
    assert 8 * report["memory.weights_bytes"] >= 2 * report["model.parameters"]


def test_head_and_embedding_are_held() -> None:
    # llm-analysis: 68 714 504 192 parameters without the head, 13.82e9 B on each of 8 ranks
    report = evaluate(serving("llama-2-70b", "h100-sxm-80gb", tp=8))
    assert report["model.parameters"] == 68_976_648_192
    assert report["memory.weights_bytes"] == pytest.approx(17.24e9, rel=1e-3)


def test_a_prediction_module_is_counted_once_and_apart() -> None:
    # aiconfigurator #1228
    model = published("deepseek-ai/DeepSeek-V3")
    assert model.parameters == 671_026_404_352
    assert build(imported({**CONFIGS["deepseek-ai/DeepSeek-V3"], "num_nextn_predict_layers": 0}).spec).parameters == (
        model.parameters
    )


def test_a_stated_head_size_is_used() -> None:
    # llm-calc #91: hidden size over heads had been taken
    wide = imported({**PLAIN, "head_dim": 128}).spec
    assert build(wide).kv_bytes_per_token(2.0) == 4 * 2 * 2 * 128 * 2
    assert build(imported(PLAIN).spec).kv_bytes_per_token(2.0) == 4 * 2 * 2 * 64 * 2


# ---------------------------------------------------------------- machines


def test_capacity_is_what_can_be_had_and_not_what_is_printed() -> None:
    # ridgepoint: 79.25 GiB of an A100 80GB
    report = evaluate(plan("llama-3-8b", "a100-sxm-80gb", cluster__gpus=8))
    assert report["memory.usable_bytes"] / GIB == pytest.approx(79.25, abs=0.2)


def test_peaks_are_dense_and_links_one_way() -> None:
    # Megatron-LM #1565, pytorch-lightning #21677, OLMo-core #614, ml-engineering #38
    parts = catalogue().accelerators
    h100, a100 = parts["h100-sxm-80gb"], parts["a100-sxm-80gb"]
    assert (h100.peak.bf16, a100.peak.bf16) == (989.4e12, 312e12)
    assert h100.link.bandwidth == 450e9
    # 420 TFLOP/s of an H100 are 42.5 %
    assert 420e12 / h100.peak.bf16 == pytest.approx(0.425, abs=1e-3)


# ---------------------------------------------------------------- layouts


@pytest.mark.parametrize(("model", "tp"), [("llama-3-8b", 3), ("qwen3-0.6b", 32), ("falcon-7b", 2)])
def test_a_degree_that_does_not_divide_is_refused_with_the_number(model: str, tp: int) -> None:
    # llm-d-planner #194, #205
    broken = violations(serving(model, "h100-sxm-80gb", tp=tp))
    assert broken[0].field == "parallelism.tp"
    assert str(tp) in broken[0].message
    assert "do" in broken[0].message


def test_weights_beyond_two_devices_are_refused_with_the_least_nodes_that_hold_them() -> None:
    # inference-sim #624: it ran with made-up blocks; 671 026 419 200 parameters of 2 B are 1 249.9 GiB
    tight = serving("deepseek-v3", "h100-sxm-80gb", tp=2)
    report = evaluate(tight)
    assert 2 * report["memory.weights_bytes"] / GIB == pytest.approx(1249.9, rel=0.002)
    (found,) = (finding for finding in report.findings if finding.code == "does-not-fit")
    (edit,) = found.edits
    after = evaluate(edit.applied(tight))
    assert after["memory.fits"]
    assert after["serving.held_requests"] >= tight.serving.concurrency
    nodes = int(after.scenario.parallelism.pp)
    fewer = with_all(after.scenario, {"parallelism.pp": nodes - 1, "cluster.gpus": 8 * (nodes - 1)})
    assert not evaluate(fewer)["memory.fits"]


def test_expert_weights_are_divided_by_expert_parallelism() -> None:
    # aiconfigurator #1390, Megatron-LM #2439: 384 experts of three matrices 7168 x 2048 in each of 60 layers
    layout = {"attention_dp": 8, "parallelism__ep": 8, "cluster__gpus": 8}
    report = evaluate(serving("kimi-k2", "h200-sxm-141gb", **layout))
    assert report["memory.expert_weights_bytes"] == 60 * 384 * 3 * 7168 * 2048 * 2 / 8


def test_a_number_format_that_a_device_lacks_has_no_peak_made_up() -> None:
    # aiconfigurator #1398, #1418: B300 fp4 9 PFLOP/s and int8 in the thousands
    peak = catalogue().accelerators["b300-sxm-288gb"].peak
    assert (peak.fp4, peak.fp8) == (pytest.approx(14e15, rel=0.05), pytest.approx(4.5e15, rel=0.05))
    assert peak.int8 < 1e15


def test_one_gpu_generation_is_not_faster_than_its_successor_by_its_memory() -> None:
    # aiconfigurator #1246
    parts = catalogue().accelerators
    assert parts["b200-sxm-180gb"].memory_bandwidth <= parts["b300-sxm-288gb"].memory_bandwidth
    assert parts["b200-sxm-180gb"].memory == pytest.approx(180e9, rel=0.08)  # SimuMax has 80 GB
    assert parts["h100-nvl-94gb"].peak.bf16 == pytest.approx(835.5e12, rel=1e-3)  # pytorch-lightning #21677


def test_frozen_weights_carry_no_states() -> None:
    # DeepSpeed #5304
    base = plan("llama-3-8b", cluster__gpus=1, training__global_batch=1)
    full, adapted = (evaluate(base.with_("training.finetune", word)) for word in ("full", "lora"))
    assert adapted["memory.optimizer_bytes"] < 0.02 * full["memory.optimizer_bytes"]


def test_states_of_a_small_cluster_are_counted_in_gib() -> None:
    # DeepSpeed #4527: 6805 million parameters over 4 GPUs are 18 B each: 28.5 GiB, which had been printed as GB
    base = plan("llama-2-7b", "a100-sxm-80gb", cluster__gpus=4, parallelism__zero=3, training__global_batch=4)
    report = evaluate(base)
    assert report["memory.static_bytes"] == pytest.approx(6_738_415_616 * 18 / 4, rel=1e-3)


def test_a_pipeline_of_four_answers() -> None:
    # LLMServingSim #55: it hung
    report = evaluate(serving("llama-3-70b", "h100-sxm-80gb", tp=2, pp=4))
    assert report["serving.output_tokens_per_s"] > 0


def test_two_all_reduces_a_layer_and_their_floor() -> None:
    # aiconfigurator #1064, #1062: left out, or without their latency; 2 x 64 of them take 2 ms or so
    report = evaluate(serving("qwen3-32b", "h100-sxm-80gb", tp=8, concurrency=1))
    row = next(row for row in report.communication if row.collective == "all-reduce")
    assert row.times_per_step == pytest.approx(2 * 64, abs=1)
    assert 1e-3 < row.seconds < 3e-3


def test_gradients_are_divided_where_they_are_sharded() -> None:
    # transformer-perf-estimates #18
    whole, sharded = (
        evaluate(plan("llama-3-8b", cluster__gpus=8, parallelism__zero=zero, training__global_batch=8))
        for zero in (1, 2)
    )
    assert sharded["memory.gradients_bytes"] < whole["memory.gradients_bytes"] / 4


# ---------------------------------------------------------------- FLOPs


def test_flops_are_those_of_the_experts_that_are_met() -> None:
    # maxtext #678: 287.78 in place of 79.98
    model = build(catalogue().models["mixtral-8x7b"])
    report = evaluate(serving("mixtral-8x7b", "h100-sxm-80gb", tp=8))
    assert report["compute.linear_flops_per_token"] < 2 * model.active_parameters
    assert report["compute.linear_flops_per_token"] < 0.3 * 2 * model.parameters


def test_a_tied_head_multiplies_and_a_lookup_does_not() -> None:
    # torchtitan #3225, trl #6708, #6731
    base = plan("llama-3-8b", cluster__gpus=8)
    tied, untied = (evaluate(base.with_("model.tied", tied)) for tied in (True, False))
    assert tied["compute.head_flops_per_token"] == 2 * 4096 * 128_256
    assert tied["compute.forward_flops_per_token"] == untied["compute.forward_flops_per_token"]


def test_scores_of_unfused_attention_are_kept() -> None:
    # llm-analysis #18: GPT-2 1.5B, 32 sequences of 1024: 267.2 GiB with the square of the length, 79.7 without
    sizes = {"sequence_length": 1024, "micro_batch": 32, "global_batch": 32, "dropout": True}
    base = plan("gpt2-xl", cluster__gpus=1, parallelism__zero=0, training__framework="megatron-2022")
    base = with_all(base, {f"training.{name}": value for name, value in sizes.items()})
    reports = [evaluate(base.with_("training.attention", word)) for word in ("unfused", "flash")]
    held = [report["memory.activations_bytes"] / GIB for report in reports]
    assert held == pytest.approx([267.2, 79.7], rel=0.05)
