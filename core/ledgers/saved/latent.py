"""Latent attention, with keys and values of heads made from the latent as training computes it."""

from __future__ import annotations

from ...model.kinds.attention import width_of_heads
from ...model.kinds.latent import LatentAttention
from ...numeric import Number
from ...sums import add_token_bytes
from ...terms import formula
from .attention import output_cast, scores_kept
from .keeping import TENSORS, Keeping, Kept, mixer_kept

_SOURCE = "tensors saved for backward, counted; DeepSeek-V2, arXiv 2405.04434"


@formula("c_q, c_kv", "B/token", _SOURCE)
def latents_bytes(q_rank: Number, kv_rank: Number, rope_dim: Number, share: Number, element: Number) -> Number:
    """Compressed queries, latent and shared rotary key."""
    return element * (q_rank + kv_rank + rope_dim) * share


@formula("q, k, v, o", "B/token", _SOURCE)
def expanded_bytes(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number, element: Number) -> Number:
    """Queries, keys, values and output of the heads on one rank."""
    return 2 * element * heads * (nope_dim + rope_dim + value_dim)


@formula("o", "B/token", _SOURCE)
def attention_output(heads: Number, value_dim: Number, element: Number) -> Number:
    """Output of the heads on one rank, where queries, keys and values are computed again."""
    return element * heads * value_dim


@formula("index", "B/token", TENSORS, "scores of the index")
def index_bytes(index_heads: Number, index_dim: Number, topk: Number, element: Number) -> Number:
    """Queries, key and weights of the index, and the places of the keys it picked."""
    return element * (index_heads * index_dim + index_dim + index_heads) + 4 * topk


@formula("selected", "B/token", "every second matrix product, and attention with its log-sum-exp")
def selected_latent(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number, element: Number) -> Number:
    """Outputs that recomputation by operator keeps: queries, attention with its log-sum-exp."""
    return element * heads * (nope_dim + rope_dim + value_dim) + 4 * heads


@mixer_kept.register
def _(mixer: LatentAttention, keeping: Keeping) -> Kept:
    heads, element = mixer.local_heads(keeping.tensor), keeping.element
    sizes = (mixer.nope_dim, mixer.rope_dim, mixer.value_dim)
    expanded = expanded_bytes(heads, *sizes, element)
    held = attention_output(heads, mixer.value_dim, element) if keeping.expanded_again else expanded
    kept = add_token_bytes(latents_bytes(mixer.q_rank, mixer.kv_rank, mixer.rope_dim, keeping.share, element), held)
    if mixer.indexes:
        kept = add_token_bytes(kept, index_bytes(mixer.index_heads, mixer.index_dim, mixer.index_topk, element))
    selected = selected_latent(heads, *sizes, element) if keeping.by_operator else 0.0
    passed = mixer.passed_on(keeping.tensor, keeping.latent)
    cast = output_cast(width_of_heads(heads, mixer.value_dim), keeping)
    return Kept(kept, scores_kept(heads, keeping), expanded, selected, passed, cast)
