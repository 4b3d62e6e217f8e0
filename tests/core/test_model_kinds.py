"""Kinds of layers: parameters, shares, cached elements, pairs and FLOPs, against published figures and counting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.huggingface_files import CLASSES, CONFIGS, COUNTS, imported, published
from triledger.core import load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.entries import read_entry
from triledger.core.errors import ScenarioError
from triledger.core.legality import violations
from triledger.core.model.kinds.attention import GroupedAttention
from triledger.core.model.kinds.cross import CrossAttention
from triledger.core.model.kinds.feed_forward import Experts, FeedForward, FeedForwardKind
from triledger.core.model.kinds.latent import LatentAttention
from triledger.core.model.kinds.mixer import Mixer
from triledger.core.model.kinds.pairs import causal_pairs, chunked, windowed
from triledger.core.model.kinds.recurrent import DeltaNet
from triledger.core.model.kinds.state_space import Mamba, Mamba2
from triledger.core.model.layers import Model, build
from triledger.core.model.spec import LayerRun, ModelSpec
from triledger.core.scenario_writing import write_model
from triledger.core.terms import Datum, origin_of, with_origins
from triledger.core.yaml_tree import parse_tree

GIB = 2.0**30
#: Published models that together hold every kind of layer.
MIXED = (
    *("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2", "google/gemma-3-27b-it", "openai/gpt-oss-120b"),
    *("Qwen/Qwen3.5-35B-A3B", "MiniMaxAI/MiniMax-Text-01", "ai21labs/Jamba-v0.1", "state-spaces/mamba-2.8b-hf"),
    *("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nvidia/Llama-3_3-Nemotron-Super-49B-v1", "facebook/opt-350m"),
    *("meta-llama/Llama-3.2-90B-Vision-Instruct", "meta-llama/Llama-4-Maverick-17B-128E-Instruct", "Qwen/Qwen-72B"),
)
FAMILIES = ("lfm2_moe", "falcon_h1", "bitnet", "mimo_v2_flash", "granitemoehybrid", "bamba")


def spec(**changes: object) -> ModelSpec:
    return replace(catalogue().models["llama-3-8b"], **changes)  # type: ignore[arg-type]


def models() -> Iterator[tuple[str, Model]]:
    yield from ((name, published(name)) for name in MIXED)
    yield from ((name, build(imported(CLASSES[name][0]["config"]).spec)) for name in FAMILIES)
    yield "found by search", build(spec(runs=(LayerRun(30), LayerRun(mixer="matrix"), LayerRun(feed_forward="matrix"))))


SUBJECTS = dict(models())
BLOCKS = [(name, block) for name, model in SUBJECTS.items() for _, block in model.groups]


def block_id(value: object) -> str:
    return value if isinstance(value, str) else f"{type(value.mixer).__name__}+{type(value.ffn).__name__}"  # type: ignore[attr-defined]


def test_every_kind_is_among_the_subjects() -> None:
    def kinds(of: type) -> set[type]:
        return {each for sub in of.__subclasses__() for each in {sub} | kinds(sub)}

    assert {type(block.mixer) for _, block in BLOCKS} == kinds(Mixer)
    assert {type(block.ffn) for _, block in BLOCKS} == kinds(FeedForwardKind)


# ---------------------------------------------------------------- parameters and shares


def test_latent_attention_of_deepseek_v3() -> None:
    # tensor shapes of the published model, arXiv 2412.19437
    block = published("deepseek-ai/DeepSeek-V3").block
    assert block.mixer.matrices() + block.mixer.vectors() == 187_107_328


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=block_id)
def test_projections_hold_the_parameters_of_the_matrices(name: str, block) -> None:
    def held(projections) -> float:
        return sum(matrix.inputs * matrix.outputs for matrix in projections)

    assert held(block.mixer.projections(1.0)) == block.mixer.matrices()
    if isinstance(block.ffn, Experts):
        gate = block.ffn.shared_gate * block.hidden
        assert held(block.ffn.projections(1.0)) + gate == block.ffn.common()
        assert held(block.ffn.expert_projections(1.0)) == block.ffn.expert()
    else:
        assert held(block.ffn.projections(1.0)) == block.ffn.matrices()


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=block_id)
def test_shares_add_up_to_no_less_than_the_whole(name: str, block) -> None:
    assert block.share(1.0) == block.parameters()
    for part in (block.mixer, block.ffn):
        assert part.share(1.0) == part.matrices()
        shares = [part.share(float(tp)) for tp in (1, 2, 4, 8)]
        assert shares == sorted(shares, reverse=True)
        assert all(tp * share >= part.matrices() * (1 - 1e-12) for tp, share in zip((1, 2, 4, 8), shares, strict=True))


def test_what_tensor_parallelism_does_not_split() -> None:
    latent = published("deepseek-ai/DeepSeek-V3.2").block.mixer
    assert isinstance(latent, LatentAttention)
    # both downward projections and the index stay whole: arXiv 2405.04434, 2512.02556
    whole = 7168 * 1536 + 7168 * (512 + 64) + 1536 * 64 * 128 + 7168 * 128 + 7168 * 64
    assert latent.share(1e9) == pytest.approx(whole, rel=1e-6)
    assert latent.kv_share(8.0) == latent.kv_elements() == 576 + 128


def test_experts_are_laid_over_their_own_ranks() -> None:
    experts = published("deepseek-ai/DeepSeek-V3").groups[1][1].experts
    assert experts is not None
    assert experts.routed_share(64.0, 1.0) == 256 / 64 * 3 * 7168 * 2048
    assert experts.routed_share(8.0, 2.0) == experts.routed_share(16.0, 1.0)
    assert experts.common_share(4.0) == 7168 * 256 + 3 * 7168 * 2048 / 4


def test_a_token_meets_its_experts_and_no_others() -> None:
    model = published("mistralai/Mixtral-8x7B-v0.1")
    experts = model.block.experts
    assert experts is not None
    assert experts.active_matrices() == 2 * 3 * 4096 * 14336 + 4096 * 8
    assert model.parameters - model.active_parameters == 32 * 6 * 3 * 4096 * 14336
    assert model.block.matrix_parameters() == experts.active_matrices() + model.block.mixer.matrices()


def test_dense_models_are_dense_and_others_say_so() -> None:
    for repository in ("meta-llama/Llama-2-7b-hf", "openai-community/gpt2", "tiiuae/falcon-7b", "Qwen/Qwen3-8B"):
        assert published(repository).dense, repository
    for name, model in SUBJECTS.items():
        assert model.dense == (name == "Qwen/Qwen-72B"), name
    assert not published("bigscience/bloom").dense, "a norm after the embedding"
    assert not published("microsoft/phi-2").dense, "a bias on the head"
    assert not build(spec(vision_parameters=1e9)).dense


# ---------------------------------------------------------------- cache and states


def test_cache_of_deepseek_and_of_its_sparse_successor() -> None:
    # 70.272 kB: arXiv 2505.09343; the index adds a key of 128 a layer
    assert published("deepseek-ai/DeepSeek-V3").kv_bytes_per_token(2.0) == 70_272
    assert published("deepseek-ai/DeepSeek-V3.2").kv_bytes_per_token(2.0) == 70_272 + 61 * 256


def test_windows_bound_the_cache_of_a_sequence() -> None:
    model = published("google/gemma-3-27b-it")
    each = 2 * 16 * 128 * 2
    assert model.kv_bytes_per_token(2.0) * 32768 == 15.5 * GIB
    assert model.kv_bytes_per_sequence(32768.0, 2.0) == (10 * 32768 + 52 * 1024) * each
    assert model.kv_bytes_per_sequence(32768.0, 2.0) / GIB == pytest.approx(2.906, abs=5e-4)
    assert model.kv_bytes_per_sequence(100.0, 2.0) == 62 * 112 * each, "whole pages of 16 tokens"
    assert model.kv_bytes_per_sequence(100.0, 2.0, page=1.0) == 62 * 100 * each
    assert replace(model, spec=model.spec).kv_bytes_per_sequence(1e6, 2.0, page=1.0) == (10e6 + 52 * 1024) * each


def test_chunks_bound_the_cache_too() -> None:
    model = published("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    each = 2 * 8 * 128 * 2
    assert model.kv_bytes_per_sequence(65536.0, 2.0) == (12 * 65536 + 36 * 8192) * each


def test_images_are_cached_by_the_layers_that_attend_to_them() -> None:
    model = published("meta-llama/Llama-3.2-90B-Vision-Instruct")
    assert model.kv_bytes_per_token(2.0) == 327_680
    assert model.kv_bytes_per_image_token(2.0) == 81_920
    text, seen = (build(model.spec, images).kv_bytes_per_sequence(1000.0, 2.0) for images in (0.0, 1601.0))
    assert seen - text == 81_920 * 1616, "whole pages of 16 tokens"


def test_states_do_not_grow() -> None:
    model = published("Qwen/Qwen3.5-35B-A3B")
    assert model.kv_bytes_per_token(2.0) == 20_480
    # 32 heads of 128 x 128 in 32 bits, and 4 inputs of 8192 channels in 16 bits, in 30 layers
    assert model.state_bytes_per_sequence() == 30 * (2_097_152 + 65_536) == 64_880_640
    mamba = published("state-spaces/mamba-2.8b-hf")
    assert mamba.kv_bytes_per_sequence(1e6, 2.0) == 0
    assert mamba.state_bytes_per_sequence(2.0) == 64 * 5120 * (16 + 4) * 2
    nemotron = published("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert nemotron.state_bytes_per_sequence() == 23 * (4096 * 128 * 4 + 4 * (4096 + 2 * 8 * 128) * 2)
    lightning = published("MiniMaxAI/MiniMax-Text-01")
    assert lightning.state_bytes_per_sequence() == 70 * 64 * 128**2 * 4


def test_no_kv_head_is_cut_between_ranks() -> None:
    attention = published("Qwen/Qwen3.5-35B-A3B").groups[1][1].attention
    assert attention.kv_heads == 2
    assert attention.kv_share(8.0) == 256 * 2, "one head, kept on four ranks"


# ---------------------------------------------------------------- pairs and FLOPs


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 50))
def test_pairs_are_what_counting_gives(tokens: int, context: int, window: int) -> None:
    positions = range(context + 1, context + tokens + 1)
    assert causal_pairs(tokens, context) == sum(positions)
    assert windowed(tokens, context, window) == sum(min(position, window) for position in positions)
    assert chunked(tokens, context, window) == sum((position - 1) % window + 1 for position in positions)


def test_pairs_of_many_sequences_at_once() -> None:
    tokens, context = np.array([1.0, 100.0, 700.0]), np.array([5000.0, 1000.0, 0.0])
    assert windowed(tokens, context, 1024.0).tolist() == [1024.0, 102_124.0, 245_350.0]
    each = [float(chunked(*pair, 512.0)) for pair in zip(tokens.tolist(), context.tolist(), strict=True)]
    assert chunked(tokens, context, 512.0).tolist() == each


def test_latent_attention_expanded_and_absorbed() -> None:
    latent = published("deepseek-ai/DeepSeek-V3").block.mixer
    assert isinstance(latent, LatentAttention)
    # 128 heads: 2·(128 + 64 + 128) a pair with keys of heads, 2·(2·512 + 64) on the latent; arXiv 2405.04434
    assert latent.core_flops(1.0, 0.0) == 81_920
    assert latent.absorbed_core_flops(1.0, 0.0) == 278_528
    again = latent.executed_core_flops(10.0, 100.0) - latent.core_flops(10.0, 100.0)
    assert again == 2 * 100 * 512 * 128 * 256, "cached latents are expanded again"


def test_an_index_limits_pairs_and_scores_all() -> None:
    latent = published("deepseek-ai/DeepSeek-V3.2").block.mixer
    assert isinstance(latent, LatentAttention)
    assert latent.pairs(1.0, 100_000.0) == 2048
    scoring = 2 * 64 * 128 * 100_001
    assert latent.core_flops(1.0, 100_000.0) == 2048 * 81_920 + scoring
    assert latent.absorbed_core_flops(1.0, 100_000.0) == 2048 * 278_528 + scoring
    borrowed = replace(latent, indexer=False)
    assert borrowed.core_flops(1.0, 100_000.0) == 2048 * 81_920
    assert borrowed.kv_elements() == 576


def test_windows_limit_pairs() -> None:
    window, full = (block.attention for _, block in published("openai/gpt-oss-120b").groups)
    assert (window.kv_limit, full.kv_limit) == (128, None)
    assert window.core_flops(1.0, 10_000.0) == 4 * 64 * 64 * 128
    assert full.core_flops(1.0, 10_000.0) == 4 * 64 * 64 * 10_001
    chunk = published("meta-llama/Llama-4-Scout-17B-16E-Instruct").block.attention
    assert chunk.pairs(1.0, 8192.0) == 1, "a chunk begins"


def test_flops_of_a_gated_delta_net() -> None:
    delta = published("Qwen/Qwen3.5-35B-A3B").block.mixer
    assert isinstance(delta, DeltaNet)
    convolution = 2 * 4 * 8192
    assert delta.core_flops(1.0, 500.0) == 3_145_728 + convolution
    assert delta.executed_core_flops(1.0, 0.0) == pytest.approx(5_810_858.67 + convolution, abs=0.01)


def test_flops_of_state_spaces_do_not_depend_on_what_came_before() -> None:
    for name in ("state-spaces/mamba-2.8b-hf", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"):
        mixer = published(name).block.mixer
        assert isinstance(mixer, (Mamba, Mamba2))
        assert mixer.core_flops(8.0, 0.0) == mixer.core_flops(8.0, 1e6) == 8 * mixer.core_flops(1.0, 0.0)
        assert mixer.executed_core_flops(8.0, 0.0) >= mixer.core_flops(8.0, 0.0)


def test_text_alone_meets_no_image() -> None:
    cross = published("meta-llama/Llama-3.2-90B-Vision-Instruct").groups[1][1].mixer
    assert isinstance(cross, CrossAttention)
    assert cross.core_flops(100.0, 0.0) == 0
    assert replace(cross, images=1601.0).core_flops(10.0, 4096.0) == 4 * 64 * 128 * 10 * 1601


# ---------------------------------------------------------------- layers in runs


def expanded(listed: str, repeat: int, layers: int) -> str:
    leading, period = listed[: len(listed) - repeat], listed[len(listed) - repeat :]
    return (leading + period * layers)[:layers] if layers > len(leading) else listed[:layers]


@given(st.text("wfd", min_size=1, max_size=9), st.data())
def test_runs_repeat_their_last_layers(listed: str, data: st.DataObject) -> None:
    repeat, layers = data.draw(st.integers(1, len(listed))), data.draw(st.integers(1, 40))
    words = {
        "w": LayerRun(mixer="window"),
        "f": LayerRun(),
        "d": LayerRun(ffn_size=100),
    }
    model = build(spec(layers=float(layers), window=64.0, runs=tuple(words[c] for c in listed), repeat=repeat))
    order = expanded(listed, repeat, layers)
    names = {}
    for (count, block), letter in zip(model.groups, dict.fromkeys(order), strict=True):
        assert count == order.count(letter)
        assert isinstance(block.ffn, FeedForward)
        names[letter] = (block.attention.limited, block.ffn.ffn_size)
    assert names == {c: (c == "w", 100 if c == "d" else 14336) for c in order}
    assert "".join(list(dict.fromkeys(order))[group] for group in model.order) == order


@pytest.mark.parametrize("name", SUBJECTS)
def test_arrays_answer_as_their_entries_do(name: str) -> None:
    subject = SUBJECTS[name].spec
    layers = np.array([1.0, 2.0, 3.0, 7.0, 40.0, 61.0])
    hidden = subject.hidden_size * np.array([1.0, 2.0, 1.0, 4.0, 1.0, 2.0])
    many = build(replace(subject, layers=layers, hidden_size=hidden))
    for place in range(len(layers)):
        one = build(replace(subject, layers=layers[place], hidden_size=hidden[place]))
        for answer in ("parameters", "active_parameters", "buffers"):
            assert np.broadcast_to(getattr(many, answer), 6)[place] == getattr(one, answer), answer
        for cache in (many.kv_bytes_per_token(2.0), many.kv_bytes_per_sequence(5000.0, 2.0)):
            assert np.shape(cache) in ((6,), ())
        assert np.broadcast_to(many.kv_bytes_per_sequence(5000.0, 2.0), 6)[place] == one.kv_bytes_per_sequence(
            5000.0, 2.0
        )


def test_mixed_layers_keep_their_order() -> None:
    model = published("ai21labs/Jamba-v0.1")
    attention = [
        place for place, group in enumerate(model.order) if isinstance(model.groups[group][1].mixer, GroupedAttention)
    ]
    assert attention == [4, 12, 20, 28]
    experts = [place for place, group in enumerate(model.order) if model.groups[group][1].experts]
    assert experts == list(range(1, 32, 2))


def test_numbers_of_runs_know_where_they_came_from() -> None:
    described = with_origins(published("nvidia/Llama-3_3-Nemotron-Super-49B-v1").spec, "model")
    sizes = [run.ffn_size for run in described.runs if run.ffn_size is not None]
    assert sizes
    assert all(origin_of(size) == Datum("model.runs.ffn_size", described.source) for size in sizes)
    assert build(described).parameters == 49_867_145_216


@pytest.mark.parametrize("row", [row for row in COUNTS if row["parameters"]], ids=lambda row: row["model"])
def test_a_written_model_reads_as_itself(row: dict[str, str]) -> None:

    subject = imported(CONFIGS[row["model"]]).spec
    assert read_entry(parse_tree(write_model(subject), "m.yaml"), "model", "m.yaml") == subject


MODEL_FILE = """\
id: m
name: M
layers: 8
hidden_size: 512
heads: 8
kv_heads: 8
ffn_size: 1024
vocabulary: 1000
"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("runs: window", "m.yaml:9: model.runs: takes a list"),
        ("runs: [window]", "m.yaml:9: model.runs: holds something that is no run"),
        ("runs:\n- {count: 2}\n- {count: 2, mixer: windy}", "m.yaml:11: model.runs.mixer: 'windy' is not one of"),
        ("runs:\n- {count: 2, heds: 4}", "m.yaml:10: model.runs.heds: unknown key; did you mean heads?"),
        ("runs:\n- {count: 0}", "m.yaml:10: model.runs.count: 0 is too small"),
        ("runs: [{mixer: [a]}]", "m.yaml:9: model.runs.mixer: takes one value"),
        ("runs: [{mixer: window}]", "m.yaml:1: model.window: is missing; window layers need it"),
        ("runs: [{mixer: delta}]", "m.yaml:1: model.linear_key_heads: is missing; delta layers need it"),
        ("runs: [{kv_heads: 3}]", "m.yaml:9: model.runs: 3 does not divide 8 attention heads"),
        ("runs: [{count: 2}]\nrepeat: 3", "m.yaml:10: model.repeat: 3 layers cannot repeat where 2 are listed"),
        ("experts: 4", "m.yaml:1: model.experts_per_token: is missing; experts layers need it"),
        ("experts: 4\nexpert_size: 64\nexperts_per_token: 5", "m.yaml:11: model.experts_per_token: 5 is more than"),
        ("kv_heads: 8", "m.yaml:9: kv_heads: is written twice"),
        ("kv_rank: 64", "m.yaml:1: model.nope_dim: is missing; latent layers need it"),
        ("router_bias: steered", "m.yaml:9: model.router_bias: 'steered' is not one of none, trained, steering"),
    ],
)
def test_models_that_contradict_themselves_are_refused_with_their_line(lines: str, said: str) -> None:

    with pytest.raises(ScenarioError) as error:
        read_entry(parse_tree(MODEL_FILE + lines, "m.yaml"), "model", "m.yaml")
    assert str(error.value).startswith(said)


# ---------------------------------------------------------------- plans


def test_plans_refuse_what_they_would_count_wrongly() -> None:
    scenario = load_scenario("70b-64xh100-train").with_("model.experts_per_token", 2.0)
    assert "model.experts_per_token" in {violation.field for violation in violations(scenario)}


@pytest.mark.parametrize("preset", ["70b-bf16-8xa100-serve", "70b-64xh100-train"])
def test_plans_of_any_model_are_not_refused_for_the_model(preset: str) -> None:
    scenario = load_scenario(preset)
    for model in catalogue().models.values():
        assert "model" not in {violation.field for violation in violations(scenario.with_("model", model))}


def test_a_model_without_attention_says_no_heads() -> None:
    subject = published("state-spaces/mamba-2.8b-hf").spec
    assert (subject.heads, subject.kv_heads, subject.ffn_size) == (0, 0, 0)
    assert "heads" not in write_model(subject)
    assert not violations(load_scenario("70b-bf16-8xa100-serve").with_("model", subject))
