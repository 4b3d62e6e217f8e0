"""Time of one kernel: max(mathematics, bytes) plus a fixed launch cost.

Matrix products run in waves of tiles over the units of the device (a product of M = N = K = 4096 on an A100 takes
0.602 ms); everything else is bound by the bytes it moves.
"""

from __future__ import annotations

from ..numeric import Number, ceil, maximum, minimum, smallest, where
from ..terms import formula

_TILES = "tile and wave quantisation of library matrix kernels (CUTLASS)"


@formula("t_math", "s", _TILES, "split-K and stream-K schedules", remembered=True)
def matrix_math_seconds(
    rows: Number,
    columns: Number,
    inner: Number,
    batch: Number,
    units: Number,
    rate: Number,
    k_half: Number,
    tiles: tuple[tuple[float, float, float], ...],
) -> Number:
    """Time of the multiply-adds of a matrix product [rows, inner] x [inner, columns], best of the tile sizes."""
    return smallest(
        ceil(ceil(rows / height) * ceil(columns / width) * batch / units)
        * (2 * height * width * units / relative * (inner + k_half) / rate)
        for height, width, relative in tiles
    )


@formula("bytes", "B", "definition", "cache misses on operands read by several tiles")
def matrix_bytes(
    rows: Number, columns: Number, inner: Number, batch: Number, input_bytes: Number, output_bytes: Number
) -> Number:
    """Bytes a matrix product moves: both operands once and the result once."""
    return batch * ((rows * inner + inner * columns) * input_bytes + rows * columns * output_bytes)


@formula("t", "s", "roofline: Williams 2009, CACM 52-4")
def kernel_seconds(math_seconds: Number, moved: Number, memory_rate: Number, launch: Number) -> Number:
    """Time of one kernel: the longer of its mathematics and its bytes, plus its fixed cost."""
    return maximum(math_seconds, moved / memory_rate) + launch


@formula("t_pw", "s", "roofline: Williams 2009, CACM 52-4")
def streaming_seconds(moved: Number, memory_rate: Number, kernels: Number, launch: Number) -> Number:
    """Time of some kernels that only move bytes."""
    return moved / memory_rate + kernels * launch


@formula("align", "relative rate", "NVIDIA matrix multiplication background guide; A100 library path")
def alignment_rate(
    columns: Number, inner: Number, at_64: Number, at_32: Number, at_16: Number, at_8: Number, below: Number
) -> Number:
    """Relative rate by the largest power of two that divides both operand widths (16-bit elements)."""
    return where(
        columns % 64 + inner % 64 == 0,
        at_64,
        where(
            columns % 32 + inner % 32 == 0,
            at_32,
            where(columns % 16 + inner % 16 == 0, at_16, where(columns % 8 + inner % 8 == 0, at_8, below)),
        ),
    )


@formula("t/align", "s", "NVIDIA matrix multiplication background guide")
def aligned_seconds(math_seconds: Number, alignment: Number) -> Number:
    """Time of a matrix product whose operands are not aligned to the tile loads."""
    return math_seconds / alignment


@formula("Π·e·g", "FLOP/s", "grouped matrix kernels")
def grouped_rate(rate: Number, count: Number, relative: Number) -> Number:
    """Rate of a product of several groups of rows with a matrix each."""
    return where(count > 1, rate * relative, rate)


@formula("Π·e", "FLOP/s")
def sustained_rate(peak: Number, fraction: Number) -> Number:
    """Rate that long runs reach of a peak."""
    return peak * fraction


@formula("β·e", "B/s")
def sustained_bandwidth(bandwidth: Number, fraction: Number) -> Number:
    """Bandwidth that is reached of a memory or a link."""
    return bandwidth * fraction


@formula("P", "pairs", "counting: position i of s sees i keys")
def causal_pairs(sequences: Number, sequence: Number, context_parallel: Number) -> Number:
    """(query, key) pairs that one rank attends in some sequences under a causal mask."""
    return sequences * sequence * (sequence + 1) / 2 / context_parallel


@formula("P", "pairs", "tiles at the edges of a mask are computed whole; no more than without the mask")
def limited_pairs(sequences: Number, pairs: Number, edges: Number, context_parallel: Number, causal: Number) -> Number:
    """(query, key) pairs that the kernels of one rank compute where a query does not look at all before it."""
    return minimum(edges * pairs * sequences / context_parallel, causal)


@formula("P", "pairs", "counting: every query attends to every key")
def unmasked_pairs(sequences: Number, pairs: Number, context_parallel: Number) -> Number:
    """(query, key) pairs that one rank attends in some sequences where no key is masked."""
    return sequences * pairs / context_parallel


@formula("F_core", "FLOP", "counting: two products for each pair and head, of width d for scores and d_v for values")
def attention_flops(heads: Number, key_dim: Number, value_dim: Number, pairs: Number) -> Number:
    """FLOPs of the attention core for some pairs."""
    return 2 * heads * (key_dim + value_dim) * pairs


@formula("bytes", "B", "32-bit softmax and dropout over the score matrix, two products")
def unfused_bytes(tokens: Number, heads: Number, sequence: Number) -> Number:
    """Bytes unfused attention moves over its scores in one pass."""
    return 8 * tokens * heads * sequence


@formula("F_core", "FLOP", "arXiv 2512.02556")
def with_index(flops: Number, index: Number, pairs: Number) -> Number:
    """FLOPs of an attention core and of the index that picks its keys among some pairs."""
    return flops + index * pairs


@formula("F/t", "FLOP")
def shared_flops(flops: Number, tensor_parallel: Number) -> Number:
    """FLOPs of one rank of those that split the heads or channels of a recurrence."""
    return flops / tensor_parallel


@formula("t_chunk", "s", "roofline: Williams 2009, CACM 52-4", "exponentials and other work of vector units")
def chunked_seconds(
    flops: Number, rate: Number, moved: Number, memory_rate: Number, passes: Number, kernels: Number, launch: Number
) -> Number:
    """Time of a recurrence in chunks: its products or its bytes, and its kernels."""
    return maximum(passes * flops / rate, passes * moved / memory_rate) + kernels * launch


@formula("bytes", "B", "FlashAttention, arXiv 2205.14135: q, k, v, o read and written once a pass")
def flash_bytes(
    tokens: Number,
    heads: Number,
    kv_heads: Number,
    key_dim: Number,
    value_dim: Number,
    passes: Number,
    blocks: Number,
) -> Number:
    """Bytes a flash kernel moves in some passes over some blocks."""
    return 2 * tokens * (heads + kv_heads) * (key_dim + value_dim) * passes * blocks


@formula("t_fa", "s", "FlashAttention-2 arXiv 2307.08691 and -3 2407.08608 figures: rate over length follows s/(s+512)")
def flash_seconds(
    flops: Number,
    peak: Number,
    fraction: Number,
    head_rate: Number,
    s_half: Number,
    keys: Number,
    passes: Number,
    moved: Number,
    memory_rate: Number,
    kernels: Number,
    launch: Number,
) -> Number:
    """Time of a flash attention kernel over `keys` keys; backward executes 2.5 passes of the forward FLOPs."""
    return (
        maximum(passes * flops * (1 + s_half / keys) / (peak * fraction * head_rate), moved / memory_rate)
        + kernels * launch
    )


@formula(
    "e_d", "relative rate", "head sizes are padded to the kernel's step; small heads wait for the exponential units"
)
def head_rate(head_dim: Number, step: Number, small_head: Number) -> Number:
    """Relative rate of attention for a head size."""
    return (
        head_dim / (step * ceil(head_dim / step)) * where(head_dim <= 64, small_head, where(head_dim <= 96, 0.95, 1.0))
    )
