"""What each documented habit of a training stack costs or saves, against hand counts."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from tests.core.plans import plan, seed_7b
from triledger.core import evaluate
from triledger.core.catalogue import catalogue, table
from triledger.core.machine.collectives import Fabric, Group, collective
from triledger.core.machine.device import machine_of
from triledger.core.machine.rates import peak_flops, rates
from triledger.core.model.layers import build
from triledger.core.scenario import Scenario
from triledger.core.training.block import BlockTime, BlockTimer
from triledger.core.training.layout import layout_of
from triledger.core.training.projections import projections


def h100(**changes: Any) -> Scenario:
    return plan("llama-2-7b", accelerator="h100-sxm-80gb", network="ib-ndr-400", **changes)


def block_time(scenario: Scenario) -> BlockTime:
    constants = rates(scenario)
    layout = layout_of(scenario, constants)
    return BlockTimer(build(scenario.model).block, layout, machine_of(scenario, constants), scenario).time()


def step(scenario: Scenario) -> float:
    return float(evaluate(scenario)["time.step_s"])


# ---------------------------------------------------------------- rates


def test_a_power_limit_slows_matrix_units_by_its_square_root_and_leaves_memory_alone() -> None:
    free, held = rates(h100()), rates(h100(cluster__power_limit=500.0))
    for name in ("e_gemm", "e_gemm_16", "e_fa_forward", "e_fa_backward"):
        assert getattr(held, name) == pytest.approx(getattr(free, name) * sqrt(500 / 700))
    assert held.e_mem == free.e_mem


def test_libraries_of_the_first_year_reach_less() -> None:
    now, early = rates(h100()), rates(h100(training__kernel_maturity="first-year"))
    share = table("rates")["constants"]["first_year"]
    assert early.e_gemm == pytest.approx(now.e_gemm * share)
    assert early.e_fa_backward == pytest.approx(now.e_fa_backward * share)
    assert early.e_nic == now.e_nic


@pytest.mark.parametrize("name", list(table("precisions")))
def test_every_number_format_has_a_peak_and_a_rate(name: str) -> None:
    device = catalogue().accelerators["b200-sxm-180gb"]
    assert peak_flops(device, name) == getattr(device.peak, table("precisions")[name]["peak"])
    report = evaluate(plan("llama-2-7b", accelerator="b200-sxm-180gb", training__precision=name))
    assert 0 < report["time.mfu"] < 1
    assert table("precisions")[name]["source"]


def test_block_scaled_products_run_at_their_share_of_the_rate_of_one_scale() -> None:
    plain, scaled = (rates(h100(training__precision=name)).e_gemm for name in ("fp8", "mxfp8"))
    assert scaled == pytest.approx(0.93 * plain)


def test_products_without_units_for_them_are_told() -> None:
    found = {finding.code: finding for finding in evaluate(h100(training__precision="nvfp4")).findings}
    assert "no fp4 matrix units" in found["no-fp8"].message


# ---------------------------------------------------------------- kernels


def test_separate_projections_are_the_same_parameters_in_more_matrices() -> None:
    block = build(catalogue().models["llama-3-8b"]).block
    fused, separate = projections(block, 2, False), projections(block, 2, True)
    size = [sum(m.inputs * m.outputs for m, _ in matrices) for matrices in (fused, separate)]
    assert size[0] == size[1]
    assert (len(fused), len(separate)) == (4, 7)
    assert [m.name for m, first in separate if not first] == ["key", "value", "FFN up"]


def test_separate_projections_of_a_plain_ffn_split_queries_keys_and_values_only() -> None:
    block = build(catalogue().models["gpt-3-175b"]).block
    assert [m.name for m, _ in projections(block, 1, True)][3:] == ["attention output", "FFN up", "FFN down"]


def test_separate_projections_add_up_three_input_gradients() -> None:
    scenario = h100(training__micro_batch=2)
    fused, separate = (block_time(scenario.with_("training.projections", p)) for p in ("fused", "separate"))
    moved = 6 * 2 * 4096 * 4096
    added = 3 * (moved / (0.8 * 3.35e12) + 3e-6)
    assert separate.backward.pointwise - fused.backward.pointwise == pytest.approx(added)
    assert separate.forward.matrices > fused.forward.matrices
    assert {product.name for product in separate.products} > {"query", "key", "value", "FFN gate"}


def test_the_roofline_names_the_matrices_that_run() -> None:
    names = [point.name for point in evaluate(h100(training__projections="separate")).points]
    assert names[:3] == ["query", "key", "value"]


def test_eager_norms_and_activation_take_two_and_a_half_passes() -> None:
    fused, eager = (block_time(h100(training__pointwise=p)) for p in ("fused", "eager"))
    norms_and_activation = fused.forward.cheap
    added = eager.forward.pointwise - fused.forward.pointwise
    assert added == pytest.approx(1.5 * norms_and_activation)


def test_recomputation_by_operator_repeats_half_of_the_products_and_all_pointwise_work() -> None:
    found = block_time(h100(training__recompute="op-level"))
    assert found.recompute_seconds == pytest.approx(0.5 * found.forward.matrices + found.forward.pointwise)


def test_recomputation_by_operator_stands_between_none_and_full_in_time_and_memory() -> None:
    reports = [evaluate(h100(training__recompute=r, parallelism__zero=3)) for r in ("none", "op-level", "full")]
    times = [report["time.step_s"] for report in reports]
    held = [report["memory.activations_bytes"] for report in reports]
    flops = [report["compute.hardware_flops_per_step"] for report in reports]
    assert times == sorted(times)
    assert flops == sorted(flops)
    assert held == sorted(held, reverse=True)


def test_recomputation_by_operator_keeps_what_its_policy_saves() -> None:
    # block input, query, value, attention output and its log-sum-exp, gate, down: bytes of a token, Llama-3-8B
    report = evaluate(plan("llama-3-8b", training__recompute="op-level", training__sequence_length=8192))
    blocks = 32 * (2 * 4096 + 2 * (2 * 32 + 8) * 128 + 4 * 32 + 2 * 14336 + 2 * 4096)
    assert report["memory.activations_bytes"] > blocks * 8192
    assert report["memory.activations_bytes"] < 1.3 * blocks * 8192


# ---------------------------------------------------------------- 8-bit habits


def test_weights_cast_for_every_micro_batch_cost_more_than_once_a_step() -> None:
    scenario = h100(training__precision="fp8", training__global_batch=64)
    once, again = (block_time(scenario.with_("fp8.cache_weights", kept)) for kept in (True, False))
    weights = sum(m.inputs * m.outputs for m, _ in projections(build(scenario.model).block, 1, False))
    each = 4 * weights / (0.8 * 3.35e12) + 4 * 3e-6
    assert again.forward.casts - once.forward.casts == pytest.approx(each * (1 - 1 / 8))


def gathered(scenario: Scenario) -> float:
    rows = {row.name: row for row in evaluate(scenario).communication}
    return float(rows["data parallel updated weights"].bytes_per_gpu)


def test_parameters_gathered_in_8_bits_are_half_the_bytes() -> None:
    scenario = h100(training__precision="fp8", parallelism__zero=1)
    assert gathered(scenario.with_("fp8.parameter_gather", True)) == pytest.approx(gathered(scenario) / 2)
    plain = scenario.with_("training.precision", "bf16")
    assert gathered(plain.with_("fp8.parameter_gather", True)) == gathered(plain)


# ---------------------------------------------------------------- communication


def flows(scenario: Scenario) -> dict[str, Any]:
    return {row.name: row for row in evaluate(scenario).communication}


def test_gathering_that_nothing_hides_is_exposed_whole() -> None:
    scenario = seed_7b(parallelism__zero=1)
    hidden = flows(scenario)["data parallel updated weights"]
    bare = flows(scenario.with_("overlap.parameter_gather", False))
    weights, gradients = bare["data parallel updated weights"], bare["data parallel gradients"]
    assert hidden.exposed_seconds < hidden.seconds
    assert weights.exposed_seconds == weights.seconds == hidden.seconds
    assert weights.hides_behind == ""
    assert gradients.exposed_seconds < gradients.seconds


def test_small_buckets_pay_the_latency_more_often() -> None:
    scenario = seed_7b(parallelism__zero=1, cluster__gpus=256, training__global_batch=256)
    usual, small = flows(scenario), flows(scenario.with_("training.bucket_bytes", 25e6))
    buffer = 2 * evaluate(scenario)["memory.parameters_per_gpu"]
    more = buffer // 25e6 - buffer // 400e6
    ranks, nodes = 256, 32
    latency = (ranks - nodes) * 3.4e-6 + nodes * 14e-6 + 8e-6
    slower = small["data parallel gradients"].seconds - usual["data parallel gradients"].seconds
    assert slower == pytest.approx(more * latency, rel=0.01)


def fabric(boards: int) -> Fabric:
    scenario = plan("llama-2-7b").with_("cluster.network.boards", boards)
    return layout_of(scenario, rates(scenario)).fabric


def test_ranks_on_two_boards_meet_through_the_host() -> None:
    # eight ranks on two boards of four: four links of 31.5 GB/s through the host, at 0.8 of their rate
    one, two = (collective("all-reduce", 226.5e6, Group.of(8, 1, fabric(n)), fabric(n)) for n in (1, 2))
    latency = 14 * 1e-6 + 8e-6
    assert two.seconds == pytest.approx(1.75 * 226.5e6 / (4 * 0.8 * 31.5e9) + latency)
    assert one.seconds == pytest.approx(1.75 * 226.5e6 / (0.78 * 300e9) + latency)
    assert two.sent == one.sent


def test_ranks_of_one_board_and_of_many_nodes_do_not_use_the_host() -> None:
    assert Group.of(4, 1, fabric(2)).hosted == 0
    assert Group.of(16, 1, fabric(2)).hosted == 0
    assert Group.of(16, 1, fabric(2)).inside == 4
    assert Group.of(2, 4, fabric(2)).hosted == 1


def test_boards_slow_tensor_parallelism_over_the_whole_node_only() -> None:
    whole = seed_7b(parallelism__tp=8, parallelism__zero=0)
    half = seed_7b(parallelism__tp=4, parallelism__zero=0)
    assert step(whole.with_("cluster.network.boards", 2)) > 1.05 * step(whole)
    tensor = flows(half.with_("cluster.network.boards", 2))["tensor parallel, forward"]
    assert tensor.seconds == flows(half)["tensor parallel, forward"].seconds


# ---------------------------------------------------------------- memory


def test_16_bit_states_are_eight_bytes_a_parameter() -> None:
    report = evaluate(plan("llama-2-7b", cluster__gpus=1, training__state_precision="bf16", parallelism__zero=0))
    assert report["memory.static_bytes"] == pytest.approx(8 * report["model.parameters"])
    assert report["memory.optimizer_bytes"] == pytest.approx(4 * report["model.parameters"])


def test_a_16_bit_optimizer_step_of_a_stack_without_fusion_holds_ten_bytes_a_parameter() -> None:
    # the published peak of Mistral-7B on one A100 is 72.433e9 bytes: 10 bytes for each of 7.2417e9 parameters
    report = evaluate(
        plan(
            "mistral-7b-v0.3",
            cluster__gpus=1,
            model__vocabulary=32000,
            parallelism__zero=0,
            training__framework="hf-trainer-fused",
            training__state_precision="bf16",
            training__recompute="full",
            training__micro_batch=8,
            training__global_batch=8,
        )
    )
    assert report["memory.peak_instant"] == "optimizer step"
    assert report["memory.total_bytes"] == pytest.approx(72433116672, rel=1e-3)


def static_bytes(framework: str, **changes: Any) -> float:
    report = evaluate(seed_7b(parallelism__zero=1, training__framework=framework, **changes))
    return report["memory.static_bytes"] / report["memory.parameters_per_gpu"]


def test_deepspeed_keeps_both_gradients_or_a_copy_of_its_shard() -> None:
    # 2 + 2 + 16/D with 16-bit gradients, 2 + 2 + 4 + 12/D with 32-bit ones, against 2 + 2 + 12/D and 2 + 4 + 12/D
    for gradients, bytes_ in (("bf16", 2 + 2 + 16 / 8), ("fp32", 2 + 2 + 4 + 12 / 8)):
        found = static_bytes("megatron-deepspeed", training__gradient_precision=gradients)
        assert found == pytest.approx(bytes_)
    assert static_bytes("megatron-2022", training__gradient_precision="bf16") == pytest.approx(2 + 2 + 12 / 8)
    assert static_bytes("megatron-2022", training__gradient_precision="fp32") == pytest.approx(2 + 4 + 12 / 8)


def test_bytes_of_a_logit_can_be_stated_and_a_fused_loss_keeps_none() -> None:
    scenario = plan("llama-3-8b", cluster__gpus=8, parallelism__zero=3, training__recompute="full")
    at = {width: evaluate(scenario.with_("training.logit_bytes", width)) for width in (12.0, 14.0)}
    tokens, vocabulary = 4096, 128256
    assert at[14.0]["memory.logits_bytes"] - at[12.0]["memory.logits_bytes"] == pytest.approx(2 * tokens * vocabulary)
    fused = evaluate(scenario.with_("training.logit_bytes", 0.0))
    assert fused["memory.total_bytes"] < at[12.0]["memory.total_bytes"]
    assert fused["memory.peak_instant"] != "loss"


def test_the_roofline_counts_what_recomputation_by_operator_repeats() -> None:
    points = {r: {p.name: p for p in evaluate(h100(training__recompute=r)).points} for r in ("none", "op-level")}
    none, selected = points["none"], points["op-level"]
    assert selected["QKV"].flops == pytest.approx(none["QKV"].flops * 3.5 / 3)
    assert selected["attention"].flops == none["attention"].flops
    assert selected["norms and activation"].seconds > none["norms and activation"].seconds
