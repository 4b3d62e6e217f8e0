"""State spaces and short convolutions.

Sources: Mamba, arXiv 2312.00752; Mamba-2, arXiv 2405.21060; short convolutions as in the published Lfm2 models.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...numeric import Number
from ...sums import add_flops, add_parameters
from ...terms import formula
from .mixer import Matrix, Mixer, State, Stream, tokens_flops
from .recurrent import convolution_flops, convolution_state, split_share, streamed_elements

_MAMBA = "arXiv 2312.00752"
_MAMBA2 = "arXiv 2405.21060"
_SHORT = "tensor shapes of the published Lfm2 models"


@formula("P_ssm", "parameters", _MAMBA)
def mamba_matrices(hidden: Number, inner: Number, rank: Number, state: Number) -> Number:
    """Parameters of one Mamba layer: in, step and both state projections, step up, out."""
    return 3 * hidden * inner + inner * (rank + 2 * state) + rank * inner


@formula("P_ssm,vec", "parameters", _MAMBA)
def mamba_vectors(
    inner: Number, rank: Number, state: Number, conv_size: Number, conv_bias: Number, norms: Number
) -> Number:
    """Parameters of convolution, step bias, decay, skip, and of norms on step and state projections where there are."""
    return inner * (conv_size + conv_bias + 2 + state) + norms * (rank + 2 * state)


@formula("b_ssm", "parameters", _MAMBA)
def mamba_biases(hidden: Number, inner: Number) -> Number:
    """Parameters of biases on the in and out projections."""
    return 2 * inner + hidden


@formula("F_ssm", "FLOP/token", _MAMBA, "gates; runs on vector units")
def mamba_flops(inner: Number, state: Number) -> Number:
    """FLOPs of a token in the scan."""
    return 9 * inner * state


@formula("c", "elements", _MAMBA2)
def mamba2_channels(inner: Number, groups: Number, state: Number) -> Number:
    """Width that the convolution of one Mamba-2 layer passes over: values and both state projections."""
    return inner + 2 * groups * state


@formula("P_ssm", "parameters", _MAMBA2)
def mamba2_matrices(hidden: Number, inner: Number, channels: Number, heads: Number) -> Number:
    """Parameters of one Mamba-2 layer: gate, values, state projections and steps in one, and out."""
    return hidden * (inner + channels + heads) + inner * hidden


@formula("P_ssm,vec", "parameters", _MAMBA2)
def mamba2_vectors(
    inner: Number, channels: Number, heads: Number, conv_size: Number, conv_bias: Number, norm: Number
) -> Number:
    """Parameters of convolution, of step bias, decay and skip a head, and of the gated norm where there is one."""
    return (conv_size + conv_bias) * channels + 3 * heads + norm * inner


@formula("b_ssm", "parameters", _MAMBA2)
def mamba2_biases(hidden: Number, inner: Number, channels: Number, heads: Number) -> Number:
    """Parameters of biases on the in and out projections."""
    return inner + channels + heads + hidden


@formula("F_ssm", "FLOP/token", _MAMBA2)
def mamba2_flops(inner: Number, state: Number) -> Number:
    """FLOPs of a token in the recurrence: the state is updated and read."""
    return 4 * inner * state


@formula("F_ssm,chunk", "FLOP/token", _MAMBA2)
def mamba2_chunk_flops(inner: Number, state: Number, groups: Number, chunk: Number) -> Number:
    """FLOPs of a token in chunks: products inside the chunk beside update and read of the state."""
    return 2 * chunk * (groups * state + inner) + 4 * inner * state


@formula("S_ssm", "elements", _MAMBA)
def ssm_state(inner: Number, state: Number) -> Number:
    """Elements of the state of a sequence in one layer."""
    return inner * state


@formula("P_conv", "parameters", _SHORT)
def short_matrices(hidden: Number) -> Number:
    """Parameters of one short convolution layer: two gates and values in one, and out."""
    return 4 * hidden**2


@formula("P_conv,vec", "parameters", _SHORT)
def short_vectors(hidden: Number, conv_size: Number, conv_bias: Number) -> Number:
    """Parameters of the convolution, and of biases on all three where there are."""
    return conv_size * hidden + conv_bias * 5 * hidden


@dataclass(frozen=True)
class Mamba(Mixer):
    """A selective state space whose state is a vector a channel. Switches are 0 or 1."""

    hidden: Number
    inner: Number
    rank: Number
    state_size: Number
    conv_size: Number
    conv_bias: int
    bias: int
    norms: int
    core_name = "state space"

    def matrices(self) -> Number:
        return mamba_matrices(self.hidden, self.inner, self.rank, self.state_size)

    def vectors(self) -> Number:
        vectors = mamba_vectors(self.inner, self.rank, self.state_size, self.conv_size, self.conv_bias, self.norms)
        return add_parameters(vectors, mamba_biases(self.hidden, self.inner)) if self.bias else vectors

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        inner = self.inner / tp
        return (
            Matrix("in", self.hidden, 2 * inner),
            Matrix("step and state", inner, self.rank + 2 * self.state_size),
            Matrix("step up", self.rank, inner),
            Matrix("out", inner, self.hidden),
        )

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.inner,)

    @property
    def scans(self) -> bool:
        return True

    def streamed(self, tp: Number) -> Number:
        # the convolution reads and writes the values; the scan reads them, their steps and both state projections
        inputs = 4 * self.inner + 2 * self.state_size
        return streamed_elements(inputs, self.inner, 0.0, 1.0, tp)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        gate = Stream(self.inner / tp, 6.0, 10.0)
        return (gate, Stream(self.rank + 2 * self.state_size, 4.0, 10.0, 3, 3)) if self.norms else (gate,)

    def state(self) -> State:
        return State(ssm_state(self.inner, self.state_size), convolution_state(self.conv_size, self.inner))

    def core_flops(self, tokens: Number, context: Number) -> Number:
        convolution = tokens_flops(convolution_flops(self.conv_size, self.inner), tokens)
        return add_flops(tokens_flops(mamba_flops(self.inner, self.state_size), tokens), convolution)


@dataclass(frozen=True)
class Mamba2(Mixer):
    """A selective state space whose state is a matrix a head; state projections are shared by groups of heads."""

    hidden: Number
    inner: Number
    heads: Number
    groups: Number
    state_size: Number
    conv_size: Number
    conv_bias: int
    bias: int
    norm: int
    chunk: Number
    core_name = "state space"

    def channels(self) -> Number:
        """Width that the convolution passes over."""
        return mamba2_channels(self.inner, self.groups, self.state_size)

    def matrices(self) -> Number:
        return mamba2_matrices(self.hidden, self.inner, self.channels(), self.heads)

    def vectors(self) -> Number:
        vectors = mamba2_vectors(self.inner, self.channels(), self.heads, self.conv_size, self.conv_bias, self.norm)
        if not self.bias:
            return vectors
        return add_parameters(vectors, mamba2_biases(self.hidden, self.inner, self.channels(), self.heads))

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        inner = self.inner / tp
        return (
            Matrix("in", self.hidden, (self.channels() + self.heads) / tp + inner),
            Matrix("out", inner, self.hidden),
        )

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.heads,)

    def streamed(self, tp: Number) -> Number:
        inputs = 3 * self.channels() + self.heads  # the convolution reads and writes its channels, the scan reads them
        # states of chunks are written, read and written along the sequence, and read: kernels of the public code
        states = 2 * ssm_state(self.inner, self.state_size)
        return streamed_elements(inputs, self.inner, states, self.chunk, tp)

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        gate = Stream(self.inner / tp, 6.0, 10.0)
        return (gate, Stream(self.inner / tp, 4.0, 10.0, 1, 2)) if self.norm else (gate,)

    def state(self) -> State:
        return State(ssm_state(self.inner, self.state_size), convolution_state(self.conv_size, self.channels()))

    def _convolved(self, core: Number, tokens: Number) -> Number:
        return add_flops(core, tokens_flops(convolution_flops(self.conv_size, self.channels()), tokens))

    def core_flops(self, tokens: Number, context: Number) -> Number:
        return self._convolved(tokens_flops(mamba2_flops(self.inner, self.state_size), tokens), tokens)

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        token = mamba2_chunk_flops(self.inner, self.state_size, self.groups, self.chunk)
        return self._convolved(tokens_flops(token, tokens), tokens)


@dataclass(frozen=True)
class ShortConvolution(Mixer):
    """A gated convolution over the last few tokens."""

    hidden: Number
    conv_size: Number
    conv_bias: int
    core_name = "short convolution"

    def matrices(self) -> Number:
        return short_matrices(self.hidden)

    def vectors(self) -> Number:
        return short_vectors(self.hidden, self.conv_size, self.conv_bias)

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return Matrix("in", self.hidden, 3 * self.hidden / tp), Matrix("out", self.hidden / tp, self.hidden)

    def split_sizes(self) -> tuple[Number, ...]:
        return (self.hidden,)

    @property
    def scans(self) -> bool:
        return True

    def streamed(self, tp: Number) -> Number:
        return streamed_elements(3 * self.hidden, self.hidden, 0.0, 1.0, tp)  # both gates are in the kernel

    def state(self) -> State:
        return State(0.0, convolution_state(self.conv_size, self.hidden))

    def core_flops(self, tokens: Number, context: Number) -> Number:
        return tokens_flops(convolution_flops(self.conv_size, self.hidden), tokens)
