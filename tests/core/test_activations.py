"""Activations against published tables, tensor by tensor, and micro-batches in flight by schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.core.plans import gpt
from triledger.core.catalogue import catalogue, table
from triledger.core.ledgers.activations import BlockActivations, block_activations, checkpoint_bytes, in_flight
from triledger.core.ledgers.saved import Keeping
from triledger.core.model.layers import build
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Training

GIB = 2**30


def block(
    model: str | ModelSpec,
    tensor: int = 1,
    sp: bool = False,
    framework: str = "megatron",
    precision_bytes: float = 2.0,
    **training: Any,
) -> BlockActivations:
    """Bytes per token of one block of a model on one rank."""
    spec = catalogue().models[model] if isinstance(model, str) else model
    plan = replace(Training(), **training)
    share = 1 / tensor if sp else 1.0
    keeping = Keeping(plan, table("frameworks")[framework], tensor, share, plan.sequence_length, precision_bytes)
    return block_activations(build(spec).block, keeping)


GPT_BLOCK = {"attention": "unfused", "dropout": True, "sequence_length": 2048}


@pytest.mark.parametrize(("hidden", "heads"), [(6144, 64), (12288, 96), (20480, 128), (25600, 160)])
def test_gpt_block_is_korthikanti_table_2(hidden: int, heads: int) -> None:
    # arXiv 2205.05198, table 2, divided by s·b·h
    spec, scores = gpt(1, hidden, heads), 5 * heads * 2048 / hidden
    for tensor in (1, 8):
        without = block(spec, tensor, **GPT_BLOCK).held / hidden
        assert without == pytest.approx(10 + 24 / tensor + scores / tensor, rel=1e-12)
        sequence = block(spec, tensor, sp=True, **GPT_BLOCK).held / hidden
        assert sequence == pytest.approx((34 + scores) / tensor, rel=1e-12)
        selective = block(spec, tensor, sp=True, recompute="selective", **GPT_BLOCK).held / hidden
        assert selective == pytest.approx(34 / tensor, rel=1e-12)
        assert block(spec, tensor, recompute="full", **GPT_BLOCK).held == 2 * hidden
        assert block(spec, tensor, sp=True, recompute="full", **GPT_BLOCK).held == 2 * hidden / tensor


@dataclass(frozen=True)
class Row:
    """One model of arXiv 2205.05198, table 3, and its memory in GiB (figure 1 and section 5)."""

    name: str
    layers: int
    hidden: int
    heads: int
    pipeline: int
    virtual: int
    micro_batch: int
    batch: int
    states: float
    tensor_only: float
    sequence_and_selective: float


ROWS = (
    Row("22B", 48, 6144, 64, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    Row("175B", 96, 12288, 96, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    Row("530B", 105, 20480, 128, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    Row("1T", 128, 25600, 160, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_memory_of_the_first_stage_is_korthikanti(row: Row) -> None:
    # 18 B for each of 12·h² parameters of a layer on 8 tensor parallel ranks
    matrices = build(gpt(row.layers, row.hidden, row.heads)).block.matrix_parameters()
    assert matrices == 12 * row.hidden**2
    assert 18 * matrices * row.layers / row.pipeline / 8 / GIB == row.states
    flight = in_flight("1f1b", row.batch / row.micro_batch, row.pipeline, row.virtual, 0)
    held = flight * row.layers / row.pipeline * row.micro_batch * 2048
    spec = gpt(row.layers, row.hidden, row.heads)
    assert held * block(spec, 8, **GPT_BLOCK).held / GIB == pytest.approx(row.tensor_only, rel=1e-12)
    selective = block(spec, 8, sp=True, recompute="selective", **GPT_BLOCK).held
    assert held * selective / GIB == pytest.approx(row.sequence_and_selective, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "coefficient"), [("llama-2-7b", 32.125), ("llama-3-8b", 34.0), ("llama-3-70b", 33.5)]
)
def test_llama_block_with_flash_attention(model: str, coefficient: float) -> None:
    # 12 + 4·g/a + 6·f/h bytes for each element of the residual stream, and a 32-bit log-sum-exp for each head
    spec = catalogue().models[model]
    held = block(model).held
    assert (held - 4 * spec.heads) / spec.hidden_size == coefficient
    assert coefficient == 12 + 4 * spec.kv_heads / spec.heads + 6 * spec.ffn_size / spec.hidden_size


def test_flash_attention_removes_the_scores_and_nothing_else() -> None:
    # the 34 of the GPT block stays: 19 bytes are its MLP alone
    spec = gpt(1, 4096, 32)
    flash = block(spec, dropout=True, sequence_length=4096).held
    assert flash == 34 * 4096 + 4 * 32
    unfused = block(spec, attention="unfused", dropout=True, sequence_length=4096).held
    assert unfused - (flash - 4 * 32) == 5 * 32 * 4096


def test_llama_2_7b_of_four_sequences() -> None:
    # 32 blocks × 32.125·b·s·h = 68.99 GB; the GPT block's 34 would give 73.01 GB, 19 gives 40.80 GB
    tokens = 4 * 4096
    held = (block("llama-2-7b").held - 4 * 32) * tokens * 32
    assert held == pytest.approx(68.99e9, abs=5e6)
    assert 34 / 32.125 * held == pytest.approx(73.01e9, abs=6e6)
    assert 19 / 32.125 * held == pytest.approx(40.80e9, abs=6e6)


def test_llama_2_7b_recomputed_in_full() -> None:
    # checkpoints 4.29 GB, and one block's 2.16 GB saved and 1.35 GB of backward transients (unfused kernels)
    tokens = 4 * 4096
    full = block("llama-2-7b", recompute="full")
    assert 32 * full.held * tokens == pytest.approx(4.29e9, abs=6e6)
    kept = block("llama-2-7b")
    assert kept.held * tokens == pytest.approx(2.16e9, abs=6e6)
    eager = block("llama-2-7b", framework="hf-trainer")
    assert eager.during_backward * tokens == pytest.approx(1.35e9, abs=6e6)
    # fused norms: the first norm's input is the checkpoint itself
    assert full.during_backward == kept.held + kept.during_backward - 2 * 4096


def test_recomputed_block_of_llama_3_8b() -> None:
    # measured slope of 1.0 × 64h + W with fused norms: 25h of transients are 4h + 6f for f = 3.5h
    spec = catalogue().models["llama-3-8b"]
    eager = block("llama-3-8b", framework="hf-trainer").during_backward
    assert eager == 25 * spec.hidden_size


def test_eager_norms_and_activation_keep_more() -> None:
    # per block in full training: + 8h for the 32-bit inputs and normalised copies, + 2f for the unfused SiLU
    spec = catalogue().models["llama-2-7b"]
    eager, fused = block("llama-2-7b", framework="hf-trainer").held, block("llama-2-7b").held
    assert eager - fused == 8 * spec.hidden_size + 2 * spec.ffn_size


def test_selective_recompute_with_flash_drops_the_cheap_tensors() -> None:
    spec = catalogue().models["llama-2-7b"]
    kept, selective = block("llama-2-7b").held, block("llama-2-7b", recompute="selective").held
    assert kept - selective == 4 * spec.hidden_size + 2 * spec.ffn_size


def test_grouped_heads_split_until_each_rank_has_one() -> None:
    # 8 KV heads: 16 ranks hold no less of k and v than 8 do
    spec = catalogue().models["llama-3-70b"]
    held = {t: block("llama-3-70b", t).held - 8 * spec.hidden_size for t in (1, 8, 16)}
    heads, ffn = 4 * spec.heads * 128 + 4 * spec.heads, 6 * spec.ffn_size
    assert held[1] == heads + ffn + 4 * 128 * 8
    assert held[8] == (heads + ffn) / 8 + 4 * 128
    assert held[16] == (heads + ffn) / 16 + 4 * 128


def test_query_key_norm_keeps_its_inputs() -> None:
    spec = catalogue().models["qwen3-8b"]
    more = block(spec).held - block(replace(spec, qk_norm=False)).held
    assert more == 2 * (spec.heads + spec.kv_heads) * 128


def test_a_parallel_block_has_one_norm() -> None:
    spec = catalogue().models["llama-2-7b"]
    assert block(spec).held - block(replace(spec, parallel_block=True)).held == 4 * spec.hidden_size


def test_checkpoints_are_the_residual_stream() -> None:
    assert checkpoint_bytes(4096, 1 / 8, 2.0) == 1024


@pytest.mark.parametrize(
    ("schedule", "micro_batches", "virtual", "expected"),
    [
        # arXiv 1811.06965: all micro-batches; 2006.09503: p − i; 2104.04473 section 2.2; 2401.10241; 2412.19437 table 2
        ("gpipe", 16, 1, [16] * 8),
        ("1f1b", 16, 1, [8, 7, 6, 5, 4, 3, 2, 1]),
        ("1f1b", 4, 1, [4, 4, 4, 4, 4, 3, 2, 1]),
        ("interleaved", 16, 3, [31 / 3, 29 / 3, 27 / 3, 25 / 3, 23 / 3, 21 / 3, 19 / 3, 17 / 3]),
        ("interleaved", 16, 1, [8, 7, 6, 5, 4, 3, 2, 1]),
        ("zero-bubble", 16, 1, [8] * 8),
        ("zero-bubble", 4, 1, [4] * 8),
        ("zero-bubble-v", 16, 1, [8] * 8),
        ("dualpipe", 16, 1, [9] * 8),
        ("dualpipe", 4, 1, [4] * 8),
    ],
)
def test_micro_batches_in_flight(schedule: str, micro_batches: int, virtual: int, expected: list[float]) -> None:
    found = [in_flight(schedule, micro_batches, 8, virtual, stage) for stage in range(8)]
    assert found == pytest.approx(expected, rel=1e-12)


def test_interleaving_holds_more_on_the_first_stage() -> None:
    # arXiv 2205.05198, section 4.2.3: L·(1 + (p − 1)/(p·v)) layers
    assert in_flight("interleaved", 64, 8, 3, 0) == pytest.approx(8 * (1 + 7 / 24), rel=1e-12)


def test_32_bit_tensors_are_twice_as_wide() -> None:
    # but for the log-sum-exp, which is 32-bit in either, and masks of one byte
    for recompute in ("none", "selective", "full"):
        narrow, wide = (block("llama-3-8b", precision_bytes=size, recompute=recompute) for size in (2.0, 4.0))
        kept = 0 if recompute == "full" else 4 * 32
        assert wide.held - kept == 2 * (narrow.held - kept)
        assert wide.during_backward >= 1.9 * narrow.during_backward
    scores = [block(gpt(1, 4096, 32), precision_bytes=size, **GPT_BLOCK).held for size in (2.0, 4.0)]
    # masks: on the scores, and on two outputs
    assert scores[1] == 2 * scores[0] - 32 * 2048 - 2 * 4096
