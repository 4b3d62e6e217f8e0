"""Simple and composed kinds: one matrix, nothing at all, and two kinds side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ...numeric import Number, largest
from ...sums import add_elements, add_flops, add_parameters
from ...terms import formula
from .feed_forward import FeedForwardKind
from .mixer import Matrix, Mixer, State, Stream
from .recurrent import split_share


@formula("P", "parameters", "arXiv 2411.19146")
def square_matrix(hidden: Number) -> Number:
    """Parameters of one matrix from the residual stream to itself."""
    return hidden**2


class _Single:
    """One matrix in place of a layer part. Source: Puzzle, arXiv 2411.19146."""

    hidden: Number
    has_core = False

    def matrices(self) -> Number:
        return square_matrix(self.hidden)

    def vectors(self) -> Number:
        return 0.0

    def share(self, tp: Number) -> Number:
        return split_share(self.matrices(), tp)

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return (Matrix("linear", self.hidden, self.hidden / tp),)


@dataclass(frozen=True)
class SingleMixer(_Single, Mixer):
    """One matrix in the place of attention: every token for itself."""

    hidden: Number


@dataclass(frozen=True)
class SingleFeedForward(_Single, FeedForwardKind):
    """One matrix in the place of a feed-forward part."""

    hidden: Number


class _Nothing:
    """An empty place."""

    hidden: Number
    has_core = False

    def matrices(self) -> Number:
        return 0.0

    def vectors(self) -> Number:
        return 0.0

    def share(self, tp: Number) -> Number:
        return 0.0

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return ()


@dataclass(frozen=True)
class NoMixer(_Nothing, Mixer):
    """A layer without token mixing."""

    hidden: Number


@dataclass(frozen=True)
class NoFeedForward(_Nothing, FeedForwardKind):
    """A layer without a feed-forward part."""

    hidden: Number


@dataclass(frozen=True)
class SideBySide(Mixer):
    """Kinds that read the same input and whose outputs are added."""

    hidden: Number
    parts: tuple[Mixer, ...]

    def matrices(self) -> Number:
        return reduce(add_parameters, [part.matrices() for part in self.parts])

    def vectors(self) -> Number:
        return reduce(add_parameters, [part.vectors() for part in self.parts])

    def share(self, tp: Number) -> Number:
        return reduce(add_parameters, [part.share(tp) for part in self.parts])

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        return tuple(matrix for part in self.parts for matrix in part.projections(tp))

    def cores(self) -> tuple[Mixer, ...]:
        return self.parts

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        return tuple(stream for part in self.parts for stream in part.pointwise(tp))

    def kv_elements(self) -> Number:
        return reduce(add_elements, [part.kv_elements() for part in self.parts])

    def kv_share(self, tp: Number) -> Number:
        return reduce(add_elements, [part.kv_share(tp) for part in self.parts])

    def scale_group(self) -> Number:
        return largest(part.scale_group() for part in self.parts)

    def kv_heads_to_split(self) -> Number:
        return largest(part.kv_heads_to_split() for part in self.parts)

    def split_sizes(self) -> tuple[Number, ...]:
        return tuple(size for part in self.parts for size in part.split_sizes())

    def state(self) -> State:
        states = [part.state() for part in self.parts]
        return State(
            reduce(add_elements, [each.recurrent for each in states]),
            reduce(add_elements, [each.convolution for each in states]),
        )

    def core_flops(self, tokens: Number, context: Number) -> Number:
        return reduce(add_flops, [part.core_flops(tokens, context) for part in self.parts])

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        return reduce(add_flops, [part.executed_core_flops(tokens, context) for part in self.parts])
