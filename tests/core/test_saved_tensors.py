"""What each kind of layer keeps for its backward pass: counted tensors, shares of ranks, recomputation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.test_model_kinds import BLOCKS, block_id
from tests.core.test_training_parameters import memory_of
from triledger.core.catalogue import catalogue, table
from triledger.core.ledgers.activations import block_activations
from triledger.core.ledgers.saved import Keeping, Kept, ffn_kept, mixer_kept
from triledger.core.ledgers.training_memory import peak_memory
from triledger.core.model.block import Block
from triledger.core.model.kinds.mixer import Mixer
from triledger.core.model.layers import build
from triledger.core.numeric import Number
from triledger.core.scenario import Training

GIB = 2.0**30


def keeping(
    tensor: Number = 1, sp: bool = False, split: Number = 1, framework: str = "megatron", **training: Any
) -> Keeping:
    plan = replace(Training(), **training)
    share = 1 / tensor if sp else 1.0
    return Keeping(plan, table("frameworks")[framework], tensor, share, plan.sequence_length, 2.0, split)


def block_of(model: str, group: int = -1) -> Block:
    return build(catalogue().models[model]).groups[group][1]


def mixer_of(kind: str) -> Mixer:
    return next(block.mixer for _, block in BLOCKS if type(block.mixer).__name__ == kind)


def test_experts_of_mixtral() -> None:
    # k·(4h + 6·f) + 8·E bytes a token; over 8 tensor parallel ranks with whole and with split experts
    experts = block_of("mixtral-8x7b").ffn
    assert ffn_kept(experts, keeping(framework="torchtitan")).tensors == 204_864
    assert ffn_kept(experts, keeping(8, sp=True, framework="torchtitan")).tensors == 25_608
    assert ffn_kept(experts, keeping(8, sp=True, split=8, framework="torchtitan")).tensors == 54_280


def test_weights_that_multiply_the_activation_need_no_output_of_experts() -> None:
    # Megatron Core: k·(2h + 6·f) + 8·E
    assert ffn_kept(block_of("mixtral-8x7b").ffn, keeping()).tensors == 2 * (2 * 4096 + 6 * 14336) + 8 * 8


def test_what_an_activation_reads_may_be_kept_in_8_bits() -> None:
    low = replace(keeping(), activation_input=1.0)
    dense, routed = block_of("deepseek-v3", 0).ffn, block_of("mixtral-8x7b").ffn
    assert ffn_kept(dense, keeping()).tensors - ffn_kept(dense, low).tensors == 2 * 18432
    assert ffn_kept(routed, keeping()).tensors - ffn_kept(routed, low).tensors == 2 * 2 * 14336
    plain = block_of("gpt2-xl").ffn
    assert ffn_kept(plain, keeping()).tensors - ffn_kept(plain, low).tensors == 4 * 1600


def test_uneven_routing_keeps_more_of_experts_alone() -> None:
    experts = block_of("mixtral-8x7b").ffn
    even, uneven = (ffn_kept(experts, replace(keeping(), imbalance=each)).tensors for each in (1.0, 1.2))
    assert uneven - even == pytest.approx(0.2 * (even - 8 * 8), rel=1e-12)


def test_latent_attention_of_deepseek_v3() -> None:
    # latents 2·1536 + 2·576; queries and keys of 192, values and output of 128 in 128 heads; log-sum-exp
    kept = mixer_kept(block_of("deepseek-v3").mixer, keeping())
    assert kept.tensors == 2 * 1536 + 2 * 576 + 2 * 128 * (192 + 192 + 128 + 128)
    assert kept.scores == 4 * 128
    # arXiv 2309.14509 and 2310.01889 pass on keys and values; expanded over 8 ranks 5120 elements a token
    assert mixer_kept(block_of("deepseek-v3").mixer, keeping(8)).passed_on == 5120
    split = mixer_kept(block_of("deepseek-v3").mixer, keeping(8, sp=True))
    assert split.tensors == kept.tensors / 8


def test_layers_of_deepseek_v3() -> None:
    # norms 8h and latent attention, then 6·18432 of the dense layers or 8·(2h + 6·2048) + 6·2048 + 8·256 of experts
    mixing = 8 * 7168 + 168_064 + 512
    dense, routed = (block_activations(block_of("deepseek-v3", group), keeping()).held for group in (0, 1))
    assert dense == mixing + 6 * 18432
    assert routed == mixing + 8 * (2 * 7168 + 6 * 2048) + 6 * 2048 + 8 * 256


def test_sandwich_norms_keep_their_inputs() -> None:
    spec = catalogue().models["gemma-2-9b"]
    four, two = (build(replace(spec, norms=norms)).block for norms in (4, 2))
    assert block_activations(four, keeping()).held - block_activations(two, keeping()).held == 4 * spec.hidden_size


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # arXiv 2501.08313: 64 heads of 128; q, k, v, gate, output, product
        ("LightningAttention", 2 * 6 * 64 * 128),
        # arXiv 2412.06464: 8192 channels twice, 4096 of values three times, 32 heads with systems of 64 and two gates
        ("DeltaNet", 2 * (2 * 8192 + 3 * 4096 + 32 * 64) + 8 * 32),
        # arXiv 2312.00752: inner 8192, step rank 256, state 16
        ("Mamba", 2 * (4 * 8192 + 256 + 2 * 16)),
        # arXiv 2405.21060: inner 4096, 8 groups with state 128, 64 heads
        ("Mamba2", 2 * (3 * 4096 + 4096 + 2 * 8 * 128 + 64)),
    ],
)
def test_layers_without_scores(kind: str, expected: float) -> None:
    kept = mixer_kept(mixer_of(kind), keeping())
    assert kept.tensors == expected
    assert kept.scores == 0


def test_attention_across_to_images_passes_nothing_on() -> None:
    kept = mixer_kept(mixer_of("CrossAttention"), keeping())
    assert kept.passed_on == 0
    assert kept.scores > 0


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=block_id)
def test_ranks_hold_less_and_recomputation_holds_less(name: str, block: Block) -> None:
    whole = block_activations(block, keeping())
    assert block_activations(block, keeping(2, sp=True)).held < whole.held
    full = block_activations(block, keeping(recompute="full"))
    operators = block_activations(block, keeping(recompute="op-level"))
    assert full.held < operators.held < whole.held
    assert whole.during_backward < operators.during_backward < full.during_backward
    assert block_activations(block, keeping(recompute="selective")).held < whole.held


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=block_id)
def test_arrays_hold_what_numbers_hold(name: str, block: Block) -> None:
    tensor = np.array([1.0, 2.0, 4.0])
    for recompute in ("none", "selective", "full", "op-level"):
        together = block_activations(block, keeping(tensor, True, tensor, recompute=recompute))
        for index, each in enumerate((1.0, 2.0, 4.0)):
            alone = block_activations(block, keeping(each, True, each, recompute=recompute))
            held, during = (np.broadcast_to(value, 3)[index] for value in (together.held, together.during_backward))
            assert (held, during) == pytest.approx((alone.held, alone.during_backward), rel=1e-12)


# ---------------------------------------------------------------- stages


def test_buffers_of_experts_on_other_ranks() -> None:
    usual: dict[str, Any] = {"cluster__gpus": 8, "parallelism__zero": 1, "training__sequence_length": 4096}
    near, far = (memory_of("deepseek-v3", **usual, parallelism__ep=ep) for ep in (1, 8))
    more = far.stage(0.0).items["workspace"] - near.stage(0.0).items["workspace"]
    # sent and received: 8 copies of 4096 tokens in 16 bits
    assert more == 2 * 8 * 4096 * 7168 * 2
    # 58 layers and a prediction module with 256 biases that steer routing, in 32 bits
    assert near.stage(0.0).items["workspace"] == (58 + 1) * 256 * 4


def test_a_ring_passes_on_keys_and_values_of_heads() -> None:
    one, two = (
        memory_of("deepseek-v3", cluster__gpus=16, parallelism__tp=8, parallelism__sp=True, parallelism__cp=cp)
        for cp in (1, 2)
    )
    assert two.stage(0.0).items["workspace"] - one.stage(0.0).items["workspace"] == 2 * 2048 * 5120 * 2


def test_the_fullest_stage_of_deepseek_v3_is_found_among_all() -> None:
    memory = memory_of("deepseek-v3", cluster__gpus=128, parallelism__pp=16, parallelism__ep=8, parallelism__zero=1)
    stages = [memory.stage(float(stage)).total for stage in range(16)]
    assert peak_memory(memory).total == max(stages)
    # the first stage holds three dense layers, the others four with experts
    assert stages[0] < stages[1]


def test_arrays_of_layouts_hold_what_each_holds() -> None:
    # at a pipeline of one, two and four stages with experts over 8, 4 and 2 ranks
    pipeline, expert = np.array([1.0, 2.0, 4.0]), np.array([8.0, 4.0, 2.0])
    together = peak_memory(
        memory_of("deepseek-v3", cluster__gpus=np.full(3, 32.0), parallelism__pp=pipeline, parallelism__ep=expert)
    )
    for index in range(3):
        alone = peak_memory(
            memory_of("deepseek-v3", cluster__gpus=32, parallelism__pp=pipeline[index], parallelism__ep=expert[index])
        )
        assert together.total[index] == pytest.approx(alone.total, rel=1e-12)
        assert together.stage[index] == alone.stage


def test_nothing_is_kept_of_an_empty_place() -> None:
    assert mixer_kept(mixer_of("NoMixer"), keeping()) == Kept()


def test_prediction_modules_keep_a_block_and_logits() -> None:
    # arXiv 2412.19437, section 2.2: a module is a block behind the last stage with logits of its own
    one, none = (
        memory_of("deepseek-v3", cluster__gpus=16, parallelism__pp=16, model__mtp_modules=n).stage(15.0) for n in (1, 0)
    )
    block = block_activations(block_of("deepseek-v3"), keeping()).held
    logits = 10 * 129_280 + 4 * 7168
    assert none.instant == one.instant == 0
    assert one.items["logits"] - none.items["logits"] == 4096 * logits
    assert one.items["activations"] - none.items["activations"] == pytest.approx(4096 * block, rel=1e-12)
