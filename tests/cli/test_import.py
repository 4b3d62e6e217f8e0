"""`triledger import`: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.huggingface_files import CONFIGS, PLAIN
from triledger.cli import main
from triledger.core import evaluate, load_scenario
from triledger.core.errors import ScenarioError

PLAN = "kind: serving\nmodel: {model}\ncluster:\n  accelerator: h100-sxm-80gb\n  gpus: 1\n"


@pytest.fixture
def run(capsys):
    """Runs the command; answers (status, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["import", *arguments])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def config(tmp_path: Path):
    """Writes the config.json of a published model, or another content, and answers its path."""

    def config(content: str | dict[str, object], name: str = "config.json") -> str:
        path = tmp_path / name
        known = CONFIGS.get(content) if isinstance(content, str) else content
        path.write_text(json.dumps(known) if known is not None else str(content))
        return str(path)

    return config


def test_json_has_the_counts_as_whole_numbers(run, config) -> None:
    status, out, err = run(config("deepseek-ai/DeepSeek-V3"), "--format", "json")
    assert (status, err) == (0, "")
    values = json.loads(out)
    assert values == {
        "name": values["name"],
        "model.parameters": 671_026_404_352,
        "model.active_parameters": 37_552_282_624,
        "model.text_parameters": 671_026_404_352,
        "model.vision_parameters": 0,
        "model.mtp_parameters": 11_610_068_224,
        "model.buffers": 14_848,
        "model.kv_bytes_per_token": 70_272,
        "model.state_bytes_per_sequence": 0,
        "model.weight_format": "fp8-block",
        "assumed": [],
        "findings": [],
    }
    assert all(isinstance(value, int) for key, value in values.items() if key.endswith(("parameters", "_token")))


def test_text_tells_layers_counts_and_format(run, config) -> None:
    status, out, _ = run(config("google/gemma-3-27b-it", "gemma.json"))
    assert status == 0
    assert out.startswith(
        "gemma\n  52 × window of 1\u202f024: 32 heads, 16 KV heads of 128; FFN 21\u202f504 wide, gated\n"
    )
    for said in (
        "10 × full attention",
        "27\u202f432\u202f406\u202f640",
        "vision tower",
        "423\u202f060\u202f336",
        "496 KiB",
        "bf16",
    ):
        assert said in out
    assert "prediction modules" not in out


def test_what_was_assumed_is_said(run, config) -> None:
    unknown = config({**PLAIN, "model_type": "xyz"})
    _, out, _ = run(unknown)
    assert "warning  model_type is 'xyz', no family that is known; read as: RMSNorm before each part" in out
    values = json.loads(run(unknown, "--format", "json")[1])
    assert "no biases" in values["assumed"]
    assert values["findings"][0]["code"] == "unknown-family"


def test_a_written_model_can_be_named_by_a_scenario(run, config, tmp_path: Path) -> None:
    written = tmp_path / "my-model.yaml"
    status, _, _ = run(config("Qwen/Qwen2-7B"), "-o", str(written))
    assert status == 0
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(model="my-model.yaml"))
    by_model = evaluate(load_scenario(plan))
    assert by_model["model.parameters"] == 7_615_616_512
    plan.write_text(PLAN.format(model="config.json"))
    by_config = evaluate(load_scenario(plan))
    assert by_config["time.step_s"] == by_model["time.step_s"]


def test_a_scenario_names_the_fault_of_its_config(config, tmp_path: Path) -> None:
    config({**PLAIN, "hidden_size": -1})
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(model="config.json"))
    with pytest.raises(ScenarioError) as error:
        load_scenario(plan)
    assert str(error.value).startswith(f"{plan}:2: model: {tmp_path / 'config.json'}: hidden_size: is -1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"hidden_size":', "config.json:1: not JSON"),
        ("[]", "config.json:1: is a list"),
        ("google-bert/bert-base-uncased", "model_type: bert is an encoder"),
        ({**PLAIN, "num_attention_heads": 3}, "num_key_value_heads: 2 does not divide 3 attention heads"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(run, config, tmp_path: Path, content, said: str) -> None:
    written = tmp_path / "model.yaml"
    status, out, err = run(config(content), "-o", str(written))
    assert (status, out) == (2, "")
    assert err.startswith("triledger: ")
    assert err.count("\n") == 1
    assert said in err
    assert not written.exists()


def test_a_place_that_cannot_be_written_is_said(run, config, tmp_path: Path) -> None:
    status, out, err = run(config("Qwen/Qwen2-7B"), "-o", str(tmp_path / "no" / "such" / "model.yaml"))
    assert (status, out) == (2, "")
    assert "no such file or directory" in err
