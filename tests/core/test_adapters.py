"""Adapters beside frozen matrices: memory and FLOPs against measured slopes, peaks and published counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.plans import plan
from tests.core.test_training_parameters import memory_of
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.ledgers.adapters import active_adapters, adapters_of
from triledger.core.ledgers.compute import forward_ledger, trained_flops
from triledger.core.ledgers.training_memory import PeakMemory, TrainingMemory, peak_memory
from triledger.core.model.layers import build
from triledger.core.scenario import Lora, Training

GIB = 2.0**30
#: Mistral 7B v0.1: 32 000 rows of vocabulary.
MISTRAL = replace(catalogue().models["mistral-7b-v0.3"], vocabulary=32000)
FOUR_OF_4096: dict[str, Any] = {
    "training__micro_batch": 4,
    "training__sequence_length": 4096,
    "training__recompute": "full",
    "training__finetune": "lora",
    "training__lora__dropout": 0.1,
    "training__state_precision": "bf16",
}


def held(model: Any, gpus: int = 1, **changes: Any) -> tuple[TrainingMemory, PeakMemory]:
    usual = {"cluster__gpus": gpus, "parallelism__zero": 3 if gpus > 1 else 0, "training__global_batch": 4 * gpus}
    memory = memory_of(model, **(FOUR_OF_4096 | usual | changes))
    return memory, peak_memory(memory)


@pytest.mark.parametrize(("framework", "slope"), [("hf-trainer", 734_720), ("hf-trainer-fused", 598_528)])
def test_mistral_with_adapters_on_attention(framework: str, slope: int) -> None:
    # measured on one A100: 734 762 and 598 578 bytes a token; checkpoints, logits and final norm
    memory, peak = held(MISTRAL, training__framework=framework, training__autocast=False)
    assert 32 * memory.kept[0].held + peak.items["logits"] / 16384 == slope


def test_peak_of_mistral_with_adapters() -> None:
    # measured 24.871 GiB
    peak = held(MISTRAL, training__framework="hf-trainer", training__autocast=False)[1]
    assert peak.total / GIB == pytest.approx(24.871, rel=2e-3)
    assert peak.instant == 0


LLAMA_FUSED: dict[str, Any] = {"training__framework": "hf-trainer-fused", "training__logit_bytes": 0}


def test_llama_3_8b_with_a_fused_loss() -> None:
    # measured 528 672 bytes a token; a block keeps 40h and 256 bytes, its transients are 25h
    memory = held("llama-3-8b", **LLAMA_FUSED)[0]
    assert 32 * memory.kept[0].held + memory.kept[0].during_backward == 528_640
    kept = held("llama-3-8b", **LLAMA_FUSED, training__recompute="none")[0].kept[0]
    assert kept.held - 2 * 4096 == 40 * 4096 + 256
    assert kept.during_backward == 25 * 4096


def test_frozen_units_of_fsdp_keep_their_inputs() -> None:
    # measured on four GPUs: 245 760 bytes a token more, and 1.958 GiB for the gathered embedding and head
    one, four = (held("llama-3-8b", gpus, **LLAMA_FUSED)[1] for gpus in (1, 4))
    assert (four.items["activations"] - one.items["activations"]) / 16384 == 30 * 2 * 4096
    memory = held("llama-3-8b", 4, **LLAMA_FUSED)[0]
    block = 2 * memory.block_share
    assert (four.items["gathered"] - block) / GIB == pytest.approx(1.957, abs=5e-4)


LITGPT: dict[str, Any] = {
    "training__micro_batch": 1,
    "training__sequence_length": 1304,
    "training__recompute": "none",
    "training__lora__rank": 8,
    "training__lora__targets": "q-v",
    "training__framework": "litgpt",
    "training__logit_bytes": 8,
    "training__global_batch": 16,
}


def test_llama_2_with_adapters_on_queries_and_values() -> None:
    # measured 19.84 GiB on one A100, and 33.13 GiB of the 13B model on four with units of frozen and trained weights
    assert held("llama-2-7b", **LITGPT)[1].total / GIB == pytest.approx(19.84, rel=3e-3)
    four = held("llama-2-13b", 4, **(LITGPT | {"training__recompute": "full"}))[1]
    assert four.total / GIB == pytest.approx(33.13, rel=8e-3)


def test_flops_of_llama_3_70b_with_adapters() -> None:
    # 7 matrices of rank 16; 4·6.950e10 + 6·2.07e8 a token beside attention, two thirds of full training
    model = build(catalogue().models["llama-3-70b"])
    training = Training(finetune="lora", lora=Lora(targets="all"), framework="hf-trainer")
    adapters = adapters_of(training, {"adapter": 4, "qkv_buffer": False})
    assert adapters is not None
    assert active_adapters(model, adapters) == 207_093_760
    ledger = forward_ledger(model, 4096)
    token = trained_flops(ledger, model, training).model - 3 * ledger.core
    assert token == pytest.approx(2.793e11, rel=2e-4)
    assert token / (trained_flops(ledger, model, Training()).model - 3 * ledger.core) == pytest.approx(0.67, abs=5e-3)


@pytest.mark.parametrize("framework", ["megatron", "torchtitan", "hf-trainer", "litgpt"])
@pytest.mark.parametrize("model", ["llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-27b"])
def test_what_is_frozen_needs_no_states(model: str, framework: str) -> None:
    usual: dict[str, Any] = {"cluster__gpus": 8, "parallelism__zero": 0, "training__framework": framework}
    full, lora, quantised = (
        peak_memory(memory_of(model, **usual, training__finetune=each)).total for each in ("full", "lora", "qlora")
    )
    assert quantised < lora < full


def test_a_quantised_base_is_a_quarter() -> None:
    # arXiv 2305.14314: 0.5 + 8/64/8 + 32/(64·256)/8 bytes a parameter of the matrices, the rest in 16 bits
    memory = memory_of("llama-2-7b", cluster__gpus=1, parallelism__zero=0, training__finetune="qlora")
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    rest = 6_738_415_616 - matrices
    adapters = 32 * 4 * 16 * (4096 + 4096)
    expected = 0.515869 * matrices + 2 * rest + 4 * adapters
    assert memory.static(0.0)["weights"] == pytest.approx(expected, rel=1e-5)
    assert memory.static(0.0)["momentum"] == 4 * adapters


def test_a_pipeline_keeps_frozen_blocks_gathered() -> None:
    usual: dict[str, Any] = {"training__finetune": "lora", "parallelism__zero": 3, "training__global_batch": 16}
    memory = memory_of("llama-2-7b", cluster__gpus=16, parallelism__pp=2, **usual)
    gathered = memory.stage(0.0).items["gathered"]
    assert gathered == 2 * (16 * memory.block_share + memory.embedding_share)
    dual = memory_of("llama-2-7b", cluster__gpus=16, parallelism__pp=2, **usual, parallelism__schedule="dualpipe")
    assert dual.static(0.0)["weights"] == pytest.approx(2 * memory.static(0.0)["weights"], rel=1e-2)


def test_adapters_over_ranks_and_arrays() -> None:
    ranks = np.array([1.0, 2.0, 4.0])
    usual: dict[str, Any] = {"training__finetune": "qlora", "training__lora__targets": "all-and-head"}
    together = peak_memory(
        memory_of("mixtral-8x7b", cluster__gpus=np.full(3, 8.0), parallelism__ep=ranks, parallelism__pp=ranks, **usual)
    )
    for index, each in enumerate((1.0, 2.0, 4.0)):
        alone = peak_memory(
            memory_of("mixtral-8x7b", cluster__gpus=8.0, parallelism__ep=each, parallelism__pp=each, **usual)
        )
        assert together.total[index] == pytest.approx(alone.total, rel=1e-12)


def test_optimizers_by_what_they_keep() -> None:
    def states(optimizer: str) -> float:
        report = evaluate(plan("llama-2-7b", parallelism__zero=0, training__optimizer=optimizer))
        return float(report["memory.momentum_bytes"] + report["memory.variance_bytes"])

    matrices, total = 32 * (4 * 4096**2 + 3 * 4096 * 11008), 6_738_415_616
    assert states("adamw") == 8 * total
    # arXiv 2502.16982: a second moment only outside the matrices of blocks
    assert states("muon") == 4 * total + 4 * (total - matrices)
    # arXiv 1804.04235: rows and columns of each matrix; queries, keys and values are one matrix
    block = (4096 + 3 * 4096) + (4096 + 4096) + (4096 + 2 * 11008) + (11008 + 4096)
    outer = 2 * (32000 + 4096) + (2 * 32 + 1) * 4096
    assert states("adafactor") == 4 * (32 * block + outer)


# ---------------------------------------------------------------- time


def test_frozen_matrices_have_no_weight_gradients() -> None:
    full, lora = (
        evaluate(plan("llama-3-8b", training__finetune=each, training__lora__targets="q-v", cluster__gpus=8))
        for each in ("full", "lora")
    )
    assert lora["time.block_backward_s"] < 0.75 * full["time.block_backward_s"]
    assert lora["time.step_s"] < full["time.step_s"]
    assert lora["compute.training_flops_per_token"] < 0.7 * full["compute.training_flops_per_token"]


def test_only_adapters_are_reduced_and_updated() -> None:
    full, lora = (
        evaluate(plan("llama-3-8b", training__finetune=each, parallelism__zero=1, cluster__gpus=8))
        for each in ("full", "lora")
    )
    adapters = 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024))
    sent = sum(row.bytes_per_gpu for row in lora.communication)
    assert sent == pytest.approx(7 / 8 * adapters * (4 + 4), rel=1e-12)
    assert lora["communication.bytes_per_gpu"] < 0.01 * full["communication.bytes_per_gpu"]
    assert lora["time.optimizer_s"] < full["time.optimizer_s"]


@pytest.mark.parametrize(("targets", "experts"), [("attention", False), ("all", True)])
def test_adapters_beside_attention_send_nothing_of_experts(targets: str, experts: bool) -> None:
    usual: dict[str, Any] = {"cluster__gpus": 16, "parallelism__ep": 8, "training__finetune": "lora"}
    for zero in (0, 1, 3):
        report = evaluate(plan("mixtral-8x7b", **usual, parallelism__zero=zero, training__lora__targets=targets))
        rows = [row for row in report.communication if row.name.startswith("data parallel gradients")]
        assert all(row.bytes_per_gpu > 0 for row in report.communication)
        assert any(row.name.endswith("of experts") for row in rows) is experts


def test_frozen_experts_that_one_rank_alone_holds_are_not_gathered() -> None:
    # 8 experts over 8 ranks: nobody else has them; over 4 ranks, two share them
    usual: dict[str, Any] = {"cluster__gpus": 8, "parallelism__zero": 3, "training__finetune": "lora"}
    alone, shared = (
        memory_of("mixtral-8x7b", **usual, training__logit_bytes=0, parallelism__ep=ep).stage(0.0) for ep in (8, 4)
    )
    assert (alone.instant, shared.instant) == (1, 1)
    experts = 3 * 4096 * 14336
    assert shared.items["gathered"] - alone.items["gathered"] == pytest.approx(2 * 2 * experts)


def test_a_frozen_base_is_gathered_quantised() -> None:
    lora, quantised = (
        evaluate(plan("llama-3-8b", training__finetune=each, parallelism__zero=3, cluster__gpus=8))
        for each in ("lora", "qlora")
    )
    weights = [
        next(row.bytes_per_gpu for row in each.communication if row.collective == "all-gather")
        for each in (lora, quantised)
    ]
    blocks, ends = 32 * (8_030_261_248 - 2 * 128256 * 4096 - 4096) / 32, 2 * 128256 * 4096
    matrices = blocks - 32 * 2 * 4096
    expected = (0.51587 * matrices + 2 * (blocks - matrices + ends)) / (2 * (blocks + ends))
    assert weights[1] / weights[0] == pytest.approx(expected, rel=1e-4)


def test_states_on_the_host_travel_and_leave_the_device() -> None:
    usual: dict[str, Any] = {"parallelism__zero": 1, "cluster__gpus": 8}
    near = evaluate(plan("llama-2-7b", **usual))
    far = evaluate(plan("llama-2-7b", **usual, training__offload_optimizer=True))
    states = 12 * 6_738_415_616 / 8
    assert near["memory.optimizer_bytes"] == states
    assert far["memory.optimizer_bytes"] == 0
    assert far["memory.host_bytes"] == states
    # 32-bit gradients to the host, 16-bit weights back over 31.5 GB/s, of which 80 % are reached
    assert far["time.optimizer_s"] == pytest.approx(6 * 6_738_415_616 / 8 / (0.8 * 31.5e9))


def test_muon_multiplies_what_it_updates() -> None:
    usual: dict[str, Any] = {"parallelism__zero": 1, "cluster__gpus": 8}
    adamw, muon = (
        evaluate(plan("llama-2-7b", **usual, training__optimizer=each))["time.optimizer_s"]
        for each in ("adamw", "muon")
    )
    # five iterations of three products, 30·min²·max: queries, keys and values in one, gate and up in one
    layer = 30 * (4096**2 * 12288 + 4096**3 + 4096**2 * 22016 + 4096**2 * 11008)
    assert muon - adamw == pytest.approx(32 * layer / 8 / (0.82 * 312e12), rel=1e-9)


def test_updates_of_small_matrices_are_bound_by_their_bytes() -> None:
    small = replace(catalogue().models["llama-2-7b"], hidden_size=128, ffn_size=256, heads=2, kv_heads=2)
    report = evaluate(plan(small, "h100-sxm-80gb", cluster__gpus=8, training__optimizer="muon"))
    point = next(each for each in report.points if each.name == "orthogonal updates")
    assert point.bound == "memory"
    assert point.seconds == pytest.approx(point.bytes / (0.8 * 3.35e12))


def test_the_compute_ledger_tells_what_an_optimizer_does() -> None:
    def rows(**changes: Any) -> dict[str, float]:
        report = evaluate(plan("llama-2-7b", parallelism__zero=1, cluster__gpus=8, **changes))
        return {point.name: float(point.seconds) for point in report.points}

    usual, muon = rows(), rows(training__optimizer="muon")
    assert muon["optimizer"] == usual["optimizer"]
    assert muon["orthogonal updates"] > usual["optimizer"]
    assert "optimizer" not in rows(training__offload_optimizer=True)
