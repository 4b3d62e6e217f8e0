"""What the time of a block is made of, and the mean block of a model with several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce

from ...machine.device import Kernel
from ...numeric import Number
from ...sums import add_times, times_bytes, times_count, times_seconds, total_bytes, total_seconds
from ...terms import formula
from ..overlap import compute_seconds, pass_seconds
from .dispatch import ExpertTraffic


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass over one block, by kind of work; communication as it is exposed."""

    matrices: Number
    attention: Number
    pointwise: Number
    tensor: Number = 0.0
    context: Number = 0.0
    accumulation: Number = 0.0
    casts: Number = 0.0
    #: Router and rewriting of token copies.
    routing: Number = 0.0
    #: What the host takes to launch them.
    launches: Number = 0.0
    #: Exchange of tokens with the ranks of their experts.
    expert: Number = 0.0
    #: Waiting for activations on their way to the host or back.
    host: Number = 0.0
    #: Norms and activation, which selective recomputation repeats.
    cheap: Number = 0.0
    #: Tensor, context and expert parallel traffic before overlap.
    tensor_traffic: Number = 0.0
    context_traffic: Number = 0.0
    expert_traffic: Number = 0.0

    @property
    def compute(self) -> Number:
        """Seconds of the kernels that compute."""
        return compute_seconds(
            self.matrices,
            self.attention,
            self.pointwise,
            self.accumulation,
            self.casts,
            self.routing,
            self.launches,
        )

    @property
    def seconds(self) -> Number:
        return pass_seconds(
            self.matrices,
            self.attention,
            self.pointwise,
            self.tensor,
            self.context,
            self.accumulation,
            self.casts,
            self.routing,
            self.launches,
            self.expert,
            self.host,
        )


@dataclass(frozen=True)
class Product:
    """A matrix product of a block, [rows, inputs] x [inputs, outputs], and its three kernels.

    The rows of a grouped product are those of all its groups.
    """

    name: str
    rows: Number
    inputs: Number
    outputs: Number
    forward: Kernel
    input_gradient: Kernel
    weight_gradient: Kernel
    #: Computed again where the narrow vector it expands is kept instead of its result.
    expands: bool = False


@dataclass(frozen=True)
class Core:
    """A core of token mixing: FLOPs and bytes of one forward pass, seconds of both, and backward work in passes."""

    name: str
    flops: Number
    moved: Number
    forward: Number
    backward: Number
    flops_back: float
    moved_back: float
    bound: str


@dataclass(frozen=True)
class BlockTime:
    """One block: forward, backward and what is computed again, in seconds."""

    forward: Pass
    backward: Pass
    forward_seconds: Number
    backward_seconds: Number
    recompute_seconds: Number
    weight_gradient_seconds: Number
    products: tuple[Product, ...]
    cores: tuple[Core, ...]
    #: Pairs of tensor parallel collectives of a pass, and bytes that a pass exchanges between context parallel ranks.
    tensor_pairs: Number
    context_sent: Number
    #: What routed experts exchange in one pass; None without them.
    experts: ExpertTraffic | None = None


@formula("Σ L_g·t_g/L", "s", "layers of each kind, weighted by how many there are")
def mean_layer_seconds(together: Number, layers: Number) -> Number:
    """Mean over the layers of a model."""
    return together / layers


@formula("Σ L_g·S_g/L", "B", "layers of each kind, weighted by how many there are")
def mean_layer_bytes(together: Number, layers: Number) -> Number:
    """Bytes of a layer, mean over the layers of a model."""
    return together / layers


@formula("Σ L_g·n_g/L", "")
def mean_of_blocks(together: Number, layers: Number) -> Number:
    """Something that each layer has, mean over the layers of a model."""
    return together / layers


def _mean(counts: Sequence[Number], seconds: Sequence[Number], layers: Number) -> Number:
    return mean_layer_seconds(total_seconds(list(map(times_seconds, counts, seconds))), layers)


def _mean_pass(counts: Sequence[Number], passes: Sequence[Pass], layers: Number) -> Pass:
    names = [field.name for field in fields(Pass)]
    return Pass(**{name: _mean(counts, [getattr(each, name) for each in passes], layers) for name in names})


def mean_block(counts: Sequence[Number], blocks: Sequence[BlockTime], layers: Number) -> BlockTime:
    """The mean over the layers of a model: the block itself where all are equal."""
    if len(blocks) == 1:
        return blocks[0]
    return BlockTime(
        _mean_pass(counts, [each.forward for each in blocks], layers),
        _mean_pass(counts, [each.backward for each in blocks], layers),
        _mean(counts, [each.forward_seconds for each in blocks], layers),
        _mean(counts, [each.backward_seconds for each in blocks], layers),
        _mean(counts, [each.recompute_seconds for each in blocks], layers),
        _mean(counts, [each.weight_gradient_seconds for each in blocks], layers),
        (),
        (),
        mean_of_blocks(reduce(add_times, map(times_count, counts, [each.tensor_pairs for each in blocks])), layers),
        mean_layer_bytes(total_bytes(list(map(times_bytes, counts, [each.context_sent for each in blocks]))), layers),
    )
