"""Checkpoints of a plan and collectives that are late."""

from __future__ import annotations

import json

import pytest

from triledger.core import evaluate, load_scenario
from triledger.core.explore.sweep import sweep
from triledger.core.figures.training import gpus_sweep, training_days
from triledger.core.figures.waterfall import waterfall
from triledger.core.headlines import headlines
from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.core.verdict import verdict


def llama(**changes: object) -> Scenario:
    scenario = load_scenario("405b-16384xh100-train")
    for name, value in changes.items():
        scenario = scenario.with_(f"reliability.{name}", value)
    return scenario


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_bytes_and_write_time_of_a_checkpoint() -> None:
    # 2 + 4 + 4 + 4 bytes of 405 853 388 800 parameters
    report = evaluate(llama(storage_bandwidth=2e12))
    assert report["reliability.checkpoint_bytes"] == pytest.approx(5.68e12, abs=5e9)
    assert report["reliability.checkpoint_write_s"] == pytest.approx(2.84, abs=0.005)


def test_a_stack_that_keeps_32_bit_weights_writes_12_bytes() -> None:
    report = evaluate(load_scenario("7b-8xa100-train").with_("training.framework", "torchtitan"))
    assert report["reliability.checkpoint_bytes"] == 12 * report["model.parameters"]


def test_a_checkpoint_of_adapters_holds_the_adapters() -> None:
    # rank 16 beside all seven matrices of 32 layers of 4096, 1024 and 14 336: 41 943 040 parameters
    report = evaluate(load_scenario("8b-qlora-1xrtx4090-train"))
    layer = 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14_336))
    each = report["reliability.checkpoint_bytes"] / (32 * layer)
    assert each == pytest.approx(12)


def test_what_a_checkpoint_blocks() -> None:
    stated = evaluate(llama())
    assert stated["reliability.checkpoint_s"] == 10
    whole = evaluate(llama(checkpointing="synchronous"))
    assert whole["reliability.checkpoint_s"] == whole["reliability.checkpoint_write_s"]
    # each GPU copies 347 MB to its host
    copied = evaluate(llama(checkpointing="asynchronous"))
    pcie = copied.scenario.cluster.accelerator.pcie
    assert copied["reliability.checkpoint_s"] == pytest.approx(5.6819e12 / 16384 / pcie, rel=1e-4)
    ratios = [report["training.effective_ratio"] for report in (stated, whole, copied)]
    assert ratios == sorted(ratios)


def test_failures_faster_than_restarts_have_no_days_and_no_cost() -> None:
    stuck = evaluate(llama(node_failures_per_1000_days=1000.0, restart_seconds=86400.0))
    assert "no-progress" in codes(stuck)
    shown = {headline.key: headline for headline in headlines(stuck)}
    for key in ("training.days", "cost.usd"):
        assert (shown[key].number, shown[key].details[0], shown[key].state) == ("–", "no progress", "bad")
    assert "No progress" in verdict(stuck).text
    assert training_days(stuck, evaluate(gpus_sweep(stuck.scenario))).empty
    assert evaluate(llama()).progresses
    # what never ends has no days, no cost and no energy; a step has its time as before
    unending = ("training.days", "training.days_high", "training.gpu_hours", "training.over_deadline", "cost.usd")
    assert not [key for key in (*unending, "cost.energy_kwh", "time.effective_s") if key in stuck]
    assert stuck["training.effective_ratio"] == 0
    assert stuck["time.step_s"] == pytest.approx(evaluate(llama())["time.step_s"])
    json.dumps(stuck.flat(), allow_nan=False)


def test_of_many_plans_those_without_an_end_have_no_days() -> None:
    base = llama(restart_seconds=86400.0)
    rows = sweep(base, [("reliability.node_failures_per_1000_days", ("0.1", "1000"))], ("training.days",), evaluate)
    calm, stuck = (row.results for row in rows)
    assert calm["training.days"] > 0
    assert stuck == {}


def test_numbers_of_gpus_without_an_end_are_no_point_of_the_curve() -> None:
    base = llama(restart_seconds=20000.0).with_("cluster.gpus", 4096)
    chart = training_days(evaluate(base), evaluate(gpus_sweep(base)))
    assert [row[0] for row in chart.rows] == [256, 512, 1024, 2048, 4096, 8192]
    assert gpus_sweep(base).cluster.gpus.max() == 16384
    whole = waterfall(evaluate(llama(node_failures_per_1000_days=1000.0, restart_seconds=86400.0)))
    assert whole.bars[-1].link == "time.step_s"


def test_storage_that_cannot_keep_up_is_a_finding() -> None:
    slow = llama(checkpointing="asynchronous", storage_bandwidth=1e9)
    assert "slow-storage" in codes(evaluate(slow))
    assert "slow-storage" not in codes(evaluate(slow.with_("reliability.storage_bandwidth", 2e12)))


def test_shares_of_the_time_that_does_not_train() -> None:
    report = evaluate(llama())
    shares = [report[f"reliability.{name}_share"] for name in ("checkpoint", "lost", "restart")]
    assert 1 - sum(shares) == pytest.approx(report["training.effective_ratio"], rel=1e-12)
    # the higher-order estimate lies below the first-order one
    assert 0.95 < report["training.checkpoint_interval_s"] / report["reliability.young_interval_s"] < 1


def test_late_collectives_cost_their_delay_and_nothing_hides_it() -> None:
    before = evaluate(llama())
    after = evaluate(llama(straggling_share=0.1, straggling_factor=3.0))
    late = 0.1 * 2 * sum(row.seconds for row in before.communication)
    exposed = after["communication.exposed_seconds"] - before["communication.exposed_seconds"]
    assert exposed == pytest.approx(late)
    more = after["time.step_s"] - before["time.step_s"]
    assert more == pytest.approx(late * before["time.straggler_factor"])
    assert all(row.exposed_seconds <= row.seconds for row in after.communication)
    # bytes are what they were
    assert after["communication.bytes_per_gpu"] == before["communication.bytes_per_gpu"]


def test_a_share_of_collectives_that_is_not_late_changes_nothing() -> None:
    before, after = evaluate(llama()), evaluate(llama(straggling_share=0.3))
    assert after.flat() == before.flat()
