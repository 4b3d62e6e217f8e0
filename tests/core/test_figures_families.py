"""What charts say of plans with experts, latents, windows and states."""

from __future__ import annotations

import pytest

from tests.core.huggingface_files import published
from tests.core.serving_plans import serving
from triledger.core import evaluate, load_scenario
from triledger.core.figures.figure import SERIES, Figure
from triledger.core.figures.memory import memory
from triledger.core.report import Report


def lengths(chart: Figure) -> dict[str, float]:
    """Bytes of the parts of the bar of the one GPU, by their names."""
    found: dict[str, float] = {}
    for bar in chart.bars:
        if bar.series not in ("baseline", "capacity"):
            found[bar.name] = found.get(bar.name, 0.0) + bar.length
    return found


def of_model(repository: str, **changes: object) -> Report:
    return evaluate(serving(published(repository).spec, "h100-sxm-80gb", tp=8, **changes))


def test_expert_weights_and_latents_of_deepseek_v3_are_told_apart() -> None:
    report = evaluate(load_scenario("deepseek-v3-h200-serve"))
    parts = lengths(memory(report))
    # 58 layers of 256 experts of three 7168 x 2048 matrices in 8 bits with their scales, dealt over 8 ranks
    assert 8 * parts["expert weights"] == pytest.approx(58 * 256 * 3 * 7168 * 2048, rel=5e-4)
    assert parts["weights"] + parts["expert weights"] == pytest.approx(report["memory.weights_bytes"])
    assert parts["latent cache"] == pytest.approx(report["memory.kv_cache_bytes"])
    assert "KV cache" not in parts


def test_windows_and_states_are_parts_of_the_cache() -> None:
    report = of_model("google/gemma-3-27b-it", max_context=32_768)
    parts = lengths(memory(report))
    # 52 layers keep 1024 tokens, 10 keep all 32 768
    assert parts["KV of windows"] / parts["KV cache"] == pytest.approx(52 * 1024 / (10 * 32_768))
    assert parts["KV of windows"] + parts["KV cache"] == pytest.approx(report["memory.kv_cache_bytes"])
    report = of_model("Qwen/Qwen3.5-35B-A3B")
    parts = lengths(memory(report))
    assert {"KV cache", "states", "expert weights"} <= set(parts)
    assert parts["states"] + parts["KV cache"] == pytest.approx(report["memory.kv_cache_bytes"])


def test_parts_of_one_chart_have_colours_of_their_own() -> None:
    for report in (of_model("Qwen/Qwen3.5-35B-A3B"), of_model("openai/gpt-oss-120b")):
        chart = memory(report)
        colours = [SERIES[series] for series, _ in chart.key]
        assert len(colours) == len(set(colours))


def test_expert_weights_of_training_are_told_apart_on_every_stage() -> None:
    report = evaluate(load_scenario("deepseek-v3-2048xh800-train"))
    stages = report.stages
    # 256 experts a layer over 64 ranks in 16 bits, kept twice by the schedule
    layers = stages["expert_weights"] / (2 * 2 * 256 / 64 * 3 * 7168 * 2048)
    assert layers.sum() == pytest.approx(58 + 1, abs=1e-6)  # and the prediction module's
    assert (stages["expert_weights"] <= stages["weights"]).all()
    names = [text for _, text in memory(report).key]
    assert names[:4] == ["weights", "expert weights", "low-precision weights", "gradients"]
