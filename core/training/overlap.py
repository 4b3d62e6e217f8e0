"""Sizes of tensors, and what communication costs a step when it hides behind compute."""

from __future__ import annotations

from ..numeric import Number, is_array, maximum, minimum, where
from ..terms import formula

_POINTWISE = "bytes read and written by fused 16-bit kernels, counted"
_OVERLAP = "communication kernels take units and bandwidth from the compute they hide behind"


@formula("k·n", "B", _POINTWISE)
def pointwise_bytes(bytes_per_element: Number, elements: Number) -> Number:
    """Bytes that pointwise kernels move over a tensor."""
    return bytes_per_element * elements


@formula("T·n", "elements")
def elements(tokens: Number, width: Number, share: Number) -> Number:
    """Elements of a tensor on one rank."""
    return tokens * width * share


@formula("x + κ·min", "s", _OVERLAP)
def exposed_behind(seconds: Number, window: Number, contention: Number) -> Number:
    """What communication costs a step behind a window of compute: what sticks out, and the slowdown of the window."""
    return maximum(0.0, seconds - window) + contention * minimum(seconds, window)


@formula("t − (1−κ)·(1−1/t)·min", "s", "chunked overlap with the adjacent matrix product")
def exposed_in_chunks(seconds: Number, window: Number, ranks: Number, contention: Number) -> Number:
    """Tensor parallel traffic in chunks beside the matrix products: all but the first chunk hides."""
    return seconds - (1 - contention) * (1 - 1 / ranks) * minimum(seconds, window)


@formula("½·t", "s", "weight or input gradient products: half of the backward products")
def half(seconds: Number) -> Number:
    """Half of the backward matrix products, behind which backward traffic hides."""
    return 0.5 * seconds


@formula("ring", "s", "Liu 2023, arXiv 2310.01889; extra kernels of the ring steps")
def exposed_ring(
    ring: Number, attention: Number, context: Number, contention: Number, kernels_a_step: Number, launch: Number
) -> Number:
    """What a ring of keys and values costs behind attention on the chunks already there."""
    return where(
        context > 1,
        maximum(0.0, ring - (context - 1) / context * attention)
        + contention * minimum(ring, attention)
        + (context - 1) * kernels_a_step * launch,
        0.0,
    )


@formula("t_ring", "s", "Liu 2023, arXiv 2310.01889; extra kernels of the ring steps")
def ring_seconds(ring: Number, context: Number, kernels_a_step: Number, launch: Number) -> Number:
    """Time of a ring of keys and values when nothing hides it, its kernels included."""
    return ring + (context - 1) * kernels_a_step * launch


@formula("t_pass", "s")
def pass_seconds(
    matrices: Number,
    attention: Number,
    pointwise: Number,
    tensor: Number,
    context: Number,
    accumulation: Number,
    casts: Number,
    routing: Number,
    launches: Number,
    expert: Number,
    host: Number,
) -> Number:
    """Time of one pass over one block."""
    return (
        matrices + attention + pointwise + tensor + context + accumulation + casts + routing + launches + expert + host
    )


@formula("t_compute", "s")
def compute_seconds(
    matrices: Number,
    attention: Number,
    pointwise: Number,
    accumulation: Number,
    casts: Number,
    routing: Number,
    launches: Number,
) -> Number:
    """Time of the kernels of one pass over one block that compute, and of their launches."""
    return matrices + attention + pointwise + accumulation + casts + routing + launches


@formula("t/m", "s", "a low-precision copy of the weights is kept for the step")
def per_micro_batch(seconds: Number, micro_batches: Number) -> Number:
    """A cost of once a step, shared by its micro-batches."""
    return seconds / micro_batches


@formula("s/c", "tokens")
def keys_of_chunk(sequence: Number, context_parallel: Number) -> Number:
    """Length of the chunk of a sequence on one context parallel rank."""
    return sequence / context_parallel


@formula("1/t", "share")
def tensor_share(tensor_parallel: Number) -> Number:
    """Share of one tensor parallel rank."""
    return 1 / tensor_parallel


@formula("(d+d_v)/2", "elements")
def mean_head(key_dim: Number, value_dim: Number) -> Number:
    """Mean width of a head: queries and keys have one, values and outputs the other."""
    return (key_dim + value_dim) / 2


@formula("max(g/t, c)", "heads", "Ulysses, arXiv 2309.14509: a rank needs a whole head of keys and values")
def exchanged_kv_heads(kv_heads: Number, context_parallel: Number) -> Number:
    """Key and value heads that a sequence is exchanged for; repeated where there are fewer than ranks."""
    return maximum(kv_heads, context_parallel)


@formula("b·s·(c−1)/c", "tokens")
def received_tokens(micro_batch: Number, passed: Number, context_parallel: Number) -> Number:
    """Tokens of one micro-batch that a rank receives of the others that share its sequences."""
    return micro_batch * passed * (context_parallel - 1) / context_parallel


@formula("n > 0", "s")
def only_with(there: Number, seconds: Number) -> Number:
    """Time of what is done where there is something to do it with."""
    return where(there > 0, seconds, 0.0)


def where_there(there: Number, seconds: Number) -> Number:
    """Time of what some of many plans do, none in the others; a single plan asks only where it does it."""
    return only_with(there, seconds) if is_array(there) else seconds
