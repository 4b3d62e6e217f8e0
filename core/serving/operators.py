"""Kernels of an engine iteration: what each computes and moves, and how long it takes on one rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..model.layers import Matrix
from ..numeric import Number, is_array, maximum
from ..sums import add_bytes, times_bytes, times_seconds, total_bytes, total_seconds
from ..terms import formula
from . import kernels
from .rates import Format, Rates
from .settings import Settings, row_grid, tiles, tuned_sizes


@formula("Σ F", "FLOP")
def all_flops(parts: list[Number]) -> Number:
    """FLOPs of several operators."""
    return sum(parts)


@formula("max", "s")
def longer_of(first: Number, second: Number) -> Number:
    """The longer of two times."""
    return maximum(first, second)


class Operator(NamedTuple):
    """One kind of kernel of a pass; seconds of its mathematics, its bytes, and as it runs.

    A tuple, as a plan makes hundreds.
    """

    name: str
    flops: Number
    bytes: Number
    math: Number
    memory: Number
    seconds: Number
    peak: Number
    #: Whether it mixes tokens, so that its bytes are those of cache and states.
    core: bool = False

    def times(self, count: Number) -> Operator:
        """The same in several layers."""
        return Operator(
            self.name,
            kernels.flops_in_all(count, self.flops),
            times_bytes(count, self.bytes),
            times_seconds(count, self.math),
            times_seconds(count, self.memory),
            times_seconds(count, self.seconds),
            self.peak,
            self.core,
        )

    def several_queries(self, tokens: Number) -> Operator:
        """The core of a decode step for several tokens of each sequence: more mathematics over the same cache."""
        math = times_seconds(tokens, self.math)
        seconds = longer_of(self.seconds, math)
        return self._replace(flops=kernels.flops_in_all(tokens, self.flops), math=math, seconds=seconds)


def merged(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The operators with those of one name added up, in the order of the first of each."""
    named: dict[str, list[Operator]] = {}
    for each in operators:
        named.setdefault(each.name, []).append(each)
    return tuple(_sum(same) if len(same) > 1 else same[0] for same in named.values())


def _sum(same: list[Operator]) -> Operator:
    return same[0]._replace(
        flops=all_flops([each.flops for each in same]),
        bytes=total_bytes([each.bytes for each in same]),
        math=total_seconds([each.math for each in same]),
        memory=total_seconds([each.memory for each in same]),
        seconds=total_seconds([each.seconds for each in same]),
    )


@dataclass(frozen=True)
class Rank:
    """One tensor parallel rank of an engine: its share of a model, its rates and the constants behind them."""

    tensor: Number
    #: Groups that experts are laid over, ranks that split an expert, and ranks whose tokens share the experts.
    expert_groups: Number
    expert_split: Number
    sharing: Number
    settings: Settings
    rates: Rates
    units: Number
    experts: Format
    plain: Format
    #: Tokens of a prompt, over which the work on its images is spread.
    prompt: Number
    #: Seconds of matrix products at tuned batch sizes, one or all (None) of them, which several passes share.
    timed: dict[tuple[Number, ...], tuple[Number, Number]] = field(default_factory=dict, compare=False)

    def matrix(self, matrix: Matrix, number: Format, weights: Number, rows: Number) -> Operator:
        """A matrix product in one layer, on the line between the tuned batch sizes around its rows."""
        below, above = tuned_sizes(rows)
        math_below, time_below = self._at_size(matrix, number, weights, below)
        if is_array(rows) or below != above:
            math_above, time_above = self._at_size(matrix, number, weights, above)
        else:
            math_above, time_above = math_below, time_below
        operands = kernels.operand_bytes(rows, matrix.inputs, matrix.outputs, number.activation_bytes)
        return Operator(
            matrix.name,
            kernels.matrix_flops(rows, matrix.outputs, matrix.inputs),
            add_bytes(weights, operands),
            kernels.between_sizes(rows, below, above, math_below, math_above),
            kernels.matrix_memory_seconds(weights, operands, number.streaming, self.rates.memory),
            kernels.between_sizes(rows, below, above, time_below, time_above),
            number.peak,
        )

    def _at_size(self, matrix: Matrix, number: Format, weights: Number, rows: Number) -> tuple[Number, Number]:
        """Seconds of the mathematics and of the kernel at a tuned batch size; an array of these is looked up."""
        inner, columns, many = matrix.inputs, matrix.outputs, is_array(rows)
        if is_array(inner, columns, weights) or (many and self._differs(number)):
            return self._timed(inner, columns, number, weights, rows)
        sizes = np.asarray(row_grid()) if many else rows
        key = inner, columns, id(number), None if many else rows
        if key not in self.timed:
            self.timed[key] = self._timed(inner, columns, number, weights, sizes)
        math, seconds = self.timed[key]
        if many:
            places = np.searchsorted(sizes, rows)
            return math[places], seconds[places]
        return math, seconds

    def _differs(self, number: Format) -> bool:
        """Whether plans of an array run a format at rates of their own."""
        return is_array(*vars(number).values(), self.units, self.rates.memory, self.settings.device.k_half)

    def _timed(
        self, inner: Number, columns: Number, number: Format, weights: Number, rows: Number
    ) -> tuple[Number, Number]:
        tiled = kernels.tile_seconds(
            rows, columns, inner, self.units, number.rate, self.settings.device.k_half, tiles()
        )
        narrow = kernels.narrow_seconds(rows, columns, inner, number.rate)
        math = kernels.matrix_math_seconds(rows, tiled, narrow)
        operands = kernels.operand_bytes(rows, inner, columns, number.activation_bytes)
        memory = kernels.matrix_memory_seconds(weights, operands, number.streaming, self.rates.memory)
        return math, kernels.soft_maximum(math, memory)

    def streaming(self, name: str, moved: Number) -> Operator:
        """An operator without counted FLOPs."""
        seconds = kernels.streaming_seconds(moved, self.rates.memory)
        return Operator(name, 0.0, moved, 0.0, seconds, seconds, self.rates.attention_peak)
