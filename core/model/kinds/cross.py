"""Attention of text to image tokens, whose keys and values are made once an image. Source: arXiv 2407.21783, 7.1."""

from __future__ import annotations

from dataclasses import dataclass

from ...numeric import Number, maximum
from ...terms import formula
from .attention import GroupedAttention, width_of_heads
from .mixer import Heads, Matrix, Stream, kv_of_heads, present
from .pairs import cross_pairs

_SOURCE = "arXiv 2407.21783, section 7.1"


@formula("P_cross,vec", "parameters", _SOURCE)
def gated_vectors(attention: Number) -> Number:
    """Vectors of a cross-attention layer: those of attention, and a gate each for it and its feed-forward part."""
    return attention + 2


@formula("P_q + P_o", "parameters", _SOURCE)
def across_matrices(hidden: Number, heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """Parameters that multiply text tokens: those of queries and of the output."""
    return hidden * heads * (head_dim + value_dim)


@formula("P_kv", "parameters", _SOURCE)
def image_matrices(hidden: Number, kv_heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """Parameters that multiply image tokens: those of keys and values."""
    return hidden * kv_heads * (head_dim + value_dim)


@formula("max(1, I)", "tokens")
def image_keys(images: Number) -> Number:
    """Keys that a query attends to."""
    return maximum(1.0, images)


@dataclass(frozen=True)
class CrossAttention(GroupedAttention):
    """Attention of text to the `images` tokens of a sequence's images; text alone has none to attend to.

    The matrices of keys and values multiply image tokens, once a sequence, and those of queries and output text.
    """

    images: Number = 0.0
    masked = False

    def vectors(self) -> Number:
        return gated_vectors(super().vectors())

    def text_matrices(self) -> Number:
        return across_matrices(self.hidden, self.heads, self.head_dim, self.value_dim)

    def image_matrices(self) -> Number:
        return image_matrices(self.hidden, self.kv_heads, self.head_dim, self.value_dim)

    def text_projections(self, tp: Number) -> tuple[Matrix, ...]:
        heads = self.local_heads(tp)
        return (
            Matrix("queries", self.hidden, width_of_heads(heads, self.head_dim)),
            Matrix("attention output", width_of_heads(heads, self.value_dim), self.hidden),
        )

    def image_projections(self, tp: Number) -> tuple[Matrix, ...]:
        if not present(self.images):
            return ()
        return (Matrix("image keys and values", self.hidden, self.image_share(tp), of_images=True),)

    def kv_elements(self) -> Number:
        return 0.0

    def kv_share(self, tp: Number) -> Number:
        return 0.0

    def image_elements(self) -> Number:
        return kv_of_heads(self.kv_heads, self.head_dim, self.value_dim)

    def image_share(self, tp: Number) -> Number:
        return kv_of_heads(self.local_kv_heads(tp), self.head_dim, self.value_dim)

    def heads_on(self, tp: Number) -> Heads | None:
        return super().heads_on(tp) if self.has_core else None

    @property
    def core_name(self) -> str:
        return "attention across to images"

    @property
    def looks_back_fully(self) -> bool:
        return False

    @property
    def has_core(self) -> bool:
        return present(self.images)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        # no rotary embedding; the norm of queries, whose keys are normed once an image
        return (Stream(width_of_heads(self.local_heads(tp), self.head_dim), 4.0, 10.0),) if self.qk_norm else ()

    def pairs(self, tokens: Number, context: Number) -> Number:
        return cross_pairs(tokens, self.images)

    def keys_of(self, tokens: Number) -> Number:
        return image_keys(self.images)

    def passed_tokens(self, sequence: Number, context_parallel: Number) -> Number:
        return self.images
