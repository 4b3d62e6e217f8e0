"""Latent attention: keys and values are cached as one compressed vector a token, with an optional index of keys.

Sources: DeepSeek-V2, arXiv 2405.04434, section 2.1; sparse attention with an index: DeepSeek-V3.2, arXiv 2512.02556.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...numeric import Number, where
from ...sums import add_elements, add_flops, add_parameters
from ...terms import formula
from .attention import heads_share
from .mixer import Heads, Matrix, Mixer, Stream, pairs_flops, present
from .pairs import causal_pairs, windowed

_SOURCE = "arXiv 2405.04434, section 2.1"
_INDEX = "arXiv 2512.02556"


@formula("P_q", "parameters", _SOURCE)
def query_matrices(hidden: Number, q_rank: Number, heads: Number, nope_dim: Number, rope_dim: Number) -> Number:
    """Parameters of the query projections of one layer; q_rank 0: in one step, without a compressed query."""
    return where(q_rank > 0, hidden * q_rank, 0) + where(q_rank > 0, q_rank, hidden) * heads * (nope_dim + rope_dim)


@formula("P_down", "parameters", _SOURCE)
def latent_matrix(hidden: Number, kv_rank: Number, rope_dim: Number) -> Number:
    """Parameters of the projection of one layer to what is cached."""
    return hidden * (kv_rank + rope_dim)


@formula("P_up", "parameters", _SOURCE)
def expanding_matrices(kv_rank: Number, heads: Number, nope_dim: Number, value_dim: Number) -> Number:
    """Parameters of the projection of one layer from the latent to keys and values of all heads."""
    return kv_rank * heads * (nope_dim + value_dim)


@formula("P_o", "parameters", _SOURCE)
def output_matrix(heads: Number, value_dim: Number, hidden: Number) -> Number:
    """Parameters of the output projection of one layer."""
    return heads * value_dim * hidden


@formula("P_mla", "parameters", _SOURCE)
def latent_matrices(query: Number, down: Number, up: Number, output: Number) -> Number:
    """Parameters of the matrices of latent attention in one layer."""
    return query + down + up + output


@formula("P_mla,vec", "parameters", _SOURCE)
def latent_vectors(
    q_rank: Number, kv_rank: Number, rope_dim: Number, qkv_bias: Number, output_bias: Number, hidden: Number
) -> Number:
    """Parameters of the norms of both latents, and of biases on the downward and on the output projections."""
    return q_rank + kv_rank + qkv_bias * (q_rank + kv_rank + rope_dim) + output_bias * hidden


@formula("ψ_mla", "parameters", "the latent is kept whole on every rank")
def latent_share(
    hidden: Number, q_rank: Number, query: Number, down: Number, up: Number, output: Number, tensor_parallel: Number
) -> Number:
    """Matrix parameters that one tensor parallel rank holds: downward projections whole, the others by heads."""
    return hidden * q_rank + down + (query - hidden * q_rank + up + output) / tensor_parallel


@formula("KV", "elements", _SOURCE)
def latent_elements(kv_rank: Number, rope_dim: Number) -> Number:
    """Cached elements of one token in one layer: the latent and the rotary key that all heads share."""
    return kv_rank + rope_dim


@formula("a·(2(d_n+d_r)+d_v)/t", "elements", "queries, keys and values put together of their parts and rotated")
def latent_heads_width(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number) -> Number:
    """Width of what latent attention puts together for its core."""
    return heads * (2 * (nope_dim + rope_dim) + value_dim)


@formula("F_pair", "FLOP", _SOURCE)
def expanded_pair_flops(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number) -> Number:
    """FLOPs of a pair of query and key with keys and values of heads, as in training and for prompts."""
    return 2 * heads * (nope_dim + rope_dim + value_dim)


@formula("F_pair", "FLOP", _SOURCE)
def absorbed_pair_flops(heads: Number, kv_rank: Number, rope_dim: Number) -> Number:
    """FLOPs of a pair of query and key when the latent itself is attended to, as in decoding."""
    return 2 * heads * (2 * kv_rank + rope_dim)


@formula("F_up", "FLOP", _SOURCE)
def expanding_flops(context: Number, up: Number) -> Number:
    """FLOPs of making keys and values of heads again from the latents of cached tokens."""
    return 2 * context * up


@formula("P_idx", "parameters", _INDEX)
def index_matrices(hidden: Number, q_rank: Number, index_heads: Number, index_dim: Number) -> Number:
    """Parameters of the index of one layer: its queries from the compressed query, one key, weights of its heads."""
    return q_rank * index_heads * index_dim + hidden * index_dim + hidden * index_heads


@formula("P_idx,vec", "parameters", _INDEX)
def index_vectors(index_dim: Number) -> Number:
    """Parameters of the norm of the index key, with bias."""
    return 2 * index_dim


@formula("F_pair,idx", "FLOP", _INDEX)
def index_pair_flops(index_heads: Number, index_dim: Number) -> Number:
    """FLOPs of scoring one earlier token."""
    return 2 * index_heads * index_dim


@dataclass(frozen=True)
class LatentAttention(Mixer):
    """Latent attention; with `index_topk` a query attends only to that many keys, which an index picks.

    `indexer` says whether the layer has an index of its own or uses an earlier layer's.
    """

    part = "latent"

    hidden: Number
    heads: Number
    q_rank: Number
    kv_rank: Number
    nope_dim: Number
    rope_dim: Number
    value_dim: Number
    qkv_bias: int = 0
    output_bias: int = 0
    index_heads: Number = 0
    index_dim: Number = 0
    index_topk: Number = 0
    indexer: bool = True
    core_name = "latent attention"

    @property
    def indexes(self) -> bool:
        """Whether the layer holds an index."""
        return self.indexer and present(self.index_heads)

    def _query(self) -> Number:
        return query_matrices(self.hidden, self.q_rank, self.heads, self.nope_dim, self.rope_dim)

    def _down(self) -> Number:
        return latent_matrix(self.hidden, self.kv_rank, self.rope_dim)

    def expanding(self) -> Number:
        """Parameters of the projection from the latent to keys and values of heads."""
        return expanding_matrices(self.kv_rank, self.heads, self.nope_dim, self.value_dim)

    def _output(self) -> Number:
        return output_matrix(self.heads, self.value_dim, self.hidden)

    def _index(self) -> Number:
        return index_matrices(self.hidden, self.q_rank, self.index_heads, self.index_dim)

    def matrices(self) -> Number:
        attention = latent_matrices(self._query(), self._down(), self.expanding(), self._output())
        return add_parameters(attention, self._index()) if self.indexes else attention

    def vectors(self) -> Number:
        attention = latent_vectors(
            self.q_rank, self.kv_rank, self.rope_dim, self.qkv_bias, self.output_bias, self.hidden
        )
        return add_parameters(attention, index_vectors(self.index_dim)) if self.indexes else attention

    def share(self, tp: Number) -> Number:
        attention = latent_share(
            self.hidden, self.q_rank, self._query(), self._down(), self.expanding(), self._output(), tp
        )
        return add_parameters(attention, self._index()) if self.indexes else attention

    def local_heads(self, tp: Number) -> Number:
        return heads_share(self.heads, tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        heads = self.local_heads(tp)
        compressed = present(self.q_rank)
        query = Matrix(
            "query up" if compressed else "query",
            self.q_rank if compressed else self.hidden,
            heads * (self.nope_dim + self.rope_dim),
            expands=compressed,
        )
        down = Matrix(
            "latent down", self.hidden, self.kv_rank + self.rope_dim + (self.q_rank if compressed else 0), True
        )
        up = Matrix("latent up", self.kv_rank, heads * (self.nope_dim + self.value_dim), expands=True)
        output = Matrix("attention output", heads * self.value_dim, self.hidden)
        index = (
            Matrix("index queries", self.q_rank, self.index_heads * self.index_dim, True),
            Matrix("index keys", self.hidden, self.index_dim + self.index_heads, True),
        )
        return (down, query, up, *(index if self.indexes else ()), output)

    def absorbed_projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of one rank when the latent itself is attended to: the upward ones go to queries and values."""
        heads = self.local_heads(tp)
        absorbed = (
            Matrix("absorbed keys", self.nope_dim, heads * self.kv_rank),
            Matrix("absorbed values", self.value_dim, heads * self.kv_rank),
        )
        first, query, _, *others = self.projections(tp)
        return (first, query, *absorbed, *others)

    def heads_on(self, tp: Number) -> Heads | None:
        heads = self.local_heads(tp)
        return Heads(heads, heads, self.nope_dim + self.rope_dim, self.value_dim)

    def passed_on(self, tp: Number, latent: bool) -> Number:
        return latent_elements(self.kv_rank, self.rope_dim) if latent else super().passed_on(tp, latent)

    def received_through(self, tp: Number) -> Matrix | None:
        width = self.local_heads(tp) * (self.nope_dim + self.value_dim)
        return Matrix("received latent up", self.kv_rank, width, received=True)

    def index_flops(self) -> Number:
        return index_pair_flops(self.index_heads, self.index_dim) if self.indexes else 0.0

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        heads = latent_heads_width(self.local_heads(tp), self.nope_dim, self.rope_dim, self.value_dim)
        return Stream(heads, 4.0, 6.0, 4, 4), Stream(self.q_rank + self.kv_rank, 4.0, 6.0, 2, 2)

    def kv_elements(self) -> Number:
        latent = latent_elements(self.kv_rank, self.rope_dim)
        return add_elements(latent, self.index_dim) if self.indexes else latent

    def kv_share(self, tp: Number) -> Number:
        return self.kv_elements()

    def index_elements(self) -> Number:
        return self.index_dim if self.indexes else 0.0

    def scale_group(self) -> Number:
        return latent_elements(self.kv_rank, self.rope_dim)

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.heads,)

    def pairs(self, tokens: Number, context: Number) -> Number:
        """Pairs of query and key that the core attends to."""
        if not present(self.index_topk):
            return causal_pairs(tokens, context)
        return windowed(tokens, context, self.index_topk)

    def _index_flops(self, tokens: Number, context: Number) -> Number:
        return pairs_flops(index_pair_flops(self.index_heads, self.index_dim), causal_pairs(tokens, context))

    def pair_flops(self) -> Number:
        return expanded_pair_flops(self.heads, self.nope_dim, self.rope_dim, self.value_dim)

    @property
    def looks_back_fully(self) -> bool:
        return not (present(self.index_topk) or self.indexes)

    def core_flops(self, tokens: Number, context: Number) -> Number:
        core = pairs_flops(self.pair_flops(), self.pairs(tokens, context))
        return add_flops(core, self._index_flops(tokens, context)) if self.indexes else core

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        return add_flops(self.core_flops(tokens, context), expanding_flops(context, self.expanding()))

    def decode_core_flops(self, context: Number) -> Number:
        return self.absorbed_core_flops(1, context)

    def absorbed_core_flops(self, tokens: Number, context: Number) -> Number:
        """FLOPs of the core when the latent itself is attended to; the matrices cost what they cost expanded."""
        pair = absorbed_pair_flops(self.heads, self.kv_rank, self.rope_dim)
        core = pairs_flops(pair, self.pairs(tokens, context))
        return add_flops(core, self._index_flops(tokens, context)) if self.indexes else core
