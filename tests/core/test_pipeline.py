"""Pipelines: bubbles of the schedules, stages, transfers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.plans import plan, with_all
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.legality import violations
from triledger.core.scenario import Scenario
from triledger.core.training.pipeline import bubble_1f1b, bubble_dualpipe, bubble_zero
from triledger.core.training.stages import EvenStages, SlotStages


@pytest.mark.parametrize(("backward", "column"), [(2.0, 0), (2.3, 1)])
def test_bubbles_of_the_schedules(backward: float, column: int) -> None:
    # 8 stages, F = 1, weight gradients W = 1; B = 2, or 2.3 where attention has no weight gradient
    stage, weight = 1 + backward, 1.0
    assert bubble_1f1b(8, stage, 1) == pytest.approx((21, 23.1)[column])  # arXiv 1811.06965, 2006.09503
    assert bubble_1f1b(8, stage, 3) == pytest.approx((7, 7.7)[column])  # arXiv 2104.04473
    assert bubble_zero(8, stage, weight, 2) == pytest.approx((7, 9.1)[column])  # ZB-H1, arXiv 2401.10241
    assert bubble_zero(8, stage, weight, 3) == pytest.approx((0, 2.1)[column])  # ZB-V
    assert bubble_dualpipe(8, stage, backward, weight) == pytest.approx((6, 7.8)[column])  # arXiv 2412.19437


def piped(schedule: str = "1f1b", **changes: Any) -> Scenario:
    """Llama-3-70B on 8 stages of 8 with 16 micro-batches."""
    usual: dict[str, Any] = {
        "cluster__gpus": 64,
        "parallelism__tp": 8,
        "parallelism__pp": 8,
        "parallelism__zero": 1,
        "parallelism__sp": True,
        "parallelism__schedule": schedule,
        "training__global_batch": 16,
    }
    return plan("llama-3-70b", "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))


def test_fraction_of_the_bubble() -> None:
    # arXiv 2104.04473, section 2.2: (p − 1)/m of the ideal time, 1/v of it when interleaved
    values = evaluate(piped())
    mean = values["time.bubble_s"] / 7
    assert mean < values["time.steady_s"] / 16  # the last stage holds the head and is the slowest
    interleaved = evaluate(piped(parallelism__vpp=5, pipeline__async_transfer="always"))
    plain = evaluate(piped(pipeline__async_transfer="always"))
    assert interleaved["time.bubble_s"] == pytest.approx(plain["time.bubble_s"] / 5, rel=1e-12)


def test_schedules_in_order_of_their_bubble() -> None:
    bubbles = [evaluate(piped(word))["time.bubble_s"] for word in ("gpipe", "1f1b", "zero-bubble", "zero-bubble-v")]
    assert bubbles[0] == bubbles[1]
    assert bubbles == sorted(bubbles, reverse=True)
    assert bubbles[-1] < 0.4 * bubbles[1]
    assert evaluate(piped("dualpipe"))["time.bubble_s"] < bubbles[1]


def test_the_bubble_does_not_grow_with_micro_batches() -> None:
    few, many = (evaluate(piped(training__global_batch=batch)) for batch in (16, 64))
    assert many["time.bubble_s"] == few["time.bubble_s"]
    assert many["time.steady_s"] == 4 * few["time.steady_s"]


def test_one_stage_has_neither_bubble_nor_transfers() -> None:
    values = evaluate(piped(cluster__gpus=8, parallelism__pp=1))
    assert values["time.bubble_s"] == 0
    assert not [traffic for traffic in values.communication if "pipeline" in traffic.name]


def test_the_head_makes_the_last_stage_the_slowest() -> None:
    # arXiv 2104.04473 has no such model; one with a large vocabulary and few layers shows it
    values = evaluate(piped())
    wide = evaluate(piped().with_("model.vocabulary", 8 * 128256))
    assert wide["time.steady_s"] > 1.3 * values["time.steady_s"]
    by_time = evaluate(piped().with_("model.vocabulary", 8 * 128256).with_("parallelism.stage_balance", "by-time"))
    assert by_time["time.steady_s"] < wide["time.steady_s"]


def test_transfers_behind_compute_cost_less() -> None:
    waited, hidden = (
        evaluate(piped(pipeline__async_transfer=word, training__global_batch=64)) for word in ("never", "always")
    )
    row = next(traffic for traffic in waited.communication if "pipeline" in traffic.name)
    behind = next(traffic for traffic in hidden.communication if "pipeline" in traffic.name)
    assert row.exposed_seconds == pytest.approx(row.seconds)
    assert behind.exposed_seconds < row.exposed_seconds
    assert hidden["time.step_s"] < waited["time.step_s"]


def test_transfers_are_hidden_when_the_pipeline_is_interleaved() -> None:
    auto, always = (
        evaluate(piped(parallelism__vpp=5, pipeline__async_transfer=word))["time.step_s"] for word in ("auto", "always")
    )
    assert auto == always
    assert evaluate(piped())["time.step_s"] == evaluate(piped(pipeline__async_transfer="never"))["time.step_s"]


def test_a_rank_of_dualpipe_takes_the_mean_of_its_two_stages() -> None:
    # stages of which layers 1 and 2 of 4 share a rank: 4 + 7, then 5 + 7 layers, half of the micro-batches each
    spec = replace(catalogue().models["llama-3-8b"], layers=16)
    base = plan(spec, cluster__gpus=4, parallelism__pp=4, parallelism__schedule="dualpipe")
    reports = [
        evaluate(base.with_("parallelism.stage_balance", dealt)) for dealt in ((1, 4, 7, 4), (1, 7, 4, 4), (1, 5, 7, 3))
    ]
    first, mirrored, longer = (report["time.stage_s"] for report in reports)
    assert first == mirrored
    block = reports[0]["time.block_forward_s"] + reports[0]["time.block_backward_s"]
    assert longer - first == pytest.approx(block / 2)


@pytest.mark.parametrize(
    ("layers", "stages", "chunks", "expected"),
    [
        (126, 16, 1, [7, *[8] * 14, 7]),  # arXiv 2407.21783, section 3.3.2
        (80, 8, 1, [10] * 8),
        (6, 4, 1, [1, 2, 2, 1]),
        (5, 4, 1, [1, 2, 1, 1]),  # of two middle ones the earlier
        (7, 4, 1, [2, 2, 2, 1]),
        (5, 2, 2, [2, 3]),  # chunks 1, 2, 1, 1 go around the stages
        (7, 3, 2, [2, 2, 3]),  # chunks 1, 1, 2, 1, 1, 1
        (4, 1, 1, [4]),
    ],
)
def test_layers_of_stages(layers: int, stages: int, chunks: int, expected: list[int]) -> None:
    found = [EvenStages(layers, stages, chunks).layers_on(stage) for stage in range(stages)]
    assert found == expected


def test_a_list_of_layers_sets_the_slowest_stage() -> None:
    spec = replace(catalogue().models["llama-3-8b"], vocabulary=1000)
    base = plan(spec, cluster__gpus=4, parallelism__pp=4, training__global_batch=16)
    even = evaluate(base.with_("parallelism.stage_balance", (8, 8, 8, 8)))
    uneven = evaluate(base.with_("parallelism.stage_balance", (4, 4, 4, 20)))
    assert evaluate(base)["time.steady_s"] == even["time.steady_s"]
    assert uneven["time.steady_s"] == pytest.approx(20 / 8 * even["time.steady_s"], rel=0.02)
    assert uneven["time.bubble_s"] == even["time.bubble_s"]


@pytest.mark.parametrize(
    ("layers", "stages", "chunks", "expected"),
    [
        (126, 16, 1, [7, *[8] * 14, 7]),  # arXiv 2407.21783, section 3.3.2: 128 slots
        (126, 16, 8, [7, *[8] * 14, 7]),  # the first and the last chunk hold no layer
        (80, 4, 1, [19, 21, 21, 19]),
        (78, 4, 5, [19, 20, 20, 19]),
        (80, 1, 1, [80]),
    ],
)
def test_embedding_and_head_take_a_slot_each(layers: int, stages: int, chunks: int, expected: list[int]) -> None:
    dealt = SlotStages(layers, stages, chunks)
    assert [dealt.layers_on(float(stage)) for stage in range(stages)] == expected
    order = [chunk for turn in range(chunks) for chunk in (dealt.chunks_on(s)[turn] for s in range(stages))]
    assert sum(chunk.layers for chunk in order) == layers
    assert [chunk.before for chunk in order[1:]] == list(np.cumsum([chunk.layers for chunk in order[:-1]]))
    assert [max(dealt.layers_on(stage) for stage in dealt.distinct())] == [max(expected)]


def test_stages_of_slots_are_legal_where_layers_alone_would_not_do() -> None:
    llama = plan("llama-3.1-405b", accelerator="gb200-nvl72", cluster__gpus=256, cluster__gpus_per_node=64)
    deep = {"parallelism.tp": 4, "parallelism.pp": 16, "parallelism.vpp": 8, "parallelism.schedule": "interleaved"}
    plain = with_all(llama, {**deep, "parallelism.sp": True, "training.global_batch": 1536})
    assert [violation.field for violation in violations(plain)] == ["parallelism.vpp"]
    slots = plain.with_("parallelism.stage_balance", "slots")
    assert not violations(slots)
    assert "128 layers, embedding and head" in violations(slots.with_("parallelism.vpp", 9))[0].message
    assert evaluate(slots)["time.step_s"] > 0
