"""Laws of training tried on random legal plans of every family of layers."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.core.plans import with_all
from tests.core.test_arrays import differences
from tests.core.training_plans import LOW, legal_layouts, random_base, random_trained, together
from triledger.core import evaluate
from triledger.core.ledgers.training_memory import ITEMS
from triledger.core.legality import legal
from triledger.core.report import Report
from triledger.core.scenario import Scenario

#: Sums of doubles in another order.
ROUNDING = 1e-9
VERDICTS = ("does-not-fit", "tight", "fits")
LINKS = (
    "cluster.network.bandwidth",
    "cluster.accelerator.link.bandwidth",
    "cluster.accelerator.pcie",
    "cluster.accelerator.memory_bandwidth",
)

plans = st.randoms(use_true_random=False).map(random_trained)
law = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def not_above(small: float, large: float) -> bool:
    return bool(np.all(small <= large * (1 + ROUNDING)))


def even(scenario: Scenario) -> Scenario:
    """The plan with as many layers a stage whatever they take: a dealing by time may move a layer."""
    return scenario.with_("parallelism.stage_balance", "even")


def each_with(scenario: Scenario, path: str, values: tuple[object, ...]) -> list[Report]:
    return [evaluate(scenario.with_(path, value)) for value in values]


# ---------------------------------------------------------------- sums and bounds


@law
@given(plans)
def test_rows_of_the_ledgers_sum_to_their_totals(scenario: Scenario) -> None:
    report = evaluate(scenario)
    items = [report[f"memory.{item}_bytes"] for item in ITEMS]
    assert min(items) >= 0
    assert sum(items) == pytest.approx(report["memory.total_bytes"])
    assert sum(report.stages[item] for item in ITEMS) == pytest.approx(report.stages["total"])
    assert report.stages["total"].max() == pytest.approx(report["memory.total_bytes"])
    rows = report.communication
    for key, name in (("bytes_per_gpu", "bytes_per_gpu"), ("exposed_seconds", "exposed_seconds")):
        assert sum(getattr(row, name) for row in rows) == pytest.approx(report[f"communication.{key}"])
    for row in rows:
        assert row.bytes_per_gpu > 0, row.name
        assert 0 <= row.exposed_seconds <= row.seconds * (1 + ROUNDING), row.name
    parts = (report[f"compute.{part}_flops_per_token"] for part in ("linear", "attention", "head"))
    assert sum(parts) == pytest.approx(report["compute.forward_flops_per_token"])
    for key, value in report.values.items():
        assert not isinstance(value, float) or np.isfinite(value), key


@law
@given(plans)
def test_a_step_is_no_faster_than_its_bound_nor_an_operator_than_its_roof(scenario: Scenario) -> None:
    report = evaluate(scenario)
    assert report["time.bound_s"] > 0
    assert not_above(report["time.bound_s"], report["time.step_s"])
    assert report["time.compute_floor_s"] <= report["time.ideal_s"]
    assert 0 < report["time.mfu"] <= report["time.hfu"] * (1 + ROUNDING) <= 1
    assert report["time.low_s"] < report["time.step_s"] < report["time.high_s"]
    for point in report.points:
        # scans run on vector units, whose peak in 32 bits is no roof of theirs
        flops = 0.0 if scenario.training.precision == "fp32" else point.flops / report["roofline.peak_flops"]
        assert not_above(max(flops, point.bytes / report["roofline.bandwidth"]), point.seconds), point.name


@settings(law, max_examples=30)
@given(st.randoms(use_true_random=False))
def test_layouts_as_arrays_are_what_each_is_alone(choose: Random) -> None:
    base = random_base(choose)
    layouts = legal_layouts(base, choose, 3)
    many = evaluate(together(base, layouts))
    for index, layout in enumerate(layouts):
        assert not differences(evaluate(with_all(base, layout)), many, index)


# ---------------------------------------------------------------- memory


@law
@given(plans)
def test_more_tensor_parallelism_never_holds_more_weights(scenario: Scenario) -> None:
    scenario = even(scenario)
    replicas = scenario.cluster.gpus / scenario.parallelism.tp
    each = [with_all(scenario, {"parallelism.tp": tp, "cluster.gpus": tp * replicas}) for tp in (1, 2, 4, 8)]
    held = [evaluate(one).stages for one in each if legal(one)]
    for fewer, more in pairwise(held):
        assert not_above(*(of["weights"] + of["low_precision_weights"] for of in (more, fewer)))


@law
@given(plans)
def test_each_zero_stage_keeps_no_more_than_the_one_before(scenario: Scenario) -> None:
    # arXiv 1910.02054, figure 1; units of frozen and trained weights together have gradients of all of them
    reports = each_with(scenario.with_("training.finetune", "full"), "parallelism.zero", (0, 1, 2, 3))
    assert all(not_above(b["memory.static_bytes"], a["memory.static_bytes"]) for a, b in pairwise(reports))


@law
@given(plans, st.sampled_from((0, 1)))
def test_adapters_hold_less_than_the_model_and_a_quantised_base_less_than_a_whole_one(
    scenario: Scenario, zero: int
) -> None:
    # adapters of tiny models are no smaller than their matrices; later stages shard what is trained and no frozen base
    assume(scenario.model.hidden_size >= 1024)
    scenario = even(scenario).with_("parallelism.zero", zero)
    static = [r["memory.static_bytes"] for r in each_with(scenario, "training.finetune", ("full", "lora", "qlora"))]
    assert all(less < more for more, less in pairwise(static))


@law
@given(plans, st.floats(1.0, 4.0))
def test_more_memory_never_fits_less(scenario: Scenario, factor: float) -> None:
    path = "cluster.accelerator.memory"
    less, more = each_with(scenario, path, (scenario.get(path), factor * scenario.get(path)))
    assert VERDICTS.index(more["memory.verdict"]) >= VERDICTS.index(less["memory.verdict"])
    assert more["memory.headroom_bytes"] >= less["memory.headroom_bytes"]


@law
@given(plans)
def test_wider_numbers_never_keep_fewer_activations(scenario: Scenario) -> None:
    # a whole plan may: 16-bit weights with 32-bit masters and gradients are 18 bytes a parameter, 32-bit ones 16
    wide, narrow = each_with(even(scenario), "training.precision", ("fp32", "bf16"))
    assume(wide["memory.peak_instant"] == narrow["memory.peak_instant"])
    assert not_above(narrow["memory.activations_bytes"], wide["memory.activations_bytes"])


@law
@given(plans, st.sampled_from(LOW))
def test_copies_of_cast_weights_take_memory_and_save_time_and_8_bit_gathering_takes_neither(
    scenario: Scenario, precision: str
) -> None:
    scenario = scenario.with_("training.precision", precision)
    cast, kept = each_with(scenario, "fp8.cache_weights", (False, True))
    assert not_above(cast["memory.total_bytes"], kept["memory.total_bytes"])
    assert not_above(kept["time.step_s"], cast["time.step_s"])
    wide, narrow = each_with(scenario, "fp8.parameter_gather", (False, True))
    for key in ("memory.static_bytes", "memory.total_bytes", "time.step_s"):
        assert not_above(narrow[key], wide[key]), key


# ---------------------------------------------------------------- time


@law
@given(plans, st.sampled_from(LINKS), st.floats(1.0, 10.0))
def test_a_faster_link_never_slows_a_step(scenario: Scenario, path: str, factor: float) -> None:
    scenario = even(scenario)
    slow, fast = each_with(scenario, path, (scenario.get(path), factor * scenario.get(path)))
    assert not_above(fast["time.step_s"], slow["time.step_s"])
    assert not_above(fast["time.bound_s"], slow["time.bound_s"])


@law
@given(plans, st.integers(2, 4))
def test_a_larger_micro_batch_takes_longer_holds_more_and_uses_units_better(scenario: Scenario, factor: int) -> None:
    sizes = {path: factor * scenario.get(path) for path in ("training.micro_batch", "training.global_batch")}
    small, large = evaluate(scenario), evaluate(with_all(scenario, sizes))
    assert not_above(small["memory.total_bytes"], large["memory.total_bytes"])
    assert not_above(small["time.step_s"], large["time.step_s"])
    assert small["time.steady_s"] < large["time.steady_s"]
    assert not_above(small["time.mfu"], large["time.mfu"])


@law
@given(plans)
def test_what_is_computed_again_takes_time_and_no_memory(scenario: Scenario) -> None:
    # but for activations on their way to the host, and traffic that hides behind a longer backward pass
    changes = {"training.offload_layers": 0, "parallelism.hsdp_replicas": 1}
    words = ("none", "selective", "latent-up", "selective-up", "op-level", "full")
    none, *some, full = each_with(even(with_all(scenario, changes)), "training.recompute", words)
    # a step that its links bound takes as long either way
    assert not_above(none["time.step_s"], full["time.step_s"])
    assert none["time.steady_s"] < full["time.steady_s"]
    assert none["compute.hardware_flops_per_step"] < full["compute.hardware_flops_per_step"]
    for report in some:
        assert not_above(none["time.step_s"], report["time.step_s"])
        assert not_above(report["time.step_s"], full["time.step_s"])
        assert not_above(report["memory.total_bytes"], none["memory.total_bytes"])
