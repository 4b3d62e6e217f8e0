"""Scenario files: what they say is what is planned, single fields, and saving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triledger.core import evaluate, files
from triledger.core.catalogue import catalogue
from triledger.core.errors import ScenarioError
from triledger.core.fields import FIELDS
from triledger.core.legality import violations
from triledger.core.scenario import Network, Scenario
from triledger.core.scenario_file import load_scenario, read_scenario, save_scenario, set_field, write_scenario

BASE = "model: llama-2-7b\ncluster:\n  accelerator: a100-sxm-80gb\n"
PRESETS = [
    "7b-8xa100-train",
    "70b-64xh100-train",
    "70b-512xh100-2t-train",
    "70b-128xa100-2t-train",
    "405b-16384xh100-train",
    "70b-int4-1xh100-serve",
    "70b-bf16-8xa100-serve",
    "70b-int8-1xh100-step",
]


def read(text: str) -> Scenario:
    return read_scenario(text, "plan.yaml")


# ---------------------------------------------------------------- presets and good files


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_legal_and_survive_saving(preset: str) -> None:
    scenario = load_scenario(preset)
    assert violations(scenario) == []
    assert read(write_scenario(scenario)) == scenario


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_fit_into_memory(preset: str) -> None:
    assert evaluate(load_scenario(preset))["memory.fits"]


def test_a_preset_says_what_its_story_needs() -> None:
    scenario = load_scenario("7b-8xa100-train")
    assert scenario.model.id == "llama-2-7b"
    assert scenario.cluster.accelerator.id == "a100-sxm-80gb"
    assert (scenario.cluster.gpus, scenario.parallelism.zero, scenario.training.micro_batch) == (8, 2, 1)
    assert scenario.training.gradient_precision == "bf16"
    assert scenario.whiteboard.parameters == 7e9


def test_a_minimal_file_has_the_defaults() -> None:
    scenario = read(BASE)
    assert scenario.kind == "training"
    assert scenario.cluster.gpus == 8
    assert scenario.cluster.network.id == "ib-ndr-400"
    assert scenario.training.tokens == 2e12


def test_the_documented_example_is_read() -> None:
    scenario = read(
        """
triledger: 1
name: 7B pre-training on 8×A100-80GB
kind: training
model: llama-2-7b
cluster: {accelerator: a100-sxm-80gb, gpus: 8, gpus_per_node: 8, network: 25 GB/s}
parallelism:
  {tp: 1, pp: 1, cp: 1, ep: 1, etp: 1, vpp: 1, zero: 2, hsdp_replicas: 1, sp: false, schedule: 1f1b,
   context_scheme: ring, stage_balance: even, expert_dispatch: all-to-all}
training: {sequence_length: 4096, tokens: 2T, precision: bf16, gradient_precision: fp32, finetune: full,
  fused_gradient_accumulation: true, offload_optimizer: false, mfu: auto}
serving: {memory_utilization: 90%, ttft_target: 500 ms, request_rate: 0,
  speculative: {draft_tokens: 0, acceptance: 80%, draft_cost: 5%}}
whiteboard: {parameters: 70B}
economics: {gpu_price: 1.80 USD/h, power_usage_effectiveness: 1.2, grid_intensity: 0.4}
reliability: {node_failures_per_1000_days: 3.8, checkpoint_seconds: 10, restart_seconds: 600}
measured: {}
assumptions: {}
"""
    )
    assert scenario.cluster.network.bandwidth == 25e9
    assert scenario.whiteboard.parameters == 70e9
    assert scenario == replace(
        read(BASE),
        name="7B pre-training on 8×A100-80GB",
        cluster=scenario.cluster,
        whiteboard=scenario.whiteboard,
    )


def test_entries_can_be_changed_or_written_out() -> None:
    scenario = read(
        "model:\n  layers: 24\n  hidden_size: 2048\n  heads: 16\n  ffn_size: 5504\n  vocabulary: 32000\n"
        "cluster:\n  accelerator: {base: a100-sxm-80gb, memory: 96 GiB, peak: {fp8: 624 TFLOP/s}}\n"
        "  network: {bandwidth: 10 GB/s, latency_class: roce}\n"
    )
    assert scenario.model.kv_heads == 16, "as many as query heads where nothing is said"
    part = scenario.cluster.accelerator
    assert (part.memory, part.memory_reported) == (96 * 2**30, None), "the reported total was that of another size"
    assert (part.peak.fp8, part.peak.bf16) == (624e12, 312e12)
    assert scenario.cluster.network.latency_class == "roce"
    assert read(write_scenario(scenario)) == scenario


def test_a_model_file_is_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("base: llama-2-7b\nlayers: 40\n")
    plan = tmp_path / "plan.yaml"
    plan.write_text(BASE.replace("llama-2-7b", "./mine.yaml"))
    scenario = load_scenario(plan)
    assert (scenario.model.layers, scenario.model.hidden_size) == (40, 4096)
    assert read(write_scenario(scenario)) == scenario


def test_assumptions_are_constants_by_name() -> None:
    scenario = read(BASE + "assumptions: {e_mem: 85%, t_k: 5 µs}\n")
    assert dict(scenario.assumptions) == {"e_mem": 0.85, "t_k": 5e-6}
    assert read(write_scenario(scenario)) == scenario


# ---------------------------------------------------------------- single fields


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("parallelism.tp", "2*4", 8),
        ("parallelism.zero", "3", 3),
        ("parallelism.sp", "yes", True),
        ("parallelism.stage_balance", "8, 8, 8, 8", (8, 8, 8, 8)),
        ("parallelism.stage_balance", "by-time", "by-time"),
        ("training.tokens", "1.5T", 1.5e12),
        ("training.mfu", "50%", 0.5),
        ("training.mfu", "auto", "auto"),
        ("whiteboard.parameters", "70B", 70e9),
        ("whiteboard.parameters", "none", None),
        ("cluster.accelerator.memory_bandwidth", "2.4 TB/s", 2.4e12),
        ("cluster.accelerator.peak.fp4", "1 PFLOP/s", 1e15),
        ("cluster.network.bandwidth", "400 Gb/s", 50e9),
        ("model.layers", "40", 40),
        ("assumptions.alpha_net", "20 µs", 20e-6),
        ("name", " What if? ", "What if?"),
        ("kind", "serving", "serving"),
    ],
)
def test_a_field_takes_what_a_person_types(path: str, text: str, value: object) -> None:
    changed = set_field(load_scenario("7b-8xa100-train"), path, text)
    assert changed.get(path) == value
    assert type(changed.get(path)) is type(value)


def test_an_entry_is_picked_by_id_or_a_network_by_its_rate() -> None:
    scenario = load_scenario("7b-8xa100-train")
    assert set_field(scenario, "model", "llama-3-8b").model is catalogue().models["llama-3-8b"]
    assert set_field(scenario, "cluster.accelerator", "mi300x").cluster.accelerator.name == "MI300X"
    network = set_field(scenario, "cluster.network", "25 GB/s").cluster.network
    assert isinstance(network, Network)
    assert (network.bandwidth, network.latency_class) == (25e9, "ib")


def test_another_size_of_memory_forgets_what_the_tool_reported_of_the_old_one() -> None:
    scenario = set_field(load_scenario("7b-8xa100-train"), "cluster.accelerator.memory", "160 GiB")
    assert scenario.cluster.accelerator.memory_reported is None
    assert read(write_scenario(scenario)) == scenario


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("parallelism.tpp", "8", "parallelism.tpp: unknown key; did you mean parallelism.tp?"),
        ("parallelism", "8", "parallelism: is a section; name one of its fields, for example parallelism.tp"),
        ("cluster.accelerator.peak", "8", "cluster.accelerator.peak: is a section; name one of its fields, "),
        ("parallelism.tp", "a", "parallelism.tp: 'a' is not a quantity; write for example 8"),
        ("cluster.accelerator.memory", "80", "cluster.accelerator.memory: 80 is too small: 1.00 GiB or more would do"),
        ("", "8", "unknown key; "),
    ],
)
def test_a_field_refuses_in_one_line_without_a_file(path: str, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        set_field(load_scenario("7b-8xa100-train"), path, text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("path", [path for path, field in FIELDS.items() if field.unit == "choice"])
def test_every_choice_can_be_set_and_saved(path: str) -> None:
    for choice in FIELDS[path].choices:
        changed = set_field(read(BASE + "  gpus: 64\nparallelism: {pp: 2}\n"), path, choice)
        assert str(changed.get(path)) == choice
        assert read(write_scenario(changed)) == changed


@settings(deadline=None)
@given(st.data())
def test_any_numbers_survive_saving(data: st.DataObject) -> None:
    scenario = load_scenario("70b-bf16-8xa100-serve")
    numeric = [f for f in FIELDS.values() if f.unit not in ("choice", "catalogue", "flag", "text")]
    for field in data.draw(st.lists(st.sampled_from(numeric), max_size=5, unique_by=lambda f: f.path)):
        if field.path.startswith(("model.", "parallelism.", "cluster.gpus", "serving.attention_dp")):
            continue
        if field.unit == "count":
            value: Any = data.draw(st.integers(int(field.minimum), int(min(field.maximum, 2**40))))
        else:
            value = data.draw(st.floats(field.minimum, field.maximum, allow_nan=False))
        scenario = scenario.with_(field.path, value)
    assert read(write_scenario(scenario)) == scenario


@settings(deadline=None)
@given(st.text(min_size=1, max_size=30).map(str.strip).filter(bool))
def test_any_printable_name_survives_saving(name: str) -> None:
    if not name.isprintable():
        return
    scenario = replace(load_scenario("7b-8xa100-train"), name=name)
    assert read(write_scenario(scenario)).name == name


# ---------------------------------------------------------------- saving


def test_a_saved_file_holds_what_differs_in_readable_units(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    save_scenario(load_scenario("70b-64xh100-train"), path)
    assert path.read_text() == (
        "triledger: 1\n"
        "name: 70B pre-training on 64×H100\n"
        "model: llama-3-70b\n"
        "cluster:\n"
        "  accelerator: h100-sxm-80gb\n"
        "  gpus: 64\n"
        "  network: ib-ndr-400\n"
        "parallelism:\n"
        "  tp: 8\n"
        "  pp: 4\n"
        "  zero: 1\n"
        "  sp: true\n"
        "training:\n"
        "  mfu: 52%\n"
        "whiteboard:\n"
        "  parameters: 70B\n"
    )
    assert load_scenario(path) == load_scenario("70b-64xh100-train")


def test_a_changed_entry_is_saved_as_its_base_and_the_change() -> None:
    scenario = set_field(load_scenario("7b-8xa100-train"), "model.layers", "40")
    scenario = set_field(scenario, "cluster.accelerator.peak.bf16", "500 TFLOP/s")
    scenario = set_field(scenario, "parallelism.stage_balance", "40")
    text = write_scenario(scenario)
    assert "model:\n  base: llama-2-7b\n  layers: 40\n" in text
    assert "  accelerator:\n    base: a100-sxm-80gb\n    peak:\n      bf16: 500 TFLOP/s\n" in text
    assert "  stage_balance: [40]\n" in text
    assert read(text) == scenario


def test_a_fact_that_the_base_has_and_the_entry_has_not_is_saved_as_empty() -> None:
    scenario = load_scenario("7b-8xa100-train").with_("cluster.accelerator.note", "")
    assert read(write_scenario(scenario)) == scenario


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("the old plan")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(ScenarioError, match=r"^[^\n]*plan.yaml: no space left on device$"):
        save_scenario(load_scenario("7b-8xa100-train"), path)
    assert path.read_text() == "the old plan"
    assert list(tmp_path.iterdir()) == [path]


def test_a_save_into_nowhere_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"plan\.yaml: no such file or directory"):
        save_scenario(load_scenario("7b-8xa100-train"), tmp_path / "missing" / "plan.yaml")
