"""Laws that hold for every training plan, tried on random ones."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.plans import MACHINES, plan, random_numbers, random_words, with_all
from triledger.core import evaluate
from triledger.core.ledgers.instants import ITEMS
from triledger.core.model.layers import build
from triledger.core.report import Report
from triledger.core.scenario import Scenario

#: Sums of doubles in another order.
ROUNDING = 1e-9


def random_plan(choose: Random) -> Scenario:
    """A legal training plan with ordinary machine constants."""
    machine = choose.choice(MACHINES)
    scenario = with_all(plan("llama-3-70b", machine), random_words(choose))
    numbers = random_numbers(choose, scenario.parallelism.schedule)
    del numbers["assumptions.e_gemm"]
    return with_all(scenario, numbers)


plans = st.randoms(use_true_random=False).map(random_plan)
law = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def not_above(small: float, large: float) -> bool:
    return small <= large * (1 + ROUNDING)


# ---------------------------------------------------------------- sums


@law
@given(plans)
def test_rows_of_the_memory_ledger_sum_to_its_total(scenario: Scenario) -> None:
    report = evaluate(scenario)
    assert sum(report[f"memory.{item}_bytes"] for item in ITEMS) == pytest.approx(report["memory.total_bytes"])
    assert all(report[f"memory.{item}_bytes"] >= 0 for item in ITEMS)
    optimizer = sum(report[f"memory.{item}_bytes"] for item in ("master_weights", "momentum", "variance"))
    assert report["memory.optimizer_bytes"] == pytest.approx(optimizer)


@law
@given(plans)
def test_rows_of_the_communication_ledger_sum_to_its_totals(scenario: Scenario) -> None:
    report = evaluate(scenario)
    rows = report.communication
    assert report["communication.bytes_per_gpu"] == pytest.approx(sum(row.bytes_per_gpu for row in rows))
    assert report["communication.exposed_seconds"] == pytest.approx(sum(row.exposed_seconds for row in rows))
    inside, across = (report[f"communication.{way}_bytes_per_gpu"] for way in ("scale_up", "adapter"))
    assert inside + across == pytest.approx(report["communication.bytes_per_gpu"])
    assert not_above(sum(row.bytes_per_gpu for row in rows if row.link == "scale-up"), inside)
    assert not_above(across, sum(row.bytes_per_gpu for row in rows if row.link == "scale-out"))


@law
@given(plans)
def test_parts_of_a_forward_pass_sum_to_it(scenario: Scenario) -> None:
    report = evaluate(scenario)
    parts = sum(report[f"compute.{part}_flops_per_token"] for part in ("linear", "attention", "head"))
    assert report["compute.forward_flops_per_token"] == pytest.approx(parts)
    assert report["compute.model_flops_per_step"] <= report["compute.hardware_flops_per_step"]


@law
@given(plans)
def test_shards_sum_to_the_model(scenario: Scenario) -> None:
    """Matrices are split; norms, biases, learned positions and KV heads beyond the ranks are repeated."""
    scenario = with_all(
        scenario,
        {
            "parallelism.zero": 0,
            "training.framework": "megatron",
            "parallelism.schedule": "1f1b",
            "training.finetune": "full",
        },
    )
    scenario = scenario.with_("training.precision", "bf16")
    report, model = evaluate(scenario), build(scenario.model)
    tensor, pipeline = scenario.parallelism.tp, scenario.parallelism.pp
    spec, block = scenario.model, model.block
    vectors = block.parameters() - block.matrix_parameters()
    key_value = 2 * spec.hidden_size * spec.kv_heads * (spec.hidden_size / spec.heads)
    repeated = spec.layers * ((tensor - 1) * vectors + (max(1, tensor / spec.kv_heads) - 1) * key_value)
    repeated += (tensor - 1) * model.final_norm
    padding = (1 if spec.tied and pipeline == 1 else 2) * (-spec.vocabulary % tensor) * spec.hidden_size
    copy = spec.vocabulary * spec.hidden_size if spec.tied and pipeline > 1 else 0
    held = tensor * np.sum(report.stages["weights"]) / 2
    assert held == pytest.approx(model.parameters + repeated + padding + copy, rel=1e-12)


# ---------------------------------------------------------------- memory


@law
@given(plans, st.floats(1.0, 4.0))
def test_more_memory_never_fits_less(scenario: Scenario, factor: float) -> None:
    words = ("does-not-fit", "tight", "fits")
    less = evaluate(scenario)
    more = evaluate(scenario.with_("cluster.accelerator.memory", factor * scenario.cluster.accelerator.memory))
    assert words.index(more["memory.verdict"]) >= words.index(less["memory.verdict"])
    assert more["memory.headroom_bytes"] >= less["memory.headroom_bytes"]


@law
@given(plans)
def test_recomputation_never_takes_memory(scenario: Scenario) -> None:
    # a stage of one block holds its checkpoint beside the block: nothing to save there
    deep = scenario.with_(
        "model.layers", scenario.model.layers + 4 * scenario.parallelism.pp * scenario.parallelism.vpp
    )
    peaks = [
        evaluate(deep.with_("training.recompute", word))["memory.total_bytes"] for word in ("none", "selective", "full")
    ]
    assert not_above(peaks[1], peaks[0])
    assert not_above(peaks[2], peaks[0])


@law
@given(plans, st.integers(2, 4))
def test_a_larger_micro_batch_never_has_fewer_activations(scenario: Scenario, factor: int) -> None:
    larger = with_all(
        scenario,
        {
            "training.micro_batch": factor * scenario.training.micro_batch,
            "training.global_batch": factor * scenario.training.global_batch,
        },
    )
    small, large = evaluate(scenario), evaluate(larger)
    assert np.all(held_activations(large) >= held_activations(small))
    assert not_above(small["memory.total_bytes"], large["memory.total_bytes"])


def held_activations(report: Report) -> np.ndarray:
    """Activations and logits of the stages, where the peak is not the optimizer step, which has none."""
    steps = report.stages["instant"] == 2
    return np.where(steps, 0.0, report.stages["activations"] + report.stages["logits"])


@law
@given(plans)
def test_each_zero_stage_keeps_no_more_than_the_one_before(scenario: Scenario) -> None:
    # arXiv 1910.02054, figure 1; units of frozen and trained weights together have gradients of all of them
    scenario = scenario.with_("training.finetune", "full")
    static = [evaluate(scenario.with_("parallelism.zero", zero))["memory.static_bytes"] for zero in (0, 1, 2, 3)]
    assert all(not_above(after, before) for before, after in pairwise(static))


@law
@given(plans)
def test_the_peak_is_that_of_the_fullest_stage(scenario: Scenario) -> None:
    report = evaluate(scenario)
    totals = report.stages["total"]
    assert len(totals) == scenario.parallelism.pp
    assert report["memory.total_bytes"] == pytest.approx(totals.max(), rel=1e-12)
    assert totals[int(report["memory.peak_stage"])] == pytest.approx(totals.max(), rel=1e-12)


# ---------------------------------------------------------------- time


LINKS = ("cluster.network.bandwidth", "cluster.accelerator.link.bandwidth", "cluster.accelerator.memory_bandwidth")
#: Schedules that fill their bubble with weight gradients, which faster memory leaves less of.
FILLED = ("zero-bubble", "zero-bubble-v", "dualpipe")


@law
@given(plans, st.sampled_from(LINKS), st.floats(1.0, 10.0))
def test_a_faster_link_never_slows_a_step(scenario: Scenario, path: str, factor: float) -> None:
    scenario = scenario.with_("parallelism.stage_balance", "even")
    if path == LINKS[-1] and scenario.parallelism.schedule in FILLED:
        scenario = with_all(scenario, {"parallelism.schedule": "1f1b"})
    faster = scenario.with_(path, factor * scenario.get(path))
    assert not_above(evaluate(faster)["time.step_s"], evaluate(scenario)["time.step_s"])


@law
@given(plans)
def test_nothing_waits_longer_than_its_communication_takes(scenario: Scenario) -> None:
    for row in evaluate(scenario).communication:
        assert row.exposed_seconds >= 0, row.name
        assert not_above(row.exposed_seconds, row.seconds), row.name
        assert row.bytes_per_gpu > 0, row.name


@law
@given(plans)
def test_the_bound_is_below_the_prediction(scenario: Scenario) -> None:
    report = evaluate(scenario)
    assert report["time.bound_s"] > 0
    assert not_above(report["time.bound_s"], report["time.step_s"])
    assert report["time.low_s"] < report["time.step_s"] < report["time.high_s"]
    assert 0 < report["time.mfu"] <= report["time.hfu"] * (1 + ROUNDING) <= 1


@law
@given(plans)
def test_no_operator_is_above_its_roof(scenario: Scenario) -> None:
    report = evaluate(scenario)
    for point in report.points:
        roof = max(point.flops / report["roofline.peak_flops"], point.bytes / report["roofline.bandwidth"])
        assert not_above(roof, point.seconds), point.name
        assert point.achieved_flops <= point.attainable_flops * (1 + ROUNDING), point.name


@law
@given(plans)
def test_parts_of_a_step_are_within_it(scenario: Scenario) -> None:
    report = evaluate(scenario)
    parts = ("steady", "bubble", "optimizer")
    assert all(report[f"time.{part}_s"] >= 0 for part in parts)
    assert not_above(sum(report[f"time.{part}_s"] for part in parts), report["time.step_s"])
    assert report["time.straggler_factor"] >= 1


@law
@given(plans, st.sampled_from(("none", "selective")))
def test_full_recomputation_takes_time(scenario: Scenario, word: str) -> None:
    full, other = (evaluate(scenario.with_("training.recompute", w)) for w in ("full", word))
    assert other["time.steady_s"] <= full["time.steady_s"]
    assert other["time.step_s"] < full["time.step_s"]
    assert other["compute.hardware_flops_per_step"] < full["compute.hardware_flops_per_step"]


@law
@given(plans, st.integers(2, 4))
def test_more_micro_batches_take_longer_and_fill_the_pipeline_better(scenario: Scenario, factor: int) -> None:
    few = evaluate(scenario)
    many = evaluate(scenario.with_("training.global_batch", factor * scenario.training.global_batch))
    assert few["time.step_s"] < many["time.step_s"]
    share = [report["time.bubble_s"] / report["time.steady_s"] for report in (few, many)]
    assert not_above(share[1], share[0])
