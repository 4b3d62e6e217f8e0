"""The matrices of a block as a stack multiplies them: queries, keys and values in one, gate and up in one, or each."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.kinds.attention import width_of_heads
from ..model.kinds.mixer import Matrix
from ..model.layers import Block
from ..numeric import Number


def projections(block: Block, tensor: Number, separate: bool) -> list[tuple[Matrix, bool]]:
    """The matrices of one rank, each with whether it is the first to read its input."""
    if separate:
        return list(_separate(block, tensor))
    return [(matrix, True) for matrix in block.projections(tensor)]


def _separate(block: Block, tensor: Number) -> Iterator[tuple[Matrix, bool]]:
    attention, ffn = block.attention, block.feed_forward
    keys = width_of_heads(attention.local_kv_heads(tensor), attention.head_dim)
    _, output, _, down = block.projections(tensor)
    yield Matrix("query", block.hidden, width_of_heads(attention.local_heads(tensor), attention.head_dim)), True
    yield Matrix("key", block.hidden, keys), False
    yield Matrix("value", block.hidden, keys), False
    yield output, True
    if ffn.gated:
        yield Matrix("FFN gate", block.hidden, ffn.local_size(tensor)), True
    yield Matrix("FFN up", block.hidden, ffn.local_size(tensor)), not ffn.gated
    yield down, True
