"""What 8-bit and 4-bit recipes keep of what they cast: copies of weights, and inputs of products."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.plans import plan
from tests.core.test_saved_tensors import block_of, keeping, mixer_of
from triledger.core import evaluate
from triledger.core.ledgers.activations import block_activations
from triledger.core.ledgers.saved import ffn_kept, mixer_kept
from triledger.core.model.layers import build
from triledger.core.scenario import Scenario

CAST = "low_precision_weights"


def llama(accelerator: str = "h100-sxm-80gb", **changes: Any) -> Scenario:
    usual: dict[str, Any] = {"cluster__gpus": 8, "parallelism__zero": 1, "training__precision": "fp8"}
    return plan("llama-2-7b", accelerator, **(usual | changes))


def held(scenario: Scenario, item: str) -> float:
    return float(evaluate(scenario)[f"memory.{item}_bytes"])


#: Parameters of Llama-2-7B in the matrices of its blocks.
MATRICES = 32 * build(llama().model).block.matrix_parameters()


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize(
    ("precision", "device", "each"),
    [
        ("fp8", "h100-sxm-80gb", 2.0),  # the value and its transpose
        ("fp8", "b200-sxm-180gb", 1.0),  # units that read either order
        ("mxfp8", "b200-sxm-180gb", 2.06),  # an 8-bit scale for 32 values, along rows and along columns
        ("fp8-block", "h100-sxm-80gb", 2.0),
        ("nvfp4", "b200-sxm-180gb", 1.125),  # half a byte and an 8-bit scale for 16 values
    ],
)
def test_copies_of_weights_stand_beside_the_16_bit_ones(precision: str, device: str, each: float) -> None:
    scenario = llama(device, training__precision=precision)
    assert held(scenario, CAST) == pytest.approx(each * MATRICES)
    assert held(scenario, "weights") == held(scenario.with_("training.precision", "bf16"), "weights")
    assert held(scenario.with_("fp8.cache_weights", False), CAST) == 0


def test_weights_that_are_gathered_in_8_bits_are_all_there_is() -> None:
    # 1 byte a parameter, or 2 with a transposed copy, in place of 2 in 16 bits; 12 bytes of optimizer stay
    plain, alone = llama(), llama(fp8__parameter_gather=True)
    assert held(plain, "weights") - held(alone, "weights") == pytest.approx(2 * MATRICES)
    assert held(alone, CAST) == pytest.approx(2 * MATRICES)
    assert held(alone.with_("fp8.cache_weights", False), CAST) == pytest.approx(MATRICES)
    assert held(alone, "optimizer") == held(plain, "optimizer")
    # each data parallel rank updates them by itself: nothing is gathered
    assert held(alone.with_("parallelism.zero", 0), "weights") == held(plain.with_("parallelism.zero", 0), "weights")


def test_zero_3_keeps_the_copies_of_one_block_and_gathers_half_the_bytes() -> None:
    whole = llama(parallelism__zero=3, training__framework="torchtitan", training__sequence_length=512)
    block = MATRICES / 32
    assert evaluate(whole)["memory.peak_instant"] == "backward"
    assert held(whole, CAST) == pytest.approx(2 * block)
    narrow = whole.with_("fp8.parameter_gather", True)
    assert held(whole, "gathered") - held(narrow, "gathered") == pytest.approx(2 * block)  # this one and the next
    assert held(narrow, CAST) == pytest.approx(block)
    # a pipeline keeps all blocks of its stage gathered
    staged = whole.with_("parallelism.pp", 2)
    assert held(staged, CAST) == pytest.approx(2 * MATRICES / 2)


def test_frozen_weights_are_cast_for_the_same_products_and_a_quantised_base_is_not() -> None:
    lora = llama(training__finetune="lora")
    assert held(lora, CAST) == pytest.approx(2 * MATRICES)
    alone = lora.with_("fp8.parameter_gather", True)
    assert held(lora, "weights") - held(alone, "weights") == pytest.approx(2 * MATRICES)
    assert held(llama(training__finetune="qlora"), CAST) == 0


# ---------------------------------------------------------------- inputs of products


def test_inputs_of_products_in_8_bits_take_six_and_a_half_of_33_and_a_half() -> None:
    # outputs of two norms, attention output and activation product: (3 + f/h)·h bytes a token less
    block = block_of("llama-3-70b")
    assert (block_activations(block, keeping()).held - 4 * 64) / 8192 == 33.5
    cast = replace(keeping(attention="unfused"), cast_input=1.0)
    scores = mixer_kept(block.mixer, cast).scores
    assert (block_activations(block, cast).held - scores) / 8192 == 27.0
    # a flash kernel needs its own output in 16 bits as well: that stays, and the copy stands beside
    flash = replace(keeping(), cast_input=1.0)
    assert (block_activations(block, flash).held - 4 * 64) / 8192 == 27.0 + 2


def test_4_bit_inputs_with_their_scales() -> None:
    block = block_of("llama-3-70b")
    cast = replace(keeping(attention="unfused"), cast_input=0.5625)
    saved = block_activations(block, keeping(attention="unfused")).held - block_activations(block, cast).held
    assert saved == pytest.approx((2 - 0.5625) * (3 + 28672 / 8192) * 8192)


def test_stacks_that_cast_on_the_fly_keep_inputs_in_16_bits() -> None:
    # torchtitan, Llama-3.1-8B on 8 H100: 77.0 GiB in bf16, 76.8 with 8-bit products
    usual: dict[str, Any] = {"fp8__cache_weights": False, "training__recompute": "none"}
    kept = [
        held(llama(training__framework="torchtitan", training__precision=p, **usual), "activations")
        for p in ("bf16", "fp8")
    ]
    assert kept[0] == kept[1]
    assert held(llama(**usual), "activations") < kept[1]


def test_experts_read_cast_copies_and_the_router_the_16_bit_norm() -> None:
    # k·(2h + 6f) + 8·E of Mixtral: copies sent to experts and products of activations in one byte
    experts, cast = block_of("mixtral-8x7b").ffn, replace(keeping(), cast_input=1.0)
    kept = ffn_kept(experts, cast)
    assert kept.tensors + kept.cast == 2 * (1 * 4096 + 5 * 14336) + 8 * 8
    # of a layer also the norm before attention, and a copy of attention output
    block = block_of("mixtral-8x7b")
    saved = block_activations(block, keeping()).held - block_activations(block, cast).held
    assert saved == 2 * (4096 + 14336) + 4096 - 4096


def test_a_scan_keeps_the_input_of_its_last_matrix_cast() -> None:
    # arXiv 2312.00752: inner width 8192
    kept = mixer_kept(mixer_of("Mamba"), replace(keeping(2), cast_input=1.0))
    assert kept.cast == -8192 / 2
