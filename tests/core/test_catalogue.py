"""The shipped data: published parameter counts, data-sheet figures, a source for everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from triledger.core import catalogue as module
from triledger.core.catalogue import catalogue, nearest, table
from triledger.core.errors import ScenarioError
from triledger.core.model.layers import build

#: Parameters of the published checkpoints (Hugging Face model classes on the same configuration), and of the
#: papers' own configurations for MPT-7B (llm-foundry benchmark table) and GPT-3 (arXiv 2104.04473, vocabulary 51200).
PUBLISHED = {
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
    "qwen1.5-72b": 72_287_920_128,
    "qwen2-0.5b": 494_032_768,
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
    "tinyllama-1.1b": 1_100_048_384,
    "falcon-7b": 6_921_720_704,
    "starcoder-15b": 15_517_456_384,
    "opt-6.7b": 6_658_473_984,
    "opt-66b": 65_719_701_504,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "mpt-7b": 6_658_859_008,
    "gpt-3-175b": 174_615_846_912,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_404_352,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llama-4-scout": 108_641_793_536,
    "llama-4-maverick": 401_583_781_376,
    "gemma-2-9b": 9_241_705_984,
    "gemma-3-27b": 27_432_406_640,
    "nemotron-3-nano-30b-a3b": 31_577_937_344,
}
#: Sizes that papers print rounded (arXiv 2205.05198, table 3): parameters in billions.
ROUNDED = {"megatron-22b": 22.1, "mt-nlg-530b": 529.6, "megatron-1t": 1008.0}
#: Sizes that a release or a paper prints in whole billions: xAI 2024; arXiv 2507.20534, 2504.03624, 2402.15627.
ANNOUNCED = {"grok-1": 314, "kimi-k2": 1040, "nemotron-h-56b": 56, "megascale-175b": 175}


@pytest.mark.parametrize(("model", "parameters"), PUBLISHED.items())
def test_models_count_to_the_published_number(model: str, parameters: int) -> None:
    assert build(catalogue().models[model]).parameters == parameters


@pytest.mark.parametrize(("model", "billions"), ROUNDED.items())
def test_models_of_papers_count_to_the_printed_figure(model: str, billions: float) -> None:
    assert build(catalogue().models[model]).parameters / 1e9 == pytest.approx(billions, abs=0.05)


@pytest.mark.parametrize(("model", "billions"), ANNOUNCED.items())
def test_models_count_about_what_was_announced(model: str, billions: float) -> None:
    assert build(catalogue().models[model]).parameters / 1e9 == pytest.approx(billions, rel=0.015)


def test_every_model_has_a_count_to_meet() -> None:
    assert set(catalogue().models) == {*PUBLISHED, *ROUNDED, *ANNOUNCED}


@pytest.mark.parametrize(
    ("accelerator", "gib", "bandwidth", "peak", "link"),
    [
        ("a100-sxm-80gb", 80, 2.039e12, 312e12, 300e9),
        ("h100-sxm-80gb", 80, 3.35e12, 989.4e12, 450e9),
        ("h800-sxm-80gb", 80, 3.35e12, 989.4e12, 200e9),
        ("h200-sxm-141gb", 141, 4.8e12, 989.4e12, 450e9),
        ("b200-sxm-180gb", 180, 8e12, 2250e12, 900e9),
        ("mi300x", 192, 5.3e12, 1307.4e12, 448e9),
        ("l40s", 48, 0.864e12, 362.05e12, 31.5e9),
        ("rtx-4090", 24, 1.008e12, 165.2e12, 31.5e9),
    ],
)
def test_accelerators_say_what_their_sheets_print(
    accelerator: str, gib: int, bandwidth: float, peak: float, link: float
) -> None:
    part = catalogue().accelerators[accelerator]
    assert part.memory == gib * 2**30
    assert part.memory_bandwidth == bandwidth
    assert part.peak.bf16 == peak, "dense, not sparse"
    assert part.link.bandwidth == link, "one direction"


@pytest.mark.parametrize("accelerator", ["b300-sxm-288gb", "gb300-nvl72"])
def test_288_gb_parts_are_printed_in_decimal(accelerator: str) -> None:
    assert catalogue().accelerators[accelerator].memory == 288e9


def test_tools_report_no_more_memory_than_is_printed() -> None:
    for part in catalogue().accelerators.values():
        if part.memory_reported is not None:
            allowance = 1.04 if part.memory == 288e9 else 1.0
            assert part.memory_reported <= part.memory * allowance, part.id


def test_rates_of_an_accelerator_rise_with_fewer_bits() -> None:
    for part in catalogue().accelerators.values():
        peaks = [peak for peak in (part.peak.fp32, part.peak.fp16, part.peak.fp8, part.peak.fp4) if peak]
        assert peaks == sorted(peaks), part.id
        assert part.power > 0
        assert part.vendor
        assert part.generation != "other"


@pytest.mark.parametrize(
    ("network", "bandwidth", "latency"),
    [
        ("ib-hdr-200", 25e9, "ib"),
        ("ib-ndr-400", 50e9, "ib"),
        ("ib-xdr-800", 100e9, "ib"),
        ("roce-400", 50e9, "roce"),
        ("efa-400", 50e9, "efa"),
        ("efa-v1", 6.25e9, "efa"),
        ("opa-100", 12.5e9, "opa"),
    ],
)
def test_networks_are_bytes_per_gpu_and_direction(network: str, bandwidth: float, latency: str) -> None:
    assert catalogue().networks[network].bandwidth == bandwidth
    assert catalogue().networks[network].latency_class == latency


@pytest.mark.parametrize("kind", ["models", "accelerators", "networks"])
def test_every_entry_names_itself_and_its_source(kind: str) -> None:
    entries: Mapping[str, Any] = getattr(catalogue(), kind)
    names = [entry.name for entry in entries.values()]
    assert len(set(names)) == len(names), "names in a list must tell entries apart"
    for key, entry in entries.items():
        assert entry.id == key
        assert len(entry.source) > 10


def test_presets_are_there_with_their_names() -> None:
    presets = catalogue().presets
    assert {
        "7b-8xa100-train",
        "70b-64xh100-train",
        "70b-512xh100-2t-train",
        "70b-128xa100-2t-train",
        "70b-int4-1xh100-serve",
        "70b-bf16-8xa100-serve",
        "70b-int8-1xh100-step",
        "405b-16384xh100-train",
    } <= set(presets)
    assert presets["7b-8xa100-train"].name == "7B pre-training on 8×A100-80GB"
    assert all(preset.path.is_file() for preset in presets.values())


def test_the_catalogue_cannot_be_changed_by_its_users() -> None:
    with pytest.raises(TypeError):
        catalogue().models["mine"] = catalogue().models["gpt2"]  # type: ignore[index]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty data folder in place of the shipped one."""
    monkeypatch.setattr(module, "_folder", lambda name="": tmp_path / name)
    catalogue.cache_clear()
    table.cache_clear()
    yield tmp_path
    catalogue.cache_clear()
    table.cache_clear()


NETWORK = "{name: Fast, bandwidth: 400 Gb/s, source: the sheet of the maker}"


def shipped(folder: Path, networks: str) -> None:
    for name in ("models", "accelerators"):
        (folder / f"{name}.yaml").write_text("{}")
    (folder / "networks.yaml").write_text(networks)


def test_a_datum_without_source_is_refused(folder: Path) -> None:
    shipped(folder, f"fast: {NETWORK}\nbare: {{name: Bare, bandwidth: 400 Gb/s}}\n")
    with pytest.raises(ScenarioError, match=r"networks.yaml:2: bare: has no source"):
        catalogue()


def test_a_wrong_unit_is_refused_with_its_line(folder: Path) -> None:
    shipped(folder, "fast:\n  name: Fast\n  bandwidth: 400 GB\n  source: sheet\n")
    with pytest.raises(ScenarioError, match=r"networks.yaml:3: cluster.network.bandwidth: '400 GB': unknown unit"):
        catalogue()


def test_tables_hold_numbers_quantities_flags_and_words(folder: Path) -> None:
    (folder / "rates.yaml").write_text(
        "row:\n  whole: 256\n  share: 82%\n  time: 8 us\n  size: 1 GiB\n  small: 3.0e-6\n"
        "  flag: true\n  word: fa2\n  nothing: null\n  text: '8'\n  dashed: 8x8\n  list: [0.5, [1, two]]\n"
    )
    assert table("rates") == {
        "row": {
            "whole": 256,
            "share": 0.82,
            "time": 8e-6,
            "size": 2**30,
            "small": 3e-6,
            "flag": True,
            "word": "fa2",
            "nothing": None,
            "text": "8",
            "dashed": "8x8",
            "list": [0.5, [1, "two"]],
        }
    }


def test_the_nearest_word_is_the_one_that_was_meant() -> None:
    assert nearest("lama-2-7b", catalogue().models) == "llama-2-7b"
    assert nearest("H100-SXM-80GB", catalogue().accelerators) == "h100-sxm-80gb"
    assert nearest("zzz", catalogue().models) is None


def test_serving_engines_are_picked_by_id_and_have_names_and_sources() -> None:
    engines = catalogue().engines
    assert list(engines) == list(table("engines"))
    assert engines["vllm-v1"].name == "vLLM V1"
    assert all(engine.id == key and engine.name and engine.source for key, engine in engines.items())
