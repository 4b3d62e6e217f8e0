"""What a model is made of, told layer by layer."""

from __future__ import annotations

import pytest

from tests.core.huggingface_files import COUNTS, published
from triledger.core.catalogue import catalogue
from triledger.core.figures.figure import SERIES
from triledger.core.model.anatomy import FEED_FORWARD, MIXING, Anatomy, anatomy
from triledger.core.model.layers import Model, build
from triledger.core.model.spec import LayerRun, ModelSpec

READ = [row["model"] for row in COUNTS if row["parameters"]]


def of(model_id: str) -> Anatomy:
    return anatomy(build(catalogue().models[model_id]))


def told(found: Anatomy) -> str:
    return "\n".join(found.lines())


def test_deepseek_v3() -> None:
    found = of("deepseek-v3")
    assert [(s.place, s.mixing.kinds, s.feed_forward.kinds) for s in found.stretches] == [
        ("layers 1–3", ("latent",), ("dense",)),
        ("layers 4–61", ("latent",), ("experts",)),
    ]
    assert "8 of 256 experts, each 2\u202f048 wide, shared 2\u202f048" in found.stretches[1].feed_forward.words
    assert "128 heads of 128 + 64, latent 512" in found.stretches[0].mixing.words
    # published: 671B, 37B a token; the prediction module stands apart
    assert found.sizes == ("671B parameters", "37.6B active", "MTP 11.6B apart")
    # 61 layers x (512 + 64) elements of 2 bytes
    assert found.cache == ("KV 68.6 KiB a token",)


def test_windows_and_full_attention_alternate() -> None:
    found = of("gpt-oss-20b")
    assert [s.mixing.kinds[0] for s in found.stretches] == ["window", "full"] * 12
    assert "window of 128: 64 heads, 8 KV heads of 64 with sinks" in told(found)
    # half of the layers stop caching beyond the window
    assert found.cache == ("KV 48.0 KiB a token", "24.0 KiB beyond 128")


def test_gemma_3_has_a_vision_tower_in_its_count() -> None:
    found = of("gemma-3-27b")
    assert [(s.first, s.count, s.mixing.kinds[0]) for s in found.stretches[:3]] == [
        (1, 5, "window"),
        (6, 1, "full"),
        (7, 5, "window"),
    ]
    assert found.sizes == ("27.4B parameters", "423M vision")


def test_hybrids_tell_their_states() -> None:
    jamba = anatomy(published("ai21labs/Jamba-v0.1"))
    assert (jamba.mixing, jamba.feed_forward) == (("full", "state"), ("dense", "experts"))
    assert [s.first for s in jamba.stretches if s.mixing.kinds == ("full",)] == [5, 13, 21, 29]
    assert "states 15.8 MiB a sequence" in jamba.cache
    qwen = anatomy(published("Qwen/Qwen3.5-35B-A3B"))
    assert [s.count for s in qwen.stretches if s.mixing.kinds == ("linear",)] == [3] * 10
    assert "gated delta net: 16 key heads of 128, 32 value heads of 128" in told(qwen)


def test_kinds_side_by_side_are_both_there() -> None:
    spec = ModelSpec(
        *("hybrid", "Hybrid", 2, 1024, 16, 4, 4096, 32000),
        **{"ssm_size": 2048, "ssm_heads": 32, "state_size": 128, "conv_size": 4},
        runs=(LayerRun(2, "attention+mamba2"),),
    )
    found = anatomy(build(spec))
    assert [s.mixing.kinds for s in found.stretches] == [("full", "state")]
    assert "16 heads, 4 KV heads of 64 beside Mamba-2: 32 heads, 1 group, state 128" in told(found)


def _models() -> list[tuple[str, Model]]:
    shipped = [(spec.id, build(spec)) for spec in catalogue().models.values()]
    return shipped + [(name, published(name)) for name in READ]


@pytest.mark.parametrize(("name", "model"), _models(), ids=[name for name, _ in _models()])
def test_every_layer_of_every_model_is_told_once(name: str, model: Model) -> None:
    found = anatomy(model)
    layers = [layer for s in found.stretches for layer in range(s.first, s.first + s.count)]
    assert layers == list(range(1, int(model.layers) + 1))
    assert sum(count for count, _, _ in found.groups) == model.layers
    for stretch in found.stretches:
        assert set(stretch.mixing.kinds) <= set(MIXING)
        assert set(stretch.feed_forward.kinds) <= set(FEED_FORWARD)
        assert set(stretch.mixing.kinds + stretch.feed_forward.kinds) <= set(SERIES)
    # a token never meets more than there is
    assert model.active_parameters <= model.parameters
