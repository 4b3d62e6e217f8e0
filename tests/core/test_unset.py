"""Settings that a plan leaves at their defaults, with what others would change."""

from __future__ import annotations

import pytest

from tests.core.plans import with_all
from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue, table
from triledger.core.fields import FIELDS
from triledger.core.legality import legal
from triledger.core.scenario_values import default
from triledger.core.unset import unset

PLAN = load_scenario("70b-64xh100-train")


def test_effects_are_those_of_the_other_values() -> None:
    step = evaluate(PLAN)["time.step_s"]
    found = unset(PLAN, evaluate)
    assert {each.field for each in found} >= {"overlap.tp_forward", "training.attention_kernel", "training.projections"}
    for each in found:
        for (name, effect), edit in zip(each.tried, each.edits, strict=True):
            assert evaluate(edit.applied(PLAN))["time.step_s"] == pytest.approx(step * (1 + effect))
            assert name in edit.label
        assert each.effect_low <= 0 <= each.effect_high


def test_the_most_telling_setting_comes_first_and_small_ones_are_left_out() -> None:
    spans = [each.effect_high - each.effect_low for each in unset(PLAN, evaluate)]
    assert spans == sorted(spans, reverse=True)
    assert min(spans) >= 0.02


def test_what_a_plan_sets_is_not_assumed() -> None:
    stated = with_all(PLAN, {"training.attention_kernel": "fa3", "overlap.tp_forward": True})
    assert not {each.field for each in unset(stated, evaluate)} & {"training.attention_kernel", "overlap.tp_forward"}


def test_interleaving_is_tried_with_its_schedule() -> None:
    plain = with_all(PLAN, {"parallelism.vpp": 1, "parallelism.schedule": "1f1b", "training.global_batch": 16})
    (interleaving,) = (each for each in unset(plain, evaluate) if each.field == "parallelism.vpp")
    assert interleaving.effect_low < -0.02
    assert all(legal(edit.applied(plain)) for edit in interleaving.edits)


def test_first_year_libraries_are_asked_of_young_parts_only() -> None:
    def fields(device: str) -> set[str]:
        plan = load_scenario("7b-8xa100-train").with_("cluster.accelerator", catalogue().accelerators[device])
        return {each.field for each in unset(plan, evaluate)}

    assert "training.kernel_maturity" in fields("b200-sxm-180gb")
    assert "training.kernel_maturity" not in fields("a100-sxm-80gb")


def test_a_serving_plan_is_told_of_the_time_of_a_token() -> None:
    plan = load_scenario("70b-bf16-8xa100-serve")
    found = {each.field: each for each in unset(plan, evaluate)}
    engine = found["serving.engine"]
    token = evaluate(plan)["serving.tpot_s"]
    assert evaluate(engine.edits[0].applied(plan))["serving.tpot_s"] == pytest.approx(token * (1 + engine.tried[0][1]))
    assert engine.message.startswith("Engine: vllm-v1 is assumed. Time per token with")


def test_the_table_names_fields_with_their_kind_and_possible_values() -> None:
    for kind, entries in table("unset").items():
        for entry in entries:
            field = FIELDS[entry["path"]]
            assert kind in field.kinds
            assert entry.get("try") or field.choices or field.unit == "flag"
            assert not field.choices or set(entry.get("try", [])) <= set(field.choices)
            assert default(field.path) is None or default(field.path) not in entry.get("try", [])
