"""Time of blocks of every kind of token mixing, and of their mean."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from tests.core.huggingface_files import CLASSES, CONFIGS, imported
from tests.core.plans import block_time, kind_time, plan
from triledger.core.catalogue import catalogue
from triledger.core.model.layers import build
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Scenario
from triledger.core.training.block import BlockTime, Pass, mean_block

#: Published models that together hold every kind of layer.
MIXED = (
    *("deepseek-ai/DeepSeek-V3.2", "google/gemma-3-27b-it", "openai/gpt-oss-120b", "state-spaces/mamba-2.8b-hf"),
    *("Qwen/Qwen3.5-35B-A3B", "MiniMaxAI/MiniMax-Text-01", "ai21labs/Jamba-v0.1", "facebook/opt-350m"),
    *("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"),
    *("meta-llama/Llama-3.2-90B-Vision-Instruct", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
)
FAMILIES = ("lfm2_moe", "falcon_h1", "bitnet", "mimo_v2_flash", "granitemoehybrid", "bamba")


def spec(name: str) -> ModelSpec:
    config = CONFIGS[name] if name in CONFIGS else CLASSES[name][0]["config"]
    return imported(config).spec


KINDS = [(name, group) for name in (*MIXED, *FAMILIES) for group in range(len(build(spec(name)).groups))]


def on_h100(model: str | ModelSpec, **changes: Any) -> Scenario:
    usual: dict[str, Any] = {"cluster__gpus": 8, "training__global_batch": 8}
    return plan(model, "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))


@pytest.mark.parametrize(("name", "group"), KINDS)
def test_arrays_of_degrees_hold_what_numbers_hold(name: str, group: int) -> None:
    tensor, sequence = np.array([1, 2, 4, 2]), np.array([4096, 4096, 512, 65536])

    def at(tp: Any, length: Any) -> BlockTime:
        changes = {"parallelism__tp": tp, "parallelism__sp": True, "parallelism__etp": 1}
        return kind_time(on_h100(spec(name), training__sequence_length=length, **changes), group)

    together = at(tensor, sequence)
    for index in range(4):
        alone = at(int(tensor[index]), int(sequence[index]))
        for way in ("forward", "backward"):
            one, many = getattr(alone, way), getattr(together, way)
            assert one.seconds > 0
            for field in fields(Pass):
                value = np.broadcast_to(getattr(many, field.name), 4)[index]
                assert value == pytest.approx(getattr(one, field.name), rel=1e-12), field.name


@pytest.mark.parametrize(("name", "group"), KINDS)
def test_more_tensor_parallel_ranks_compute_less_each(name: str, group: int) -> None:
    whole, half = (kind_time(on_h100(spec(name), parallelism__tp=tp), group) for tp in (1, 2))
    for way in ("forward", "backward"):
        one, two = getattr(whole, way), getattr(half, way)
        assert two.matrices + two.attention < one.matrices + one.attention
        assert two.matrices > 0.4 * one.matrices


# ---------------------------------------------------------------- latent attention


def test_latent_attention_computes_with_expanded_heads() -> None:
    # 2·128·(192 + 128) FLOPs a pair, arXiv 2405.04434
    (core,) = kind_time(on_h100("deepseek-v3"), 0).cores
    assert core.name == "latent attention"
    assert core.flops == 81920 * 4096 * 4097 / 2
    rate = core.flops * (1 + 512 / 4096) / (core.forward - 3e-6)
    assert rate == pytest.approx(0.58 * 989.4e12)


@pytest.mark.parametrize(
    ("model", "sent"),
    [("llama-3-70b", 12.6e6), ("deepseek-v3", 251.7e6)],  # 256 and 5120 elements a token, 16 bits, three of four sent
)
def test_keys_and_values_between_context_parallel_ranks(model: str, sent: float) -> None:
    changes = {"parallelism__cp": 4, "parallelism__tp": 8, "training__sequence_length": 32768, "parallelism__sp": True}
    block = block_time(on_h100(model, cluster__gpus=32, training__global_batch=1, **changes))
    assert block.context_sent == pytest.approx(sent, rel=5e-3)


# ---------------------------------------------------------------- windows, states


def test_a_window_saves_pairs_and_pays_for_its_edges() -> None:
    # gpt-oss: 128 keys in every second layer, 64 heads of 64
    scenario = on_h100("gpt-oss-120b", training__sequence_length=8192)
    window, full = (kind_time(scenario, group).cores[0] for group in (0, 1))
    assert full.flops == 4 * 64 * 64 * 8192 * 8193 / 2
    assert window.flops == 1.6 * 4 * 64 * 64 * (128 * 129 / 2 + (8192 - 128) * 128)
    assert window.forward < 0.06 * full.forward
    short = on_h100("gpt-oss-120b", training__sequence_length=128)
    assert kind_time(short, 0).cores[0].flops == kind_time(short, 1).cores[0].flops


def test_recurrences_grow_with_the_sequence_and_attention_with_its_square() -> None:
    model = spec("Qwen/Qwen3.5-35B-A3B")

    def core(group: int, length: int) -> float:
        block = kind_time(on_h100(model, training__sequence_length=length), group)
        return block.forward.attention

    linear, full = (core(group, 131072) / core(group, 16384) for group in (0, 1))
    assert linear == pytest.approx(8, rel=0.02)
    assert full > 50


def test_a_scan_is_timed_by_its_bytes() -> None:
    model = spec("state-spaces/mamba-2.8b-hf")
    (core,) = kind_time(on_h100(model), 0).cores
    assert core.name == "state space"
    # values in and out of the convolution, values and steps, both state projections, and what leaves: 5120 wide
    assert core.moved == 2 * 4096 * (5 * 5120 + 2 * 16)
    assert core.forward == pytest.approx(core.moved / (0.8 * 3.35e12) + 5 * 3e-6)


def test_two_mixers_side_by_side_have_two_cores() -> None:
    block = kind_time(on_h100(spec("falcon_h1")), 0)
    assert [core.name for core in block.cores] == ["attention", "state space"]
    assert block.forward.attention == pytest.approx(sum(core.forward for core in block.cores))


# ---------------------------------------------------------------- the mean block


def test_the_mean_of_equal_blocks_is_the_block_itself() -> None:
    block = block_time(on_h100("llama-3-8b"))
    assert mean_block([32.0], [block], 32.0) is block


def test_the_mean_block_weighs_kinds_by_their_layers() -> None:
    model = build(catalogue().models["deepseek-v3"])
    scenario = on_h100("deepseek-v3", parallelism__ep=8)
    dense, routed = (kind_time(scenario, group) for group in (0, 1))
    mean = mean_block([layers for layers, _ in model.groups], [dense, routed], model.layers)
    assert mean.forward_seconds == pytest.approx((3 * dense.forward_seconds + 58 * routed.forward_seconds) / 61)
    assert mean.backward.routing == pytest.approx(58 / 61 * routed.backward.routing)
