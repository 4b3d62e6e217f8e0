"""Attention over keys and values of heads: full, in a window or in chunks."""

from __future__ import annotations

from dataclasses import dataclass

from ...numeric import Number, maximum
from ...terms import Datum, formula, traced
from .. import parameters as count
from .mixer import Heads, Matrix, Mixer, Stream, kv_of_heads, pairs_flops, present
from .pairs import causal_pairs, chunked, passed_in_chunks, passed_in_windows, windowed


@formula("a/t", "heads")
def heads_share(heads: Number, tensor_parallel: Number) -> Number:
    """Query heads on one tensor parallel rank."""
    return heads / tensor_parallel


@formula("max(1, g/t)", "heads", "Ainslie 2023, arXiv 2305.13245", "")
def kv_heads_share(kv_heads: Number, tensor_parallel: Number) -> Number:
    """Key and value heads on one tensor parallel rank; a head is kept on several ranks when there are too few."""
    return maximum(1, kv_heads / tensor_parallel)


@formula("n·d", "elements")
def width_of_heads(heads: Number, head_dim: Number) -> Number:
    """Width of some heads side by side."""
    return heads * head_dim


@formula("(a/t + 2·max(1, g/t))·d", "elements")
def qkv_width(heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, gate: Number) -> Number:
    """Width of the fused query, key and value projection on one rank; an output gate is as wide as the queries."""
    return ((1 + gate) * heads + kv_heads) * head_dim + kv_heads * value_dim


@formula("F_pair", "FLOP", "two products for each pair and head: of width d for scores, of width d_v for values")
def pair_flops(heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """FLOPs of one pair of query and key in all heads."""
    return 2 * heads * (head_dim + value_dim)


@formula("(n + n')·d", "elements")
def heads_width(heads: Number, more_heads: Number, head_dim: Number) -> Number:
    """Width of two sets of heads side by side."""
    return (heads + more_heads) * head_dim


#: Pairs that a kernel computes for each pair inside a sliding window: the tiles at its edges are computed whole.
WINDOW_EDGES = traced(1.6, Datum("kernels.window_edges", "an estimate"))


@dataclass(frozen=True)
class GroupedAttention(Mixer):
    """Attention with query heads that share key and value heads (all, some or none of them).

    `window` limits how far a query looks back, or, when `chunked`, is the length of the chunks it looks at; 0: all.
    `qk_norm` counts the vectors of a norm on queries and keys (0: none, 1 gain, 2 gain and bias), which is over each
    head or, when `wide_norm`, over the whole projection. Other switches are 0 or 1.
    """

    hidden: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    value_dim: Number
    qkv_bias: int
    output_bias: int
    qk_norm: int
    rotary: bool
    window: Number = 0
    chunked: bool = False
    wide_norm: bool = False
    sinks: int = 0
    output_gate: int = 0
    inner_norm: int = 0

    def matrices(self) -> Number:
        return count.attention_matrices(
            self.hidden, self.heads, self.kv_heads, self.head_dim, self.value_dim, self.output_gate
        )

    def vectors(self) -> Number:
        return count.attention_vectors(
            count.qkv_biases(self.heads, self.kv_heads, self.head_dim, self.value_dim, self.output_gate),
            self.qkv_bias,
            self.hidden,
            self.output_bias,
            self._norm_vectors(),
            self.heads,
            self.sinks,
        )

    def _norm_vectors(self) -> Number:
        queries, keys = (self.heads, self.kv_heads) if self.wide_norm else (1, 1)
        return count.attention_norms(queries, keys, self.head_dim, self.qk_norm, self.inner_norm, self.hidden)

    def share(self, tp: Number) -> Number:
        return count.attention_share(
            self.hidden, self.heads, self.kv_heads, self.head_dim, self.value_dim, self.output_gate, tp
        )

    def local_heads(self, tp: Number) -> Number:
        return heads_share(self.heads, tp)

    def local_kv_heads(self, tp: Number) -> Number:
        return kv_heads_share(self.kv_heads, tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        heads, kv_heads = self.local_heads(tp), self.local_kv_heads(tp)
        fused = qkv_width(heads, kv_heads, self.head_dim, self.value_dim, self.output_gate)
        return (
            Matrix("QKV", self.hidden, fused),
            Matrix("attention output", width_of_heads(heads, self.value_dim), self.hidden),
        )

    def heads_on(self, tp: Number) -> Heads | None:
        return Heads(self.local_heads(tp), self.local_kv_heads(tp), self.head_dim, self.value_dim)

    @property
    def core_name(self) -> str:
        if not self.limited:
            return "attention"
        return "attention in chunks" if self.chunked else "attention in a window"

    @property
    def edge_work(self) -> float:
        return WINDOW_EDGES if self.limited and not self.chunked else 1.0

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        heads = self.local_heads(tp)
        queries = heads_width(heads, self.local_kv_heads(tp), self.head_dim)
        values = width_of_heads(heads, self.value_dim)
        streams = [
            (self.rotary, Stream(queries, 4.0, 4.0)),
            (self.qk_norm, Stream(queries, 4.0, 10.0, 2, 2)),
            (self.output_gate, Stream(values, 6.0, 10.0)),
            (self.inner_norm, Stream(values, 4.0, 10.0, 1, 2)),
        ]
        return tuple(stream for there, stream in streams if there)

    def kv_elements(self) -> Number:
        return kv_of_heads(self.kv_heads, self.head_dim, self.value_dim)

    def kv_share(self, tp: Number) -> Number:
        return kv_of_heads(self.local_kv_heads(tp), self.head_dim, self.value_dim)

    def scale_group(self) -> Number:
        return self.head_dim

    def kv_heads_to_split(self) -> Number:
        return self.kv_heads

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.heads,)

    @property
    def limited(self) -> bool:
        """Whether a query looks only at a window or a chunk."""
        return present(self.window)

    @property
    def kv_limit(self) -> Number | None:
        return self.window if self.limited else None

    def pairs(self, tokens: Number, context: Number) -> Number:
        """Pairs of query and key of `tokens` new tokens of one sequence over `context` cached ones."""
        if not self.limited:
            return causal_pairs(tokens, context)
        return (chunked if self.chunked else windowed)(tokens, context, self.window)

    def passed_tokens(self, sequence: Number, context_parallel: Number) -> Number:
        if not self.limited:
            return sequence
        if self.chunked:
            return passed_in_chunks(sequence, self.window, context_parallel)
        return passed_in_windows(sequence, self.window)

    def pair_flops(self) -> Number:
        return pair_flops(self.heads, self.head_dim, self.value_dim)

    @property
    def looks_back_fully(self) -> bool:
        return not self.limited

    def core_flops(self, tokens: Number, context: Number) -> Number:
        return pairs_flops(self.pair_flops(), self.pairs(tokens, context))
