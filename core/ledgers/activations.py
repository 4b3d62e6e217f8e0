"""Activations a training step keeps, tensor by tensor, in bytes per token of a micro-batch (16-bit tensors).

Checked against Korthikanti 2022 (arXiv 2205.05198, table 2): with dropout, unfused attention and f = 4h the tensors add
up to s·b·h·(34 + 5·a·s/h). Flash attention (arXiv 2205.14135) keeps a log-sum-exp instead of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.layers import Block
from ..numeric import Number, is_array, minimum, where
from ..scenario import Training
from ..terms import formula

_TENSORS = "tensors saved for backward, counted; Korthikanti 2022, arXiv 2205.05198"


@formula("norms", "B/token", _TENSORS)
def norm_bytes(
    hidden: Number, norms: Number, input_bytes: Number, copy_bytes: Number, output_bytes: Number, share: Number
) -> Number:
    """Inputs of the norms, their normalised copies and their outputs (the inputs of the projections)."""
    return norms * hidden * (input_bytes + copy_bytes + output_bytes) * share


@formula("masks", "B/token", _TENSORS)
def dropout_masks(hidden: Number, norms: Number, share: Number) -> Number:
    """One-byte dropout masks on the residuals."""
    return norms * hidden * share


@formula("q, k, v, o", "B/token", _TENSORS)
def attention_bytes(heads: Number, kv_heads: Number, head_dim: Number, element: Number) -> Number:
    """Queries, keys, values and attention output of the heads on one rank."""
    return 2 * element * (heads + kv_heads) * head_dim


@formula("qk-norm", "B/token", _TENSORS)
def qk_norm_bytes(heads: Number, kv_heads: Number, head_dim: Number, element: Number) -> Number:
    """Inputs of the query and key norms."""
    return element * (heads + kv_heads) * head_dim


@formula("lse", "B/token", "FlashAttention, arXiv 2205.14135")
def log_sum_exp_bytes(heads: Number) -> Number:
    """32-bit log-sum-exp that a flash kernel keeps for each head."""
    return 4 * heads


@formula("scores", "B/token", _TENSORS)
def score_bytes(heads: Number, sequence: Number, dropout: Number) -> Number:
    """Softmax output that unfused attention keeps; with dropout its mask and its result too (5·a·s)."""
    return (2 + 3 * dropout) * heads * sequence


@formula("FFN", "B/token", _TENSORS)
def ffn_bytes(ffn_size: Number, saved: Number) -> Number:
    """Feed-forward tensors of one rank: gate, up and product when gated, else input and output of the activation."""
    return saved * ffn_size


@formula("A_layer", "B/token", _TENSORS)
def layer_bytes(norms: Number, masks: Number, attention: Number, kept_scores: Number, ffn: Number) -> Number:
    """Bytes of a token that one block keeps for its backward pass."""
    return norms + masks + attention + kept_scores + ffn


@formula("X", "B/token", "gradients alive in the backward pass of one block")
def transient_bytes(hidden: Number, share: Number, ffn_size: Number, alive: Number) -> Number:
    """Backward transients of one block on top of what it keeps."""
    return 4 * hidden * share + alive * ffn_size


@formula("W", "B/token")
def working_set_bytes(layer: Number, transient: Number, hidden: Number, share: Number, fused: Number) -> Number:
    """Working set of a recomputed block; with fused norms the checkpoint itself is the first norm's input."""
    return layer + transient - 2 * fused * hidden * share


@formula("selected", "B/token", "PyTorch selective checkpointing, every second matrix product: torchtitan public code")
def selected_bytes(
    heads: Number, kv_heads: Number, head_dim: Number, ffn_size: Number, hidden: Number, share: Number, element: Number
) -> Number:
    """Outputs that recomputation by operator keeps: query, value, attention with its log-sum-exp, gate, down."""
    return element * ((2 * heads + kv_heads) * head_dim + ffn_size + hidden * share) + 4 * heads


@formula("W − selected", "B/token")
def without_selected(working: Number, selected: Number) -> Number:
    """Working set of a block whose selected outputs are kept already."""
    return working - selected


@formula("2h", "B/token", "Chen 2016, arXiv 1604.06174")
def checkpoint_bytes(hidden: Number, share: Number, element: Number) -> Number:
    """The block input that full recomputation keeps of each block."""
    return element * hidden * share


@dataclass(frozen=True)
class BlockActivations:
    """Bytes per token of one block: held until its backward pass, and alive only during it."""

    held: Number
    during_backward: Number


def block_activations(
    block: Block, training: Training, framework: dict, tensor: Number, share: Number, sequence: Number, element: Number
) -> BlockActivations:
    """What one block keeps on one rank; `share` is 1/t under sequence parallelism, else 1."""
    attention, ffn = block.attention, block.feed_forward
    heads, kv_heads = attention.local_heads(tensor), attention.local_kv_heads(tensor)
    size = ffn.local_size(tensor)
    flash, selective = training.attention == "flash", training.recompute == "selective"
    dropout = int(training.dropout)
    kept = attention_bytes(heads, kv_heads, attention.head_dim, element)
    if attention.qk_norm:
        kept = kept_sum(kept, qk_norm_bytes(heads, kv_heads, attention.head_dim, element))
    scores = 0.0
    if flash:
        scores = log_sum_exp_bytes(heads)
    elif not selective:
        scores = score_bytes(heads, sequence, dropout)
    cheap = flash and selective  # with nothing quadratic to drop, the cheap pointwise tensors are recomputed
    saved = framework["gated_saved"] if ffn.gated else 4
    norms = norm_bytes(
        block.hidden, block.norms, framework["norm_input"], framework["norm_copy"], 0 if cheap else element, share
    )
    masks = dropout_masks(block.hidden, block.norms, share) if dropout else 0.0
    layer = layer_bytes(norms, masks, kept, scores, ffn_bytes(size, saved - 2 if cheap else saved))
    alive = framework["gated_backward"] if ffn.gated else framework["plain_backward"]
    transient = transient_bytes(block.hidden, share, size, alive)
    if training.recompute not in ("full", "op-level"):
        return BlockActivations(layer, transient)
    fused = int(framework["norm_input"] == 2)
    working = working_set_bytes(layer, transient, block.hidden, share, fused)
    checkpoint = checkpoint_bytes(block.hidden, share, element)
    if training.recompute == "full":
        return BlockActivations(checkpoint, working)
    selected = selected_bytes(heads, kv_heads, attention.head_dim, size, block.hidden, share, element)
    return BlockActivations(kept_sum(checkpoint, selected), without_selected(working, selected))


@formula("Σ", "B/token")
def kept_sum(first: Number, second: Number) -> Number:
    """Sum of kept tensors."""
    return first + second


# ---------------------------------------------------------------- micro-batches in flight

_SCHEDULES = {
    "1f1b": "Narayanan 2020, arXiv 2006.09503",
    "interleaved": "Narayanan 2021, arXiv 2104.04473, section 2.2",
    "zero-bubble": "Qi 2023, arXiv 2401.10241",
    "dualpipe": "DeepSeek-V3, arXiv 2412.19437, table 2",
}


@formula("m", "micro-batches", "Huang 2018, arXiv 1811.06965")
def in_flight_gpipe(micro_batches: Number) -> Number:
    """GPipe holds all micro-batches of the step."""
    return micro_batches


@formula("min(m, p − i)", "micro-batches", _SCHEDULES["1f1b"])
def in_flight_1f1b(micro_batches: Number, pipeline: Number, stage: Number) -> Number:
    """Micro-batches that a stage holds under 1F1B."""
    return minimum(micro_batches, pipeline - stage)


@formula("min(m·v, 2(p−1−i) + (v−1)p + 1)/v", "micro-batches", _SCHEDULES["interleaved"])
def in_flight_interleaved(micro_batches: Number, pipeline: Number, virtual: Number, stage: Number) -> Number:
    """Micro-batches of a whole stage that an interleaved stage holds: warm-up chunks and one more, over its chunks."""
    return minimum(micro_batches * virtual, 2 * (pipeline - 1 - stage) + (virtual - 1) * pipeline + 1) / virtual


@formula("min(m, p)", "micro-batches", _SCHEDULES["zero-bubble"])
def in_flight_zero_bubble(micro_batches: Number, pipeline: Number) -> Number:
    """Micro-batches every stage holds under ZB-H1 and ZB-V."""
    return minimum(micro_batches, pipeline)


@formula("min(m, p + 1)", "micro-batches", _SCHEDULES["dualpipe"])
def in_flight_dualpipe(micro_batches: Number, pipeline: Number) -> Number:
    """Micro-batches every stage holds under DualPipe."""
    return minimum(micro_batches, pipeline + 1)


def in_flight(schedule: str, micro_batches: Number, pipeline: Number, virtual: Number, stage: Number) -> Number:
    """Micro-batches whose activations a stage holds at its fullest."""
    if schedule == "gpipe":
        return in_flight_gpipe(micro_batches)
    if schedule in ("zero-bubble", "zero-bubble-v"):
        return in_flight_zero_bubble(micro_batches, pipeline)
    if schedule == "dualpipe":
        return in_flight_dualpipe(micro_batches, pipeline)
    if is_array(virtual) or virtual > 1:
        # one chunk a stage: the interleaved count exceeds 1F1B's, which is what then runs
        return (
            where(
                virtual > 1,
                in_flight_interleaved(micro_batches, pipeline, virtual, stage),
                in_flight_1f1b(micro_batches, pipeline, stage),
            )
            if is_array(virtual)
            else in_flight_interleaved(micro_batches, pipeline, virtual, stage)
        )
    return in_flight_1f1b(micro_batches, pipeline, stage)
