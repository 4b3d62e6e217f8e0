from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.explore.stops import Scale, scale_of
from triledger.core.explore.strips import ILLEGAL, legal_stops, refusal, strip
from triledger.core.fields import FIELDS, Field
from triledger.core.legality import violations
from triledger.core.scenario import Scenario
from triledger.core.traits import traits
from triledger.core.units import UNITS

MOVED = [field for field in FIELDS.values() if field.slider]


@pytest.fixture(scope="module")
def plan() -> Scenario:
    return load_scenario("70b-64xh100-train")


@pytest.mark.parametrize("field", MOVED, ids=lambda field: field.path)
def test_a_scale_rises_within_the_slider_and_its_stops_are_values_of_the_field(field: Field) -> None:
    assert field.slider is not None
    stops = scale_of(field).stops
    assert 2 <= len(stops) <= 200
    assert all(low < high for low, high in pairwise(stops))
    assert field.minimum <= stops[0] <= stops[-1] <= field.maximum
    assert field.slider[0] <= stops[0] * 1.001
    assert stops[-1] <= field.slider[1] * 1.001
    if UNITS[field.unit].whole:
        assert all(isinstance(stop, int) for stop in stops)


@pytest.mark.parametrize("field", MOVED, ids=lambda field: field.path)
def test_places_lead_back_to_their_stops(field: Field) -> None:
    scale = scale_of(field)
    places = [scale.place(stop) for stop in scale.stops]
    assert places[0] == 0
    assert places[-1] == 1
    assert all(low < high for low, high in pairwise(places))
    assert [scale.nearest(place) for place in places] == list(scale.stops)


@given(st.floats(0.1, 1000))
def test_a_value_between_stops_lies_between_their_places_and_steps_to_its_neighbours(value: float) -> None:
    scale = Scale((1, 2, 4, 8, 16, 32, 64), "even")
    below = [stop for stop in scale.stops if stop <= value]
    above = [stop for stop in scale.stops if stop >= value]
    if below:
        assert scale.place(below[-1]) <= scale.place(value)
    if above:
        assert scale.place(value) <= scale.place(above[0])
        assert scale.step(value, 1) >= above[0]
    assert scale.step(value, -1000) == 1
    assert scale.step(value, 1000) == 64


def test_round_values_of_the_trade_are_stops() -> None:
    for path, values in {
        "model.hidden_size": (4096, 5120, 8192, 12288, 16384),
        "cluster.accelerator.memory": (80 * 2**30, 40 * 2**30),
        "training.tokens": (1e12, 1.5e12, 2e12),
        "economics.gpu_price": (1.8, 2.4),
        "training.deadline": (30 * 86400.0, 90 * 86400.0),
        "model.layers": (32, 61, 80),
    }.items():
        stops = scale_of(FIELDS[path]).stops
        assert all(np.isclose(stops, value).any() for value in values), path


def test_a_strip_says_what_evaluating_each_stop_says(plan: Scenario) -> None:
    path = "parallelism.tp"
    stops = scale_of(FIELDS[path]).stops
    legal = legal_stops(plan, path, stops)
    verdicts = strip(plan, path, stops, evaluate, legal)
    for stop, verdict in zip(stops, verdicts, strict=True):
        there = plan.with_(path, stop)
        assert verdict == (ILLEGAL if violations(there) else evaluate(there)["memory.verdict"])
    assert set(verdicts) == {"fits", "does-not-fit", ILLEGAL}


def test_a_field_that_does_not_bear_on_memory_has_no_strip(plan: Scenario) -> None:
    assert strip(plan, "economics.gpu_price", scale_of(FIELDS["economics.gpu_price"]).stops, evaluate) == ()


def test_where_no_stop_mends_the_plan_all_may_be_chosen(plan: Scenario) -> None:
    broken = plan.with_("parallelism.tp", 6)
    assert legal_stops(broken, "training.micro_batch", (1, 2, 4)) is None
    assert legal_stops(broken, "parallelism.tp", (4, 6, 8)) == {4, 8}


def test_a_refusal_names_the_other_field_that_a_rule_speaks_of(plan: Scenario) -> None:
    assert refusal(plan, plan.with_("parallelism.tp", 16), "parallelism.tp") == ""
    assert refusal(plan, plan.with_("parallelism.tp", 6), "parallelism.tp").startswith("6 does not divide 64")
    assert refusal(plan, plan.with_("parallelism.tp", 32), "parallelism.tp").startswith("GPUs: 64 is not a multiple")
    broken = plan.with_("parallelism.tp", 6)
    assert refusal(broken, broken.with_("parallelism.tp", 7), "parallelism.tp") == ""


def served_with_drafts() -> Scenario:
    return load_scenario("70b-bf16-8xa100-serve").with_("serving.speculative.draft_tokens", 3)


PLANS = {name: load_scenario(name) for name in catalogue().presets} | {"drafts": served_with_drafts()}


@pytest.mark.parametrize("name", list(PLANS))
def test_every_slider_of_every_plan_has_a_strip(name: str) -> None:
    scenario = PLANS[name]
    for field in MOVED:
        if scenario.kind in field.kinds and (not field.needs or field.needs in traits(scenario)):
            stops = scale_of(field).stops
            legal = legal_stops(scenario, field.path, stops) if field.unit == "count" else None
            verdicts = strip(scenario, field.path, stops, evaluate, legal)
            assert len(verdicts) in (0, len(stops)), field.path
