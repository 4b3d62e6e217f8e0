"""Exact parameter counts of the parts of a decoder.

Source of the counts: the tensor shapes of the published models (Vaswani 2017; Radford 2019 for GPT; Touvron 2023,
arXiv 2302.13971, for Llama; Ainslie 2023, arXiv 2305.13245, for grouped queries).
"""

from __future__ import annotations

from ..numeric import Number, ceil, minimum
from ..terms import formula

_SHAPES = "tensor shapes of the published architecture"


@formula("P_attn", "parameters", _SHAPES)
def attention_matrices(hidden: Number, heads: Number, kv_heads: Number, head_dim: Number) -> Number:
    """Parameters of the query, key, value and output projections of one block."""
    return 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim


@formula("P_attn,vec", "parameters", _SHAPES)
def attention_vectors(
    hidden: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    qkv_bias: Number,
    output_bias: Number,
    qk_norm: Number,
) -> Number:
    """Parameters of the biases and the query/key norm of one attention block; switches are 0 or 1."""
    return qkv_bias * (heads + 2 * kv_heads) * head_dim + output_bias * hidden + qk_norm * 2 * head_dim


@formula("P_ffn", "parameters", _SHAPES)
def ffn_matrices(hidden: Number, ffn_size: Number, matrices: Number) -> Number:
    """Parameters of the feed-forward matrices of one block; 3 matrices when gated, else 2."""
    return matrices * hidden * ffn_size


@formula("P_ffn,vec", "parameters", _SHAPES)
def ffn_vectors(hidden: Number, ffn_size: Number, matrices: Number, mlp_bias: Number) -> Number:
    """Parameters of the feed-forward biases of one block; the switch is 0 or 1."""
    return mlp_bias * ((matrices - 1) * ffn_size + hidden)


@formula("P_norm", "parameters", _SHAPES)
def norm_vectors(hidden: Number, norms: Number, norm_vectors: Number) -> Number:
    """Parameters of some norms; 1 vector each for RMSNorm, 2 for LayerNorm."""
    return norms * norm_vectors * hidden


@formula("P_emb", "parameters", _SHAPES)
def embedding_matrix(vocabulary: Number, hidden: Number) -> Number:
    """Parameters of an embedding or of an output head."""
    return vocabulary * hidden


@formula("P_block", "parameters")
def block_parameters(
    attention: Number, attention_vectors: Number, ffn: Number, ffn_vectors: Number, norms: Number
) -> Number:
    """Parameters of one block."""
    return attention + attention_vectors + ffn + ffn_vectors + norms


@formula("N", "parameters", leaves_out="rotary tables and other buffers, quantisation scales")
def total_parameters(
    layers: Number, block: Number, embedding: Number, head: Number, positions: Number, final_norm: Number
) -> Number:
    """Parameters of the whole model."""
    return layers * block + embedding + head + positions + final_norm


# ---------------------------------------------------------------- the share of one rank


@formula("ψ_attn", "parameters", "Shoeybi 2019, arXiv 1909.08053")
def attention_share(
    hidden: Number, heads: Number, kv_heads: Number, head_dim: Number, tensor_parallel: Number
) -> Number:
    """Attention matrix parameters one tensor parallel rank holds; K and V split over at most their heads."""
    return 2 * hidden * heads * head_dim / tensor_parallel + 2 * hidden * kv_heads * head_dim / minimum(
        tensor_parallel, kv_heads
    )


@formula("ψ_ffn", "parameters", "Shoeybi 2019, arXiv 1909.08053")
def ffn_share(matrices: Number, tensor_parallel: Number) -> Number:
    """Feed-forward parameters one tensor parallel rank holds."""
    return matrices / tensor_parallel


@formula("ψ_block", "parameters")
def block_share(attention: Number, ffn: Number, vectors: Number) -> Number:
    """Parameters of one block that one tensor parallel rank holds; norms and biases are counted whole."""
    return attention + ffn + vectors


@formula("V_p", "rows", "vocabulary padding of Megatron-LM")
def padded_vocabulary(vocabulary: Number, multiple: Number, tensor_parallel: Number) -> Number:
    """Rows of the vocabulary rounded up to a multiple for each tensor parallel rank (multiple 1: only to the ranks)."""
    return ceil(vocabulary / (multiple * tensor_parallel)) * multiple * tensor_parallel
