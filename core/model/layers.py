"""What a model is built of: kinds of attention and feed-forward parts, blocks, and groups of equal blocks.

The ledgers ask the kind. A new kind (latent attention, experts, windows) is a class with the same questions answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..numeric import Number, is_array, maximum
from ..terms import formula
from . import parameters as count
from .spec import ModelSpec


@dataclass(frozen=True)
class Matrix:
    """A linear layer on one rank: `inputs` x `outputs`, after tensor parallelism."""

    name: str
    inputs: Number
    outputs: Number
    #: Whether its input is the one an earlier matrix of the block has read already (fused stacks read it once).
    split: str = "column"


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
def qkv_width(heads: Number, kv_heads: Number, head_dim: Number) -> Number:
    """Width of the fused query, key and value projection on one rank."""
    return (heads + 2 * kv_heads) * head_dim


@formula("n_in·f/t", "elements")
def ffn_width(ffn_size: Number, tensor_parallel: Number, inputs: Number) -> Number:
    """Width of the first feed-forward projection on one rank; 2 inputs when gated, else 1."""
    return inputs * ffn_size / tensor_parallel


@dataclass(frozen=True)
class GroupedAttention:
    """Attention with query heads that share key and value heads (all, some or none of them)."""

    hidden: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    qkv_bias: int
    output_bias: int
    qk_norm: int
    rotary: bool

    def matrices(self) -> Number:
        return count.attention_matrices(self.hidden, self.heads, self.kv_heads, self.head_dim)

    def vectors(self) -> Number:
        return count.attention_vectors(
            self.hidden, self.heads, self.kv_heads, self.head_dim, self.qkv_bias, self.output_bias, self.qk_norm
        )

    def share(self, tp: Number) -> Number:
        return count.attention_share(self.hidden, self.heads, self.kv_heads, self.head_dim, tp)

    def local_heads(self, tp: Number) -> Number:
        return heads_share(self.heads, tp)

    def local_kv_heads(self, tp: Number) -> Number:
        return kv_heads_share(self.kv_heads, tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        heads, kv_heads = self.local_heads(tp), self.local_kv_heads(tp)
        return (
            Matrix("QKV", self.hidden, qkv_width(heads, kv_heads, self.head_dim)),
            Matrix("attention output", width_of_heads(heads, self.head_dim), self.hidden),
        )


@dataclass(frozen=True)
class FeedForward:
    """A dense feed-forward part: gated (three matrices) or plain (two)."""

    hidden: Number
    ffn_size: Number
    gated: int
    mlp_bias: int

    @property
    def matrix_count(self) -> int:
        return 2 + self.gated

    def matrices(self) -> Number:
        return count.ffn_matrices(self.hidden, self.ffn_size, self.matrix_count)

    def vectors(self) -> Number:
        return count.ffn_vectors(self.hidden, self.ffn_size, self.matrix_count, self.mlp_bias)

    def share(self, tp: Number) -> Number:
        return count.ffn_share(self.matrices(), tp)

    def local_size(self, tp: Number) -> Number:
        return ffn_width(self.ffn_size, tp, 1)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return (
            Matrix("FFN up", self.hidden, ffn_width(self.ffn_size, tp, 1 + self.gated)),
            Matrix("FFN down", self.local_size(tp), self.hidden),
        )


@dataclass(frozen=True)
class Block:
    """One decoder block: attention, feed-forward part and their norms."""

    attention: GroupedAttention
    feed_forward: FeedForward
    #: Norms in the block: 2, or 1 where attention and feed-forward part stand side by side.
    norms: int
    #: Vectors of one norm: 1 RMSNorm, 2 LayerNorm.
    norm_vectors: int

    @property
    def hidden(self) -> Number:
        return self.attention.hidden

    @property
    def parallel(self) -> bool:
        """Attention and feed-forward part side by side behind one norm."""
        return self.norms == 1

    def norm_parameters(self) -> Number:
        return count.norm_vectors(self.hidden, self.norms, self.norm_vectors)

    def parameters(self) -> Number:
        attention, ffn = self.attention, self.feed_forward
        return count.block_parameters(
            attention.matrices(), attention.vectors(), ffn.matrices(), ffn.vectors(), self.norm_parameters()
        )

    def matrix_parameters(self) -> Number:
        """Parameters that multiply a token: the matrices, without norms and biases."""
        return count.block_parameters(self.attention.matrices(), 0, self.feed_forward.matrices(), 0, 0)

    def share(self, tp: Number) -> Number:
        """Parameters of the block that one tensor parallel rank holds."""
        vectors = count.block_parameters(
            0, self.attention.vectors(), 0, self.feed_forward.vectors(), self.norm_parameters()
        )
        return count.block_share(self.attention.share(tp), self.feed_forward.share(tp), vectors)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return self.attention.projections(tp) + self.feed_forward.projections(tp)


@dataclass(frozen=True)
class Model:
    """A decoder: equal blocks in groups, embedding, head, learned positions and the final norm."""

    spec: ModelSpec
    #: Blocks in groups of equal ones: (how many, the block).
    groups: tuple[tuple[Number, Block], ...]

    @property
    def hidden(self) -> Number:
        return self.spec.hidden_size

    @property
    def layers(self) -> Number:
        return self.spec.layers

    @property
    def block(self) -> Block:
        """The block of a model whose blocks are all equal."""
        return self.groups[0][1]

    @cached_property
    def embedding(self) -> Number:
        return count.embedding_matrix(self.spec.vocabulary, self.hidden)

    @cached_property
    def head(self) -> Number:
        """Parameters of an output head of its own; 0 when it is the embedding."""
        return 0.0 if self.spec.tied else count.embedding_matrix(self.spec.vocabulary, self.hidden)

    @cached_property
    def positions(self) -> Number:
        return count.embedding_matrix(self.spec.positions, self.hidden)

    @cached_property
    def final_norm(self) -> Number:
        return count.norm_vectors(self.hidden, 1, self.block.norm_vectors)

    @cached_property
    def parameters(self) -> Number:
        """All parameters, exact."""
        return count.total_parameters(
            self.layers, self.block.parameters(), self.embedding, self.head, self.positions, self.final_norm
        )


@formula("d = h/a", "elements")
def default_head_dim(hidden: Number, heads: Number) -> Number:
    """Width of one head where the model does not state it."""
    return hidden / heads


def build(spec: ModelSpec) -> Model:
    """The layers that a written description stands for."""
    stated = is_array(spec.head_dim) or spec.head_dim > 0
    head_dim = spec.head_dim if stated else default_head_dim(spec.hidden_size, spec.heads)
    attention = GroupedAttention(
        spec.hidden_size,
        spec.heads,
        spec.kv_heads,
        head_dim,
        int(spec.qkv_bias),
        int(spec.output_bias),
        int(spec.qk_norm),
        not is_array(spec.positions) and spec.positions == 0,
    )
    ffn = FeedForward(spec.hidden_size, spec.ffn_size, int(spec.gated), int(spec.mlp_bias))
    block = Block(attention, ffn, 1 if spec.parallel_block else 2, 2 if spec.norm == "layer" else 1)
    return Model(spec, ((spec.layers, block),))
