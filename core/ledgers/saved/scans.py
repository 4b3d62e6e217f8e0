"""Linear attention, state spaces and short convolutions, with kernels that compute states of chunks again.

Sources: arXiv 2501.08313 (lightning), 2412.06464 (delta net), 2312.00752 (Mamba), 2405.21060 (Mamba-2), and the public
code of their kernels. Heads and channels are split over tensor parallel ranks.
"""

from __future__ import annotations

from ...model.kinds.recurrent import DeltaNet, LightningAttention
from ...model.kinds.state_space import Mamba, Mamba2, ShortConvolution
from ...numeric import Number
from ...terms import formula
from .keeping import Keeping, Kept, mixer_kept


@formula("lightning", "B/token", "arXiv 2501.08313", "states of chunks, computed again")
def lightning_bytes(heads: Number, head_dim: Number, element: Number, tensor_parallel: Number) -> Number:
    """Queries, keys, values, gate, the output before its norm, and the input of the output matrix."""
    return 6 * element * heads * head_dim / tensor_parallel


@formula("delta", "B/token", "arXiv 2412.06464", "states of chunks, computed again")
def delta_bytes(
    channels: Number,
    values: Number,
    value_heads: Number,
    chunk: Number,
    element: Number,
    tensor_parallel: Number,
) -> Number:
    """Convolution input and output, gate, output before its norm and after its gate, chunk systems, 32-bit gates."""
    return (element * (2 * channels + 3 * values + value_heads * chunk) + 8 * value_heads) / tensor_parallel


@formula("Mamba", "B/token", "arXiv 2312.00752", "states of chunks, convolution output and steps, computed again")
def mamba_bytes(inner: Number, rank: Number, state: Number, element: Number, tensor_parallel: Number) -> Number:
    """Both halves of the first matrix, step and state projections, scan output and input of the last matrix."""
    return element * (4 * inner / tensor_parallel + rank + 2 * state)


@formula("Mamba-2", "B/token", "arXiv 2405.21060", "states of chunks and convolution output, computed again")
def mamba2_bytes(inner: Number, channels: Number, heads: Number, element: Number, tensor_parallel: Number) -> Number:
    """Gate, values, state projections and steps of the first matrix, scan output and input of the last matrix."""
    return element * (3 * inner + channels + heads) / tensor_parallel


@formula("convolution", "B/token", "tensor shapes of the published Lfm2 models")
def short_bytes(hidden: Number, element: Number, tensor_parallel: Number) -> Number:
    """Both gates and values, the input and output of the convolution, and the input of the last matrix."""
    return 6 * element * hidden / tensor_parallel


@formula("X", "B/token", "gradients of the two halves and of the output")
def gradients_bytes(inner: Number, element: Number, tensor_parallel: Number) -> Number:
    """Gradients alive in the backward pass of a scan."""
    return 3 * element * inner / tensor_parallel


@formula("n/t", "elements")
def local_inner(inner: Number, tensor_parallel: Number) -> Number:
    """Elements of the inner width on one rank."""
    return inner / tensor_parallel


def _kept(tensors: Number, inner: Number, keeping: Keeping) -> Kept:
    """A layer whose last matrix reads the inner width; recomputation by operator keeps the output of that alone."""
    gradients = gradients_bytes(inner, keeping.element, keeping.tensor)
    if not keeping.cast_input:
        return Kept(tensors, 0.0, gradients)
    return Kept(tensors, 0.0, gradients, cast=keeping.cast(local_inner(inner, keeping.tensor), keeping.element))


@mixer_kept.register
def _(mixer: LightningAttention, keeping: Keeping) -> Kept:
    kept = lightning_bytes(mixer.heads, mixer.head_dim, keeping.element, keeping.tensor)
    return _kept(kept, mixer.heads * mixer.head_dim, keeping)


@mixer_kept.register
def _(mixer: DeltaNet, keeping: Keeping) -> Kept:
    values = mixer.value_heads * mixer.value_dim
    sizes = (mixer.channels(), values, mixer.value_heads, mixer.chunk)
    return _kept(delta_bytes(*sizes, keeping.element, keeping.tensor), values, keeping)


@mixer_kept.register
def _(mixer: Mamba, keeping: Keeping) -> Kept:
    kept = mamba_bytes(mixer.inner, mixer.rank, mixer.state_size, keeping.element, keeping.tensor)
    return _kept(kept, mixer.inner, keeping)


@mixer_kept.register
def _(mixer: Mamba2, keeping: Keeping) -> Kept:
    kept = mamba2_bytes(mixer.inner, mixer.channels(), mixer.heads, keeping.element, keeping.tensor)
    return _kept(kept, mixer.inner, keeping)


@mixer_kept.register
def _(mixer: ShortConvolution, keeping: Keeping) -> Kept:
    return _kept(short_bytes(mixer.hidden, keeping.element, keeping.tensor), mixer.hidden, keeping)
