"""The compute ledger of training asks each kind of layer: experts, latent attention, windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from triledger.core.catalogue import catalogue
from triledger.core.ledgers.compute import ComputeLedger, forward_ledger
from triledger.core.model.kinds.latent import LatentAttention
from triledger.core.model.layers import build
from triledger.core.model.spec import LayerRun, ModelSpec
from triledger.core.numeric import Number


def spec(name: str) -> ModelSpec:
    return catalogue().models[name]


def ledger(model: str | ModelSpec, sequence: Number) -> ComputeLedger:
    return forward_ledger(build(spec(model) if isinstance(model, str) else model), sequence)


def test_only_the_experts_a_token_is_sent_to_count() -> None:
    model = spec("mixtral-8x7b")
    attention = 4096 * (2 * 32 + 2 * 8) * 128
    met = attention + 4096 * 8 + 2 * 3 * 4096 * 14336
    found = ledger(model, 4096)
    assert found.linear == 2 * 32 * met
    assert found.core == 32 * 4 * 32 * 128 * 4097 / 2
    assert ledger(replace(model, experts_per_token=8), 4096).linear > 3 * found.linear
    assert build(model).met_parameters == 12_879_925_248
    assert build(spec("llama-2-7b")).met_parameters == 6_738_415_616


def test_layers_of_two_kinds_each_count_as_what_they_are() -> None:
    """DeepSeek-V3 (arXiv 2412.19437): 3 dense layers and 58 of 8 routed experts and a shared one.

    The module that predicts a second token is one more of them.
    """
    latent = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
    experts = 7168 * 256 + 9 * 3 * 7168 * 2048
    found = ledger("deepseek-v3", 4096)
    assert found.linear == 2 * (62 * latent + 3 * 3 * 7168 * 18432 + 59 * experts)
    assert found.core == 62 * 81_920 * 4097 / 2
    assert found.full_mask_core == 62 * 81_920 * 4096


def test_latent_attention_computes_a_pair_expanded_in_training_and_absorbed_in_decoding() -> None:
    mixer = build(spec("deepseek-v3")).block.mixer
    assert isinstance(mixer, LatentAttention)
    assert mixer.pair_flops() == 81_920
    assert mixer.absorbed_core_flops(1, 999) / 1000 == 278_528


def test_a_window_limits_the_pairs() -> None:
    model = replace(spec("llama-2-7b"), window=1024, runs=(LayerRun(mixer="window"),))
    pairs = 1024 * 1025 / 2 + (4096 - 1024) * 1024
    assert ledger(model, 4096).core == pytest.approx(32 * 4 * 32 * 128 * pairs / 4096, rel=1e-12)
    assert ledger(model, 1024).core == ledger("llama-2-7b", 1024).core


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v3", "gpt-oss-120b"])
def test_an_array_of_sequences_answers_as_one_by_one(model: str) -> None:
    sequences = np.array([512.0, 4096.0, 6000.0])
    together = ledger(model, sequences)
    for index, sequence in enumerate(sequences.tolist()):
        alone = ledger(model, sequence)
        for name in ("linear", "core", "full_mask_core", "forward"):
            assert np.broadcast_to(getattr(together, name), 3)[index] == pytest.approx(getattr(alone, name), rel=1e-12)
