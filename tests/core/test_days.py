"""From a step to days, money and carbon; failures and checkpoints; the figures of the whiteboard."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import plan, with_all
from triledger.core import economics, evaluate, load_scenario, reliability
from triledger.core.ledgers.compute import rule_flops
from triledger.core.scenario import Scenario
from triledger.core.training.days import speedup, speedup_bound, utilisation, whiteboard_days

HOUR, DAY = 3600, 86400


def run_70b(accelerator: str, gpus: int, **changes: Any) -> Scenario:
    """2T tokens of a 70B model: TP 8, PP 4, the label on the whiteboard at 50 % MFU."""
    usual: dict[str, Any] = {
        "cluster__gpus": gpus,
        "parallelism__tp": 8,
        "parallelism__pp": 4,
        "parallelism__zero": 1,
        "parallelism__sp": True,
        "training__tokens": 2e12,
        "training__mfu": 0.5,
        "whiteboard__parameters": 70e9,
        "training__global_batch": 512,
    }
    return plan("llama-3-70b", accelerator, **(usual | changes))


# ---------------------------------------------------------------- the whiteboard


@pytest.mark.parametrize(
    ("accelerator", "gpus", "peak", "days"),
    [
        ("a100-sxm-80gb", 128, 312e12, 486.9),
        ("a100-sxm-80gb", 512, 312e12, 121.7),
        ("a100-sxm-80gb", 640, 312e12, 97.4),
        ("h100-sxm-80gb", 512, 989e12, 38.40),
        ("h100-sxm-80gb", 512, 989.4e12, 38.38),
    ],
)
def test_days_of_2t_tokens_by_hand(accelerator: str, gpus: int, peak: float, days: float) -> None:
    # 6·70e9·2e12 = 8.4e23 FLOP at 50 % of the peak
    scenario = run_70b(accelerator, gpus).with_("cluster.accelerator.peak.bf16", peak)
    values = evaluate(scenario)
    assert values["whiteboard.days"] == pytest.approx(days, abs=0.05 if days > 50 else 0.005)
    assert values["whiteboard.mfu"] == 0.5
    # beside it what the engine predicts, with a band, failures and the exact count
    assert values["training.days_low"] < values["training.days"] < values["training.days_high"]
    assert values["training.bound_days"] < values["training.days_low"]


def test_the_story_of_the_ninety_days() -> None:
    # a month of 486.9 days is 6.2 %; the plan is 5.4 times late; 693 A100 would do
    values = evaluate(run_70b("a100-sxm-80gb", 128, training__deadline=90.0 * DAY))
    assert values["whiteboard.done_in_30_days"] == pytest.approx(0.062, abs=5e-4)
    assert values["whiteboard.over_deadline"] == pytest.approx(5.4, abs=0.05)
    assert values["whiteboard.gpus_for_deadline"] == 693
    assert whiteboard_days(70e9, 2e12, 693, 312e12, 0.5) < 90 < whiteboard_days(70e9, 2e12, 692, 312e12, 0.5)


def test_hand_and_exact_days_on_512_h100() -> None:
    # 38.38 days at the label's size, 38.69 at the exact 70 553 706 496
    label, exact = (evaluate(run_70b("h100-sxm-80gb", 512, whiteboard__parameters=n)) for n in (70e9, None))
    assert label["whiteboard.days"] == pytest.approx(38.38, abs=0.005)
    assert exact["whiteboard.days"] == pytest.approx(38.69, abs=0.005)


@pytest.mark.parametrize(("peak", "by_rule", "exact"), [(989e12, 78_366, 75_993), (989.4e12, 78_398, 76_023)])
def test_throughput_at_52_per_cent_on_64_h100(peak: float, by_rule: float, exact: float) -> None:
    # 64 · 989e12 · 0.52 over 6·70e9 FLOP a token, and over the exact causal count at 4096 tokens
    scenario = run_70b("h100-sxm-80gb", 64, training__mfu=0.52).with_("cluster.accelerator.peak.bf16", peak)
    values = evaluate(scenario)
    assert values["whiteboard.tokens_per_s"] == pytest.approx(by_rule, abs=1.5)
    assert values["whiteboard.tokens_per_s_exact"] == pytest.approx(exact, abs=5)


def test_the_whiteboard_takes_the_predicted_mfu_when_none_is_stated() -> None:
    values = evaluate(run_70b("h100-sxm-80gb", 64, training__mfu="auto"))
    assert values["whiteboard.mfu"] == values["time.mfu"]


def test_the_whiteboard_counts_no_failures() -> None:
    calm, bad = (
        evaluate(run_70b("h100-sxm-80gb", 512, reliability__node_failures_per_1000_days=rate)) for rate in (0, 50)
    )
    assert calm["whiteboard.days"] == bad["whiteboard.days"]
    assert calm["training.bound_days"] == bad["training.bound_days"]
    assert calm["training.days"] < bad["training.days"]


# ---------------------------------------------------------------- days of a plan


def test_days_are_whole_steps_over_the_time_that_trains() -> None:
    values = evaluate(run_70b("h100-sxm-80gb", 64, training__tokens=2_097_152 * 1000 + 1))
    assert values["training.steps"] == 1001
    expected = 1001 * values["time.step_s"] / DAY / values["training.effective_ratio"]
    assert values["training.days"] == pytest.approx(expected, rel=1e-12)
    assert values["training.gpu_hours"] == pytest.approx(64 * 24 * values["training.days"], rel=1e-12)


def test_days_follow_from_utilisation_in_either_convention() -> None:
    values = evaluate(run_70b("h100-sxm-80gb", 64))
    for flops, mfu in (
        (values["compute.training_flops_per_token"], values["time.mfu"]),
        (values["compute.rule_flops_per_token"], values["time.mfu_rule"]),
        (values["compute.full_mask_flops_per_token"], values["time.mfu_full_mask"]),
    ):
        days = values["training.steps"] * 512 * 4096 * flops / (64 * 989.4e12 * mfu) / DAY
        assert days / values["training.effective_ratio"] == pytest.approx(values["training.days"], rel=1e-9)


def test_throughput_and_utilisation_are_the_same_step() -> None:
    values = evaluate(run_70b("h100-sxm-80gb", 64))
    assert values["time.tokens_per_s"] == pytest.approx(512 * 4096 / values["time.step_s"])
    assert values["time.tokens_per_s_per_gpu"] == pytest.approx(values["time.tokens_per_s"] / 64)
    assert values["time.mfu_rule"] < values["time.mfu"] < values["time.mfu_full_mask"]
    assert values["time.mfu"] < values["time.hfu"] < 1


def test_the_bound_is_at_data_sheet_rates() -> None:
    values = evaluate(run_70b("h100-sxm-80gb", 64))
    assert values["time.bound_s"] == pytest.approx(values["compute.model_flops_per_step"] / (64 * 989.4e12))


def test_a_bound_can_be_a_link() -> None:
    slow = evaluate(run_70b("h100-sxm-80gb", 64, cluster__gpus_per_node=4).with_("cluster.network.bandwidth", 1e8))
    sent = slow["communication.adapter_bytes_per_gpu"]
    assert slow["time.bound_s"] == pytest.approx(sent / 1e8)
    assert slow["time.bottleneck"] == "communication"


# ---------------------------------------------------------------- failures

LLAMA_NODES = 2048


def test_failures_of_the_llama_3_run() -> None:
    # arXiv 2407.21783, section 3.3.4: 419 unexpected interruptions in 54 days on 16 384 H100
    per_1000_days = 419 / (LLAMA_NODES * 54) * 1000
    assert per_1000_days == pytest.approx(3.79, abs=0.005)
    assert reliability.node_count(16384, 8) == LLAMA_NODES
    mtbf = reliability.mean_time_between_failures(LLAMA_NODES, per_1000_days)
    assert mtbf / HOUR == pytest.approx(3.09, abs=0.005)
    # one failure a device in 50 677 hours, 5.8 years
    assert mtbf / HOUR * 16384 == pytest.approx(50_677, rel=1e-3)


@pytest.mark.parametrize(("checkpoint", "young", "daly", "ratio"), [(10, 472, 465, 0.904), (60, None, None, 0.842)])
def test_checkpoints_of_the_llama_3_run(
    checkpoint: float, young: float | None, daly: float | None, ratio: float
) -> None:
    # Young 1974; Daly 2006; published effective training time: more than 90 %
    mtbf = 54 * DAY / 419
    interval = reliability.checkpoint_interval(checkpoint, mtbf)
    if young and daly:
        assert (2 * checkpoint * mtbf) ** 0.5 == pytest.approx(young, abs=0.5)
        assert interval == pytest.approx(daly, abs=0.5)
    found = reliability.effective_ratio(checkpoint, interval, 600, mtbf)
    assert found == pytest.approx(ratio, abs=0.002 if checkpoint == 60 else 0.0005)


@pytest.mark.parametrize(("nodes", "hours"), [(2048, 1.80), (16384, 0.225)])
def test_failures_of_a_research_cluster(nodes: int, hours: float) -> None:
    # arXiv 2410.21680: 6.50 failures per 1000 node-days
    assert reliability.mean_time_between_failures(nodes, 6.50) / HOUR == pytest.approx(hours, abs=0.005)


def test_a_job_without_failures() -> None:
    # checkpoints every hour, nothing lost
    values = evaluate(run_70b("h100-sxm-80gb", 64, reliability__node_failures_per_1000_days=0))
    assert values["training.effective_ratio"] == pytest.approx(1 - 10 / HOUR, rel=1e-8)


def test_free_checkpoints() -> None:
    # then nothing but the restarts is lost
    values = evaluate(run_70b("h100-sxm-80gb", 16384, training__global_batch=4096, reliability__checkpoint_seconds=0))
    mtbf = values["training.mean_time_between_failures_s"]
    assert values["training.effective_ratio"] == pytest.approx(1 - 600 / mtbf, rel=1e-9)


def test_a_checkpoint_of_405b() -> None:
    # weights in 16 bits, master copy and two moments: 14 B of 405 853 388 800 parameters, 2.84 s at 2 TB/s
    values = evaluate(
        plan("llama-3.1-405b", "h100-sxm-80gb", cluster__gpus=1, parallelism__zero=0, training__global_batch=1)
    )
    size = values["memory.weights_bytes"] + values["memory.optimizer_bytes"]
    assert size == pytest.approx(5.68e12, abs=5e9)
    assert size / 2e12 == pytest.approx(2.84, abs=0.005)


def test_no_progress_is_a_finding() -> None:
    report = evaluate(run_70b("h100-sxm-80gb", 16384, training__global_batch=4096, reliability__restart_seconds=20000))
    assert "no-progress" in {finding.code for finding in report.findings if finding.severity == "error"}


# ---------------------------------------------------------------- money


def test_energy_and_carbon_of_llama_405b() -> None:
    # Llama 3.1 model card: 30.84e6 GPU-hours at 700 W, 8930 t CO2e
    energy = economics.energy_kwh(30.84e6, 700, 1.0)
    assert energy == pytest.approx(21_588e3, rel=1e-6)
    assert 8930e3 / energy == pytest.approx(0.414, abs=5e-4)
    assert economics.carbon_kg(energy, 0.414) == pytest.approx(8930e3, rel=2e-3)
    overall = utilisation(rule_flops(6, 405_853_388_800) * 15.6e12, 1, 989.4e12, 30.84e6 * HOUR)
    assert overall == pytest.approx(0.346, abs=5e-4)


def test_cost_of_a_run() -> None:
    base = run_70b("h100-sxm-80gb", 64)
    values = evaluate(with_all(base, {"economics.gpu_price": 2.0, "economics.power_usage_effectiveness": 1.0}))
    assert values["cost.usd"] == pytest.approx(2 * values["training.gpu_hours"])
    # 0.15 idle and 0.85 of the rest of 700 W
    assert values["cost.energy_kwh"] == pytest.approx(values["training.gpu_hours"] * 0.7 * (0.15 + 0.85 * 0.85))
    assert values["cost.carbon_kg"] == pytest.approx(0.4 * values["cost.energy_kwh"])


def test_price_of_deepseek_v3() -> None:
    # arXiv 2412.19437, table 1: 2.788e6 H800-hours at 2 USD
    assert economics.rental_cost(2.788e6, 2.0) == pytest.approx(5.576e6)


# ---------------------------------------------------------------- what was measured


def test_a_measured_step_against_bound_and_prediction() -> None:
    base = run_70b("h100-sxm-80gb", 64)
    predicted = evaluate(base)
    values = evaluate(base.with_("measured.step_time", 2 * predicted["time.step_s"]))
    assert values["measured.over_prediction"] == pytest.approx(2)
    assert values["measured.mfu"] == pytest.approx(predicted["time.mfu"] / 2)
    assert values["measured.hfu"] == pytest.approx(predicted["time.hfu"] / 2)
    assert values["measured.over_bound"] == pytest.approx(2 * predicted["time.step_s"] / predicted["time.bound_s"])


def test_a_measured_throughput_is_a_step_time() -> None:
    base = run_70b("h100-sxm-80gb", 64)
    values = evaluate(base.with_("measured.tokens_per_s", 50_000.0))
    assert values["measured.step_s"] == pytest.approx(512 * 4096 / 50_000)


# ---------------------------------------------------------------- what a faster part would bring


def test_a_fifth_made_five_times_as_fast_brings_19_per_cent() -> None:
    """Amdahl 1967."""
    assert speedup(0.2, 5.0) == pytest.approx(1.1905, abs=5e-5)
    assert speedup_bound(0.2) == 1.25


def test_links_that_cost_nothing_bring_what_is_exposed() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"))
    exposed = report["communication.exposed_seconds"] / report["time.step_s"]
    assert report["speedup.nothing_exposed"] == pytest.approx(1 / (1 - exposed))
    assert 1 < report["speedup.links_twice_as_fast"] < report["speedup.nothing_exposed"]
