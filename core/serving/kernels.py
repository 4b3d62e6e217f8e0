"""Time of the kernels of one engine iteration, from a single decoded row up to long prompts."""

from __future__ import annotations

from ..numeric import Number, ceil, maximum, minimum, ratio, smallest, where
from ..terms import formula

_TILES = "tile and wave quantisation of library matrix kernels (CUTLASS); fitted to decode and prefill of TensorRT-LLM"
_COUNTED = "bytes read and written, counted"


@formula("t_tile", "s", _TILES, remembered=True)
def tile_seconds(
    rows: Number,
    columns: Number,
    inner: Number,
    units: Number,
    rate: Number,
    k_half: Number,
    tiles: tuple[tuple[float, float, float], ...],
) -> Number:
    """Time of the multiply-adds in waves of the best tile; beyond 8 waves the last one is half full in the mean."""
    return (
        2
        * (inner + k_half)
        * units
        / rate
        * smallest(
            where(
                ceil(rows / height) * ceil(columns / width) < 8 * units,
                ceil(ceil(rows / height) * ceil(columns / width) / units),
                ceil(rows / height) * ceil(columns / width) / units + 0.5,
            )
            * (height * width / relative)
            for height, width, relative in tiles
        )
    )


@formula("t_narrow", "s", "split-K and stream-K kernels keep all units busy at half the rate of large products")
def narrow_seconds(rows: Number, columns: Number, inner: Number, rate: Number) -> Number:
    """Time of the multiply-adds of a narrow product, rows padded to 16."""
    return 2 * 16 * ceil(rows / 16) * columns * inner / (rate / 2)


@formula("t_math", "s", "matrix-vector kernels of up to 4 rows fill no matrix unit")
def matrix_math_seconds(rows: Number, tiled: Number, narrow: Number) -> Number:
    """Time of the multiply-adds of a matrix product, the better of two kinds of kernels."""
    return where(rows <= 4, 0.0, minimum(tiled, narrow))


@formula("W", "B", _COUNTED)
def weight_bytes(inner: Number, columns: Number, bits: Number) -> Number:
    """Bytes of the weights of a matrix."""
    return inner * columns * bits / 8


@formula("A", "B", _COUNTED)
def operand_bytes(rows: Number, inner: Number, columns: Number, activation_bytes: Number) -> Number:
    """Bytes of the input and the 16-bit output of a matrix product."""
    return rows * (inner * activation_bytes + 2 * columns)


@formula("t_mem", "s", "weights of expanded formats stream below the memory rate: gpt-fast and torchao rows")
def matrix_memory_seconds(weights: Number, operands: Number, streaming: Number, memory_rate: Number) -> Number:
    """Time of the bytes of a matrix product."""
    return (weights / streaming + operands) / memory_rate


@formula("t", "s", "mid-batch decode of TensorRT-LLM rows: a maximum with a soft knee")
def soft_maximum(math_seconds: Number, memory_seconds: Number) -> Number:
    """Time of a kernel whose mathematics and bytes overlap."""
    return (math_seconds**3 + memory_seconds**3) ** (1 / 3)


@formula("t_M", "s", "engines pad batches to sizes their kernels are tuned for")
def between_sizes(rows: Number, below: Number, above: Number, at_below: Number, at_above: Number) -> Number:
    """Time between two tuned batch sizes, on a line; proportional to the rows beyond the largest size."""
    return (at_below + (at_above - at_below) * ratio(rows - below, above - below)) * maximum(1, rows / above)


@formula("M", "rows")
def batch_rows(decoding: Number, prompts: Number, tokens: Number) -> Number:
    """Rows of an iteration: one for each decoding sequence and one for each prompt token in it."""
    return decoding + prompts * tokens


@formula("R", "rows")
def logit_rows(decoding: Number, prompts: Number) -> Number:
    """Rows of the output head: one for each sequence that gets a token."""
    return decoding + prompts


@formula("M·(k·h + 2·n·f/t)", "B", _COUNTED)
def pointwise_bytes(rows: Number, hidden: Number, hidden_bytes: Number, matrices: Number, ffn_size: Number) -> Number:
    """Bytes of norms, residuals, rotary embedding, casts and activation of one block."""
    return rows * (hidden_bytes * hidden + 2 * matrices * ffn_size)


@formula("12·R·V", "B", _COUNTED)
def logit_bytes(rows: Number, vocabulary: Number) -> Number:
    """Bytes that sampling moves over the logits."""
    return 12 * rows * vocabulary


@formula("t_mem", "s")
def streaming_seconds(moved: Number, memory_rate: Number) -> Number:
    """Time of kernels that only move bytes."""
    return moved / memory_rate


@formula("F_all", "FLOP")
def flops_in_all(count: Number, flops: Number) -> Number:
    """FLOPs of an operator in all layers, or in all iterations of a prompt."""
    return count * flops


@formula("F", "FLOP")
def matrix_flops(rows: Number, columns: Number, inner: Number) -> Number:
    """FLOPs of a matrix product."""
    return 2 * rows * columns * inner


# ---------------------------------------------------------------- attention


@formula("a/g", "heads")
def heads_a_group(heads: Number, kv_heads: Number) -> Number:
    """Query heads that share a key and value head."""
    return heads / kv_heads


@formula("B·c·g·(d + d_v)·w", "B", _COUNTED)
def cache_bytes(
    sequences: Number, context: Number, kv_heads: Number, head_dim: Number, value_dim: Number, width: Number
) -> Number:
    """Bytes of keys and values that attention reads in one block."""
    return sequences * context * kv_heads * (head_dim + value_dim) * width


@formula("B·c·n·w", "B", _COUNTED)
def element_bytes(sequences: Number, context: Number, elements: Number, width: Number) -> Number:
    """Bytes of what is cached without heads that attention reads in one block."""
    return sequences * context * elements * width


@formula("F_core", "FLOP")
def decode_flops(sequences: Number, context: Number, heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """FLOPs of decode attention in one block: each new token attends its context and itself."""
    return 2 * heads * (head_dim + value_dim) * sequences * (context + 1)


@formula("P", "pairs")
def step_pairs(sequences: Number, context: Number) -> Number:
    """Pairs of a decode step: each new token attends its context and itself."""
    return sequences * (context + 1)


@formula("P_all", "pairs")
def all_pairs(prompts: Number, pairs: Number) -> Number:
    """Pairs of some equal prompt chunks."""
    return prompts * pairs


@formula("x/t", "number")
def rank_share(whole: Number, tensor_parallel: Number) -> Number:
    """Share of one tensor parallel rank."""
    return whole / tensor_parallel


@formula("c_0", "tokens")
def cached_before(keys: Number, tokens: Number) -> Number:
    """Tokens of a prompt that were cached before its chunk."""
    return keys - tokens


@formula("t_core", "s")
def core_seconds(flops: Number, rate: Number) -> Number:
    """Time of the mathematics of a core at a rate."""
    return flops / rate


@formula("2·B·S", "B", _COUNTED)
def state_traffic(sequences: Number, state: Number) -> Number:
    """Bytes of states that a layer reads and writes."""
    return 2 * sequences * state


@formula("q·c_0·(n·w + 2·a·n_h)", "B", _COUNTED)
def expanded_bytes(
    prompts: Number, cached: Number, elements: Number, width: Number, heads: Number, made: Number
) -> Number:
    """Bytes of latents that are read and of 16-bit keys and values made from them."""
    return prompts * cached * (elements * width + 2 * heads * made)


@formula("t_vec", "s", "multi-head kernel of TensorRT-LLM to v0.10: Mistral, Llama-3-8B and Falcon rows")
def vector_seconds(flops: Number, group: Number, vector_rate: Number, tensor_groups: tuple[int, ...]) -> Number:
    """Time of decode attention on vector units; 0 for groups of query heads that have a matrix-unit kernel."""
    return ratio(smallest(where(group == each, 0.0, 1.0) for each in (0, *tensor_groups)) * flops, vector_rate)


@formula("t_kv", "s", leaves_out="split of one long context over few sequences")
def decode_attention_seconds(moved: Number, kv_rate: Number, vector: Number) -> Number:
    """Time of decode attention in one block: the cache is read once, or the vector units are busy longer."""
    return maximum(moved / kv_rate, vector)


@formula("P", "pairs", "counting: token i of q new ones sees the context before them and i of them")
def chunk_pairs(tokens: Number, cached: Number) -> Number:
    """(query, key) pairs of new tokens of a prompt over its tokens already cached."""
    return tokens * cached + tokens * (tokens + 1) / 2


@formula("F_core", "FLOP")
def prefill_flops(prompts: Number, pairs: Number, heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """FLOPs of prefill attention in one block."""
    return 2 * heads * (head_dim + value_dim) * prompts * pairs


@formula(
    "t_fa",
    "s",
    "FlashAttention-2 arXiv 2307.08691 and -3 2407.08608 figures: rate over length follows s/(s+512)",
    "padding of head sizes other than 64, 128 and 256",
)
def prefill_attention_seconds(
    flops: Number, keys: Number, head_dim: Number, rate: Number, s_half: Number, small_head: Number
) -> Number:
    """Time of prefill attention in one block over `keys` keys."""
    return flops / (rate * where(head_dim == 64, small_head, 1.0)) * (1 + s_half / keys)


@formula("B·I·q/s", "rows", "once a prompt, spread over its chunks")
def image_rows(prompts: Number, tokens: Number, images: Number, prompt: Number) -> Number:
    """Image tokens whose keys and values are made with some tokens of prompts."""
    return prompts * images * tokens / prompt


@formula("k·a·q·s", "B", "FasterTransformer GPT guide: passes over an unfused score matrix")
def score_traffic(prompts: Number, heads: Number, tokens: Number, keys: Number, score_bytes: Number) -> Number:
    """Bytes of an unfused score matrix and its softmax in one block; 0 bytes a score where attention is fused."""
    return score_bytes * prompts * heads * tokens * keys
