"""Cores of token mixing: attention by a flash kernel or unfused, and recurrences in chunks."""

from __future__ import annotations

from ...machine import kernels
from ...model.kinds.mixer import Heads, Mixer
from ...numeric import Number
from ...sums import times_seconds, total_seconds
from ...terms import Datum, traced
from ..overlap import elements, keys_of_chunk, pointwise_bytes
from .passes import Core
from .work import Work

#: Backward over forward work of a core: both gradients of each product, and what was not kept computed again.
BACKWARD_PASSES = traced(2.5, Datum("kernels.backward_passes", "five products for two: arXiv 2307.08691"))
#: Kernels of a core in chunks, forward and backward: sums of decays, states, products inside chunks, convolution.
CHUNK_KERNELS, CHUNK_KERNELS_BACK = 5, 10


def cores(work: Work) -> tuple[Core, ...]:
    """The cores of a block, one after the other."""
    return tuple(_core(work, mixer) for mixer in work.block.mixer.cores() if mixer.has_core)


def _core(work: Work, mixer: Mixer) -> Core:
    heads = mixer.heads_on(work.layout.tensor)
    if heads is None:
        return _recurrent(work, mixer)
    if work.training.attention == "unfused":
        return _unfused(work, mixer, heads)
    return _flash(work, mixer, heads)


def core_pairs(work: Work, mixer: Mixer) -> Number:
    """Pairs of query and key that the kernels of one rank compute for one micro-batch."""
    layout = work.layout
    causal = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
    if mixer.looks_back_fully:
        return causal
    pairs = mixer.pairs(layout.sequence, 0.0)
    return kernels.limited_pairs(layout.micro_batch, pairs, mixer.edge_work, layout.context, causal)


def core_flops(work: Work, mixer: Mixer, heads: Heads) -> Number:
    """FLOPs of one forward pass of an attention core on one rank."""
    layout = work.layout
    flops = kernels.attention_flops(heads.queries, heads.key_dim, heads.value_dim, core_pairs(work, mixer))
    index = mixer.index_flops()
    if not index:
        return flops
    causal = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
    return kernels.with_index(flops, index, causal)


def _flash(work: Work, mixer: Mixer, heads: Heads) -> Core:
    layout, machine = work.layout, work.machine
    rates = machine.rates
    flops = core_flops(work, mixer, heads)
    head_rate = kernels.head_rate(heads.key_dim, rates.head_step, rates.small_head)
    keys = keys_of_chunk(layout.sequence, layout.context)

    def seconds(fraction: Number, passes: float, tensors: float, launches: int) -> Number:
        moved = kernels.flash_bytes(layout.tokens, *heads, tensors, 1.0)
        peak, memory = machine.attention_peak, machine.memory_rate
        shape = (head_rate, rates.s_half, keys, passes, moved, memory, launches, rates.t_k)
        return kernels.flash_seconds(flops, peak, fraction, *shape)

    ahead, back = seconds(rates.e_fa_forward, 1.0, 1.0, 1), seconds(rates.e_fa_backward, BACKWARD_PASSES, 2.0, 3)
    moved = kernels.flash_bytes(layout.tokens, *heads, 1.0, 1.0)
    return Core(mixer.core_name, flops, moved, ahead, back, BACKWARD_PASSES, 2.0, "compute")


def _unfused(work: Work, mixer: Mixer, heads: Heads) -> Core:
    """Two batched products and byte-bound softmax and dropout over the score matrix; Megatron-LM kernels."""
    layout, machine, kept = work.layout, work.machine, work.machine.kept
    rows = keys_of_chunk(layout.sequence, layout.context)
    batch = elements(layout.micro_batch, heads.queries, 1.0)
    aligned = machine.alignment(heads.key_dim, heads.value_dim) if machine.rates.alignment else None
    scores = kept.matrix(rows, layout.sequence, heads.key_dim, batch, aligned=aligned).seconds
    values = kept.matrix(rows, heads.value_dim, layout.sequence, batch, aligned=aligned).seconds
    size = elements(batch, rows, layout.sequence)
    softmax, softmax_back = machine.stream(pointwise_bytes(4.0, size)), machine.stream(pointwise_bytes(6.0, size))
    ahead, back = [scores, values, softmax], [scores, times_seconds(3.0, values), softmax_back]
    if work.training.dropout:
        mask = machine.stream(pointwise_bytes(5.0, size))
        ahead.append(mask)
        back.append(mask)
    flops = kernels.attention_flops(
        heads.queries,
        heads.key_dim,
        heads.value_dim,
        kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context),
    )
    moved = kernels.unfused_bytes(layout.tokens, heads.queries, layout.sequence)
    return Core(mixer.core_name, flops, moved, total_seconds(ahead), total_seconds(back), 2.0, 2.0, "memory")


def _recurrent(work: Work, mixer: Mixer) -> Core:
    """A recurrence in chunks by its FLOPs or its bytes; a scan by its bytes."""
    layout, machine = work.layout, work.machine
    flops = kernels.shared_flops(mixer.executed_core_flops(layout.tokens, 0.0), layout.tensor)
    moved = pointwise_bytes(2.0, elements(layout.tokens, mixer.streamed(layout.tensor), 1.0))
    common = (0.0 if mixer.scans else flops, machine.kept_rate, moved, machine.memory_rate)
    launch = machine.rates.t_k
    return Core(
        mixer.core_name,
        flops,
        moved,
        kernels.chunked_seconds(*common, 1.0, CHUNK_KERNELS, launch),
        kernels.chunked_seconds(*common, BACKWARD_PASSES, CHUNK_KERNELS_BACK, launch),
        BACKWARD_PASSES,
        BACKWARD_PASSES,
        "memory",
    )
