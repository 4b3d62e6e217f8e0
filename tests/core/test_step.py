"""A step put together by hand: bytes of kernels, optimizer, stragglers, windows, transfers, bound, bottleneck."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.core.plans import block_time, gpt, plan, seed_7b, with_all
from triledger.core import evaluate
from triledger.core.machine.collectives import tree_latency
from triledger.core.report import Report, Traffic
from triledger.core.scenario import Scenario
from triledger.core.training.bottleneck import binding, longest, second_longest
from triledger.core.training.hiding import hiding_point_context
from triledger.core.training.overlap import exposed_behind, exposed_in_chunks

LAUNCH, STREAM = 3e-6, 0.8 * 2.039e12  # a kernel of an A100: fixed cost, bytes/s


def one_block(**changes: Any) -> Scenario:
    """Llama-2-7B on one A100, one sequence of 4096 tokens: h = 4096, f = 11008."""
    return plan("llama-2-7b", **({"cluster__gpus": 1, "training__global_batch": 1} | changes))


def row(report: Report, name: str) -> Traffic:
    (found,) = [traffic for traffic in report.communication if name in traffic.name]
    return found


# ---------------------------------------------------------------- kernels that move bytes


def test_bytes_of_the_pointwise_kernels_of_a_block() -> None:
    # forward: two norms of 4 bytes an element, two residuals of 6, re-layout 4, SiLU·mul 6 on f, rotary 4 on q and k;
    # backward: norms 10 in two kernels, residuals 6 and gradient adds 6, re-layout 4, activation 10, rotary 4
    found, hidden, inner = block_time(one_block()), 4096 * 4096, 4096 * 11008
    forward = hidden * (2 * 4 + 2 * 6 + 4 + 4 * 2) + inner * 6
    backward = hidden * (2 * 10 + 2 * 6 + 2 * 6 + 4 + 4 * 2) + inner * 10
    assert found.forward.pointwise == pytest.approx(forward / STREAM + 7 * LAUNCH, rel=1e-9)
    assert found.backward.pointwise == pytest.approx(backward / STREAM + 11 * LAUNCH, rel=1e-9)


def test_bytes_of_a_gpt_block_with_dropout_and_biases() -> None:
    # masks add a byte to the residuals; a plain FFN moves 4 and 6 bytes; bias gradients 2 on f; no rotary embedding
    found = block_time(one_block(training__dropout=True).with_("model", gpt(32, 4096, 32)))
    hidden = 4096 * 4096
    forward = hidden * (2 * 4 + 2 * 7 + 4 + 4 * 4)
    backward = hidden * (2 * 10 + 2 * 7 + 2 * 6 + 4 + 4 * (6 + 2))
    assert found.forward.pointwise == pytest.approx(forward / STREAM + 6 * LAUNCH, rel=1e-9)
    assert found.backward.pointwise == pytest.approx(backward / STREAM + 11 * LAUNCH, rel=1e-9)


def test_selective_recomputation_repeats_norms_and_activation_or_the_scores() -> None:
    flash = block_time(one_block(training__recompute="selective"))
    cheap = (4096 * 4096 * 2 * 4 + 4096 * 11008 * 6) / STREAM + 3 * LAUNCH
    assert flash.recompute_seconds == pytest.approx(cheap, rel=1e-9)
    unfused = block_time(one_block(training__recompute="selective", training__attention="unfused"))
    assert unfused.recompute_seconds == unfused.forward.attention
    full = block_time(one_block(training__recompute="full"))
    assert full.recompute_seconds == full.forward_seconds
    assert block_time(one_block()).recompute_seconds == 0


def test_accumulation_that_is_not_fused() -> None:
    # 2 + 2·w_g bytes a weight and micro-batch: four matrices of 202 375 168 weights
    weights = 4 * 4096 * 4096 + 3 * 4096 * 11008
    for word, width in (("bf16", 2), ("fp32", 4)):
        found = block_time(one_block(training__fused_gradient_accumulation=False, training__gradient_precision=word))
        assert found.backward.accumulation == pytest.approx(weights * (2 + 2 * width) / STREAM + 4 * LAUNCH, rel=1e-9)


def test_casts_of_an_8_bit_recipe() -> None:
    # 4 bytes an element of every operand forward and of every gradient, and of the weights once a step
    scenario = one_block(training__precision="fp8", training__global_batch=8).with_(
        "cluster.accelerator.peak.fp8", 624e12
    )
    found, stream = block_time(scenario), STREAM
    inputs = 4096 * (4096 + 4096 + 4096 + 11008)
    outputs = 4096 * (3 * 4096 + 4096 + 2 * 11008 + 4096)
    weights = 4 * 4096 * 4096 + 3 * 4096 * 11008
    expected = 4 * (inputs + weights / 8) / stream + 4 * LAUNCH + 4 * LAUNCH / 8
    assert found.forward.casts == pytest.approx(expected, rel=1e-9)
    assert found.backward.casts == pytest.approx(4 * outputs / stream + 4 * LAUNCH, rel=1e-9)


def test_bytes_of_the_loss() -> None:
    # bytes a logit, forward and backward: 26 + 14 in 32 bits without fusion, 8 + 6 fused
    fused, eager = (evaluate(one_block(training__framework=word)) for word in ("megatron", "megatron-2022"))
    slower = eager["time.steady_s"] - fused["time.steady_s"]
    assert slower * STREAM == pytest.approx((26 + 14 - 8 - 6) * 4096 * 32000, rel=1e-6)


# ---------------------------------------------------------------- optimizer and stragglers


@pytest.mark.parametrize(
    ("fused", "gradients", "bytes_a_parameter"),
    [(True, "bf16", 34), (True, "fp32", 34), (False, "bf16", 62), (False, "fp32", 66)],
)
@pytest.mark.parametrize(("zero", "shards"), [(0, 1), (1, 8), (3, 8)])
def test_the_optimizer_moves_bytes(
    fused: bool, gradients: str, bytes_a_parameter: float, zero: int, shards: int
) -> None:
    # AdamW: update 28, and fused 2 + 4 for weights and norm; unfused upcast 4, unscale 8, norm 4, clip 8, write back 6
    report = evaluate(
        seed_7b(
            parallelism__zero=zero,
            training__fused_optimizer=fused,
            training__gradient_precision=gradients,
        )
    )
    moved = bytes_a_parameter * report["model.parameters"] / shards
    assert report["time.optimizer_s"] == pytest.approx(moved / STREAM + 20 * LAUNCH, rel=1e-9)


def test_context_parallel_ranks_share_the_optimizer_too() -> None:
    base = seed_7b(parallelism__zero=1, parallelism__tp=2)
    for context, ranks in ((1, 4), (2, 4)):
        report = evaluate(base.with_("parallelism.cp", context))
        held = report["memory.parameters_per_gpu"]
        assert report["memory.optimizer_bytes"] == pytest.approx(12 * held / ranks)


@pytest.mark.parametrize(("gpus", "factor"), [(1, 1.0), (8, 1 + 0.01 * math.sqrt(2 * math.log(8))), (64, 1.0288)])
def test_the_slowest_replica(gpus: int, factor: float) -> None:
    # expected maximum of n nearly Gaussian times with a spread of 1 %
    report = evaluate(seed_7b(cluster__gpus=gpus))
    assert report["time.straggler_factor"] == pytest.approx(factor, abs=5e-5)


def test_a_step_is_the_sum_of_its_parts() -> None:
    report = evaluate(seed_7b(parallelism__zero=1))
    parts = sum(report[f"time.{part}_s"] for part in ("steady", "bubble", "optimizer", "exposed_communication"))
    assert report["time.step_s"] == pytest.approx(parts * report["time.straggler_factor"], rel=1e-12)


# ---------------------------------------------------------------- overlap


def test_what_hidden_communication_costs() -> None:
    # what sticks out of the window, and a quarter of what hides
    assert exposed_behind(3.0, 10.0, 0.25) == 0.75
    assert exposed_behind(12.0, 10.0, 0.25) == 2 + 2.5
    # in chunks: all but the first of 8
    assert exposed_in_chunks(8.0, 100.0, 8, 0.25) == pytest.approx(1 + 0.25 * 7)
    assert exposed_in_chunks(8.0, 4.0, 8, 0.25) == pytest.approx(8 - 0.75 * 7 / 8 * 4)


def test_gradients_hide_behind_the_last_backward_pass() -> None:
    # 13.5 GB in buckets of 400 MB: all but the last of 33; the weights hide behind the next forward pass
    scenario = seed_7b(parallelism__zero=1)
    report, block = evaluate(scenario), block_time(scenario)
    buckets = 13_476_823_040 // 400_000_000
    for name, window in (
        ("gradients", (1 - 1 / buckets) * 32 * block.backward_seconds),
        ("weights", 32 * block.forward_seconds),
    ):
        traffic = row(report, name)
        assert traffic.exposed_seconds == pytest.approx(exposed_behind(traffic.seconds, window, 0.25), rel=1e-9)


def test_a_single_bucket_hides_behind_half_of_the_backward_pass() -> None:
    scenario = seed_7b(parallelism__zero=0).with_("model.layers", 1).with_("model.vocabulary", 1000)
    scenario = scenario.with_("cluster.accelerator.link.bandwidth", 4e10)
    traffic, block = row(evaluate(scenario), "gradients"), block_time(scenario)
    assert traffic.seconds > block.backward_seconds
    expected = exposed_behind(traffic.seconds, 0.5 * block.backward_seconds, 0.25)
    assert traffic.exposed_seconds == pytest.approx(expected, rel=1e-9)


def test_tensor_parallel_traffic_behind_products() -> None:
    base = one_block(cluster__gpus=8, parallelism__tp=8)
    waited = block_time(base.with_("overlap.tp_backward", False))
    hidden = block_time(base)
    window = 0.5 * hidden.backward.matrices
    assert waited.backward.tensor == waited.forward.tensor == hidden.forward.tensor
    assert hidden.backward.tensor == pytest.approx(exposed_behind(waited.backward.tensor, window, 0.25), rel=1e-9)
    parallel = base.with_("parallelism.sp", True)
    chunks = block_time(parallel.with_("overlap.tp_forward", True))
    plain = block_time(parallel)
    expected = exposed_in_chunks(plain.forward.tensor, plain.forward.matrices, 8, 0.25)
    assert chunks.forward.tensor == pytest.approx(expected, rel=1e-9)


def test_embedding_and_head_all_reduces_on_the_mean_of_the_stages() -> None:
    base = plan("llama-3-70b", cluster__gpus=32, parallelism__tp=8, training__global_batch=16)
    one, four = (row(evaluate(base.with_("parallelism.pp", stages)), "embedding and head") for stages in (1, 4))
    assert one.times_per_step == 2 * 16 / 4
    assert four.times_per_step == 2 * 16 / 4


def test_transfers_behind_compute() -> None:
    # 2·(p − 1) hops of fill and drain, and a quarter of the rest
    base = plan("llama-3-70b", cluster__gpus=32, parallelism__tp=8, parallelism__pp=4, parallelism__sp=True)
    base = with_all(base, {"parallelism.zero": 1, "training.global_batch": 64, "pipeline.async_transfer": "always"})
    traffic = row(evaluate(base), "pipeline")
    hop = 2 * 4096 * 8192 / 8 / (0.8 * 25e9) + 8e-6 + 5e-6
    assert traffic.seconds == pytest.approx(2 * 64 * hop, rel=1e-9)
    assert traffic.exposed_seconds == pytest.approx(2 * 3 * hop + 0.25 * 2 * 64 * hop, rel=1e-9)


def test_a_small_all_reduce_over_many_servers_takes_a_tree() -> None:
    # 2·(log2(64)·14 + 7·3.4) µs against a ring of 512
    ring = 2 * (448 * 3.4e-6 + 64 * 14e-6)
    assert tree_latency(ring, 1e6, 4e6, 8, 64, 3.4e-6, 14e-6) == pytest.approx(2 * (6 * 14e-6 + 7 * 3.4e-6))
    assert tree_latency(ring, 5e6, 4e6, 8, 64, 3.4e-6, 14e-6) == ring


def test_chunks_above_which_a_ring_hides() -> None:
    # derived: s/c ≥ 2·(g/a)·Π·η/W for causal attention
    assert hiding_point_context(8, 64, 400e12, 40e9) == pytest.approx(2 / 8 * 400e12 / 40e9)


# ---------------------------------------------------------------- buffers


def test_buffers_of_pipeline_and_ring() -> None:
    # four outstanding sends and receives of T·h/t 16-bit elements; two chunks of keys and values
    base = plan(
        "llama-3-70b", cluster__gpus=32, parallelism__tp=8, parallelism__sp=True, training__sequence_length=8192
    )
    base = base.with_("training.global_batch", 64)
    tokens = 8192
    piped = evaluate(base.with_("parallelism.pp", 4))
    assert piped.stages["workspace"][1] == 4 * tokens * 8192 / 8 * 2
    ring = evaluate(base.with_("parallelism.cp", 4))
    assert ring["memory.workspace_bytes"] == 4 * (tokens / 4) * 1 * 128 * 2


# ---------------------------------------------------------------- bound and bottleneck


def test_a_bound_of_bytes() -> None:
    # weights read twice, gradients written, AdamW state read and written: 2·2 + 4 + 2·12 bytes a parameter
    report = evaluate(one_block(parallelism__zero=0, training__sequence_length=16))
    moved = (2 * 2 + 4 + 2 * 12) * 6_738_415_616
    assert report["time.bound_s"] == pytest.approx(moved / 2.039e12, rel=1e-12)
    assert report["time.mbu"] == pytest.approx(moved / 2.039e12 / report["time.step_s"], rel=1e-12)
    assert report["time.bottleneck"] == "memory"


@pytest.mark.parametrize(
    ("shares", "word"),
    [
        ((5, 1, 1, 1, 1), "compute"),
        ((1, 5, 1, 1, 1), "memory"),
        ((1, 1, 5, 1, 1), "communication"),
        ((1, 1, 1, 5, 1), "launch"),
        ((1, 1, 1, 1, 5), "pipeline"),
        ((5, 4.4, 1, 1, 1), "compute"),
        ((5, 1, 1, 4.6, 1), "balanced"),
    ],
)
def test_the_largest_share_binds(shares: tuple[float, ...], word: str) -> None:
    assert binding(longest(*shares), second_longest(*shares), *shares[:4]) == word


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "compute"),
        ({"training.sequence_length": 64, "cluster.gpus": 1, "training.global_batch": 1}, "memory"),
        ({"cluster.gpus_per_node": 1, "cluster.network.bandwidth": 1e9}, "communication"),
        ({"parallelism.pp": 8, "training.global_batch": 1, "parallelism.zero": 0}, "pipeline"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_binds_a_plan(changes: dict[str, Any], word: str) -> None:
    assert evaluate(with_all(seed_7b(), changes))["time.bottleneck"] == word
