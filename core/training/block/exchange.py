"""Traffic inside a block: tensor parallel collectives, keys and values of context parallel ranks."""

from __future__ import annotations

from dataclasses import replace

from ...machine.collectives import collective
from ...model.kinds.attention import heads_width
from ...model.kinds.mixer import Heads, present
from ...numeric import Number, is_array
from ...sums import add_seconds, times_seconds
from ..overlap import (
    elements,
    exchanged_elements,
    exchanged_kv_heads,
    exposed_behind,
    exposed_in_chunks,
    exposed_ring,
    half,
    mean_head,
    pointwise_bytes,
    ring_seconds,
)
from .passes import Pass
from .work import Work


def with_tensor_traffic(work: Work, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
    """Exposed tensor parallel collectives: a pair for each part that adds to the residual stream, and pass."""
    layout, overlap = work.layout, work.overlap
    if not is_array(layout.tensor) and layout.tensor == 1:
        return forward, backward
    kappa = work.machine.rates.kappa
    buffer = pointwise_bytes(2.0, elements(layout.tokens, work.block.hidden, 1.0))
    count = tensor_pairs(work)
    if layout.sp:
        gather = collective("all-gather", buffer, layout.tensor_group, layout.fabric).seconds
        scatter = collective("reduce-scatter", buffer, layout.tensor_group, layout.fabric).seconds
        ahead = back = times_seconds(count, add_seconds(gather, scatter))
        hidden = times_seconds(count, gather)
    else:
        ahead = times_seconds(count, collective("all-reduce", buffer, layout.tensor_group, layout.fabric).seconds)
        back, hidden = (0.0, ahead) if overlap.tp_backward else (ahead, 0.0)
    traffic_back = add_seconds(back, hidden)
    traffic = ahead
    if overlap.tp_forward and layout.sp:
        ahead = exposed_in_chunks(ahead, forward.matrices, layout.tensor, kappa)
        back = exposed_in_chunks(back, backward.matrices, layout.tensor, kappa)
    back = add_seconds(back, exposed_behind(hidden, half(backward.matrices), kappa))
    return (
        replace(forward, tensor=ahead, tensor_traffic=traffic),
        replace(backward, tensor=back, tensor_traffic=traffic_back),
    )


def tensor_pairs(work: Work) -> float:
    """Pairs of tensor parallel collectives of a pass; routed experts alone need none under sequence parallelism."""
    block = work.block
    experts = block.experts
    alone = experts is not None and work.layout.sp and not block.parallel and not present(experts.shared_size)
    return float(block.joins - alone)


def context_heads(work: Work) -> Heads | None:
    """Heads of the attention kernel of a block on one rank, of which keys and values travel; None without one."""
    found = [mixer.heads_on(work.layout.tensor) for mixer in work.block.mixer.cores()]
    return next((heads for heads in found if heads), None)


def context_sent(work: Work) -> Number:
    """Bytes a rank sends to its context parallel group in one forward pass."""
    layout, heads = work.layout, context_heads(work)
    if heads is None or (not is_array(layout.context) and layout.context == 1):
        return 0.0
    if layout.context_scheme != "ulysses":
        return collective("all-gather", _keys_and_values(work, heads), layout.context_group, layout.fabric).sent
    exchanged = exchanged_kv_heads(heads.keys, layout.context)
    width = heads_width(heads.queries, exchanged, mean_head(heads.key_dim, heads.value_dim))
    buffer = pointwise_bytes(2.0, elements(layout.tokens, elements(width, 2.0, 1.0), 1.0))
    return collective("all-to-all", buffer, layout.context_group, layout.fabric).sent


def _keys_and_values(work: Work, heads: Heads) -> Number:
    layout = work.layout
    width = exchanged_elements(heads.keys, heads.key_dim, heads.value_dim)
    return pointwise_bytes(2.0, elements(layout.micro_batch, layout.sequence, width))


def _exchange(work: Work, heads: Number, width: Number) -> Number:
    """Seconds of an all-to-all that turns a chunk of the sequence of some heads into whole sequences of fewer."""
    layout = work.layout
    local = pointwise_bytes(2.0, elements(layout.tokens, heads, width))
    return collective("all-to-all", local, layout.context_group, layout.fabric).seconds


def with_context_traffic(work: Work, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
    """Exposed traffic of keys and values, or of the heads that change places."""
    layout, rates = work.layout, work.machine.rates
    heads = context_heads(work)
    if heads is None or (not is_array(layout.context) and layout.context == 1):
        return forward, backward
    if layout.context_scheme == "ulysses":
        exchanged = exchanged_kv_heads(heads.keys, layout.context)
        width = mean_head(heads.key_dim, heads.value_dim)
        both = add_seconds(_exchange(work, heads.queries, width), _exchange(work, exchanged, width))
        cost = times_seconds(2.0, both)
        return (
            replace(forward, context=cost, context_traffic=cost),
            replace(backward, context=cost, context_traffic=cost),
        )
    ahead = collective("all-gather", _keys_and_values(work, heads), layout.context_group, layout.fabric).seconds
    back = times_seconds(2.0, ahead)
    if layout.context_scheme == "all-gather":
        return (
            replace(forward, context=ahead, context_traffic=ahead),
            replace(backward, context=back, context_traffic=back),
        )
    context, kappa, launch = layout.context, rates.kappa, rates.t_k
    return (
        replace(
            forward,
            context=exposed_ring(ahead, forward.attention, context, kappa, 4, launch),
            context_traffic=ring_seconds(ahead, context, 4, launch),
        ),
        replace(
            backward,
            context=exposed_ring(back, backward.attention, context, kappa, 8, launch),
            context_traffic=ring_seconds(back, context, 8, launch),
        ),
    )
