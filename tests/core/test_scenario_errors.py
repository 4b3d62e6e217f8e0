"""Scenario files that cannot be used are refused in one line that says where and what would do."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triledger.core.catalogue import catalogue
from triledger.core.errors import ScenarioError
from triledger.core.scenario import Scenario
from triledger.core.scenario_file import load_scenario, read_scenario

BASE = "model: llama-2-7b\ncluster:\n  accelerator: a100-sxm-80gb\n"


def read(text: str) -> Scenario:
    return read_scenario(text, "plan.yaml")


def refused(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"^plan.yaml: is empty; write"),
        ("# nothing yet\n", r"^plan.yaml: is empty; write"),
        ("---\n", r"^plan.yaml: is empty; write"),
        ("- a\n- b\n", r"^plan.yaml:1: is not a mapping; write"),
        ("just words\n", r"^plan.yaml:1: is not a mapping"),
        ("model: [\n", r"^plan.yaml:\d: not YAML"),
        ("a: b: c\n", r"^plan.yaml:1: not YAML: mapping values"),
        ("model: gpt2\nmodel: gpt2-xl\n", r"^plan.yaml:2: model: is written twice \(first on line 1\)"),
        ("cluster:\n  gpus: 8\n  gpus: 9\n", r"^plan.yaml:3: gpus: is written twice"),
        ("model: !!python/object/apply:os.system [ls]\n", r"^plan.yaml:1: tag .*python.* is not read"),
        ("a: &a [x]\nb: *a\n", r"^plan.yaml:1: anchors and aliases"),
        ("name: *a\n", r"^plan.yaml:1: anchors and aliases"),
        ("name: a\n---\nname: b\n", r"^plan.yaml:2: a second document"),
        ("? [a, b]\n: c\n", r"^plan.yaml:1: a key is not a word"),
        ("a:" + " {a:" * 500, r"^plan.yaml:1: nested deeper than"),
        ("[" * 20_000, r"^plan.yaml:1: "),
        ("name: \x00\n", r"^plan.yaml:1: character 0x0 is not text"),
        ("name: 'never closed\n", r"^plan.yaml:\d: not YAML"),
    ],
)
def test_what_is_no_yaml_mapping_is_refused(text: str, said: str) -> None:
    assert re.search(said, refused(text))


def test_the_billion_laughs_are_not_expanded() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]" for a, b in pairwise("abcdefghi")]
    assert "anchors and aliases" in refused("\n".join(lines))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.mkdir(), "is a folder; give a file in it"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00b\x00i\x00n"), "is not UTF-8 text"),
        (lambda path: path.write_text("a: 1\n" * 300_000), "is larger than 1 MB"),
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.symlink_to(path), "cannot be read: "),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, make: Any, said: str) -> None:
    path = tmp_path / "plan.yaml"
    make(path)
    with pytest.raises(ScenarioError, match=re.escape(f"{path}: {said}")):
        load_scenario(path)


def test_a_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ScenarioError, match=r"plan\.yaml: cannot be read: Permission denied"):
        load_scenario(tmp_path / "plan.yaml")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("7b-8xa100-trian", "is neither a preset nor a file; did you mean 7b-8xa100-train?"),
        ("zzz", "is neither a preset nor a file; known: "),
        ("", "is neither a preset nor a file"),
        ("config.json", "is not a scenario"),
        ("a\0b.yaml", "is not a file name"),
    ],
)
def test_what_is_no_reference_is_said(reference: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(reference)
    assert said in str(caught.value)


# ---------------------------------------------------------------- values that are not possible


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("triledger: 2\n" + BASE, "plan.yaml:1: triledger: format 2 is not known; this version reads triledger: 1"),
        ("triledger: new\n" + BASE, "plan.yaml:1: triledger: is the version of the format; write triledger: 1"),
        ("cluster:\n  accelerator: t4\n", "plan.yaml: model: is missing; write for example"),
        ("model: gpt2\n", "plan.yaml: cluster.accelerator: is missing; write for example"),
        (BASE + "paralelism: {tp: 2}\n", "plan.yaml:4: paralelism: unknown key; did you mean parallelism?"),
        (BASE + "tp: 8\n", "plan.yaml:4: tp: unknown key; did you mean parallelism.tp?"),
        (BASE + "parallelism:\n  tpp: 8\n", "plan.yaml:5: parallelism.tpp: unknown key; did you mean parallelism.tp?"),
        (BASE + "training: 5\n", "plan.yaml:4: training: is a section; write key: value lines below it"),
        (BASE + "training:\n  tokens: {a: 1}\n", "plan.yaml:5: training.tokens: takes one value, not a mapping"),
        (BASE + "training:\n  tokens: [1, 2]\n", "plan.yaml:5: training.tokens: takes one value, not a list"),
        (BASE + "training:\n  tokens:\n", "plan.yaml:5: training.tokens: has no value; write for example 2T"),
        (BASE + "training:\n  tokens: .nan\n", "plan.yaml:5: training.tokens: '.nan' is not a quantity"),
        (BASE + "training:\n  tokens: .inf\n", "plan.yaml:5: training.tokens: '.inf' is not a quantity"),
        (BASE + "training:\n  tokens: 1e999\n", "plan.yaml:5: training.tokens: 1e999 is not a finite number"),
        (BASE + "training:\n  tokens: -2T\n", "plan.yaml:5: training.tokens: -2T is too small: 1 or more would do"),
        (BASE + "training:\n  tokens: 2 GB\n", "plan.yaml:5: training.tokens: '2 GB': unknown unit 'GB'"),
        (BASE + "training:\n  mfu: 50\n", "plan.yaml:5: training.mfu: 50 is too large: 100 % or less would do"),
        (BASE + "training:\n  precision: bf15\n", "plan.yaml:5: training.precision: 'bf15' is not one of"),
        (BASE + "training:\n  dropout: maybe\n", "plan.yaml:5: training.dropout: 'maybe' is neither true nor false"),
        (BASE + "training:\n  finetune: lara\n", "plan.yaml:5: training.finetune: 'lara' is not one of full, lora"),
        (BASE + "parallelism:\n  tp: 0\n", "plan.yaml:5: parallelism.tp: 0 is too small: 1 or more would do"),
        (BASE + "parallelism:\n  tp: 2.5\n", "plan.yaml:5: parallelism.tp: 2.5 is not a whole number; 2 would do"),
        (
            BASE + "parallelism:\n  ep: 8\n",
            "plan.yaml:5: parallelism.ep: Llama 2 7B has no routed experts to deal over 8 ranks (1 does)",
        ),
        (BASE + "  gpus: none\n", "plan.yaml:4: cluster.gpus: 'none' is not a quantity"),
        (BASE + "  network: ib-hdr\n", "plan.yaml:4: cluster.network: 'ib-hdr' is not in the catalogue nor a rate"),
        (BASE + "  network: 25 GB\n", "plan.yaml:4: cluster.network: '25 GB': unknown unit 'GB'"),
        (BASE + "  network: 0 GB/s\n", "plan.yaml:4: cluster.network: 0 GB/s is too small"),
        (BASE + "serving:\n  engine: vllm\n", "plan.yaml:5: serving.engine: 'vllm' is not in the catalogue; did you"),
        (
            BASE + "assumptions:\n  e_men: 0.8\n",
            "plan.yaml:5: assumptions.e_men: unknown constant; did you mean e_mem?",
        ),
        (BASE + "assumptions:\n  e_mem: 0\n", "plan.yaml:5: assumptions.e_mem: 0 is too small"),
        (BASE + "kind: inference\n", "plan.yaml:4: kind: 'inference' is not one of training, serving"),
        (BASE.replace("llama-2-7b", "[a]"), "plan.yaml:1: model: takes one value, not a list"),
        (BASE + "assumptions: {e_mem: [1]}\n", "plan.yaml:4: assumptions.e_mem: takes one value, not a list"),
        (BASE + "training: {finetune: [full]}\n", "plan.yaml:4: training.finetune: takes one value, not a list"),
        (BASE + "name: [a]\n", "plan.yaml:4: name: takes one value, not a list"),
        (BASE.replace("2-7b", "2-7c"), "plan.yaml:1: model: 'llama-2-7c' is not in the catalogue; did you mean"),
        (BASE.replace("llama-2-7b", "config.json"), "plan.yaml:1: model: config.json: cannot be read: No such file"),
        (BASE.replace("llama-2-7b", "m/x.yaml"), "plan.yaml:1: model: m/x.yaml: cannot be read"),
        (BASE.replace("llama-2-7b", "{base: gpt3}"), "plan.yaml:1: model: 'gpt3' is not in the catalogue"),
        (BASE.replace("llama-2-7b", "{layers: 2}"), "plan.yaml:1: model: needs hidden_size, heads, kv_heads, ffn_size"),
        (
            BASE.replace("a100-sxm-80gb", "{memory: 80 GiB}"),
            "plan.yaml:3: cluster.accelerator: needs memory_bandwidth, peak",
        ),
        (BASE.replace("llama-2-7b", "{base: gpt2, layer: 2}"), "plan.yaml:1: model.layer: unknown key; did you mean"),
        (BASE.replace("llama-2-7b", "{base: gpt2, layers: -1}"), "plan.yaml:1: model.layers: -1 is too small"),
    ],
)
def test_what_is_not_possible_is_refused_with_its_line(text: str, said: str) -> None:
    assert refused(text).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            BASE + "  gpus: 6\nparallelism:\n  pp: 1\n  tp: 6\n",
            "plan.yaml:7: parallelism.tp: 6 does not divide 32 attention heads (1, 2, 4, 8, 16 or 32 do)",
        ),
        (
            BASE + "  gpus: 12\nparallelism: {tp: 8}\n",
            "plan.yaml:4: cluster.gpus: 12 is not a multiple of tp·pp·cp = 8·1·1 = 8 (8 or 16 do)",
        ),
        (
            BASE + "parallelism: {tp: 16}\n",
            "plan.yaml:2: cluster.gpus: 8 is not a multiple of tp·pp·cp = 16·1·1 = 16 (16 does)",
        ),
        (
            "training:\n  global_batch: 250\n" + BASE,
            "plan.yaml:2: training.global_batch: 250 is not a multiple of micro_batch·dp = 1·8 = 8 (248 or 256 do)",
        ),
    ],
)
def test_what_does_not_divide_is_refused_with_the_line_of_the_field_or_its_section(text: str, said: str) -> None:
    assert refused(text) == said


def test_messages_stay_on_one_readable_line() -> None:
    message = refused(BASE + '"\\e[31m' + "x" * 1000 + '\\ny": 1\n')
    assert len(message) <= 500
    assert message.isprintable()


def is_read_or_refused(text: str) -> bool:
    try:
        read(text)
    except ScenarioError as error:
        return str(error).startswith("plan.yaml")
    return True


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_scenario_or_a_scenario_error(text: str) -> None:
    assert is_read_or_refused(text)


FRAGMENTS = st.sampled_from(
    [
        *(
            "model: ",
            "gpt2",
            "llama-2-7b",
            "\n",
            "  ",
            "cluster:",
            "accelerator: t4",
            "gpus: ",
            "8",
            "80 GiB",
            "{",
            "}",
        ),
        *("[", "]", "tp: ", "parallelism: ", "-", "'", "training: ", "tokens: ", "2T", "assumptions: ", "e_mem: ", ","),
        *(
            "name: ",
            "network: ",
            "{base: gpt2}",
            "[a]",
            "ep: 1",
            "serving: ",
            "speculative: ",
            "1.5",
            "~",
            "stage_balance: ",
        ),
    ]
)


@settings(deadline=None)
@given(st.lists(FRAGMENTS, max_size=20).map("".join))
def test_any_scrambled_scenario_is_a_scenario_or_a_scenario_error(text: str) -> None:
    assert is_read_or_refused(text)
