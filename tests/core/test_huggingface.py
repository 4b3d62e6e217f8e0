"""Import of published configurations: exact counts, active counts, cache, weight formats, what is refused and why."""

from __future__ import annotations

import pytest

from tests.core.huggingface_files import CLASSES, CONFIGS, COUNTS, PLAIN, imported, model, published
from triledger.core.catalogue import catalogue
from triledger.core.errors import ScenarioError
from triledger.core.huggingface.family import families, row_keys
from triledger.core.huggingface.importing import read_config
from triledger.core.model.layers import build

MODELS = [row for row in COUNTS if row["parameters"]]
REFUSED = [row["model"] for row in COUNTS if not row["parameters"]]


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["model"])
def test_counts_of_published_models(row: dict[str, str]) -> None:
    subject = published(row["model"])
    found = {
        "parameters": subject.parameters,
        "active": subject.active_parameters,
        "text": subject.text_parameters,
        "vision": subject.spec.vision_parameters,
        "mtp": subject.mtp_parameters,
        "buffers": subject.buffers,
        "kv_bytes_per_token": subject.kv_bytes_per_token(2.0),
    }
    for name, value in found.items():
        if row[name]:
            assert value == pytest.approx(float(row[name]), rel=float(row["tolerance_pct"]) / 100, abs=0), name


def test_every_file_has_a_count_to_meet_or_a_reason_to_be_refused() -> None:
    assert {row["model"] for row in COUNTS} == set(CONFIGS)
    assert len(MODELS) > 80


@pytest.mark.parametrize("family", sorted(CLASSES))
def test_families_count_as_their_classes(family: str) -> None:
    for case in CLASSES[family]:
        assert model(case["config"]).parameters == case["parameters"], case["config"]


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row["model"])
def test_a_known_family_leaves_nothing_to_assume(row: dict[str, str]) -> None:
    result = imported(CONFIGS[row["model"]])
    assert result.assumed == ()
    assert {finding.code for finding in result.findings} <= {"part-not-counted", "family-by-class"}


@pytest.mark.parametrize(
    ("entry", "repository"),
    [
        ("llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
        ("falcon-7b", "tiiuae/falcon-7b"),
        ("gpt2", "openai-community/gpt2"),
        ("opt-6.7b", "facebook/opt-6.7b"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("gpt-oss-120b", "openai/gpt-oss-120b"),
        ("llama-4-maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        ("gemma-2-9b", "google/gemma-2-9b"),
    ],
)
def test_a_file_reads_as_the_catalogue_says_it(entry: str, repository: str) -> None:
    known, read = build(catalogue().models[entry]), published(repository)
    assert read.groups == known.groups
    assert read.order == known.order
    for fact in ("vocabulary", "tied", "positions", "norm", "final_norm", "mtp_modules", "vision_parameters"):
        assert getattr(read.spec, fact) == getattr(known.spec, fact), fact


@pytest.mark.parametrize("repository", REFUSED)
def test_what_is_no_decoder_is_refused_with_the_reason(repository: str) -> None:
    with pytest.raises(ScenarioError, match=r"an encoder(-decoder)?"):
        imported(CONFIGS[repository])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "rwkv", "hidden_size": 768}, "model_type: rwkv is recurrent, with no attention and no cache"),
        (
            {"attention_hidden_size": 768, "rescale_every": 6, "hidden_size": 768},
            "attention_hidden_size: is of a recur",
        ),
        ({"model_type": "t5", "d_model": 512, "num_layers": 6, "num_decoder_layers": 6}, "encoder-decoder"),
        ({**PLAIN, "is_encoder_decoder": True}, "is_encoder_decoder: is an encoder-decoder"),
        ({"model_type": "roberta", "hidden_size": 768}, "model_type: roberta is an encoder"),
        ({**PLAIN, "model_type": "xyz", "architectures": ["XyzForMaskedLM"]}, "architectures: is an encoder"),
        ({"peft_type": "LORA", "r": 16}, "peft_type: is an adapter, not a model"),
        ({"_class_name": "UNet2DConditionModel"}, "part of a diffusion pipeline"),
        ({"model_type": "clip", "text_config": {}, "vision_config": {}}, "model_type: clip is a model of images"),
        ({"model_type": "vit", "hidden_size": 768}, "model_type: vit is a vision model"),
    ],
)
def test_refusals_say_what_the_file_is(config: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        imported(config)
    assert said in str(error.value)
    assert str(error.value).startswith("config.json: ")


FORMATS = [
    (None, "bf16"),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, "fp8"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False}, "gptq-g128"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq-g32"),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8"),
    ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8-g128"),
    ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}, "int4-g64"),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128}, "int4-g128"),
    ({"quant_method": "mxfp4"}, "mxfp4"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}, "int8"),
]
COMPRESSED = [
    ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}, "int4-g32"),
    ({"num_bits": 8, "type": "int", "strategy": "channel"}, "int8"),
    ({"num_bits": 8, "type": "float", "strategy": "channel"}, "fp8"),
    ({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, "fp8-block"),
    ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 16}, "nvfp4"),
    ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}, "mxfp4"),
]


@pytest.mark.parametrize(("quantisation", "name"), FORMATS)
def test_weight_format_of_quantised_files(quantisation: dict[str, object] | None, name: str) -> None:
    result = imported({**PLAIN, "quantization_config": quantisation})
    assert result.weight_format == name
    assert result.findings == ()
    assert result.spec == imported(PLAIN).spec, "the count is that of the model before quantisation"


@pytest.mark.parametrize(("weights", "name"), COMPRESSED)
def test_weight_format_of_compressed_tensors(weights: dict[str, object], name: str) -> None:
    quantisation = {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}
    assert imported({**PLAIN, "quantization_config": quantisation}).weight_format == name


def test_an_unknown_method_is_taken_as_16_bits_and_said() -> None:
    result = imported({**PLAIN, "quantization_config": {"quant_method": "hqq"}})
    assert result.weight_format == "bf16"
    assert [(f.code, f.severity) for f in result.findings] == [("weight-format", "warning")]


@pytest.mark.parametrize(("dtype", "name"), [("float16", "fp16"), ("torch.bfloat16", "bf16"), ("float32", "fp32")])
def test_element_of_files_that_are_not_quantised(dtype: str, name: str) -> None:
    assert imported({**PLAIN, "torch_dtype": dtype}).weight_format == name
    assert imported({**PLAIN, "dtype": dtype}).weight_format == name


def test_an_unknown_vision_part_is_said_and_not_counted() -> None:
    result = imported({**PLAIN, "vision_config": {"model_type": "some_tower", "hidden_size": 1024}})
    assert result.spec.vision_parameters == 0
    assert [finding.field for finding in result.findings] == ["vision_config"]


@pytest.mark.parametrize(
    ("file", "stated", "name", "identity"),
    [
        ("/models/Llama-2-7b/config.json", None, "Llama-2-7b", "llama-2-7b"),
        ("My Model.json", None, "My Model", "my-model"),
        ("config.json", "meta-llama/Llama-2-13b-hf", "Llama-2-13b-hf", "llama-2-13b-hf"),
        ("config.json", None, "llama", "llama"),
    ],
)
def test_the_name_is_that_of_the_file_or_of_its_folder(file: str, stated: str | None, name: str, identity: str) -> None:
    spec = imported({**PLAIN, "_name_or_path": stated}, file).spec
    assert (spec.name, spec.id) == (name, identity)
    assert "config.json" in spec.source


def test_a_null_window_is_no_window() -> None:
    gemma = CONFIGS["google/gemma-2-9b"]
    assert len(model(gemma).groups) == 2
    assert len(model({**gemma, "sliding_window": None}).groups) == 1
    without = {name: value for name, value in gemma.items() if name != "sliding_window"}
    assert model(without).groups == model(gemma).groups, "what is not there is the default"


def test_a_window_as_long_as_the_context_is_none() -> None:
    phi = CONFIGS["microsoft/Phi-4-mini-instruct"]
    assert model(phi).dense
    assert not model({**phi, "sliding_window": 2047}).dense


def test_patterns_of_letters_come_again() -> None:
    exaone = {**PLAIN, "model_type": "exaone4", "sliding_window": 128, "sliding_window_pattern": "LLLG"}
    assert model({**exaone, "num_hidden_layers": 10}).order == (0, 0, 0, 1, 0, 0, 0, 1, 0, 0)


def test_head_and_tying_belong_to_the_whole_model() -> None:
    text = {name: value for name, value in PLAIN.items() if name not in ("vocab_size", "model_type")}
    nested = {"model_type": "llava", "text_config": {**text, "model_type": "llama"}, "vocab_size": 1000}
    assert not imported(nested).spec.tied
    assert imported({**nested, "tie_word_embeddings": True}).spec.tied, "the top level wins"
    assert (
        imported({**nested, "text_config": {**text, "model_type": "llama", "vocab_size": 2000}}).spec.vocabulary == 2000
    )


def test_meta_and_mistral_params_are_read() -> None:
    mixtral = {
        **{"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8},
        **{"norm_eps": 1e-5, "vocab_size": 32000, "moe": {"num_experts_per_tok": 2, "num_experts": 8}},
    }
    assert model(mixtral).parameters == 46_702_792_704
    llama = {
        "dim": 8192,
        "multiple_of": 4096,
        "ffn_dim_multiplier": 1.3,
        "n_heads": 64,
        "n_kv_heads": 8,
        "n_layers": 80,
    }
    assert model({**llama, "norm_eps": 1e-5, "vocab_size": 32000}).parameters == 68_976_648_192
    with pytest.raises(ScenarioError, match=r"vocab_size: is -1"):
        model({**llama, "norm_eps": 1e-5, "vocab_size": -1})


def test_rows_of_the_table_of_families_have_known_keys_and_bases() -> None:
    from triledger.core.catalogue import table

    rows = table("families")
    for name, row in rows.items():
        assert set(row) <= row_keys(), name
        assert row.get("like", name) in rows, name
    for family in families().values():
        assert family.refuse or (family.norm is not None), family.name


def test_nothing_of_the_file_name_is_evidence() -> None:
    text = '{"model_type": "llama"}'
    with pytest.raises(ScenarioError, match=r"DeepSeek-V3/config.json: hidden_size: is missing"):
        read_config(text, "DeepSeek-V3/config.json")
