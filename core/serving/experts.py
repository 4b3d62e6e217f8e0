"""Time of routed experts in one layer: the experts that a batch meets are read, and its rows are shared out to them.

Sources: Shazeer 2017, arXiv 1701.06538; grouped kernels fitted to Mixtral, Qwen3 and gpt-oss rows of TensorRT-LLM,
vLLM and SGLang.
"""

from __future__ import annotations

from ..numeric import Number, ceil, log, maximum, minimum, sqrt, where
from ..terms import formula

_ROUTING = "every expert is equally likely: the load balancing that routers are trained for"
_GROUPED = "grouped kernels of TensorRT-LLM, vLLM and SGLang rows"


@formula("E_touched", "experts", _ROUTING)
def touched_experts(experts: Number, per_token: Number, rows: Number) -> Number:
    """Experts that at least one row of a batch is sent to, expected."""
    return experts * (1 - (1 - per_token / experts) ** rows)


@formula("R", "rows")
def routed_rows(rows: Number, per_token: Number) -> Number:
    """Rows that all experts compute together."""
    return rows * per_token


@formula("F", "FLOP")
def expert_flops(rows: Number, matrices: Number, width: Number, size: Number) -> Number:
    """FLOPs of routed rows."""
    return 2 * rows * matrices * width * size


@formula("W_E", "B")
def touched_bytes(touched: Number, matrices: Number, width: Number, size: Number, bits: Number) -> Number:
    """Bytes of the weights of the experts that are met."""
    return touched * matrices * width * size * bits / 8


@formula("R·(c·h + 6·f)", "B", _GROUPED)
def routed_bytes(rows: Number, permuted: Number, width: Number, size: Number) -> Number:
    """Bytes of routing rows to experts and back, and of what experts keep between their matrices."""
    return rows * (permuted * width + 6 * size)


@formula("K'", "columns", "the faster the mathematics, the longer the inner side that fills it")
def half_rate_inner(k_half: Number, peak: Number, peak_16: Number) -> Number:
    """Inner side at which a grouped kernel reaches half its rate."""
    return k_half * peak / peak_16


@formula("t_math", "s", _GROUPED)
def expert_math_seconds(
    touched: Number,
    rows: Number,
    inputs: Number,
    width: Number,
    size: Number,
    k_half: Number,
    rate: Number,
    uneven: Number,
) -> Number:
    """Time of the multiply-adds of grouped products, rows of each expert padded to tiles, on the busiest rank."""
    return (
        2
        * (1.15 * rows + 8 * touched)
        * (inputs * width * size * (1 + k_half / width) + size * width * (1 + k_half / size))
        / rate
        * uneven
    )


@formula("t_mem", "s", _GROUPED)
def expert_memory_seconds(
    weights: Number, streaming: Number, reached: Number, routed: Number, memory: Number
) -> Number:
    """Time of the bytes of routed experts."""
    return weights / (streaming * reached * memory) + routed / memory


@formula("W_unread", "B")
def unread_bytes(layers: Number, experts: Number, touched: Number, each: Number) -> Number:
    """Weights of the experts that no row of a batch is sent to."""
    return layers * (experts - touched) * each


@formula("W", "B")
def read_bytes(weights: Number, unread: Number) -> Number:
    """Weights that a batch has to read: all but the experts that none of its rows is sent to."""
    return weights - unread


@formula("f_pad", "elements", "kernels that pad what they hold in memory")
def padded_size(size: Number, multiple: Number) -> Number:
    """Inner width of an expert as it is kept."""
    return ceil(size / multiple) * multiple


# ---------------------------------------------------------------- experts laid over ranks


@formula("D·M", "rows")
def shared_rows(rows: Number, ranks: Number) -> Number:
    """Rows of all ranks that share the experts, each with sequences of its own."""
    return rows * ranks


@formula("x/e", "number")
def group_share(whole: Number, groups: Number) -> Number:
    """Share of one expert parallel group in the mean."""
    return whole / groups


@formula("E_max", "experts", "largest of e groups of random size, and of all its experts")
def fullest_group(touched: Number, experts: Number, groups: Number) -> Number:
    """Experts that the group with most of them has to read, expected."""
    return minimum(experts / groups, touched * (1 + sqrt(2 * log(groups) / maximum(1, touched))))


@formula("1 + √(2·ln e/R) + x", "factor", "largest of e random sums; the rest fitted to expert parallel rows")
def imbalance(rows: Number, groups: Number, skew: Number) -> Number:
    """Rows of the busiest of some expert parallel groups over the mean."""
    return 1 + sqrt(2 * log(groups) / maximum(1, rows)) + where(groups > 1, skew, 0.0)
