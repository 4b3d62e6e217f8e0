"""Whole plans with routed experts against what was published, and the settings that such runs need."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import plan
from triledger.core import evaluate, load_scenario
from triledger.core.measured.rows import shipped_tables
from triledger.core.measured.training_rows import training_case
from triledger.core.report import Report

#: GPU-hours of pre-training, arXiv 2412.19437, table 1.
PUBLISHED_HOURS = 2.664e6


@pytest.mark.parametrize(
    ("recompute", "error"),
    [
        ("selective-up", -0.15),  # what the paper computes again, without its failures, logging and evaluation
        ("full", 0.13),
    ],
)
def test_gpu_hours_of_deepseek_v3(recompute: str, error: float) -> None:
    scenario = load_scenario("deepseek-v3-2048xh800-train").with_("training.recompute", recompute)
    hours = evaluate(scenario)["training.gpu_hours"]
    assert hours / PUBLISHED_HOURS - 1 == pytest.approx(error, abs=0.02)


def test_deepseek_v3_fits_as_its_paper_trains_it_and_the_band_holds_what_it_took() -> None:
    report = evaluate(load_scenario("deepseek-v3-2048xh800-train"))
    assert report["memory.fits"]
    assert report["training.days_low"] < PUBLISHED_HOURS / 2048 / 24 < report["training.days_high"]


@pytest.mark.parametrize("row", ["mbr-002", "mbr-020", "mbr-042"])
def test_deepseek_v3_on_a_rack_where_every_setting_is_known(row: str) -> None:
    (found,) = [each for table in shipped_tables() for each in table.rows if each.id == row]
    case = training_case(found)
    assert evaluate(case.scenario)["time.step_s"] == pytest.approx(case.measured, rel=0.04)


def deepseek(**changes: Any) -> Report:
    usual: dict[str, Any] = {
        "cluster__gpus": 256,
        "parallelism__pp": 4,
        "parallelism__ep": 64,
        "training__global_batch": 1024,
        "parallelism__zero": 1,
    }
    return evaluate(plan("deepseek-v3", "h100-sxm-80gb", "ib-ndr-400", **(usual | changes)))


def test_the_whiteboard_computes_with_the_parameters_that_a_token_meets() -> None:
    report = deepseek(training__mfu=0.4)
    assert report["whiteboard.parameters"] == report["model.parameters"]
    flops = 6 * report["model.active_parameters"] * 2e12
    assert report["whiteboard.days"] == pytest.approx(flops / (256 * 989.4e12 * 0.4) / 86400)
    assert report["time.mfu_rule"] == pytest.approx(0.7 * report["time.mfu"], rel=0.3)


def test_layers_dealt_by_hand_are_no_longer_than_the_mean() -> None:
    even, spread = (deepseek(parallelism__stage_balance=word) for word in ("even", "spread"))
    assert spread["time.stage_s"] == spread["time.mean_stage_s"] < even["time.stage_s"]


def test_a_pipeline_that_runs_empty_often_waits_as_often() -> None:
    once, often = (deepseek(pipeline__drain_every=every) for every in (None, 4))
    assert often["time.bubble_s"] == pytest.approx(16 / 4 * once["time.bubble_s"])


def test_what_latents_expand_to_is_computed_again_for_its_bytes() -> None:
    kept, again = (deepseek(training__recompute=word) for word in ("none", "latent-up"))
    assert again["memory.activations_bytes"] < 0.9 * kept["memory.activations_bytes"]
    products = {point.name: point for point in kept.points}
    assert kept["time.block_backward_s"] < again["time.block_backward_s"]
    ups = sum(products[name].seconds for name in ("query up", "latent up")) / 3 / (61 / 4 * 16)
    assert again["time.block_backward_s"] - kept["time.block_backward_s"] == pytest.approx(ups, rel=0.2)


def test_routed_experts_are_reduced_over_the_ranks_that_hold_the_same() -> None:
    rows = {row.name: row for row in deepseek().communication}
    assert rows["data parallel gradients"].group_size == 64
    assert "data parallel gradients of experts" not in rows, "64 ranks hold 64 different sets"
    shared = {row.name: row for row in deepseek(parallelism__ep=16).communication}["data parallel gradients of experts"]
    assert shared.group_size == 4
    experts = 58 / 4 * 256 / 16 * 3 * 7168 * 2048
    assert shared.bytes_per_gpu == pytest.approx(3 / 4 * 4 * experts, rel=1e-3)


def test_hiding_points_of_routed_experts() -> None:
    report = deepseek(parallelism__expert_dispatch="deepep")
    # traffic goes with all parameters, compute with those that a token meets
    rate, bandwidth = 0.705 * 989.4e12, 0.8 * 8 * 50e9
    dense = 4 * rate / (2 * min(bandwidth, 0.78 * 450e9)) * 63 / 64
    ratio = report["model.parameters"] / report["model.active_parameters"]
    assert report["hiding.gradients_tokens_per_gpu"] == pytest.approx(dense * ratio)
    assert report["hiding.expert_size"] == pytest.approx(2 * rate * 63 / 64 / (6 * bandwidth), rel=0.01)
