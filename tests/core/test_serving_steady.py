"""The steady state of serving, its shares and price, and what a person measured."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.serving_plans import serving
from triledger.core import load_scenario
from triledger.core.engine import evaluate
from triledger.core.report import Report
from triledger.core.scenario import Measured, Scenario
from triledger.core.units import format_quantity

LLAMA_70B = "llama-3-70b"
RANKS = {"cluster__gpus": 8, "attention_dp": 8, "parallelism__ep": 8}


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


def test_saturation_is_a_result_and_its_edits_end_it():
    plan = serving(LLAMA_70B, weight_format="int4-g128", concurrency=16)
    assert evaluate(plan)["serving.saturated"] is False
    report = evaluate(plan.with_("serving.request_rate", 5.0))
    assert report["serving.saturated"]
    [finding] = [f for f in report.findings if f.code == "saturated"]
    assert len(finding.edits) == 2
    for edit in finding.edits:
        changed = evaluate(edit.applied(plan.with_("serving.request_rate", 5.0)))
        assert not changed["serving.saturated"], edit.label
        assert changed["memory.fits"], edit.label


def test_targets_may_be_swept():
    plan = serving(LLAMA_70B, tp=8, concurrency=16)
    one = evaluate(plan)
    for name in ("tpot", "ttft"):
        report = evaluate(plan.with_(f"serving.{name}_target", np.array([0.001, 10.0])))
        over = report[f"serving.over_{name}_target"]
        assert over.tolist() == pytest.approx([one[f"serving.{name}_s"] / 0.001, one[f"serving.{name}_s"] / 10])
        assert report.findings == ()


def test_other_prompts_are_named_where_they_take_most_of_a_token():
    """70B in bf16 on eight A100 with 128 requests: 35 of 85 ms are a decode step."""
    report = evaluate(serving(LLAMA_70B, "a100-sxm-80gb", tp=8, concurrency=128))
    assert report["serving.decode_step_s"] == report["time.step_s"]
    waits = report["serving.tpot_s"] - report["serving.decode_step_s"]
    assert report["serving.prefill_share"] == pytest.approx(waits / report["serving.tpot_s"])
    assert report["serving.prefill_share"] == pytest.approx(0.59, abs=0.01)
    [missed] = [f for f in report.findings if f.code == "tpot-target-missed"]
    assert "Prompts of other requests take 59 % of it; a decode step takes 35.0 ms." in missed.message
    met = evaluate(serving(LLAMA_70B, "a100-sxm-80gb", tp=8, concurrency=128, tpot_target=0.1))
    assert {"prefill-share"} <= codes(met)


@pytest.mark.parametrize(
    "plan",
    [
        serving(LLAMA_70B, "a100-sxm-80gb", tp=8, concurrency=128),
        # with fewer requests than attention ranks, fewer of these share the experts
        serving("deepseek-v3", "h200-sxm-141gb", weight_format="fp8", concurrency=12, **RANKS),
    ],
    ids=["tensor parallel", "attention data parallel"],
)
def test_the_time_that_fewer_requests_are_offered_with_is_what_they_take(plan: Scenario):
    plan = plan.with_("serving.tpot_target", 0.01)
    [missed] = [f for f in evaluate(plan).findings if f.code == "tpot-target-missed"]
    [edit] = missed.edits
    then = evaluate(edit.applied(plan))["serving.tpot_s"]
    half = int(plan.serving.concurrency) // 2
    assert edit.label == f"Concurrency {half}: {format_quantity(then, 'seconds')}"


def test_fewer_requests_are_not_offered_where_they_do_not_help():
    """Four sequences or two: a decode step reads the same weights."""
    report = evaluate(serving(LLAMA_70B, tp=8, concurrency=4, prompt_tokens=1, tpot_target=0.001))
    [missed] = [f for f in report.findings if f.code == "tpot-target-missed"]
    assert missed.edits == ()


def test_engines_take_whole_requests():
    """Sixteen requests on 64 engines: sixteen work, each with one request; the others stand idle."""
    one = evaluate(serving(LLAMA_70B, weight_format="int4-g128", concurrency=1))
    plan = serving(LLAMA_70B, weight_format="int4-g128", concurrency=16, cluster__gpus=64)
    report = evaluate(plan)
    assert report["serving.output_tokens_per_s"] == pytest.approx(16 * one["serving.output_tokens_per_s"])
    assert (report["serving.running"], report["serving.busy_replicas"], report["serving.replicas"]) == (16, 16, 64)
    for key in ("serving.tpot_s", "serving.ttft_s", "memory.kv_cache_bytes", "time.step_s"):
        assert report[key] == one[key], key


def test_a_single_request_is_not_disturbed_by_prompts():
    report = evaluate(serving("llama-3-8b", concurrency=1, prompt_tokens=4000))
    assert report["serving.tpot_s"] == report["time.step_s"]
    assert evaluate(serving("llama-3-8b", concurrency=2, prompt_tokens=4000))["serving.tpot_s"] > report["time.step_s"]


def test_long_prompts_are_cut_into_chunks():
    plan = serving("llama-3-8b", concurrency=1, prompt_tokens=8192, max_context=32768)
    whole, chunked = (evaluate(plan.with_("serving.max_batched_tokens", budget)) for budget in (8192, 1024))
    assert chunked["serving.ttft_s"] > whole["serving.ttft_s"]
    assert chunked["serving.ttft_s"] == pytest.approx(whole["serving.ttft_s"], rel=0.5)
    for name in ("linear layers", "attention"):
        one, eight = (next(p for p in report.points if p.name == name) for report in (whole, chunked))
        # the head answers at the end of each chunk
        assert eight.flops == pytest.approx(one.flops, rel=1e-3), name


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


@pytest.mark.parametrize("rate", [0.0, 0.5, 100.0])
def test_a_single_token_has_no_time_per_token_but_a_price(rate):
    plan = serving("llama-3-8b", output_tokens=1, concurrency=128, request_rate=rate)
    report = evaluate(plan)
    assert "serving.tpot_s" not in report
    assert report["cost.usd_per_million_output_tokens"] > 0
    # prompts follow each other: 128 at once are no faster than the device
    assert report["serving.requests_per_s"] * report["serving.ttft_bound_s"] <= 1


@pytest.mark.parametrize("rate", [0.0, 0.5, 100.0])
def test_prompts_alone_are_answered(rate):
    report = evaluate(serving("llama-3-8b", output_tokens=0, concurrency=16, request_rate=rate))
    assert report.get("serving.ttft_s", np.inf) >= report["serving.ttft_bound_s"]
    assert report["serving.saturated"] is (rate == 100.0)
    assert ("serving.ttft_s" in report) is not report["serving.saturated"]


def test_prompts_that_come_together_wait_for_each_other():
    """Sixteen prompts of 70B on one H100 follow each other; the last one answered waits for all of them."""
    report = evaluate(serving(LLAMA_70B, weight_format="int4-g128", output_tokens=0, concurrency=16))
    assert report["serving.ttft_s"] * report["serving.requests_per_s"] == pytest.approx(16)
    assert report["serving.prompt_queue_s"] > 0.9 * report["serving.ttft_s"]
    [missed] = [f for f in report.findings if f.code == "ttft-target-missed"]
    assert "waiting behind the prompts of other requests" in missed.message
    assert missed.edits[0].changes == (("serving.concurrency", 8),)


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({}, ["TP 2 on 2 GPUs"]),
        ({"serving.max_batched_tokens": 512}, ["Batched tokens 1024", "TP 2 on 2 GPUs"]),
        ({"serving.request_rate": 0.84}, ["Concurrency 23", "TP 2 on 2 GPUs"]),
    ],
    ids=["prompt", "chunks", "places"],
)
def test_what_brings_the_first_token_sooner_is_offered_with_the_time_it_takes_then(changes: dict, offered: list[str]):
    plan = load_scenario("70b-int4-1xh100-serve")
    for path, value in changes.items():
        plan = plan.with_(path, value)
    report = evaluate(plan)
    [missed] = [f for f in report.findings if f.code == "ttft-target-missed"]
    assert [edit.label.partition(":")[0] for edit in missed.edits] == offered
    for edit in missed.edits:
        then = evaluate(edit.applied(plan))["serving.ttft_s"]
        assert then < report["serving.ttft_s"]
        assert edit.label.endswith(f": {format_quantity(then, 'seconds')}")


def test_nodes_of_many_sizes_offer_no_wider_engine():
    """One GPU sends nothing, so that the results do not differ."""
    plan = load_scenario("70b-int4-1xh100-serve")
    many = evaluate(plan.with_("cluster.accelerator.link.domain", np.array([2.0, 8.0])))
    assert [each.edits for each in many.findings if each.code == "ttft-target-missed"] == [()]


def test_nothing_is_offered_where_no_wider_engine_is_possible():
    report = evaluate(serving(LLAMA_70B, tp=8, concurrency=1, ttft_target=0.001))
    [missed] = [f for f in report.findings if f.code == "ttft-target-missed"]
    assert missed.edits == ()


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
