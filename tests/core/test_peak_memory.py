"""The fullest stage of a training plan and the instant of its peak; what stages, stacks and schedules hold."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.core.plans import plan, with_all
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.ledgers.instants import ITEMS
from triledger.core.model.layers import build
from triledger.core.report import Report
from triledger.core.scenario import Scenario

# ---------------------------------------------------------------- parameters of stages


@pytest.mark.parametrize("model", ["llama-3-8b", "llama-3.1-405b", "gpt-3-175b", "qwen3-0.6b", "falcon-7b"])
@pytest.mark.parametrize("stages", [1, 2, 4, 7])
def test_stages_share_the_model(model: str, stages: int) -> None:
    spec = catalogue().models[model]
    base = plan(spec, cluster__gpus=stages, parallelism__pp=stages, parallelism__zero=0, training__optimizer="sgd")
    found = evaluate(base)
    weights = found.stages["weights"].sum() / 2
    # a tied head stands on the last stage too when there are several
    copy = spec.vocabulary * spec.hidden_size if spec.tied and stages > 1 else 0
    assert weights == found["model.parameters"] + copy


@pytest.mark.parametrize(("model", "tensor"), [("llama-3-8b", 2), ("llama-3-70b", 8), ("llama-3-70b", 16)])
def test_tensor_ranks_share_the_matrices_and_repeat_the_norms(model: str, tensor: int) -> None:
    spec = catalogue().models[model]
    found = evaluate(plan(spec, cluster__gpus=tensor, parallelism__tp=tensor, parallelism__zero=0))
    norms = (2 * spec.layers + 1) * spec.hidden_size
    # more ranks than KV heads: each head is kept several times
    repeated = max(1, tensor / spec.kv_heads)
    key_value = spec.layers * 2 * spec.hidden_size * spec.kv_heads * 128
    expected = found["model.parameters"] + (tensor - 1) * norms + (repeated - 1) * key_value
    assert tensor * found["memory.weights_bytes"] / 2 == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------- the peak


def peaks(scenario: Scenario) -> tuple[Report, np.ndarray]:
    report = evaluate(scenario)
    return report, report.stages["total"]


def test_items_sum_to_the_peak_on_every_stage() -> None:
    report, totals = peaks(
        plan(
            "llama-3-70b",
            cluster__gpus=64,
            parallelism__tp=4,
            parallelism__pp=8,
            parallelism__cp=2,
            parallelism__zero=1,
            training__sequence_length=8192,
        )
    )
    assert sum(report.stages[item] for item in ITEMS) == pytest.approx(totals, rel=1e-12)
    assert sum(report[f"memory.{item}_bytes"] for item in ITEMS) == pytest.approx(report["memory.total_bytes"])
    assert report["memory.total_bytes"] == totals.max() == totals[int(report["memory.peak_stage"])]


SHAPES = [
    (8, 32, 1, "1f1b", 16),
    (8, 30, 1, "1f1b", 4),
    (4, 30, 2, "interleaved", 8),
    (4, 29, 3, "interleaved", 4),
    (4, 27, 3, "1f1b", 16),
    (6, 32, 2, "interleaved", 12),
    (8, 27, 1, "gpipe", 8),
    (8, 29, 1, "zero-bubble", 8),
    (4, 26, 1, "zero-bubble-v", 8),
    (4, 27, 1, "dualpipe", 8),
    (2, 3, 1, "1f1b", 2),
]
STACKS = list(itertools.product(("none", "full"), (0, 1, 3), ("megatron", "hf-trainer"), (1, 16)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tied", [False, True])
def test_the_fullest_stage_is_among_the_distinct_ones(shape: tuple[int, int, int, str, int], tied: bool) -> None:
    stages, layers, virtual, schedule, micro_batches = shape
    spec = replace(catalogue().models["llama-3-8b"], layers=layers, tied=tied)
    for recompute, zero, framework, micro_batch in STACKS:
        report, totals = peaks(
            plan(
                spec,
                cluster__gpus=2 * stages,
                parallelism__pp=stages,
                parallelism__vpp=virtual,
                parallelism__schedule=schedule,
                parallelism__zero=zero,
                training__recompute=recompute,
                training__framework=framework,
                training__micro_batch=micro_batch,
                training__sequence_length=1024,
                training__global_batch=2 * micro_batch * micro_batches,
            )
        )
        assert len(totals) == stages
        assert report["memory.total_bytes"] == totals.max()


def test_a_list_of_layers_is_followed() -> None:
    spec = replace(catalogue().models["llama-3-8b"], layers=10)
    base = plan(spec, cluster__gpus=4, parallelism__pp=4, parallelism__zero=0, training__micro_batch=1)
    block = build(spec).block.parameters()
    report, totals = peaks(base.with_("parallelism.stage_balance", (1, 5, 3, 1)))
    layers = (report.stages["weights"] / 2 - np.array([128256, 0, 0, 128256]) * 4096) // block
    assert layers.tolist() == [1, 5, 3, 1]
    assert report["memory.peak_stage"] == 1 == totals.argmax()


def test_a_list_of_chunks_is_followed() -> None:
    # two chunks a stage: stage i holds chunks i and p + i
    spec = replace(catalogue().models["llama-3-8b"], layers=10)
    report, totals = peaks(
        plan(
            spec,
            cluster__gpus=2,
            parallelism__pp=2,
            parallelism__vpp=2,
            parallelism__schedule="interleaved",
            parallelism__zero=0,
            parallelism__stage_balance=(1, 5, 3, 1),
        )
    )
    block, table = build(spec).block.parameters(), 128256 * 4096
    assert len(totals) == 2
    assert ((report.stages["weights"] / 2 - table) // block).tolist() == [4, 6]


def test_the_uneven_split_of_405b() -> None:
    # 126 layers on 16 stages: 7, fourteen of 8, and 7 beside embedding and head (arXiv 2407.21783, section 3.3.2)
    report = evaluate(
        plan(
            "llama-3.1-405b",
            "h100-sxm-80gb",
            cluster__gpus=128,
            parallelism__tp=8,
            parallelism__pp=16,
            parallelism__zero=0,
        )
    )
    held_bytes = report.stages["weights"]
    assert held_bytes[1:15].tolist() == [held_bytes[1]] * 14
    block = held_bytes[1] / 8
    table = 2 * 128256 * 16384 / 8
    assert held_bytes[0] == pytest.approx(7 * block + table, rel=1e-12)
    assert held_bytes[15] == pytest.approx(7 * block + table + 2 * 16384, rel=1e-12)


def test_dualpipe_holds_the_weights_of_two_stages() -> None:
    # arXiv 2412.19437, table 2: rank i holds stages i and p − 1 − i, gradients and states are not kept twice
    base = plan("llama-3-8b", cluster__gpus=4, parallelism__pp=4, parallelism__zero=0)
    once, twice = (evaluate(base.with_("parallelism.schedule", word)).stages for word in ("1f1b", "dualpipe"))
    pair = once["weights"] + once["weights"][::-1]
    assert twice["weights"].tolist() == pair.tolist()
    for item, width in (("gradients", 4), ("master_weights", 4), ("momentum", 4), ("variance", 4)):
        assert twice[item].tolist() == (pair / 2 * width / 2).tolist()


def test_micro_batches_run_both_ways_through_dualpipe() -> None:
    # stages of 7, 3, 2, 4 layers on 4 ranks, 8 micro-batches: rank 0 holds 4 micro-batches of stage 0 and 1 of stage 3,
    # rank 1 holds 3 of stage 1 and 2 of stage 2; ranks 2 and 3 hold the same
    spec = replace(catalogue().models["llama-3-8b"], layers=16)
    base = plan(
        spec,
        cluster__gpus=4,
        parallelism__pp=4,
        parallelism__schedule="dualpipe",
        parallelism__stage_balance=(7, 3, 2, 4),
        training__recompute="full",
        training__sequence_length=1024,
        training__global_batch=8,
        training__logit_bytes=64.0,
    )
    report, totals = peaks(base)
    assert report["memory.peak_stage"] == 0
    assert totals.tolist() == totals[::-1].tolist()
    assert report["memory.peak_instant"] == "loss"
    # block inputs of 2 · 4096 bytes a token, and the output of the embedding before stage 0
    assert report["memory.activations_bytes"] == 1024 * 2 * 4096 * (4 * 7 + 1 * 4 + 4)
    working = report.stages["activations"][1] - 1024 * 2 * 4096 * (3 * 3 + 2 * 2)
    assert working == report.stages["activations"][2] - 1024 * 2 * 4096 * (3 * 3 + 2 * 2)


def test_zero_bubble_v_holds_both_ends_on_the_first_rank() -> None:
    # arXiv 2401.10241, section 6: chunks go down four ranks and back up, so that each holds two
    spec = replace(catalogue().models["llama-3-8b"], layers=14, tied=True)
    base = plan(spec, cluster__gpus=4, parallelism__pp=4, parallelism__zero=0, parallelism__schedule="zero-bubble-v")
    block, table = build(spec).block.parameters(), 128256 * 4096
    dealt = evaluate(base.with_("parallelism.stage_balance", (4, 4, 3, 3))).stages["weights"] / 2
    # one table for embedding and head, and the final norm, on the first rank
    assert dealt.tolist() == [4 * block + table + 4096, 4 * block, 3 * block, 3 * block]
    report, totals = peaks(base)
    # chunks of 1, 2, 2, 2, 2, 2, 2, 1 layers
    assert ((report.stages["weights"] / 2 - [table, 0, 0, 0]) // block).tolist() == [2, 4, 4, 4]
    assert report["memory.total_bytes"] == totals.max()
    # the two ends are on one rank: nobody else has a gradient of the table
    assert "tied embedding" not in {row.name for row in report.communication}


def test_whole_gradients_where_nothing_is_reduced_between_micro_batches() -> None:
    # PyTorch FSDP, no_sync: gradients stay whole until the last micro-batch; with one micro-batch they are shards
    base = plan("llama-2-7b", cluster__gpus=8, parallelism__zero=3, training__framework="hf-trainer")
    base = with_all(base, {"training.recompute": "full", "training.sequence_length": 512})
    parameters = build(base.model).parameters
    accumulated = evaluate(base.with_("training.global_batch", 16))
    single = evaluate(base.with_("training.global_batch", 8))
    assert accumulated["memory.gradients_bytes"] == 4 * parameters
    assert single["memory.gradients_bytes"] <= 4 * parameters / 8


def test_fsdp_with_gathered_weights_keeps_32_bit_shards() -> None:
    # arXiv 2304.11277, SHARD_GRAD_OP: originals in shards, 16-bit weights gathered from forward to backward
    base = plan("llama-2-7b", cluster__gpus=8, parallelism__zero=2, training__framework="torchtitan")
    values = evaluate(with_all(base, {"training.micro_batch": 4, "training.global_batch": 32}))
    parameters = values["model.parameters"]
    assert values["memory.peak_instant"] == "loss"
    assert values["memory.weights_bytes"] == 4 * parameters / 8
    assert values["memory.gathered_bytes"] == 2 * parameters


def test_zero_3_holds_two_blocks_and_a_pipeline_over_it_the_whole_stage() -> None:
    base = plan("llama-2-7b", cluster__gpus=16, parallelism__zero=3, training__framework="torchtitan")
    base = with_all(base, {"training.micro_batch": 4, "training.global_batch": 64, "training.recompute": "full"})
    flat = evaluate(base)
    assert flat["memory.peak_instant"] == "backward"
    block, table = build(base.model).block.parameters(), 32000 * 4096
    # embedding and head, two blocks, and the gradients of one block and of the head
    assert flat["memory.gathered_bytes"] == 2 * (2 * table + 2 * block + block + table)
    piped = evaluate(base.with_("parallelism.pp", 2))
    assert piped.stages["gathered"][0] == 2 * (table + 16 * block + block)
    # and its gradients are reduced once a step
    assert piped.stages["gradients"][0] == 4 * (table + 16 * block)
