"""A model that contradicts itself is refused however it was made: by a file, a setting, a sweep or the window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from triledger.core import Scenario, evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.entries import entry_field, entry_paths
from triledger.core.errors import ScenarioError
from triledger.core.explore import strips
from triledger.core.explore.sweep import sweep
from triledger.core.legality import legal, violations
from triledger.core.scenario_file import read_scenario, set_field, write_scenario

MODELS = ("llama-2-7b", "mixtral-8x7b", "deepseek-v3", "nemotron-3-nano-30b-a3b", "gemma-3-27b", "gpt2")


def plan_of(model: str, preset: str = "7b-8xa100-train") -> Scenario:
    return replace(load_scenario(preset), model=catalogue().models[model])


def changed(scenario: Scenario, **settings: str) -> Scenario:
    for name, text in settings.items():
        scenario = set_field(scenario, f"model.{name}", text)
    return scenario


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("preset", ["7b-8xa100-train", "70b-bf16-8xa100-serve"])
def test_one_changed_size_is_refused_where_its_file_would_be_and_evaluated_elsewhere(model: str, preset: str) -> None:
    plan = plan_of(model, preset).with_("parallelism.tp", 1)
    for path in entry_paths():
        field = entry_field(path)
        if not path.startswith("model.") or field is None or field.unit != "count":
            continue
        for value in {int(field.minimum), 1, 8}:
            if value < field.minimum:
                continue
            scenario = set_field(plan, path, str(value))
            broken = violations(scenario)
            assert legal(scenario) is not bool(broken)
            if broken:
                with pytest.raises(ScenarioError):
                    read_scenario(write_scenario(scenario), "plan.yaml")
                continue
            read_scenario(write_scenario(scenario), "plan.yaml")
            assert evaluate(scenario)["memory.total_bytes"] > 0


@pytest.mark.parametrize(
    ("model", "settings", "field"),
    [
        ("llama-2-7b", {"experts": "4"}, "model.experts_per_token"),
        ("llama-2-7b", {"experts": "4", "experts_per_token": "2"}, "model.expert_size"),
        ("llama-2-7b", {"kv_rank": "512"}, "model.nope_dim"),
        ("deepseek-v3", {"q_rank": "0"}, "model.q_rank"),
        ("kimi-k2", {"index_heads": "8"}, "model.index_dim"),
        ("gemma-3-27b", {"window": "0"}, "model.window"),
        ("nemotron-3-nano-30b-a3b", {"conv_size": "0"}, "model.conv_size"),
        ("mixtral-8x7b", {"experts_per_token": "0"}, "model.experts_per_token"),
    ],
)
def test_a_kind_of_layer_needs_its_sizes(model: str, settings: dict[str, str], field: str) -> None:
    before = plan_of(model)
    if "q_rank" in settings:
        before = changed(before, index_heads="64", index_dim="128", index_topk="2048")
    after = changed(before, **settings)
    assert violations(after)[0].field == field
    assert "is missing" in violations(after)[0].message
    assert not legal(after)
    assert "is missing" in strips.refusal(before, after, f"model.{next(iter(settings))}")


def test_sizes_that_come_together_make_another_kind_of_model() -> None:
    scenario = changed(plan_of("llama-2-7b"), experts="4", experts_per_token="2", expert_size="11008")
    assert violations(scenario) == []
    assert evaluate(scenario)["model.parameters"] > 1.5e10


def test_arrays_of_sizes_get_the_answers_of_their_sizes() -> None:
    values = np.array([0, 1, 2, 4, 8, 16])
    for model in ("mixtral-8x7b", "llama-2-7b"):
        plan = plan_of(model)
        for path in ("model.experts_per_token", "model.vocabulary", "model.heads", "model.kv_heads"):
            many = np.broadcast_to(legal(plan.with_(path, values)), values.shape)
            assert many.tolist() == [legal(plan.with_(path, int(value))) for value in values]


def test_a_sweep_gives_dense_and_routed_models_their_own_evaluations() -> None:
    plan = changed(plan_of("llama-2-7b"), expert_size="11008")
    over = [("model.experts", ["0", "4"]), ("model.experts_per_token", ["0", "2"])]
    rows = sweep(plan, over, ["model.parameters"], evaluate)
    assert [bool(row.reason) for row in rows] == [False, True, True, False]
    routed = changed(plan, experts="4", experts_per_token="2")
    assert rows[0].results["model.parameters"] == evaluate(plan)["model.parameters"]
    assert rows[3].results["model.parameters"] == evaluate(routed)["model.parameters"]


def test_presets_contradict_themselves_nowhere() -> None:
    assert all(violations(load_scenario(preset)) == [] for preset in catalogue().presets)
