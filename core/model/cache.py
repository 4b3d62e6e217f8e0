"""Keys, values and states that a sequence keeps in a model of any kinds of layers.

Sources: sizes of each kind with the kind; paging, Kwon 2023 (PagedAttention, arXiv 2309.06180).
"""

from __future__ import annotations

from ..numeric import Number, ceil, minimum
from ..terms import formula


@formula("KV", "elements")
def layers_elements(layers: Number, each: Number) -> Number:
    """Elements of some equal layers."""
    return layers * each


@formula("KV", "B/token")
def token_bytes(elements: Number, width: Number) -> Number:
    """Cache of one token in the whole model, windows not regarded."""
    return elements * width


@formula("n", "tokens")
def kept_tokens(tokens: Number, limit: Number) -> Number:
    """Tokens of a sequence that a layer with a window keeps."""
    return minimum(tokens, limit)


@formula("n", "tokens", "PagedAttention, arXiv 2309.06180")
def paged(tokens: Number, page: Number) -> Number:
    """Tokens rounded up to whole pages."""
    return ceil(tokens / page) * page


@formula("KV_seq", "B")
def layers_cache_bytes(layers: Number, tokens: Number, elements: Number, width: Number) -> Number:
    """Cache of one sequence in some equal layers."""
    return layers * tokens * elements * width


@formula("S_seq", "B", "the last inputs of convolutions stay in 16 bits")
def layers_state_bytes(layers: Number, recurrent: Number, convolution: Number, width: Number) -> Number:
    """States of one sequence in some equal layers."""
    return layers * (recurrent * width + 2 * convolution)
