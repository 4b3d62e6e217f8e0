"""What is wrong with a config.json is said in one line that names the field; what a file leaves open is said too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.huggingface_files import CONFIGS, PLAIN, imported, model
from triledger.core.errors import ScenarioError
from triledger.core.huggingface import import_file, read_config

UNKNOWN = {**PLAIN, "model_type": "xyz"}
MOE = {**PLAIN, "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256}
LATENT = {
    **{name: value for name, value in PLAIN.items() if name != "num_key_value_heads"},
    **{"model_type": "deepseek_v2", "kv_lora_rank": 64, "q_lora_rank": 96, "qk_nope_head_dim": 32},
    **{"qk_rope_head_dim": 16, "v_head_dim": 32},
}


def refused(config: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as error:
        imported(config)
    line = str(error.value)
    assert line.startswith("config.json: ")
    assert "\n" not in line
    return line.removeprefix("config.json: ")


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "config.json: is empty"),
        ("   \n", "config.json: is empty"),
        ('{"hidden_size": 4096,', "config.json:1: not JSON"),
        ("hidden_size: 4096\nlayers: 3\n", "config.json:1: not JSON"),
        ('{"hidden_size": 1,\n "n": }', "config.json:2: not JSON"),
        ("[1, 2]", "config.json:1: is a list; a config.json holds one object"),
        ('"llama"', "config.json:1: is a text"),
        ("null", "config.json:1: is null"),
        ("true", "config.json:1: is true or false"),
        ("[" * 100_000, "config.json: is nested too deep"),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, "config.json: is nested too deep"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "config.json: holds a number of thousands of digits"),
        ('{"hidden_size": 1, "hidden_size": 2}', "config.json: hidden_size: is written twice"),
    ],
)
def test_a_text_that_is_no_configuration(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_config(text, "config.json")
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1, "is -1; a whole number from 1 to"),
        (0, "is 0; a whole number from 1 to"),
        (4096.5, "is 4096.5; a whole number"),
        (10**9, "is 1000000000; a whole number"),
        (10**400, "is 1000000000000000000000"),
        (float("inf"), "is inf; a whole number"),
        (float("nan"), "is nan; a whole number"),
        ("4096", "is '4096', not a whole number"),
        (True, "is True, not a whole number"),
        ({"a": 1}, "is an object, not a whole number"),
        ([], "is a list, not a whole number"),
    ],
)
@pytest.mark.parametrize("size", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_size_that_is_none(size: str, value: object, said: str) -> None:
    assert refused({**PLAIN, size: value}).startswith(f"{size}: {said}")


def test_infinity_where_nobody_looks_is_no_fault() -> None:
    assert imported({**PLAIN, "time_step_limit": [0.0, float("inf")], "rope_scaling": float("nan")}).findings == ()


@pytest.mark.parametrize(
    "size",
    ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"],
)
@pytest.mark.parametrize("absent", ["left out", "null"])
def test_a_size_that_is_missing_is_named(size: str, absent: str) -> None:
    config = without(PLAIN, size) if absent == "left out" else {**PLAIN, size: None}
    assert refused(config) == f"{size}: is missing"


@pytest.mark.parametrize("size", ["qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"])
def test_a_latent_without_the_sizes_of_its_heads(size: str) -> None:
    assert model(LATENT).block.mixer.kv_elements() == 80
    assert refused(without(LATENT, size)) == f"{size}: is missing"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 does not divide 8 attention heads"),
        ({"num_attention_heads": 7, "num_key_value_heads": 7}, "head_dim: is missing, and 7 heads do not divide"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types: has 3 entries, but there are 4 layers"),
        ({"layer_types": ["full_attention"] * 3 + ["sidewise"]}, "layer_types: 'sidewise' is no kind of layer"),
        ({"layers_block_type": ["mlp", {}, "moe", "mlp"]}, "layers_block_type: '{}' is no kind of layer that is known"),
        ({"layer_types": "full"}, "layer_types: is 'full', not a list"),
        ({"layer_types": ["linear_attention"] * 4}, "linear_num_key_heads: is missing"),
        ({"layer_types": ["sliding_attention"] * 4}, "sliding_window: is missing"),
        ({"layer_types": ["mamba"] * 4}, "expand: is missing; it is the inner size over the hidden size"),
        ({"hybrid_override_pattern": "M*QE"}, "hybrid_override_pattern: 'Q' is no kind of layer"),
        ({"hybrid_override_pattern": "M*"}, "hybrid_override_pattern: has 2 entries, but there are 4 layers"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings: is 'yes', neither true nor false"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings: is 1, neither true nor false"),
        ({"attention_bias": "x"}, "attention_bias: is 'x', neither true nor false"),
        ({"quantization_config": "fp8"}, "quantization_config: is not an object"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config.bits: is missing"),
        ({"model_type": 3}, "model_type: is 3, not a word"),
        ({"num_experts_per_tok": 2}, "n_routed_experts: is missing, but a token is sent to 2 experts"),
        ({"num_experts": 8}, "num_experts_per_tok: is missing, but there are 8 experts"),
        ({"cross_attention_layers": [1, 9]}, "cross_attention_layers: names layer 9, but the last of 4 is 3"),
    ],
)
def test_contradictions_name_the_field(changes: dict[str, Any], said: str) -> None:
    assert refused({**PLAIN, **changes}).startswith(said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_experts_per_tok": 9}, "num_experts_per_tok: 9 is more than the 8 experts there are"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok: is missing, but there are 8 experts"),
        ({"moe_intermediate_size": None}, "moe_intermediate_size: is missing"),
        ({"mlp_only_layers": [4]}, "mlp_only_layers: names layer 4, but the last of 4 is 3"),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparser"]}, "mlp_layer_types: 'sparser' is neither"),
        ({"decoder_sparse_step": 0}, "decoder_sparse_step: is 0; a whole number from 1 to"),
        ({"moe_layer_freq": [0, 1, 2, 1]}, "moe_layer_freq: 2 is neither 0 nor 1"),
    ],
)
def test_experts_that_cannot_be(changes: dict[str, Any], said: str) -> None:
    assert refused({**MOE, **changes}).startswith(said)


def test_the_path_of_a_nested_field_is_said() -> None:
    nested = {"model_type": "gemma3", "text_config": {**PLAIN, "model_type": "gemma3_text", "vocab_size": -5}}
    assert refused(nested).startswith("text_config.vocab_size: is -5")
    tower = {"model_type": "siglip_vision_model", "hidden_size": 64.5}
    assert refused({**PLAIN, "vision_config": tower}).startswith("vision_config.hidden_size: is 64.5")


@pytest.mark.parametrize("family", ["minimax", "mllama", "mimo_v2_flash"])
def test_a_family_of_mixed_layers_needs_the_list_of_them(family: str) -> None:
    assert "is missing; it says which layers are of which kind" in refused({**PLAIN, "model_type": family})


# ---------------------------------------------------------------- files of no known family


def test_an_unknown_family_is_read_by_its_fields_and_says_what_it_assumes() -> None:
    result = imported(UNKNOWN)
    assert model(UNKNOWN).parameters == model(PLAIN).parameters
    assert result.assumed == (
        "RMSNorm before each part",
        "gated feed-forward part, by its activation silu",
        "no biases",
    )
    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.field) == ("unknown-family", "warning", "model_type")
    assert finding.message.startswith("model_type is 'xyz', no family that is known; read as: RMSNorm")
    assert "RMSNorm before each part" in result.spec.note


def test_everything_that_is_not_said_is_an_assumption() -> None:
    silent = {**without(UNKNOWN, "tie_word_embeddings", "rope_theta"), "attention_bias": True, "use_qk_norm": True}
    assert set(imported(silent).assumed) >= {
        "biases on output, qkv",
        "a norm on each head of queries and keys",
        "an output head of its own (not tied to the embedding)",
        "no learned positions",
    }


@pytest.mark.parametrize(
    ("repository", "same"),
    [
        ("meta-llama/Llama-2-7b-hf", True),
        ("deepseek-ai/DeepSeek-V3", True),
        ("mistralai/Mixtral-8x7B-v0.1", True),
        ("ai21labs/Jamba-v0.1", True),
        ("Qwen/Qwen1.5-MoE-A2.7B", False),
    ],
)
def test_published_shapes_without_their_family(repository: str, same: bool) -> None:
    config = {**CONFIGS[repository], "model_type": "xyz", "architectures": ["XyzForCausalLM"]}
    result = imported(config)
    assert result.assumed
    found, known = model(config).parameters, model(CONFIGS[repository]).parameters
    assert found == known if same else found != known
    assert found == pytest.approx(known, rel=1e-3)


def test_without_model_type_the_class_tells_the_family() -> None:
    config = without(CONFIGS["Qwen/Qwen2-7B"], "model_type")
    result = imported(config)
    assert model(config).parameters == 7_615_616_512
    assert [(f.code, f.severity) for f in result.findings] == [("family-by-class", "hint")]
    assert imported(without(config, "architectures")).assumed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_dim": 64}, "memory_dim: is not understood, and the model_type is not known"),
        ({"side_config": {"width": 3}}, "side_config: is not understood"),
        ({"parallel_attn": True}, "parallel_attn: is set, but which norms the layers then have"),
        ({"rms_norm_eps": None}, "rms_norm_eps: is missing, and nothing else says which kind of norm"),
        ({"hidden_act": None}, "hidden_act: is missing; it tells a gated"),
        ({"hidden_act": "snake"}, "hidden_act: snake is no activation that is known"),
    ],
)
def test_what_only_a_family_tells_is_refused(changes: dict[str, Any], said: str) -> None:
    assert refused({**UNKNOWN, **changes}).startswith(said)


@pytest.mark.parametrize("field", ["memory_dim", "state_size"])
def test_a_field_that_a_known_family_does_not_read_is_a_warning(field: str) -> None:
    (finding,) = imported({**PLAIN, field: 64}).findings
    assert (finding.code, finding.field) == ("field-not-understood", field)


def test_names_that_disagree_are_a_warning_and_the_familys_own_counts() -> None:
    gpt = {**CONFIGS["openai-community/gpt2"], "hidden_size": 512}
    result = imported(gpt)
    assert result.spec.hidden_size == 768
    assert [f.message for f in result.findings] == ["hidden_size is 512, but n_embd is 768, which counts"]


def test_a_class_of_another_family_is_a_warning() -> None:
    result = imported({**PLAIN, "architectures": ["Qwen3ForCausalLM"]})
    assert [f.code for f in result.findings] == ["family-disagrees"]


# ---------------------------------------------------------------- any change of a file


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([0.5, 1e30, float("inf"), float("nan"), 10**40, "", "auto", "x", [], [1], [[2]], {}, {"a": None}]),
)


@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_any_change_of_a_field_is_read_or_refused_in_one_line(repository: str, data: st.DataObject) -> None:
    config = json.loads(json.dumps(CONFIGS[repository]))
    part = config.get("text_config", config) if data.draw(st.booleans()) else config
    for name in data.draw(st.lists(st.sampled_from(sorted(part)), max_size=3)):
        part[name] = data.draw(_VALUES)
    line = ""
    try:
        subject = model(config)
    except ScenarioError as error:
        line = str(error)
    else:
        assert subject.parameters > 0
        assert subject.active_parameters <= subject.parameters
    assert len(line.splitlines()) <= 1


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for name, content in (("binary.json", b"\xff\xfe\x00"), ("empty.json", b"")):
        (tmp_path / name).write_bytes(content)
    for name, said in (
        ("binary.json", "binary.json: is not UTF-8 text; a config.json is JSON text"),
        ("empty.json", "empty.json: is empty"),
        ("missing.json", "missing.json: cannot be read: No such file or directory"),
        ("", "is a folder; give a file in it"),
    ):
        with pytest.raises(ScenarioError) as error:
            import_file(tmp_path / name, name)
        assert str(error.value).startswith(said)


DEEPSEEK = {
    **LATENT,
    **{"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "n_shared_experts": None},
}
MIXTRAL = {**PLAIN, "model_type": "mixtral", "num_experts_per_tok": 2}


def test_null_shared_experts_are_none_and_no_default_of_the_family() -> None:
    assert imported(DEEPSEEK).spec.shared_size == 0
    assert imported(without(DEEPSEEK, "n_shared_experts")).spec.shared_size == 2 * 256


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**MIXTRAL, "num_local_experts": None}, "num_local_experts: is missing, but a token is sent to 2 experts"),
        (MIXTRAL, "num_local_experts: is missing, but a token is sent to 2 experts"),
        ({**DEEPSEEK, "n_group": 3}, "n_group: 3 does not divide 8 experts"),
        (
            {**DEEPSEEK, "first_k_dense_replace": 99},
            "first_k_dense_replace: 99 is more than the LAYERS layers there are",
        ),
    ],
)
def test_experts_that_cannot_be_are_refused_under_the_name_of_the_file(config: dict[str, Any], said: str) -> None:
    assert refused(config) == said.replace("LAYERS", str(PLAIN["num_hidden_layers"]))


@pytest.mark.parametrize(
    ("size", "most"),
    [("kv_lora_rank", 1048576), ("q_lora_rank", 1048576), ("qk_nope_head_dim", 1024), ("v_head_dim", 1024)],
)
def test_the_range_that_is_said_is_the_one_that_does(size: str, most: int) -> None:
    assert f" to {most} would do" in refused({**LATENT, size: -1})
    said = refused({**LATENT, size: most + 1})
    assert said.startswith(f"{size}: is {most + 1}; a whole number from ")
    assert imported({**LATENT, size: most})


def test_experts_that_no_token_is_sent_to() -> None:
    routed = {**PLAIN, "num_local_experts": 8, "moe_intermediate_size": 128}
    assert refused({**routed, "num_experts_per_tok": 0}) == "num_experts_per_tok: is 0, but there are 8 experts"
    assert refused(routed) == "num_experts_per_tok: is missing, but there are 8 experts"
    assert refused({**routed, "moe_top_k": 0}) == "moe_top_k: is 0, but there are 8 experts"
