"""Parameter counts are exact: the published count of every dense model, to the last digit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.plans import gpt, plan
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.model.layers import build
from triledger.core.model.parameters import padded_vocabulary

# Element counts of the published checkpoints: the `total_size` of the index files on the hub over two bytes, or the
# count that the transformers library gives for the published config.json. GPT-3 shape: arXiv 2104.04473, equation 2,
# with the final norm's 2h that the paper drops. MPT-7B: llm-foundry training benchmark table.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "gpt-3-175b": 174_615_846_912,
    "mpt-7b": 6_658_859_008,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.3-70b": 70_553_706_496,
    "deepseek-r1-distill-llama-70b": 70_553_706_496,
    "tinyllama-1.1b": 1_100_048_384,
    "qwen2-0.5b": 494_032_768,
    "qwen1.5-72b": 72_287_920_128,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-large-2407": 122_610_069_504,
    "yi-34b": 34_388_917_248,
    "internlm2.5-7b": 7_737_708_544,
    "internlm2-20b": 19_861_149_696,
    "baichuan2-13b": 13_896_668_160,
    "glm-4-9b": 9_399_951_360,
    "chatglm3-6b": 6_243_584_000,
    "phi-4-mini": 3_836_021_760,
    "gemma-7b": 8_537_680_896,
    "stablelm-3b": 2_795_443_200,
    "falcon-7b": 6_921_720_704,
    "starcoder-15b": 15_517_456_384,
    "opt-6.7b": 6_658_473_984,
    "opt-66b": 65_719_701_504,
}


@pytest.mark.parametrize(("model", "parameters"), PUBLISHED.items(), ids=list(PUBLISHED))
def test_published_count(model: str, parameters: int) -> None:
    assert build(catalogue().models[model]).parameters == parameters


@pytest.mark.parametrize(
    ("layers", "hidden", "heads"), [(24, 2304, 24), (80, 12288, 96), (105, 20480, 128), (128, 25600, 160)]
)
def test_gpt_models_follow_the_closed_form(layers: int, hidden: int, heads: int) -> None:
    # arXiv 2104.04473, equation 2, plus the final norm
    vocabulary, positions = 51200, 2048
    closed = (
        12 * layers * hidden**2 * (1 + 13 / (12 * hidden) + (vocabulary + positions) / (12 * layers * hidden))
        + 2 * hidden
    )
    assert build(gpt(layers, hidden, heads)).parameters == pytest.approx(closed, rel=1e-15)


def test_a_report_gives_the_exact_count_and_not_the_label() -> None:
    report = evaluate(plan("llama-2-7b", whiteboard__parameters=7e9))
    assert report["model.parameters"] == 6_738_415_616
    assert report["model.active_parameters"] == 6_738_415_616
    assert report["whiteboard.parameters"] == 7e9


def test_a_tied_matrix_counts_once() -> None:
    spec = catalogue().models["llama-3.2-1b"]
    assert build(replace(spec, tied=False)).parameters - build(spec).parameters == 128256 * 2048


def test_embedding_learned_positions_and_biases_count() -> None:
    model = build(catalogue().models["gpt2"])
    assert model.embedding == 50257 * 768
    assert model.positions == 1024 * 768
    # qkv and output biases, both FFN biases, two norms with gain and bias
    vectors = (3 * 768 + 768) + (3072 + 768) + 4 * 768
    assert model.block.parameters() - model.block.matrix_parameters() == vectors


def test_a_padded_vocabulary_is_not_in_the_count_but_in_the_shards() -> None:
    spec = replace(catalogue().models["gpt2"], vocabulary_multiple=128)
    assert build(spec).parameters == 124_439_808
    held = [
        evaluate(plan(model, parallelism__tp=4, cluster__gpus=4))["memory.parameters_per_gpu"]
        for model in (spec, replace(spec, vocabulary_multiple=1))
    ]
    assert held[0] - held[1] == (50688 - 50260) // 4 * 768


def test_megatron_pads_the_gpt_2_vocabulary() -> None:
    # multiples of 128 on each of 8 ranks: Megatron-LM
    assert padded_vocabulary(50257, 128, 8) == 51200
