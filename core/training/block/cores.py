"""Cores of token mixing: attention by a flash kernel or unfused, and recurrences in chunks."""

from __future__ import annotations

from ...machine import kernels
from ...model.kinds.mixer import Heads, Mixer
from ...numeric import Number
from ...sums import add_bytes, times_seconds, total_seconds
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
    if not mixer.masked:
        return kernels.unmasked_pairs(layout.micro_batch, pairs, layout.context)
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
    keys = keys_of_chunk(mixer.keys_of(layout.sequence), layout.context)

    def seconds(fraction: Number, passes: float, tensors: float, launches: int) -> Number:
        moved = _flash_bytes(work, mixer, heads, tensors)
        peak, memory = machine.attention_peak, machine.memory_rate
        shape = (head_rate, rates.s_half, keys, passes, moved, memory, launches, rates.t_k)
        return kernels.flash_seconds(flops, peak, fraction, *shape)

    ahead = work.seen(seconds(rates.e_fa_forward, 1.0, 1.0, 1))
    back = work.seen(seconds(rates.e_fa_backward, BACKWARD_PASSES, 2.0, 3))
    moved = _flash_bytes(work, mixer, heads, 1.0)
    return Core(mixer.core_name, flops, moved, ahead, back, BACKWARD_PASSES, 2.0, "compute")


def _flash_bytes(work: Work, mixer: Mixer, heads: Heads, tensors: float) -> Number:
    tokens = work.layout.tokens
    if mixer.masked:
        return kernels.flash_bytes(tokens, *heads, tensors, 1.0)
    queries = kernels.flash_bytes(tokens, heads.queries, 0.0, heads.key_dim, heads.value_dim, tensors, 1.0)
    keys = kernels.flash_bytes(work.image_tokens, 0.0, heads.keys, heads.key_dim, heads.value_dim, tensors, 1.0)
    return add_bytes(queries, keys)


def _unfused(work: Work, mixer: Mixer, heads: Heads) -> Core:
    """Two batched products and byte-bound softmax and dropout over the score matrix; Megatron-LM kernels."""
    layout, machine, kept = work.layout, work.machine, work.machine.kept
    rows = keys_of_chunk(layout.sequence, layout.context)
    keys = mixer.keys_of(layout.sequence)
    batch = elements(layout.micro_batch, heads.queries, 1.0)
    aligned = machine.alignment(heads.key_dim, heads.value_dim) if machine.rates.alignment else None
    scores = kept.matrix(rows, keys, heads.key_dim, batch, aligned=aligned).seconds
    values = kept.matrix(rows, heads.value_dim, keys, batch, aligned=aligned).seconds
    size = elements(batch, rows, keys)
    softmax, softmax_back = machine.stream(pointwise_bytes(4.0, size)), machine.stream(pointwise_bytes(6.0, size))
    ahead, back = [scores, values, softmax], [scores, times_seconds(3.0, values), softmax_back]
    if work.training.dropout:
        mask = machine.stream(pointwise_bytes(5.0, size))
        ahead.append(mask)
        back.append(mask)
    causal = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
    pairs = causal if mixer.masked else core_pairs(work, mixer)
    flops = kernels.attention_flops(heads.queries, heads.key_dim, heads.value_dim, pairs)
    moved = kernels.unfused_bytes(layout.tokens, heads.queries, keys)
    forward, backward = work.seen(total_seconds(ahead)), work.seen(total_seconds(back))
    return Core(mixer.core_name, flops, moved, forward, backward, 2.0, 2.0, "memory")


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
