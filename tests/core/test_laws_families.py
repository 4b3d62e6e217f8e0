"""Laws of every model of the catalogue in each kind of plan that computes it, and of the caches of published ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.core.huggingface_files import COUNTS, published
from tests.core.plans import plan, with_all
from tests.core.serving_plans import serving
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.legality import legal, violations
from triledger.core.model.layers import Model, build
from triledger.core.scenario import Scenario

#: Sums of doubles in another order.
ROUNDING = 1e-9
MODELS = catalogue().models
DEGREES = (1, 2, 4, 8)
PARTS = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "mi300x", "b200-sxm-180gb", "rtx-4090")


def trained(name: str, **changes: object) -> Scenario:
    """The model on 64 H100 with full shards, ready for any degree of tensor parallelism."""
    usual = {"cluster__gpus": 64, "parallelism__zero": 3, "parallelism__sp": True, "training__global_batch": 128}
    return plan(name, "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))


def served(name: str, **changes: object) -> Scenario:
    """The model on as many of 8 H100 as it can be split over."""
    plans = (serving(name, "h100-sxm-80gb", tp=tp, **changes) for tp in reversed(DEGREES))
    return next(each for each in plans if legal(each))


def computed(scenario: Scenario) -> bool:
    """Whether an engine computes the model at all, whatever its layout."""
    return all(broken.field != "model" for broken in violations(scenario))


SERVED = [name for name in MODELS if computed(serving(name, "h100-sxm-80gb"))]
TRAINED = [name for name in MODELS if computed(trained(name))]


def degrees(scenario: Scenario) -> list[Scenario]:
    """The plan with each degree of tensor parallelism that is legal; a served one on as many GPUs."""
    gpus = {"cluster.gpus": 64 if scenario.kind == "training" else 8}
    each = [with_all(scenario, gpus | {"parallelism.tp": tp}) for tp in DEGREES]
    return [one for one in each if legal(one)]


def not_above(small: float, large: float) -> bool:
    return small <= large * (1 + ROUNDING)


def test_every_family_of_the_catalogue_is_served_or_trained_by_some_plan() -> None:
    assert {"llama-3-70b", "gpt2", "falcon-7b", "gemma-7b"} <= set(TRAINED)
    assert {"mixtral-8x7b", "qwen3-30b-a3b"} <= set(SERVED)


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("name", TRAINED)
def test_more_tensor_parallelism_never_holds_more_weights(name: str) -> None:
    held = [evaluate(each)["memory.parameters_per_gpu"] for each in degrees(trained(name))]
    assert held
    assert all(not_above(more, less) for less, more in pairwise(held))


@pytest.mark.parametrize("name", TRAINED)
def test_memory_rises_with_the_micro_batch_and_never_with_fewer_bits(name: str) -> None:
    totals = [
        evaluate(trained(name, training__micro_batch=size))["memory.total_bytes"]
        for size in (1, 2)  # 128 sequences over 64 ranks
    ]
    assert totals[0] < totals[1]
    wide, narrow = (
        evaluate(trained(name, training__precision=word))["memory.total_bytes"] for word in ("fp32", "bf16")
    )
    assert not_above(narrow, wide)


@pytest.mark.parametrize("name", TRAINED)
def test_a_training_step_is_no_faster_than_its_bound_and_its_parts_add_up(name: str) -> None:
    report = evaluate(trained(name))
    assert 0 < report["time.bound_s"] <= report["time.step_s"]
    assert 0 < report["time.mfu"] <= report["time.hfu"] * (1 + ROUNDING) <= 1
    assert report["time.compute_floor_s"] <= report["time.ideal_s"]
    for point in report.points:
        roof = max(point.flops / report["roofline.peak_flops"], point.bytes / report["roofline.bandwidth"])
        assert not_above(roof, point.seconds), point.name
    assert report["model.active_parameters"] <= report["model.parameters"]
    assert "memory.kv_cache_bytes" not in report


@pytest.mark.parametrize("name", TRAINED)
def test_twice_the_devices_never_have_a_longer_bound(name: str) -> None:
    bounds = [evaluate(trained(name, cluster__gpus=gpus))["time.bound_s"] for gpus in (32, 64, 128)]
    assert all(not_above(more, fewer) for fewer, more in pairwise(bounds))


@pytest.mark.parametrize("name", TRAINED)
def test_fewer_bits_never_have_a_longer_bound(name: str) -> None:
    bounds = [evaluate(trained(name, training__precision=word))["time.bound_s"] for word in ("bf16", "fp8")]
    assert not_above(bounds[1], bounds[0])


@pytest.mark.parametrize("name", TRAINED)
def test_adapters_hold_less_than_the_model_and_a_quantised_base_less_than_a_whole_one(name: str) -> None:
    base = trained(name, parallelism__zero=0, training__recompute="full")
    words = [word for word in ("full", "lora", "qlora") if legal(base.with_("training.finetune", word))]
    static = [evaluate(base.with_("training.finetune", word))["memory.static_bytes"] for word in words]
    assert words[:2] == ["full", "lora"]
    assert all(less < more for more, less in pairwise(static))


# ---------------------------------------------------------------- serving


@pytest.mark.parametrize("name", SERVED)
def test_more_tensor_parallelism_never_serves_with_more_weights(name: str) -> None:
    held = [evaluate(each)["memory.weights_bytes"] for each in degrees(served(name))]
    assert held
    assert all(not_above(more, less) for less, more in pairwise(held))


@pytest.mark.parametrize("name", SERVED)
def test_fewer_bits_never_hold_more(name: str) -> None:
    weights = [
        evaluate(served(name, weight_format=word))["memory.weights_bytes"] for word in ("bf16", "fp8", "int4-g128")
    ]
    assert all(less < more for more, less in pairwise(weights))
    caches = [evaluate(served(name, kv_format=word))["memory.kv_cache_bytes"] for word in ("bf16", "fp8")]
    assert not_above(caches[1], caches[0])


@pytest.mark.parametrize("name", SERVED)
def test_a_served_token_is_no_faster_than_its_bound(name: str) -> None:
    report = evaluate(served(name))
    assert 0 < report["serving.tpot_bound_s"] <= report.get("serving.tpot_s", np.inf)
    assert 0 < report["serving.ttft_bound_s"] <= report.get("serving.ttft_s", np.inf)
    assert report["time.bound_s"] <= report["time.step_s"]
    for point in report.points:
        if point.bound and point.phase == "decode":
            assert not_above(point.bytes / report["roofline.bandwidth"], point.seconds), point.name


@pytest.mark.parametrize("name", SERVED)
def test_more_requests_never_take_less_time_each(name: str) -> None:
    steps = [evaluate(served(name, concurrency=count))["time.step_s"] for count in (1, 4, 16, 64)]
    assert all(not_above(few, many) for few, many in pairwise(steps))
    held = [evaluate(served(name, concurrency=count))["memory.kv_cache_bytes"] for count in (1, 4, 16, 64)]
    assert all(not_above(few, many) for few, many in pairwise(held))


@pytest.mark.parametrize("name", SERVED)
def test_the_pool_over_its_tokens_is_the_bytes_of_a_token(name: str) -> None:
    report, model = evaluate(served(name)), build(MODELS[name])
    if model.state_bytes_per_sequence() or any(block.mixer.kv_limit is not None for _, block in model.groups):
        pytest.skip("windows and states do not grow with each token")
    pool, each = report["memory.kv_budget_bytes"], report["serving.kv_bytes_per_token_per_gpu"]
    if pool > 0:
        # whole blocks of 16 tokens
        assert report["serving.kv_capacity_tokens"] * each <= pool * (1 + ROUNDING)
        assert report["serving.kv_capacity_tokens"] == pytest.approx(pool / each, abs=16)


# ---------------------------------------------------------------- caches of every published family


def _everyone() -> Iterator[tuple[str, Model]]:
    yield from ((name, build(spec)) for name, spec in MODELS.items())
    yield from ((row["model"], published(row["model"])) for row in COUNTS if row["parameters"])


EVERYONE = dict(_everyone())
CONTEXTS = (1.0, 16.0, 100.0, 128.0, 4096.0, 10_000.0, 131_072.0)


@pytest.mark.parametrize("name", list(EVERYONE))
def test_caches_grow_with_the_context_and_no_faster_than_without_windows(name: str) -> None:
    model = EVERYONE[name]
    held = [model.kv_bytes_per_sequence(tokens, 2.0, page=1.0) for tokens in CONTEXTS]
    assert all(short <= longer for short, longer in pairwise(held))
    each = model.kv_bytes_per_token(2.0)
    assert all(size <= tokens * each for size, tokens in zip(held, CONTEXTS, strict=True))
    # windows cap what a layer keeps
    limits = [block.mixer.kv_limit for _, block in model.groups]
    if all(limit is not None for limit in limits):
        assert held[-1] == model.kv_bytes_per_sequence(max(filter(None, limits)), 2.0, page=1.0)
    if each and not any(limits):
        assert held[-1] == pytest.approx(CONTEXTS[-1] * each)


@pytest.mark.parametrize("name", list(EVERYONE))
def test_states_are_there_or_keys_are_and_no_rank_holds_more_than_all(name: str) -> None:
    model = EVERYONE[name]
    state, each = model.state_bytes_per_sequence(), model.kv_bytes_per_token(2.0)
    assert state > 0 or each > 0
    for _, block in model.groups:
        for tp in DEGREES:
            assert block.mixer.kv_share(tp) <= block.mixer.kv_elements() * (1 + ROUNDING)
            assert block.share(tp) <= block.parameters() * (1 + ROUNDING)


@pytest.mark.parametrize("name", list(EVERYONE))
def test_a_token_meets_no_more_than_there_is(name: str) -> None:
    model = EVERYONE[name]
    assert 0 < model.active_parameters <= model.parameters
    assert model.text_parameters <= model.parameters
    assert (model.active_parameters < model.parameters) == any(block.experts for _, block in model.groups)


# ---------------------------------------------------------------- any model in any plan


law = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@st.composite
def any_served(choose: st.DrawFn) -> Scenario:
    """Any model of the catalogue, served in any formats and layout that is legal."""
    plans = degrees(serving(choose(st.sampled_from(SERVED)), choose(st.sampled_from(PARTS))))
    values = {
        "serving.weight_format": choose(st.sampled_from(("bf16", "fp8", "int8", "int4-g128"))),
        "serving.kv_format": choose(st.sampled_from(("bf16", "fp8", "int4"))),
        "serving.concurrency": choose(st.sampled_from((1, 3, 32, 400))),
        "serving.prompt_tokens": choose(st.sampled_from((1, 100, 2048, 30_000))),
        "serving.output_tokens": choose(st.sampled_from((2, 128, 1024))),
        "serving.max_context": 32_768,
        "serving.engine": choose(st.sampled_from(list(catalogue().engines))),
    }
    return with_all(choose(st.sampled_from(plans)), values)


@law
@given(any_served())
def test_ledgers_of_any_served_model_hold_together(scenario: Scenario) -> None:
    report = evaluate(scenario)
    items = ("weights", "kv_cache", "activations", "workspace")
    held = [report[f"memory.{item}_bytes"] for item in items]
    assert min(held) >= 0
    assert sum(held) == pytest.approx(report["memory.total_bytes"])
    rows = report.communication
    assert report["communication.bytes_per_gpu"] == pytest.approx(sum(row.bytes_per_gpu for row in rows))
    for row in rows:
        assert 0 <= row.exposed_seconds <= row.seconds * (1 + ROUNDING), row.name
    parts = ("compute", "memory", "launch", "bubble", "exposed_communication")
    assert sum(report.get(f"time.{part}_s", 0.0) for part in parts) == pytest.approx(report["time.step_s"])
    for key, value in report.values.items():
        assert not isinstance(value, float) or np.isfinite(value), key


@law
@given(any_served(), st.floats(1.0, 8.0), st.sampled_from(("memory", "memory_bandwidth", "link.bandwidth")))
def test_a_better_part_never_serves_worse(scenario: Scenario, factor: float, name: str) -> None:
    # a link no faster than the host's is none, and other kernels run over it
    device, path = scenario.cluster.accelerator, f"cluster.accelerator.{name}"
    assume(name != "link.bandwidth" or device.link.bandwidth > device.pcie)
    better, worse = evaluate(scenario.with_(path, factor * scenario.get(path))), evaluate(scenario)
    if name == "memory":  # more requests then run at a time, so a step may take longer
        assert better["serving.max_concurrency"] >= worse["serving.max_concurrency"]
        assert better.get("serving.running", 0.0) >= worse.get("serving.running", 0.0) * (1 - 1e-6)
    else:
        assert not_above(better["time.bound_s"], worse["time.bound_s"])
        assert not_above(better["time.step_s"], worse["time.step_s"])


@law
@given(any_served())
def test_any_served_model_is_no_faster_than_its_bound(scenario: Scenario) -> None:
    report = evaluate(scenario)
    assert report["time.bound_s"] > 0
    assert not_above(report["time.bound_s"], report["time.step_s"])
    assert 0 < report["time.mfu"] <= 1
    assert 0 < report["time.mbu"] <= 1 + ROUNDING
    assert report["memory.total_bytes"] > 0
