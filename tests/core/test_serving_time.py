"""Time of serving: kernels and iterations against published rows, steady state, bound, and scalar against array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.plans import gpt
from tests.core.serving_plans import memory, passes, prefill, serving
from tests.core.spreadsheet import computed
from triledger.core.catalogue import catalogue
from triledger.core.cells import cell_text
from triledger.core.engine import evaluate
from triledger.core.report import Report
from triledger.core.scenario import Measured
from triledger.core.serving import bounds, kernels
from triledger.core.serving.iteration import tuned_sizes

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


@given(
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.sampled_from([1, 2, 4]),
    concurrency=st.integers(1, 300),
    prompt=st.integers(1, 20000),
    number=st.sampled_from(["bf16", "fp8", "int4-g128", "nvfp4"]),
)
@settings(max_examples=40, deadline=None)
def test_no_prediction_beats_the_bound(tp, pp, concurrency, prompt, number):
    report = evaluate(
        serving(LLAMA_70B, tp=tp, pp=pp, concurrency=concurrency, prompt_tokens=prompt, weight_format=number)
    )
    assert report["time.bound_s"] <= report["time.step_s"] <= report["serving.tpot_s"]
    assert report["serving.ttft_bound_s"] <= report["serving.ttft_s"]
    assert 0 < report["time.mfu"] <= 1
    assert 0 < report["time.mbu"] <= 1
    assert report["time.low_s"] < report["time.step_s"] < report["time.high_s"]


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
    assert passes(serving(LLAMA_70B, tp=8)).group.seconds(float(size)) * 1e6 == pytest.approx(microseconds, rel=5e-3)


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


# ---------------------------------------------------------------- the steady state


def test_little_holds_in_a_closed_loop():
    report = evaluate(serving("llama-3-8b", concurrency=24, prompt_tokens=3000, output_tokens=200))
    latency = report["serving.ttft_s"] + 199 * report["serving.tpot_s"]
    assert report["serving.requests_per_s"] * latency == pytest.approx(24, rel=1e-9)
    assert report["serving.output_tokens_per_s"] == pytest.approx(200 * report["serving.requests_per_s"])


def test_little_holds_when_clients_wait_for_a_place_in_the_cache():
    report = evaluate(serving(LLAMA_70B, weight_format="int4-g128", concurrency=200, max_context=2560))
    assert report["serving.running"] < 200
    latency = report["serving.ttft_s"] + 511 * report["serving.tpot_s"]
    assert report["serving.requests_per_s"] * latency == pytest.approx(200, rel=1e-9)


def test_little_holds_at_a_request_rate():
    plan = serving("llama-3-8b", concurrency=256, prompt_tokens=1000, output_tokens=300, request_rate=6.0)
    report = evaluate(plan)
    assert report["serving.requests_per_s"] == 6.0
    decoding = 6.0 * 300 * report["serving.tpot_s"]
    assert report["serving.running"] == pytest.approx(decoding, rel=0.03)
    faster = evaluate(plan.with_("serving.request_rate", 9.0))
    assert faster["serving.running"] > report["serving.running"]
    assert faster["serving.tpot_s"] > report["serving.tpot_s"]


def test_more_requests_than_the_engine_answers_are_said_to_saturate_it():
    plan = serving("llama-3-8b", concurrency=64, request_rate=500.0)
    report = evaluate(plan)
    assert report["serving.requests_per_s"] < 500
    [finding] = [f for f in report.findings if f.code == "saturated"]
    path, value = finding.edits[-1].changes[0]
    assert "saturated" not in {f.code for f in evaluate(plan.with_(path, value)).findings}


def test_a_single_request_is_not_disturbed_by_prompts():
    report = evaluate(serving("llama-3-8b", concurrency=1, prompt_tokens=4000))
    assert report["serving.tpot_s"] == report["time.step_s"]
    assert evaluate(serving("llama-3-8b", concurrency=2, prompt_tokens=4000))["serving.tpot_s"] > report["time.step_s"]


def test_long_prompts_are_cut_into_chunks():
    plan = serving("llama-3-8b", concurrency=1, prompt_tokens=8192, max_context=32768)
    whole, chunked = (evaluate(plan.with_("serving.max_batched_tokens", budget)) for budget in (8192, 1024))
    assert chunked["serving.ttft_s"] > whole["serving.ttft_s"]
    assert chunked["serving.ttft_s"] == pytest.approx(whole["serving.ttft_s"], rel=0.5)


def test_a_pipeline_adds_throughput_at_the_same_time_per_token():
    one = evaluate(serving(LLAMA_70B, tp=4, concurrency=64))
    two = evaluate(serving(LLAMA_70B, tp=4, pp=2, concurrency=128))
    assert two["time.step_s"] == pytest.approx(one["time.step_s"] / 0.95, rel=0.02)
    assert two["time.tokens_per_s"] == pytest.approx(2 * 0.95 * one["time.tokens_per_s"], rel=0.02)


def test_shares_sum_to_the_step():
    report = evaluate(serving(LLAMA_70B, tp=4, pp=2, concurrency=48))
    parts = ("compute_s", "memory_s", "launch_s", "exposed_communication_s", "bubble_s")
    assert sum(report[f"time.{part}"] for part in parts) == pytest.approx(report["time.step_s"], rel=1e-9)
    assert sum(row.exposed_seconds for row in report.communication) == report["communication.exposed_seconds"]
    assert sum(row.bytes_per_gpu for row in report.communication) == report["communication.bytes_per_gpu"]


def test_a_group_of_one_sends_nothing():
    report = evaluate(serving("llama-3-8b"))
    assert report.communication == ()
    assert report["communication.exposed_seconds"] == 0.0


def test_decode_operators_make_up_the_work_of_the_step():
    report = evaluate(serving(LLAMA_70B, tp=4, concurrency=48))
    decode = [point for point in report.points if point.phase == "decode"]
    names = {"QKV", "attention output", "FFN up", "FFN down", "attention core", "head"}
    assert names <= {point.name for point in decode}
    assert 4 * sum(point.flops for point in decode) == pytest.approx(report["compute.hardware_flops_per_step"])
    assert all(point.achieved_flops <= point.attainable_flops for point in report.points)


def test_no_output_has_no_time_per_token_and_no_price():
    report = evaluate(serving("llama-3-8b", output_tokens=0))
    assert "serving.tpot_s" not in report
    assert "cost.usd_per_million_output_tokens" not in report
    assert report["serving.ttft_s"] > 0


def test_price_of_a_million_tokens():
    """Eight GPUs at 2 USD/h and 14 800 output tokens/s: 0.30 USD (DeepSeek-V3/R1 inference system overview, 2025)."""
    report = evaluate(serving(LLAMA_70B, tp=8, economics__gpu_price=2.0))
    rate = report["serving.output_tokens_per_s"]
    assert report["cost.usd_per_million_output_tokens"] * rate / 14800 == pytest.approx(0.300, abs=5e-4)


# ---------------------------------------------------------------- what was measured


def measured(**seen: float) -> Report:
    plan = serving(LLAMA_70B, tp=8, concurrency=16)
    return evaluate(plan.with_("measured", Measured(**seen)))


def test_measured_time_per_token_is_set_against_bound_and_prediction():
    report = measured(tpot=0.03)
    assert report["measured.over_bound"] == pytest.approx(0.03 / report["time.bound_s"])
    assert report["measured.over_prediction"] == pytest.approx(0.03 / report["serving.tpot_s"])
    assert report["measured.mbu"] == pytest.approx(report["time.mbu"] * report["time.step_s"] / 0.03)
    assert report["measured.mfu"] == pytest.approx(report["time.mfu"] * report["time.step_s"] / 0.03)


def test_measured_throughput_and_first_token():
    rate = measured(tokens_per_s=400.0)
    assert rate["measured.over_bound"] == pytest.approx(16 / 400 / rate["time.bound_s"])
    first = measured(ttft=0.5)
    assert first["measured.over_prediction"] == pytest.approx(0.5 / first["serving.ttft_s"])


def test_a_measurement_below_the_bound_is_refused_with_the_least_possible_time():
    report = measured(tpot=0.001)
    [finding] = [f for f in report.findings if f.code == "measured-below-bound"]
    assert finding.severity == "error"
    assert finding.edits[0].changes == (("measured.tpot", 0.01),)


# ---------------------------------------------------------------- findings


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_findings_name_what_a_person_should_know():
    assert "tp-leaves-node" in codes(evaluate(serving(LLAMA_70B, tp=16)))
    assert "kv-heads-replicated" in codes(evaluate(serving(LLAMA_70B, tp=16)))
    assert "tp-over-pcie" in codes(evaluate(serving(LLAMA_70B, "h100-pcie-80gb", tp=4)))
    assert "uncalibrated" in codes(evaluate(serving(LLAMA_70B, "mi300x")))
    assert "format-not-native" in codes(evaluate(serving(LLAMA_70B, "a100-sxm-80gb", tp=8, weight_format="fp8")))
    assert "longer-than-context" in codes(evaluate(serving(LLAMA_70B, tp=8, prompt_tokens=4000, output_tokens=400)))
    assert "longer-than-model" in codes(evaluate(serving("llama-3-8b", max_context=65536)))
    assert "tpot-target-missed" in codes(evaluate(serving(LLAMA_70B, tp=8, tpot_target=0.001)))
    assert "ttft-target-missed" in codes(evaluate(serving(LLAMA_70B, tp=8, ttft_target=0.001)))
    assert codes(evaluate(serving("llama-3-8b", concurrency=4))) == set()


# ---------------------------------------------------------------- one engine


def random_plans(seed: int, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tp, pp = 2.0 ** rng.integers(0, 5, count), rng.choice([1.0, 1.0, 2.0, 5.0], count)
    return {
        "parallelism.tp": tp,
        "parallelism.pp": pp,
        "cluster.gpus": tp * pp * rng.choice([1.0, 2.0, 3.0], count),
        "cluster.gpus_per_node": rng.choice([4.0, 8.0], count),
        "cluster.accelerator.memory_bandwidth": 3.35e12 * rng.uniform(0.3, 3, count),
        "cluster.accelerator.link.bandwidth": 450e9 * rng.uniform(0.3, 3, count),
        "cluster.network.bandwidth": 50e9 * rng.uniform(0.3, 3, count),
        "serving.prompt_tokens": rng.choice([1.0, 17.0, 2048.0, 9000.0, 131072.0], count),
        "serving.output_tokens": rng.choice([1.0, 2.0, 100.0, 3000.0], count),
        "serving.concurrency": rng.integers(1, 700, count).astype(float),
        "serving.max_context": rng.choice([256.0, 4096.0, 131072.0], count),
        "serving.memory_utilization": rng.uniform(0.5, 1, count),
        "serving.max_batched_tokens": rng.choice([512.0, 8192.0], count),
        "economics.gpu_price": rng.uniform(0.5, 5, count),
    }


@pytest.mark.parametrize("seed", range(8))
def test_arrays_of_plans_answer_as_each_plan_alone(seed):
    engine = ["vllm-v1", "vllm-v0", "sglang-0.5", "trtllm-0.10", "trtllm-1.0", "gpt-fast", "llama-cpp", "exllamav2"]
    number = ["bf16", "fp8", "int8-g128", "int4-g128", "nvfp4", "gguf-q4_k_m", "gptq-g64", "mxfp4"]
    model = ["llama-3-70b", "gpt-3-175b", "falcon-7b", "qwen3-0.6b", "llama-3-8b", "opt-66b", "phi-4-mini", "gemma-7b"]
    plan = serving(model[seed], engine=engine[seed], weight_format=number[seed])
    drawn, count = random_plans(seed, 25), 25
    together, single = plan, [plan] * count
    for path, values in drawn.items():
        together = together.with_(path, values)
        single = [one.with_(path, float(value)) for one, value in zip(single, values, strict=True)]
    many = evaluate(together)
    assert not many.findings
    for index, one in enumerate(single):
        for key, value in evaluate(one).values.items():
            array = np.broadcast_to(np.asarray(many[key]), count)[index]
            if isinstance(value, (str, bool)):
                assert array == value, key
            else:
                assert isinstance(value, (int, float)), key
                assert array == pytest.approx(value, rel=1e-12, abs=1e-18), key


def test_request_rates_of_an_array_mix_open_and_closed_loops():
    plan = serving("llama-3-8b", concurrency=64, prompt_tokens=1000, output_tokens=300)
    rates = [0.0, 0.5, 4.0, 1000.0]
    many = evaluate(plan.with_("serving.request_rate", np.array(rates)))
    for index, rate in enumerate(rates):
        one = evaluate(plan.with_("serving.request_rate", rate))
        for key in ("serving.tpot_s", "serving.ttft_s", "serving.requests_per_s", "serving.running"):
            assert many[key][index] == pytest.approx(one[key], rel=1e-9), key


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tp": 4, "pp": 2, "prompt_tokens": 20000, "concurrency": 33, "weight_format": "int4-g128"},
        {"tp": 8, "request_rate": 3.0, "engine": "trtllm-0.10", "weight_format": "gptq-g128", "kv_format": "int4"},
        {"tp": 16, "engine": "fastertransformer", "measured__tpot": 0.1, "concurrency": 2000},
    ],
)
def test_every_number_is_explained_by_formulas_that_recompute_it(changes):
    report = evaluate(serving(LLAMA_70B, "b200-sxm-180gb", **changes), record=True)
    for key in report.values:
        # engines with a fixed workspace set nothing else aside
        if key not in ("name", "kind") and report[key] != 0.0:
            assert report.explain(key) is not None, key
    for term in report.terms:
        found = computed(cell_text(term), dict(term.inputs))
        if isinstance(term.value, (str, bool)):
            assert found == term.value, term.formula.name
        else:
            assert float(found) == pytest.approx(float(term.value), rel=1e-9, abs=1e-300), term.formula.name


def test_recording_changes_no_number():
    plan = serving(LLAMA_70B, tp=8, concurrency=40)
    plain, recorded = evaluate(plan).flat(), evaluate(plan, record=True).flat()
    assert plain == recorded
