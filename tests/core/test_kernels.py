"""Kernels and blocks against published rates and layer times."""

from __future__ import annotations

import pytest

from tests.core.plans import block_time, gpt, megatron_2021, plan
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.machine.device import Machine, machine_of
from triledger.core.machine.kernels import attention_flops, causal_pairs, flash_seconds, matrix_bytes
from triledger.core.machine.rates import peak_flops, rates
from triledger.core.roofline import Roof
from triledger.core.training.operators import pointwise_flops


def machine(accelerator: str, precision: str = "bf16") -> Machine:
    scenario = plan("llama-2-7b", accelerator, training__precision=precision)
    return machine_of(scenario, rates(scenario))


# ---------------------------------------------------------------- matrix products


def test_a_product_of_4096_cubed_on_a100() -> None:
    # 512 tiles of 256×128 in 5 waves of 108 units: 0.602 ms, 228 TFLOP/s, 227 with the launch
    kernel = machine("a100-sxm-80gb").matrix(4096, 4096, 4096)
    flops = 2 * 4096**3
    assert kernel.math == pytest.approx(0.602e-3, abs=5e-7)
    assert flops / kernel.math == pytest.approx(228e12, abs=5e11)
    assert flops / kernel.seconds == pytest.approx(227e12, abs=5e11)


@pytest.mark.parametrize(
    ("accelerator", "precision", "expected", "tolerance"),
    [
        ("h100-sxm-80gb", "bf16", 655e12, 0.005),
        ("h100-sxm-80gb", "fp8", 1159e12, 0.005),
        ("gb200-nvl72", "bf16", 1481e12, 0.01),
        ("gb200-nvl72", "fp8", 2795e12, 0.01),
    ],
)
def test_large_products(accelerator: str, precision: str, expected: float, tolerance: float) -> None:
    # sustained rates: 0.85 of the best published shapes ("Machine Learning Engineering", achievable matmul rates)
    seconds = machine(accelerator, precision).matrix(8192, 8192, 8192).seconds
    assert 2 * 8192**3 / seconds == pytest.approx(expected, rel=tolerance)


def test_bytes_and_intensity_of_a_product() -> None:
    # prefill of 2048 tokens through 4096×4096: 67.1 MB and 1024 FLOP/B with the result counted (1365 without)
    kernel = machine("a100-sxm-80gb").matrix(2048, 4096, 4096)
    assert kernel.moved == 2 * (2048 * 4096 + 4096 * 4096 + 2048 * 4096)
    assert kernel.moved == pytest.approx(67.1e6, abs=5e4)
    assert 2 * 2048 * 4096**2 / kernel.moved == 1024


def test_a_product_of_one_row_is_bound_by_its_weights() -> None:
    device = machine("a100-sxm-80gb")
    kernel = device.matrix(1, 32768, 8192)
    assert kernel.seconds == pytest.approx(kernel.moved / (0.8 * 2.039e12) + 3e-6, rel=1e-12)
    assert 2 * 32768 * 8192 / kernel.moved == pytest.approx(1.0, abs=1e-3)


def test_odd_sizes_leave_the_tensor_units_of_ampere() -> None:
    # NVIDIA matrix multiplication guide: multiples of 64 elements run at full rate, odd ones on vector units (1/16)
    device = machine("a100-sxm-80gb")
    aligned, by_eight, odd = (device.matrix(4096, width, 4096).math for width in (4096, 4072, 4095))
    assert by_eight / aligned == pytest.approx(1 / 0.80)
    assert odd / aligned == pytest.approx(1 / 0.0625)


def test_more_rows_cost_whole_waves() -> None:
    # 108 units: 108 tiles of 256×128 take as long as one
    device = machine("a100-sxm-80gb")
    one, full, over = (device.matrix(256, 128 * tiles, 8192).math for tiles in (1, 108, 109))
    assert one < full <= 108 * one
    assert device.matrix(256 * 108, 128, 65536).math == device.matrix(256 * 100, 128, 65536).math
    assert over > full


# ---------------------------------------------------------------- attention


@pytest.mark.parametrize(
    ("accelerator", "kernel", "published"),
    [
        # forward and backward with a causal mask and head size 128, TFLOP/s at 512 … 16k tokens: figures of the
        # FlashAttention-2 paper (arXiv 2307.08691) and its repository
        ("a100-sxm-80gb", "fa2", {512: 99, 1024: 133, 2048: 155, 4096: 173, 8192: 182, 16384: 189}),
        ("h100-sxm-80gb", "fa2", {512: 163, 1024: 221, 2048: 265, 4096: 294, 8192: 308, 16384: 328}),
    ],
)
def test_flash_attention_over_length(accelerator: str, kernel: str, published: dict[int, float]) -> None:
    scenario = plan("llama-2-7b", accelerator, training__attention_kernel=kernel)
    constants, peak = rates(scenario), peak_flops(scenario.cluster.accelerator, "bf16")
    for length, tflops in published.items():
        flops = attention_flops(16, 128, 128, causal_pairs(16384 / length, length, 1))
        ahead, back = (
            flash_seconds(flops, peak, rate, 1.0, constants.s_half, length, passes, 0, 1, 0, 0)
            for rate, passes in ((constants.e_fa_forward, 1.0), (constants.e_fa_backward, 2.5))
        )
        assert 3.5 * flops / (ahead + back) == pytest.approx(tflops * 1e12, rel=0.06), length


def test_head_sizes_are_padded_to_the_step_of_the_kernel() -> None:
    # FlashAttention-2 has kernels in steps of 32 (96 is its own size), cuDNN in steps of 64
    base = plan(gpt(1, 96 * 32, 32), "h100-sxm-80gb", cluster__gpus=1, training__sequence_length=4096)
    flops = attention_flops(32, 96, 96, causal_pairs(1, 4096, 1)) * (1 + 512 / 4096)
    for kernel, rate, padding in (("fa2", 0.37, 96), ("cudnn", 0.58, 128)):
        seconds = block_time(base.with_("training.attention_kernel", kernel)).forward.attention - 3e-6
        assert seconds == pytest.approx(flops / (989.4e12 * rate * 0.95 * 96 / padding), rel=1e-9), kernel
    # an A100 stack takes FlashAttention-2 where nothing else is said
    ampere = plan(gpt(1, 96 * 32, 32), "a100-sxm-80gb", cluster__gpus=1, training__sequence_length=4096)
    said = block_time(ampere.with_("training.attention_kernel", "fa2")).forward.attention
    assert block_time(ampere).forward.attention == said


def test_flash_attention_is_not_faster_than_its_peak() -> None:
    found = block_time(plan("llama-3-8b", "h100-sxm-80gb", cluster__gpus=1, training__sequence_length=131072))
    flops = attention_flops(32, 128, 128, causal_pairs(1, 131072, 1))
    assert flops / found.forward.attention < 0.58 * 989.4e12
    assert 2.5 * flops / found.backward.attention < 0.48 * 989.4e12


# ---------------------------------------------------------------- number formats


def test_head_and_attention_of_an_8_bit_recipe_stay_in_16_bits() -> None:
    # Transformer Engine runs the linears of the blocks in 8 bits, not the head nor the scores
    base = plan("llama-3-8b", "h100-sxm-80gb", cluster__gpus=8, training__attention="unfused")
    half, eight = (evaluate(base.with_("training.precision", word)) for word in ("bf16", "fp8"))
    blocks = [block_time(report.scenario) for report in (half, eight)]
    assert blocks[1].forward.attention == blocks[0].forward.attention
    assert blocks[1].forward.matrices < 0.65 * blocks[0].forward.matrices
    # a model that is nearly all head gains nothing
    wide = base.with_("model.layers", 1).with_("model.vocabulary", 4_000_000)
    times = [evaluate(wide.with_("training.precision", word))["time.steady_s"] for word in ("bf16", "fp8")]
    assert times[1] == pytest.approx(times[0], rel=0.02)


def test_casts_are_paid_by_8_bit_products_only() -> None:
    base = plan("llama-3-8b", "h100-sxm-80gb", cluster__gpus=1)
    assert block_time(base).forward.casts == 0
    assert block_time(base.with_("training.precision", "fp8")).forward.casts > 0


# ---------------------------------------------------------------- one layer

# arXiv 2205.05198, table 4: one layer of the 22B model on 8 A100, 4 sequences of 2048; milliseconds
LAYER = {
    "base": (False, "none", 7.7, 11.9),
    "sequence parallel": (True, "none", 7.2, 11.8),
    "full recompute": (False, "full", 7.7, 19.5),
    "selective recompute": (False, "selective", 7.7, 13.2),
    "both": (True, "selective", 7.2, 13.1),
}


def layer_of_22b(sp: bool, recompute: str) -> tuple[float, float]:
    found = block_time(
        megatron_2021(
            gpt(48, 6144, 64),
            cluster__gpus=8,
            parallelism__tp=8,
            parallelism__sp=sp,
            training__micro_batch=4,
            training__global_batch=4,
            training__recompute=recompute,
        )
    )
    return found.forward_seconds, found.backward_seconds


@pytest.mark.parametrize("case", LAYER)
def test_a_layer_of_the_22b_model(case: str) -> None:
    sp, recompute, forward, backward = LAYER[case]
    ahead, back = layer_of_22b(sp, recompute)
    assert 1e3 * ahead == pytest.approx(forward, rel=0.08)
    assert 1e3 * back == pytest.approx(backward, rel=0.08)


@pytest.mark.parametrize("direction", [0, 1], ids=["forward", "backward"])
def test_layers_of_the_22b_model_on_the_mean(direction: int) -> None:
    errors = []
    for sp, recompute, *published in LAYER.values():
        errors.append(abs(1e3 * layer_of_22b(sp, recompute)[direction] / published[direction] - 1))
    assert sum(errors) / len(errors) < 0.04


# ---------------------------------------------------------------- the roofline


@pytest.mark.parametrize(
    ("accelerator", "knee"),
    [("a100-sxm-80gb", 153.0), ("h100-sxm-80gb", 295.3), ("h200-sxm-141gb", 206.1), ("rtx-4090", 163.9)],
)
def test_knees(accelerator: str, knee: float) -> None:
    # Π/β of the data sheets: 312/2.039, 989.4/3.35, 989.4/4.8, 165.2/1.008
    report = evaluate(plan("tinyllama-1.1b", accelerator, cluster__gpus=1))
    assert report["roofline.knee"] == pytest.approx(knee, abs=0.05)


def test_knee_in_8_bits() -> None:
    report = evaluate(plan("tinyllama-1.1b", "h100-sxm-80gb", cluster__gpus=1, training__precision="fp8"))
    assert report["roofline.knee"] == pytest.approx(590.7, abs=0.05)


def test_points_under_the_roof() -> None:
    report = evaluate(plan("llama-3-8b", "h100-sxm-80gb", cluster__gpus=8, parallelism__tp=2))
    assert {p.name for p in report.points} >= {"QKV", "attention", "FFN up", "FFN down", "optimizer", "whole step"}
    for p in report.points:
        assert p.intensity == pytest.approx(p.flops / p.bytes)
        assert p.attainable_flops == pytest.approx(min(989.4e12, p.intensity * 3.35e12))
        assert p.achieved_flops == pytest.approx(p.flops / p.seconds)
        assert p.achieved_flops <= p.attainable_flops, p.name


def test_attainable_rate_on_both_sides_of_the_knee() -> None:
    below, above = (Roof(312e12, 2e12).point("x", "step", flops, 1.0, 1.0, "") for flops in (100.0, 1000.0))
    assert below.attainable_flops == 2e14
    assert above.attainable_flops == 312e12


def test_a_part_without_published_rates_says_so() -> None:
    found = evaluate(plan("tinyllama-1.1b", "mi300x", cluster__gpus=8))
    assert "uncalibrated" in {finding.code for finding in found.findings}
    assert catalogue().accelerators["mi300x"].name in next(
        f.message for f in found.findings if f.code == "uncalibrated"
    )


def test_intensities_of_four_operators() -> None:
    """FLOP a byte with 16-bit tensors: a norm (2 FLOPs an element), a product with one row, and one of 2048 rows."""
    assert pointwise_flops(4.0) / 4.0 == 0.5
    row = 2 * 4096**2 / matrix_bytes(1, 4096, 4096, 1, 2, 2)
    assert row == pytest.approx(1.0, abs=1e-3)
    prompt = 2 * 2048 * 4096**2 / matrix_bytes(2048, 4096, 4096, 1, 2, 2)
    assert prompt == 1024
    without_result = 2 * 2048 * 4096**2 / matrix_bytes(2048, 4096, 4096, 1, 2, 0)
    assert without_result == pytest.approx(1365.33, abs=0.01)
