"""Exact parameter counts of the parts of a decoder.

Source of the counts: the tensor shapes of the published models (Vaswani 2017; Radford 2019 for GPT; Touvron 2023,
arXiv 2302.13971, for Llama; Ainslie 2023, arXiv 2305.13245, for grouped queries).
"""

from __future__ import annotations

from ..numeric import Number, ceil, minimum
from ..terms import formula

_SHAPES = "tensor shapes of the published architecture"


@formula("P_attn", "parameters", _SHAPES)
def attention_matrices(
    hidden: Number, heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, gate: Number
) -> Number:
    """Parameters of the query, key, value and output projections of one block; a gate of 1 is one as wide as q."""
    return hidden * (heads + kv_heads) * (head_dim + value_dim) + gate * hidden * heads * head_dim


@formula("b_qkv", "parameters", _SHAPES)
def qkv_biases(heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, gate: Number) -> Number:
    """Parameters of the biases on queries, keys and values of one attention block."""
    return (1 + gate) * heads * head_dim + kv_heads * (head_dim + value_dim)


@formula("P_qk", "parameters", _SHAPES)
def attention_norms(
    queries: Number, keys: Number, head_dim: Number, vectors: Number, inner: Number, hidden: Number
) -> Number:
    """Parameters of the norms inside attention: over queries and keys, and over what goes into the output matrix."""
    return vectors * (queries + keys) * head_dim + inner * hidden


@formula("P_attn,vec", "parameters", _SHAPES)
def attention_vectors(
    biases: Number, qkv_bias: Number, hidden: Number, output_bias: Number, norms: Number, heads: Number, sinks: Number
) -> Number:
    """Parameters of the biases, norms and sinks of one attention block; switches are 0 or 1."""
    return qkv_bias * biases + output_bias * hidden + norms + sinks * heads


@formula("P_ffn", "parameters", _SHAPES)
def ffn_matrices(hidden: Number, ffn_size: Number, matrices: Number) -> Number:
    """Parameters of the feed-forward matrices of one block; 3 matrices when gated, else 2."""
    return matrices * hidden * ffn_size


@formula("P_ffn,vec", "parameters", _SHAPES)
def ffn_vectors(
    hidden: Number, ffn_size: Number, matrices: Number, mlp_bias: Number, inner: Number, activation: Number
) -> Number:
    """Parameters of the feed-forward biases of one block, of a norm on the inner width, and of the activation."""
    return mlp_bias * ((matrices - 1) * ffn_size + hidden) + inner * ffn_size + activation


@formula("P_norm", "parameters", _SHAPES)
def norm_vectors(hidden: Number, norms: Number, norm_vectors: Number) -> Number:
    """Parameters of some norms; 1 vector each for RMSNorm, 2 for LayerNorm."""
    return norms * norm_vectors * hidden


@formula("V_emb", "rows", _SHAPES)
def embedding_rows(vocabulary: Number, extra: Number) -> Number:
    """Rows of an embedding that has more than its output head."""
    return vocabulary + extra


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


@formula("P_layers", "parameters")
def layers_parameters(layers: Number, block: Number) -> Number:
    """Parameters of some equal blocks."""
    return layers * block


@formula("P_outer", "parameters", _SHAPES)
def outer_vectors(hidden: Number, vectors: Number, final_norm: Number, embedding_norm: Number) -> Number:
    """Parameters of the norms outside the blocks: the final one, and one after the embedding where there is one."""
    return vectors * hidden * (final_norm + embedding_norm)


@formula("P_proj", "parameters", _SHAPES)
def embedding_projections(hidden: Number, embedding_size: Number) -> Number:
    """Parameters of the matrices between an embedding of another width and the residual stream, in and out."""
    return 2 * hidden * embedding_size


@formula("N", "parameters", leaves_out="rotary tables and other buffers, quantisation scales, prediction modules")
def total_parameters(
    blocks: Number, embedding: Number, head: Number, positions: Number, norms: Number, vision: Number
) -> Number:
    """Parameters of the whole model."""
    return blocks + embedding + head + positions + norms + vision


@formula("N_act", "parameters", "embedding and head are counted")
def active_parameters(parameters: Number, idle: Number) -> Number:
    """Parameters that a token meets: all but the routed experts that it is not sent to."""
    return parameters - idle


@formula("N_mtp", "parameters", "arXiv 2412.19437, section 2.2")
def prediction_parameters(
    modules: Number, block: Number, hidden: Number, norm_vectors: Number, buffers: Number
) -> Number:
    """Values of the modules that predict further tokens: a block, a projection, three norms, steering biases."""
    return modules * (block + 2 * hidden**2 + 3 * norm_vectors * hidden + buffers)


# ---------------------------------------------------------------- the share of one rank


@formula("ψ_attn", "parameters", "Shoeybi 2019, arXiv 1909.08053")
def attention_share(
    hidden: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    value_dim: Number,
    gate: Number,
    tensor_parallel: Number,
) -> Number:
    """Attention matrix parameters one tensor parallel rank holds; K and V split over at most their heads."""
    return hidden * heads * ((1 + gate) * head_dim + value_dim) / tensor_parallel + hidden * kv_heads * (
        head_dim + value_dim
    ) / minimum(tensor_parallel, kv_heads)


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
