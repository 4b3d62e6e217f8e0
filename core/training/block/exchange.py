"""Traffic inside a block: tensor parallel collectives, keys and values of context parallel ranks."""

from __future__ import annotations

from dataclasses import replace

from ...machine.collectives import collective
from ...model.kinds.attention import heads_width
from ...model.kinds.mixer import Heads, Mixer, present
from ...numeric import Number, is_array
from ...sums import add_elements, add_seconds, times_seconds
from ..overlap import (
    elements,
    exchanged_kv_heads,
    exposed_behind,
    exposed_in_chunks,
    exposed_ring,
    half,
    mean_head,
    pointwise_bytes,
    ring_seconds,
    where_there,
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


def passing(work: Work) -> tuple[Mixer, Heads] | None:
    """What has the attention kernel of a block whose keys and values travel, and its heads on one rank; None: none."""
    found = ((mixer, mixer.heads_on(work.layout.tensor)) for mixer in work.block.mixer.cores())
    return next(((mixer, heads) for mixer, heads in found if heads), None)


def context_sent(work: Work) -> Number:
    """Bytes a rank sends to its context parallel group in one forward pass."""
    layout, found = work.layout, passing(work)
    if found is None or (not is_array(layout.context) and layout.context == 1):
        return 0.0
    mixer, heads = found
    if layout.context_scheme != "ulysses":
        return collective("all-gather", _keys_and_values(work, mixer), layout.context_group, layout.fabric).sent
    exchanged = exchanged_kv_heads(heads.keys, layout.context)
    width = mean_head(heads.key_dim, heads.value_dim)
    if mixer.masked:
        changed = elements(layout.tokens, elements(heads_width(heads.queries, exchanged, width), 2.0, 1.0), 1.0)
    else:
        queries, keys = elements(heads.queries, width, 2.0), elements(exchanged, width, 2.0)
        changed = add_elements(elements(layout.tokens, queries, 1.0), elements(work.image_tokens, keys, 1.0))
    return collective("all-to-all", pointwise_bytes(2.0, changed), layout.context_group, layout.fabric).sent


def _keys_and_values(work: Work, mixer: Mixer) -> Number:
    """Bytes of the keys and values, or of the latents, that go around in one forward pass."""
    layout = work.layout
    width = mixer.passed_on(layout.tensor, work.scenario.parallelism.context_latent)
    return pointwise_bytes(2.0, elements(layout.micro_batch, passed_tokens(work, mixer), width))


def passed_tokens(work: Work, mixer: Mixer) -> Number:
    """Tokens of a sequence whose keys go around: a gathering gets all of them, however far a query looks."""
    layout = work.layout
    if layout.context_scheme == "all-gather" and mixer.masked:
        return layout.sequence
    return mixer.passed_tokens(layout.sequence, layout.context)


def _exchange(work: Work, heads: Number, width: Number, tokens: Number) -> Number:
    """Seconds of an all-to-all that turns a chunk of the sequence of some heads into whole sequences of fewer."""
    layout = work.layout
    local = pointwise_bytes(2.0, elements(tokens, heads, width))
    return collective("all-to-all", local, layout.context_group, layout.fabric).seconds


def with_context_traffic(work: Work, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
    """Exposed traffic of keys and values, or of the heads that change places."""
    layout = work.layout
    found = passing(work)
    if found is None or (not is_array(layout.context) and layout.context == 1):
        return forward, backward
    mixer, heads = found
    if layout.context_scheme == "ulysses":
        cost = _heads_change_places(work, mixer, heads)
        return _wholly_exposed(forward, cost), _wholly_exposed(backward, cost)
    passed = passed_tokens(work, mixer)
    if not present(passed):
        return forward, backward
    gather = collective("all-gather", _keys_and_values(work, mixer), layout.context_group, layout.fabric)
    ahead = where_there(passed, gather.seconds)
    back = times_seconds(2.0, ahead)
    if layout.context_scheme == "all-gather":
        return _wholly_exposed(forward, ahead), _wholly_exposed(backward, back)
    return _behind_attention(work, forward, passed, ahead, 4), _behind_attention(work, backward, passed, back, 8)


def _heads_change_places(work: Work, mixer: Mixer, heads: Heads) -> Number:
    """Seconds in which ranks get whole sequences of some heads, and give them back."""
    layout, width = work.layout, mean_head(heads.key_dim, heads.value_dim)
    exchanged = exchanged_kv_heads(heads.keys, layout.context)
    keys = layout.tokens if mixer.masked else work.image_tokens
    both = add_seconds(_exchange(work, heads.queries, width, layout.tokens), _exchange(work, exchanged, width, keys))
    return work.seen(times_seconds(2.0, both))


def _wholly_exposed(block: Pass, seconds: Number) -> Pass:
    return replace(block, context=seconds, context_traffic=seconds)


def _behind_attention(work: Work, block: Pass, passed: Number, seconds: Number, launches: int) -> Pass:
    """A pass in which what goes around a ring of ranks hides behind the attention kernel."""
    context, rates = work.layout.context, work.machine.rates
    exposed = exposed_ring(seconds, block.attention, context, rates.kappa, launches, rates.t_k)
    traffic = ring_seconds(seconds, context, launches, rates.t_k)
    return replace(block, context=where_there(passed, exposed), context_traffic=where_there(passed, traffic))
