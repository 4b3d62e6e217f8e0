"""Time of serving: bound, kernels and iterations against published rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.core.plans import gpt
from tests.core.serving_plans import memory, passes, prefill, serving
from triledger.core.catalogue import catalogue, table
from triledger.core.engine import evaluate
from triledger.core.legality import violations
from triledger.core.scenario import Scenario
from triledger.core.serving import bounds, kernels
from triledger.core.serving.settings import tuned_sizes

LLAMA_70B = "llama-3-70b"

# ---------------------------------------------------------------- bound and whiteboard


def test_one_step_of_a_70b_in_eight_bits_on_one_h100():
    """20.90 ms at one byte a parameter, 22.01 ms with the real 73.7 GB; eight requests share the read: 383 tok/s."""
    plan = serving(
        "deepseek-r1-distill-llama-70b",
        weight_format="int8-g128",
        prompt_tokens=8,
        output_tokens=8,
        concurrency=1,
        whiteboard__parameters=70e9,
    )
    report = evaluate(plan)
    assert report["whiteboard.step_floor_s"] * 1e3 == pytest.approx(20.90, abs=5e-3)
    assert report["whiteboard.compute_s"] * 1e3 == pytest.approx(0.1415, abs=5e-5)
    assert report["whiteboard.step_floor_s"] / report["whiteboard.compute_s"] == pytest.approx(147.7, abs=0.05)
    assert report["whiteboard.tokens_per_s"] == pytest.approx(47.86, abs=5e-3)
    assert report["serving.tpot_bound_s"] * 1e3 == pytest.approx(22.01, abs=5e-3)
    assert evaluate(plan.with_("serving.concurrency", 8))["whiteboard.tokens_per_s"] == pytest.approx(382.9, abs=0.05)


def test_prefill_of_2048_tokens_takes_115_ms_at_the_peak_of_eight_a100():
    plan = serving(LLAMA_70B, "a100-sxm-80gb", tp=8)
    assert evaluate(plan)["serving.ttft_bound_s"] * 1e3 == pytest.approx(115, abs=2)
    # with a realised matrix rate and all-reduces about 222 ms
    assert prefill(passes(plan), 1.0, 2048.0).seconds * 1e3 == pytest.approx(222, rel=0.05)


@pytest.mark.parametrize(
    ("sequences", "linear", "exact"), [(1, 0.99, 1.07), (8, 7.4, 8.0), (64, 39.8, 42.6), (256, 74.5, 79.4)]
)
def test_cache_keeps_the_intensity_of_decoding_under_the_knee(sequences, linear, exact):
    """Llama-3-70B in bf16 at 4096 tokens; the A100 knee is at 153 FLOP/B."""
    plan = serving(LLAMA_70B, "a100-sxm-80gb", prompt_tokens=4096, output_tokens=0, concurrency=sequences)
    held, report = memory(plan), evaluate(plan)
    cache = sequences * 4096 * held.kv_per_token
    found = report["compute.rule_flops_per_token"] * sequences / bounds.step_bytes(held.pass_weights, cache)
    assert found == pytest.approx(linear, rel=6e-3)
    embedding = 128256 * 8192 * 2
    flops = report["compute.forward_flops_per_token"] * sequences
    assert flops / (held.pass_weights - embedding + cache) == pytest.approx(exact, rel=6e-3)


def test_cache_of_long_contexts_sets_the_floor_of_large_batches():
    """Llama-3-70B in bf16 on eight A100, 256 sequences of 4096 tokens: 29.7 ms, 8.6e3 tok/s at most."""
    plan = serving(LLAMA_70B, "a100-sxm-80gb", tp=8, prompt_tokens=4096, output_tokens=0, concurrency=256)
    bound = evaluate(plan)["time.bound_s"]
    assert bound * 1e3 == pytest.approx(29.7, abs=0.05)
    assert 256 / bound == pytest.approx(8.6e3, rel=5e-3)


@st.composite
def serving_plans(draw: st.DrawFn) -> Scenario:
    """Legal plans over models, devices, networks, engines, formats, layouts and loads."""
    known = catalogue()
    plan = serving(
        draw(st.sampled_from(["llama-3-70b", "llama-3-8b", "phi-4-mini", "gpt-3-175b", "qwen2.5-7b"])),
        draw(st.sampled_from(sorted(known.accelerators))),
        tp=draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64])),
        pp=draw(st.sampled_from([1, 2, 4])),
        engine=draw(st.sampled_from(sorted(table("engines")))),
        weight_format=draw(st.sampled_from(sorted(table("formats")["weights"]))),
        kv_format=draw(st.sampled_from(["bf16", "fp8", "int4"])),
        concurrency=draw(st.integers(1, 2000)),
        prompt_tokens=draw(st.integers(1, 20000)),
        output_tokens=draw(st.sampled_from([0, 1, 2, 10, 512])),
        max_batched_tokens=draw(st.sampled_from([64, 512, 8192])),
        request_rate=draw(st.sampled_from([0.0, 0.0, 0.1, 5.0, 1000.0])),
        cluster__gpus_per_node=draw(st.sampled_from([1, 2, 4, 8])),
    )
    plan = plan.with_("cluster.network", known.networks[draw(st.sampled_from(sorted(known.networks)))])
    plan = plan.with_("cluster.gpus", plan.cluster.gpus * draw(st.sampled_from([1, 2, 3, 64])))
    assume(not violations(plan))
    return plan


@given(serving_plans())
@settings(max_examples=150, deadline=None)
def test_no_prediction_beats_the_bound(plan):
    report = evaluate(plan)
    assert report["time.bound_s"] <= report["time.low_s"] <= report["time.step_s"] <= report["time.high_s"]
    assert report["time.step_s"] <= report.get("serving.tpot_s", report["time.step_s"])
    if report.holds_a_request:
        assert report["serving.running"] >= 0
        assert report["serving.ttft_bound_s"] <= report.get("serving.ttft_s", np.inf)
    rounding = 1 + 1e-12  # a time at its floor, multiplied back
    assert 0 <= report["time.mfu"] <= rounding
    assert 0 <= report["time.mbu"] <= rounding


@given(serving_plans())
@settings(max_examples=100, deadline=None)
def test_no_plan_answers_more_prompts_than_its_devices_can_compute(plan):
    report = evaluate(plan)
    prompt = next(point for point in report.points if point.name == "whole prefill")
    devices = report["serving.replicas"] * plan.parallelism.pp
    prompts = report.get("serving.requests_per_s", 0.0)
    assert prompts * prompt.flops / report["roofline.peak_flops"] <= devices * (1 + 1e-9)


def test_what_crosses_the_network_sets_the_floor_of_a_wide_group():
    """Each of eight local ranks reduces an eighth of the buffer over its own card, twice a layer."""
    network = catalogue().networks["ethernet-100"]
    plan = serving(LLAMA_70B, "a100-sxm-80gb", tp=16, concurrency=128)
    report = evaluate(plan.with_("cluster.network", network))
    crossing = 160 * (2 * 128 * 8192) / 8 + 128 * 128256 / 16 / 8
    assert report["communication.adapter_bytes_per_gpu"] == pytest.approx(crossing)
    assert report["time.bound_s"] == pytest.approx(crossing / network.bandwidth)
    rows = {(row.name, row.link): row for row in report.communication}
    assert rows["tensor parallel between nodes", "scale-out"].bytes_per_gpu == pytest.approx(160 * 2 * 128 * 8192 / 8)
    ring = 2 * 15 / 16 * 160 * 2 * 128 * 8192
    both = sum(row.bytes_per_gpu for row in report.communication if row.name.startswith("tensor parallel"))
    assert both == pytest.approx(ring)
    for row in report.communication:
        fastest = network.bandwidth if row.link == "scale-out" else 300e9
        assert row.seconds >= row.bytes_per_gpu / fastest, row.name
    assert sum(row.seconds for row in report.communication) == pytest.approx(report["communication.exposed_seconds"])


def test_pipeline_hops_that_leave_the_node_go_over_the_network():
    """Four stages of four GPUs on nodes of eight: one of three hops leaves."""
    network = catalogue().networks["ethernet-100"]
    plan = serving(LLAMA_70B, tp=4, pp=4, concurrency=64).with_("cluster.network", network)
    hops = {row.link: row for row in evaluate(plan).communication if row.group == "pipeline"}
    assert (hops["scale-up"].times_per_step, hops["scale-out"].times_per_step) == (2, 1)
    buffer = 2 * 16 * 8192
    assert hops["scale-out"].bytes_per_gpu == buffer
    assert hops["scale-out"].seconds == pytest.approx(30e-6 + buffer / (0.8 * network.bandwidth))


# ---------------------------------------------------------------- kernels and iterations


def test_batch_sizes_between_tuned_ones_lie_on_a_line():
    assert tuned_sizes(24.0) == (24.0, 24.0)
    assert tuned_sizes(25.0) == (24.0, 32.0)
    assert tuned_sizes(0.5) == (1.0, 1.0)
    below, above = tuned_sizes(np.array([24.0, 25.0, 0.5, 1e6]))
    assert below.tolist() == [24.0, 24.0, 1.0, 32768.0]
    assert above.tolist() == [24.0, 32.0, 1.0, 32768.0]
    assert kernels.between_sizes(28.0, 24.0, 32.0, 1.0, 2.0) == 1.5
    assert kernels.between_sizes(65536.0, 32768.0, 32768.0, 3.0, 3.0) == 6.0


def test_a_few_rows_are_pure_memory_traffic():
    timer = passes(serving(LLAMA_70B, tp=8))
    for rows in (1.0, 4.0):
        up = timer.decode(rows, 100.0).operator("FFN up")
        assert up.math == 0.0
        assert up.seconds == pytest.approx(up.memory, rel=1e-12)
    assert timer.decode(8.0, 100.0).operator("FFN up").math > 0.0


@pytest.mark.parametrize(("size", "microseconds"), [(16 * 2**10, 16.3), (2**20, 20.4), (64 * 2**20, 284)])
def test_all_reduce_on_eight_h100(size, microseconds):
    assert passes(serving(LLAMA_70B, tp=8)).group.reduce(float(size)).seconds * 1e6 == pytest.approx(
        microseconds, rel=5e-3
    )


def test_cards_without_a_link_for_all_reduce_over_pcie():
    bridged = passes(serving(LLAMA_70B, "a100-pcie-80gb", tp=4)).group
    assert bridged.rate == pytest.approx(0.42 * 31.5e9)
    assert bridged.alpha == pytest.approx(25e-6 + 3 * 0.6e-6)
    assert passes(serving(LLAMA_70B, "a100-pcie-80gb", tp=2)).group.rate == pytest.approx(0.78 * 300e9)


def test_decode_attention_on_vector_units_is_three_times_slower_than_the_cache():
    """Mistral-7B in fp8 on H100 with TensorRT-LLM 0.10: 0.0222 µs a token by bytes, 0.0700 µs on vector units."""
    mistral = catalogue().models["mistral-7b-v0.3"]
    timer = passes(serving(mistral, engine="trtllm-0.10", weight_format="fp8", kv_format="fp8"))
    core = timer.decode(1.0, 1e6).operator("attention core")
    assert core.memory == pytest.approx(0.0222, rel=5e-3)
    assert core.seconds == pytest.approx(0.0700, rel=5e-3)
    # a group of eight query heads has a matrix-unit kernel
    grouped = passes(serving(LLAMA_70B, engine="trtllm-0.10")).decode(1.0, 1e6).operator("attention core")
    assert grouped.seconds == grouped.memory


def test_iterations_of_a_70b_in_fp8_on_four_h200():
    timer = passes(serving(LLAMA_70B, "h200-sxm-141gb", tp=4, weight_format="fp8"))
    assert timer.decode(8.0, 1536.0).seconds * 1e3 == pytest.approx(9.83, rel=2e-3)
    assert prefill(timer, 1.0, 1024.0).seconds * 1e3 == pytest.approx(53.7, rel=2e-3)
    pairs = kernels.chunk_pairs(1024.0, 0.0)
    mixed = timer.mixed(7.0, 1536.0, 1.0, 1024.0, pairs, 1024.0)
    assert mixed.seconds * 1e3 == pytest.approx(54.3, rel=2e-3)


@pytest.mark.parametrize(
    ("model", "tp", "number", "published"),
    [
        ("llama-2-7b", 1, "bf16", 104.9),
        ("llama-2-7b", 1, "int8", 155.58),
        ("llama-3.1-8b", 1, "bf16", 93.89),
        ("llama-2-70b", 4, "bf16", 38.01),
        ("llama-2-70b", 8, "int4-tinygemm-g32", 90.77),
        ("llama-3-70b", 8, "bf16", 58.78),
        ("llama-3-70b", 8, "int8", 75.58),
    ],
)
def test_decode_rate_of_gpt_fast_on_a100(model, tp, number, published):
    """Table of the gpt-fast README: one request, 5 tokens in, 200 out."""
    plan = serving(
        model,
        "a100-sxm-80gb",
        tp=tp,
        engine="gpt-fast",
        weight_format=number,
        prompt_tokens=5,
        output_tokens=200,
        concurrency=1,
    )
    report = evaluate(plan)
    assert 1 / report["serving.tpot_s"] == pytest.approx(published, rel=0.06)
    if (model, number) == ("llama-2-7b", "bf16"):
        assert 1 / report["time.step_s"] == pytest.approx(109.4, rel=1e-3)


def test_request_of_fastertransformer_on_eight_a100():
    """FasterTransformer GPT guide: GPT-20B in fp16, 16 requests of 128 in and 20 out: 312 ms."""
    timer = passes(serving(gpt(44, 6144, 48), "a100-sxm-80gb", tp=8, engine="fastertransformer"))
    prompt, step = prefill(timer, 16.0, 128.0).seconds, timer.decode(16.0, 138.0).seconds
    assert prompt * 1e3 == pytest.approx(103.2, rel=2e-3)
    assert step * 1e3 == pytest.approx(11.24, rel=2e-3)
    request = prompt + 19 * step + timer.settings.engine.t_request
    assert request * 1e3 == pytest.approx(326.8, rel=2e-3)
    assert request * 1e3 == pytest.approx(312, rel=0.06)


@pytest.mark.parametrize(
    ("accelerator", "prompt", "batch", "published"), [("a100-sxm-80gb", 2048, 52, 591), ("l40s", 2048, 32, 574)]
)
def test_static_batches_of_tensorrt_llm(accelerator, prompt, batch, published):
    """TensorRT-LLM performance overview: Llama-7B, 128 tokens out; fp16 with v0.7 on A100, fp8 with v0.9 on L40S."""
    a100 = accelerator.startswith("a100")
    formats = {} if a100 else {"weight_format": "fp8", "kv_format": "fp8"}
    timer = passes(serving("llama-2-7b", accelerator, engine="trtllm-0.5" if a100 else "trtllm-0.9", **formats))
    seconds = prefill(timer, batch, float(prompt)).seconds + 127 * timer.decode(batch, prompt + 64.0).seconds
    assert batch * 128 / seconds == pytest.approx(published, rel=0.06)


@pytest.mark.parametrize(
    ("tp", "concurrency", "prompt", "output", "published"),
    [(1, 8, 1024, 1024, 12.96), (1, 64, 1024, 1024, 17.84), (2, 16, 1024, 1024, 10.67), (2, 16, 1024, 8192, 10.73)],
)
def test_time_per_token_of_vllm_under_load(tp, concurrency, prompt, output, published):
    """InferenceMAX, Llama-3.1-70B in NVFP4 on B200; the client draws lengths between 0.8 and 1 of the nominal ones."""
    plan = serving(
        LLAMA_70B,
        "b200-sxm-180gb",
        tp=tp,
        weight_format="nvfp4",
        kv_format="fp8",
        concurrency=concurrency,
        prompt_tokens=0.9 * prompt,
        output_tokens=0.9 * output,
        max_context=prompt + output,
    )
    assert evaluate(plan)["serving.tpot_s"] * 1e3 == pytest.approx(published, rel=0.19)
