"""Activations a training step keeps, tensor by tensor, in bytes per token of a micro-batch (16-bit tensors).

Checked against Korthikanti 2022 (arXiv 2205.05198, table 2): with dropout, unfused attention and f = 4h the tensors add
up to s·b·h·(34 + 5·a·s/h). Flash attention (arXiv 2205.14135) keeps a log-sum-exp instead of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ..catalogue import table
from ..model.block import Block
from ..numeric import Number, is_array, minimum, where
from ..scenario import Scenario
from ..sums import add_token_bytes
from ..terms import formula
from ..training.layout import Layout
from ..widths import element_bytes
from .adapters import adapter_bytes, adapters_of
from .low_precision import low_precision_of
from .saved import Keeping, Kept, ffn_kept, mixer_kept
from .saved.keeping import TENSORS


@formula("norms", "B/token", TENSORS)
def norm_bytes(
    hidden: Number, norms: Number, input_bytes: Number, copy_bytes: Number, output_bytes: Number, share: Number
) -> Number:
    """Inputs of the norms, their normalised copies and their outputs (the inputs of the projections)."""
    return norms * hidden * (input_bytes + copy_bytes + output_bytes) * share


@formula("n·h·σ", "elements")
def norm_outputs(hidden: Number, norms: Number, share: Number) -> Number:
    """Elements a token of the outputs of some norms on one rank."""
    return norms * hidden * share


@formula("masks", "B/token", TENSORS)
def dropout_masks(hidden: Number, parts: Number, share: Number) -> Number:
    """One-byte dropout masks on the residuals."""
    return parts * hidden * share


@formula("A_layer", "B/token", TENSORS)
def layer_bytes(norms: Number, masks: Number, mixing: Number, kept_scores: Number, ffn: Number) -> Number:
    """Bytes of a token that one block keeps for its backward pass."""
    return norms + masks + mixing + kept_scores + ffn


@formula("X", "B/token", "gradients alive in the backward pass of one block")
def transient_bytes(hidden: Number, share: Number, gradients: Number) -> Number:
    """Backward transients of one block on top of what it keeps: of the residual stream, and of its last part."""
    return 4 * hidden * share + gradients


@formula("W", "B/token")
def working_set_bytes(layer: Number, transient: Number, hidden: Number, share: Number, fused: Number) -> Number:
    """Working set of a recomputed block; with fused norms the checkpoint itself is the first norm's input."""
    return layer + transient - 2 * fused * hidden * share


@formula("W − selected", "B/token")
def without_selected(working: Number, selected: Number) -> Number:
    """Working set of a block whose selected outputs are kept already."""
    return working - selected


@formula("2h", "B/token", "Chen 2016, arXiv 1604.06174")
def checkpoint_bytes(hidden: Number, share: Number, element: Number) -> Number:
    """A tensor as wide as the residual stream: the block input that full recomputation keeps of each block."""
    return element * hidden * share


@dataclass(frozen=True)
class BlockActivations:
    """Bytes per token of one block: held until its backward pass, and alive only during it."""

    held: Number
    during_backward: Number
    #: Elements of keys and values that a context parallel rank passes on.
    passed_on: Number


def keeping_of(scenario: Scenario, layout: Layout) -> Keeping:
    """How a plan keeps tensors on a rank."""
    framework = table("frameworks")[scenario.training.framework]
    low = low_precision_of(scenario, framework)
    return Keeping(
        scenario.training,
        framework,
        layout.tensor,
        layout.sequence_share,
        layout.sequence,
        element_bytes(scenario.training),
        layout.expert_tensor,
        scenario.moe.imbalance,
        low.inputs if low else 0.0,
        low.activation_inputs if low else 0.0,
        scenario.parallelism.context_latent,
        adapters_of(scenario.training, framework),
    )


def block_activations(block: Block, keeping: Keeping) -> BlockActivations:
    """What one block keeps on one rank."""
    training, share = keeping.training, keeping.share
    stream = share if keeping.widened == 1 else share * keeping.widened
    mixing, ffn = mixer_kept(block.mixer, keeping), ffn_kept(block.ffn, keeping)
    norms = _norms(block, keeping)
    masks = dropout_masks(block.hidden, block.input_norms, share) if training.dropout else 0.0
    layer = layer_bytes(norms, masks, mixing.tensors, mixing.scores, ffn.tensors)
    if keeping.cast_input:
        layer = reduce(add_token_bytes, (_norms_cast(block, keeping), mixing.cast, ffn.cast), layer)
    if keeping.adapters:
        layer = reduce(add_token_bytes, adapter_bytes(block, keeping.adapters, keeping.tensor, share), layer)
    transient = transient_bytes(block.hidden, stream, ffn.backward if block.has_ffn else mixing.backward)
    if training.recompute not in ("full", "op-level"):
        return BlockActivations(layer, transient, mixing.passed_on)
    working = working_set_bytes(layer, transient, block.hidden, stream, int(_reads_stream(block, keeping)))
    checkpoint = checkpoint_bytes(block.hidden, stream, 2.0)
    if training.recompute == "full":
        return BlockActivations(checkpoint, working, mixing.passed_on)
    selected = _selected(block, mixing, ffn, keeping)
    return BlockActivations(
        add_token_bytes(checkpoint, selected), without_selected(working, selected), mixing.passed_on
    )


def _reads_stream(block: Block, keeping: Keeping) -> bool:
    """Whether norms keep the residual stream itself: fused ones do, and LayerNorm in frozen blocks."""
    return keeping.framework["norm_input"] == 2 or (not keeping.trained and block.norm_vectors == 2)


def _norms(block: Block, keeping: Keeping) -> Number:
    """What norms keep, and their outputs where a matrix reads them: a norm behind a part feeds the residual stream."""
    framework, share, hidden = keeping.framework, keeping.share, block.hidden
    inputs, copies = framework["norm_input"], framework["norm_copy"]
    if not keeping.trained:
        inputs, copies = 2.0 if _reads_stream(block, keeping) else inputs, 0
    if inputs == 2:
        inputs *= keeping.widened
    if keeping.element == 4:
        copies *= 2
    output = 0 if keeping.cheap_again else keeping.element
    if keeping.trained:
        norms = norm_bytes(hidden, block.input_norms, inputs, copies, output, share)
    else:
        read = [keeping.keeps_input("q", "k", "v"), keeping.keeps_input("gate", "up")]
        outputs = min(sum(read), block.input_norms) * output / block.input_norms
        norms = norm_bytes(hidden, block.input_norms, inputs, copies, outputs, share)
    if block.norms == block.input_norms:
        return norms
    return add_token_bytes(norms, norm_bytes(hidden, block.norms - block.input_norms, inputs, copies, 0, share))


def _norms_cast(block: Block, keeping: Keeping) -> Number:
    """Cast copies of the outputs of norms, where these are kept; a router reads the 16-bit one, which then stays."""
    if keeping.cheap_again:
        return 0.0
    experts, norms = block.experts, block.input_norms
    if experts is None:
        return keeping.cast(norm_outputs(block.hidden, norms, keeping.share), keeping.element)
    alone = keeping.cast(norm_outputs(block.hidden, norms - 1, keeping.share), keeping.element)
    if norms > 1 and experts.dense_part() is None:
        return alone
    return add_token_bytes(alone, keeping.cast(norm_outputs(block.hidden, 1, keeping.share), 0.0))


def _selected(block: Block, mixing: Kept, ffn: Kept, keeping: Keeping) -> Number:
    """Outputs that recomputation by operator keeps; the last matrix of a block is among them."""
    last = checkpoint_bytes(block.hidden, keeping.share, keeping.element)
    return add_token_bytes(add_token_bytes(mixing.selected, ffn.selected), last)


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
    """Micro-batches that every rank holds of one of its two stages or the other under DualPipe."""
    return minimum(micro_batches, pipeline + 1)


@formula("F·(p − i)/(p + 1)", "micro-batches", _SCHEDULES["dualpipe"])
def in_flight_one_way(flight: Number, pipeline: Number, stage: Number) -> Number:
    """Those that are in one of the two stages of a rank: p − i in stage i, i + 1 in the other, when all are there."""
    return flight * (pipeline - stage) / (pipeline + 1)


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
