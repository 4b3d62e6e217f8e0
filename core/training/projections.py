"""The matrices of a block as a stack multiplies them: queries, keys and values in one, gate and up in one, or each."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.kinds.attention import GroupedAttention, width_of_heads
from ..model.kinds.feed_forward import FeedForward
from ..model.kinds.mixer import Matrix, present
from ..model.layers import Block
from ..numeric import Number


def projections(block: Block, tensor: Number, separate: bool) -> list[tuple[Matrix, bool]]:
    """The matrices of one rank that all tokens pass, or all of images, each with whether it is the first to read them.

    The router of routed experts is not among them: it is kept in 16 bits.
    """
    return list(_mixing(block, tensor, separate)) + list(_feeding(block, tensor, separate))


def added_gradients(block: Block) -> float:
    """Input gradients that separate matrices leave to be added up: of keys and values, and of the gate."""
    ffn = common_ffn(block)
    return (2.0 if type(block.mixer) is GroupedAttention else 0.0) + (1.0 if ffn and ffn.gated else 0.0)


def common_ffn(block: Block) -> FeedForward | None:
    """The dense feed-forward part of a block, or its shared experts; None where it has neither."""
    if isinstance(block.ffn, FeedForward):
        return block.ffn
    experts = block.experts
    return experts.shared() if experts and present(experts.shared_size) else None


def _mixing(block: Block, tensor: Number, separate: bool) -> Iterator[tuple[Matrix, bool]]:
    attention = block.mixer
    if not (separate and type(attention) is GroupedAttention):
        matrices = (*attention.text_projections(tensor), *attention.image_projections(tensor))
        yield from ((matrix, True) for matrix in matrices)
        return
    queries = width_of_heads(attention.local_heads(tensor), attention.head_dim)
    keys = attention.local_kv_heads(tensor)
    yield Matrix("query", block.hidden, queries), True
    yield Matrix("key", block.hidden, width_of_heads(keys, attention.head_dim)), False
    yield Matrix("value", block.hidden, width_of_heads(keys, attention.value_dim)), False
    if attention.output_gate:
        yield Matrix("gate", block.hidden, queries), False
    yield attention.projections(tensor)[1], True


def _feeding(block: Block, tensor: Number, separate: bool) -> Iterator[tuple[Matrix, bool]]:
    ffn, experts = common_ffn(block), block.experts
    if separate and ffn:
        if ffn.gated:
            yield Matrix("FFN gate", block.hidden, ffn.local_size(tensor)), True
        yield Matrix("FFN up", block.hidden, ffn.local_size(tensor)), not ffn.gated
        yield ffn.projections(tensor)[1], True
        return
    matrices = experts.shared_projections(tensor) if experts else block.ffn.projections(tensor)
    yield from ((matrix, True) for matrix in matrices)
