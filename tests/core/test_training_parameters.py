"""Parameters of a rank in training: layers of its stage, ends of the model, routed experts over their own ranks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import plan
from triledger.core.catalogue import catalogue
from triledger.core.ledgers.training_memory import TrainingMemory
from triledger.core.machine.rates import rates
from triledger.core.model.layers import build
from triledger.core.training.layout import layout_of

MODELS = sorted(catalogue().models)


def memory_of(model: str, **changes: Any) -> TrainingMemory:
    scenario = plan(model, **changes)
    return TrainingMemory(scenario, build(scenario.model), layout_of(scenario, rates(scenario)))


def modules(model: str) -> float:
    """Trained parameters of the modules that predict further tokens; their steering biases are buffers."""
    built = build(catalogue().models[model])
    buffers = built.spec.mtp_modules * built.groups[built.last_group][1].ffn.buffers()
    return built.mtp_parameters - buffers


@pytest.mark.parametrize("model", MODELS)
def test_one_rank_holds_the_model(model: str) -> None:
    memory = memory_of(model, cluster__gpus=1, model__vocabulary_multiple=1)
    assert memory.parameters(0.0) == memory.model.text_parameters + modules(model)


@pytest.mark.parametrize("model", MODELS)
def test_stages_hold_the_model_and_a_copy_of_a_tied_head(model: str) -> None:
    memory = memory_of(model, cluster__gpus=4, parallelism__pp=4, model__vocabulary_multiple=1)
    spec = memory.model.spec
    copy = spec.vocabulary * memory.model.width if spec.tied else 0
    held = sum(memory.parameters(float(stage)) for stage in range(4))
    assert held == memory.model.text_parameters + modules(model) + copy


@pytest.mark.parametrize("model", MODELS)
def test_the_mean_block_stands_for_all_layers(model: str) -> None:
    memory = memory_of(model, cluster__gpus=1)
    total = sum(layers * block.parameters() for layers, block in memory.model.groups)
    assert memory.block_share * memory.model.layers == pytest.approx(total, rel=1e-12)
    assert memory.common_share + memory.routed_share == memory.block_share


def test_experts_of_deepseek_over_64_ranks() -> None:
    # arXiv 2412.19437, sections 3.1 and 3.4.1: 16 stages, experts over 64 ranks of 8 nodes, ZeRO-1 over the rest
    memory = memory_of("deepseek-v3", cluster__gpus=2048, parallelism__pp=16, parallelism__ep=64, parallelism__zero=1)
    # 4 layers of 256 experts of 3·7168·2048 parameters, over 64 ranks
    assert memory.routed_parameters(5.0) == 4 * 256 * 3 * 7168 * 2048 / 64
    common = memory.parameters(5.0) - memory.routed_parameters(5.0)
    # 128 ranks a stage: common parameters are sharded over all of them, each expert over the two that hold it
    assert memory.static(5.0)["master_weights"] == 4 * common / 128 + 4 * memory.routed_parameters(5.0) / 2


def test_replicas_of_hsdp_hold_the_same_shards_of_experts() -> None:
    usual: dict[str, Any] = {"cluster__gpus": 64, "parallelism__ep": 8, "parallelism__zero": 3}
    one, four = memory_of("mixtral-8x7b", **usual), memory_of("mixtral-8x7b", **usual, parallelism__hsdp_replicas=4)
    assert four.static(0.0)["momentum"] == pytest.approx(4 * one.static(0.0)["momentum"])


def test_split_experts_keep_their_biases() -> None:
    whole, split = (
        memory_of("gpt-oss-120b", cluster__gpus=8, parallelism__tp=8, parallelism__sp=True, parallelism__etp=etp)
        for etp in (1, 8)
    )
    matrices, biases = 128 * 3 * 2880 * 2880, 128 * (2 * 2880 + 2880)
    assert whole.routed_share == matrices + biases
    assert split.routed_share == matrices / 8 + biases


@pytest.mark.parametrize(("ep", "gathers"), [(64, False), (32, True)])
def test_a_pipeline_gathers_only_experts_that_are_sharded(ep: int, gathers: bool) -> None:
    memory = memory_of(
        "deepseek-v3",
        cluster__gpus=1024,
        parallelism__pp=16,
        parallelism__ep=ep,
        parallelism__zero=3,
        training__global_batch=1024,
    )
    gathered = memory.stage(7.0).items["gathered"]
    common = memory.rank.common_on(7.0) + memory.rank.common[-1]
    routed = memory.rank.routed_on(7.0) + memory.rank.routed[-1]
    assert gathered == pytest.approx(memory.widths.gathered * (common + gathers * routed))


def test_sharding_weights_adds_only_shards_and_a_gradient_where_each_rank_has_its_own_experts() -> None:
    usual: dict[str, Any] = {"cluster__gpus": 1024, "parallelism__pp": 16, "parallelism__ep": 64}
    usual |= {"training__recompute": "full", "training__global_batch": 15360}
    first, third = (memory_of("deepseek-v3", **usual, parallelism__zero=zero).stage(7.0) for zero in (1, 3))
    rank = memory_of("deepseek-v3", **usual).rank
    # the shards beside what is gathered, and the 16-bit gradients of the one block being reduced
    assert third.total == pytest.approx(first.total + 2 * rank.common_on(7.0) / 64 + 2 * rank.common[-1])
