"""Linear attention with a matrix state a head: lightning attention and the gated delta net.

Sources: MiniMax-01, arXiv 2501.08313 (lightning); gated delta networks, arXiv 2412.06464. Model FLOPs are those of the
recurrence; kernels for whole prompts work in chunks and multiply more.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...numeric import Number
from ...sums import add_flops
from ...terms import formula
from .mixer import Matrix, Mixer, State, Stream, tokens_flops

_LIGHTNING = "arXiv 2501.08313"
_DELTA = "arXiv 2412.06464"


@formula("P_lin", "parameters", _LIGHTNING)
def lightning_matrices(hidden: Number, heads: Number, head_dim: Number) -> Number:
    """Parameters of queries, keys, values, output gate and output of one lightning layer."""
    return 5 * hidden * heads * head_dim


@formula("P_lin,vec", "parameters", _LIGHTNING)
def lightning_vectors(heads: Number, head_dim: Number) -> Number:
    """Parameters of the norm before the output of one lightning layer."""
    return heads * head_dim


@formula("S_lin", "elements", _LIGHTNING)
def lightning_state(heads: Number, head_dim: Number) -> Number:
    """Elements of the state of a sequence in one lightning layer."""
    return heads * head_dim**2


@formula("F_lin", "FLOP/token", _LIGHTNING)
def lightning_flops(heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """FLOPs of a token in the recurrence: the state is updated and read."""
    return 4 * heads * key_dim * value_dim


@formula("F_lin,chunk", "FLOP/token", _LIGHTNING)
def lightning_chunk_flops(heads: Number, key_dim: Number, value_dim: Number, chunk: Number) -> Number:
    """FLOPs of a token in chunks: products inside the chunk beside update and read of the state."""
    return heads * (2 * chunk * (key_dim + value_dim) + 4 * key_dim * value_dim)


@formula("w", "elements", _DELTA)
def delta_channels(key_heads: Number, key_dim: Number, value_heads: Number, value_dim: Number) -> Number:
    """Width of queries, keys and values of one gated delta net layer, which a short convolution passes over."""
    return 2 * key_heads * key_dim + value_heads * value_dim


@formula("P_delta", "parameters", _DELTA)
def delta_matrices(hidden: Number, channels: Number, value_heads: Number, value_dim: Number) -> Number:
    """Parameters of one gated delta net layer: q, k, v, output gate, two gates a head, and output."""
    return hidden * (channels + value_heads * value_dim) + 2 * hidden * value_heads + value_heads * value_dim * hidden


@formula("P_delta,vec", "parameters", _DELTA)
def delta_vectors(conv_size: Number, channels: Number, value_heads: Number, value_dim: Number) -> Number:
    """Parameters of the convolution, of decay and step bias a head, and of the norm before the output."""
    return conv_size * channels + 2 * value_heads + value_dim


@formula("S_delta", "elements", _DELTA)
def delta_state(value_heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """Elements of the state of a sequence in one gated delta net layer."""
    return value_heads * key_dim * value_dim


@formula("F_delta", "FLOP/token", _DELTA)
def delta_flops(value_heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """FLOPs of a token in the recurrence: what the state holds for the key, its update, and the read."""
    return 6 * value_heads * key_dim * value_dim


@formula("F_delta,chunk", "FLOP/token", _DELTA)
def delta_chunk_flops(value_heads: Number, key_dim: Number, value_dim: Number, chunk: Number) -> Number:
    """FLOPs of a token in chunks, with the triangular system of each chunk solved."""
    return value_heads * (2 * chunk * (3 * key_dim + 2 * value_dim) + chunk**2 / 3 + 6 * key_dim * value_dim)


@formula("F_conv", "FLOP/token")
def convolution_flops(conv_size: Number, channels: Number) -> Number:
    """FLOPs of a token in a convolution along the sequence, channel by channel."""
    return 2 * conv_size * channels


@formula("S_conv", "elements")
def convolution_state(conv_size: Number, channels: Number) -> Number:
    """Last inputs of a convolution that a sequence keeps."""
    return conv_size * channels


@formula("ψ_lin", "parameters", "heads or channels are split over ranks")
def split_share(matrices: Number, tensor_parallel: Number) -> Number:
    """Matrix parameters that one tensor parallel rank holds."""
    return matrices / tensor_parallel


@formula("n", "elements", "kernels in chunks write the state behind every chunk in 32 bits and read it again")
def streamed_elements(inputs: Number, outputs: Number, state: Number, chunk: Number, tensor_parallel: Number) -> Number:
    """16-bit elements that a core in chunks reads and writes for one token on one rank."""
    return (inputs + outputs + 4 * state / chunk) / tensor_parallel


@dataclass(frozen=True)
class LightningAttention(Mixer):
    """Linear attention with a fixed decay and an output gate."""

    hidden: Number
    heads: Number
    head_dim: Number
    chunk: Number
    core_name = "linear attention"

    def matrices(self) -> Number:
        return lightning_matrices(self.hidden, self.heads, self.head_dim)

    def vectors(self) -> Number:
        return lightning_vectors(self.heads, self.head_dim)

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        width = self.heads * self.head_dim / tp
        return Matrix("QKV and gate", self.hidden, 4 * width), Matrix("attention output", width, self.hidden)

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.heads,)

    def streamed(self, tp: Number) -> Number:
        width = self.heads * self.head_dim
        return streamed_elements(3 * width, width, lightning_state(self.heads, self.head_dim), self.chunk, tp)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        width = self.heads * self.head_dim / tp
        return Stream(width, 4.0, 10.0, 1, 2), Stream(width, 6.0, 10.0)

    def state(self) -> State:
        return State(lightning_state(self.heads, self.head_dim), 0.0)

    def core_flops(self, tokens: Number, context: Number) -> Number:
        return tokens_flops(lightning_flops(self.heads, self.head_dim, self.head_dim), tokens)

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        token = lightning_chunk_flops(self.heads, self.head_dim, self.head_dim, self.chunk)
        return tokens_flops(token, tokens)


@dataclass(frozen=True)
class DeltaNet(Mixer):
    """Gated delta net: linear attention whose state forgets and corrects itself, behind a short convolution."""

    hidden: Number
    key_heads: Number
    key_dim: Number
    value_heads: Number
    value_dim: Number
    conv_size: Number
    chunk: Number
    core_name = "linear attention"

    def channels(self) -> Number:
        """Width that the convolution passes over."""
        return delta_channels(self.key_heads, self.key_dim, self.value_heads, self.value_dim)

    def matrices(self) -> Number:
        return delta_matrices(self.hidden, self.channels(), self.value_heads, self.value_dim)

    def vectors(self) -> Number:
        return delta_vectors(self.conv_size, self.channels(), self.value_heads, self.value_dim)

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        values = self.value_heads * self.value_dim / tp
        fused = (self.channels() + 2 * self.value_heads) / tp + values
        return Matrix("QKV and gates", self.hidden, fused), Matrix("attention output", values, self.hidden)

    def split_sizes(self) -> tuple[Number, ...]:
        return self.key_heads, self.value_heads

    def streamed(self, tp: Number) -> Number:
        channels = self.channels()  # read and written by the convolution, read by the core
        values, state = self.value_heads * self.value_dim, delta_state(self.value_heads, self.key_dim, self.value_dim)
        return streamed_elements(3 * channels, values, state, self.chunk, tp)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        values, keys = self.value_heads * self.value_dim / tp, 2 * self.key_heads * self.key_dim / tp
        return Stream(keys, 4.0, 10.0, 2, 2), Stream(values, 4.0, 10.0, 1, 2), Stream(values, 6.0, 10.0)

    def state(self) -> State:
        return State(
            delta_state(self.value_heads, self.key_dim, self.value_dim),
            convolution_state(self.conv_size, self.channels()),
        )

    def _convolved(self, core: Number, tokens: Number) -> Number:
        return add_flops(core, tokens_flops(convolution_flops(self.conv_size, self.channels()), tokens))

    def core_flops(self, tokens: Number, context: Number) -> Number:
        token = delta_flops(self.value_heads, self.key_dim, self.value_dim)
        return self._convolved(tokens_flops(token, tokens), tokens)

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        token = delta_chunk_flops(self.value_heads, self.key_dim, self.value_dim, self.chunk)
        return self._convolved(tokens_flops(token, tokens), tokens)
