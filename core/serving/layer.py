"""One kind of layer of a model as a rank of an engine runs it."""

from __future__ import annotations

from typing import Any

from ..model.block import Block
from ..model.layers import Matrix
from ..numeric import Number, is_array
from ..terms import formula
from . import kernels
from .kinds.routed import Routed
from .kinds.table import mixing_of
from .operators import Operator, Rank
from .rates import Format

#: Parts of a usual layer: token mixing and a feed-forward part.
PARTS = 2


@formula("n_k", "kernels")
def layer_kernels(usual: Number, parts: Number, mixing: Number, expert: Number) -> Number:
    """Kernels of a layer: of its parts, and more for latent attention and for experts."""
    return usual * parts / 2 + mixing + expert


@formula("k", "B")
def part_bytes(usual: Number, parts: Number) -> Number:
    """Pointwise traffic of a layer for each element of the residual stream; half of it without one of the parts."""
    return usual * parts / 2


@formula("Σ", "number")
def add(first: Number, second: Number) -> Number:
    """Two counts of the same kind together."""
    return first + second


#: A matrix product of a layer: the matrix, the format that it runs in, and the bytes of its weights.
Product = tuple[Matrix, Format, Number]


class Layer:
    """Kernels of one layer: its matrices, its experts, its pointwise work and its core."""

    def __init__(self, block: Block, rank: Rank) -> None:
        engine, dense = rank.settings.engine, block.ffn.dense_part()
        self.block, self.rank = block, rank
        self.mixing = mixing_of(block.mixer, rank)
        self.routed = Routed(block.experts, rank) if block.experts else None
        self.ffn_matrices = dense.matrix_count if dense else 0
        self.ffn_size = dense.local_size(rank.tensor) if dense else 0.0
        usual = engine.t_eager_moe if self.routed else engine.t_eager
        self.eager = usual if self.mixing.eager is None else self.mixing.eager
        self.kernels, self.hidden_bytes = engine.kernels, engine.hidden_bytes
        expert_kernels = engine.moe_kernels if self.routed else 0.0
        parts = block.parts
        if parts < PARTS or expert_kernels or self.mixing.kernels:
            self.kernels = layer_kernels(engine.kernels, parts, self.mixing.kernels, expert_kernels)
            self.hidden_bytes = part_bytes(engine.hidden_bytes, parts)
        mixing, feed_forward = self._format(block.mixer.part), self._format(block.ffn.part)
        numbers = [(matrix, mixing) for matrix in self.mixing.matrices()]
        for matrix in block.ffn.projections(rank.tensor):
            numbers.append((matrix, rank.plain if matrix.name == "router" else feed_forward))
        self.matrices: list[Product] = [
            (matrix, number, kernels.weight_bytes(matrix.inputs, matrix.outputs, number.bits))
            for matrix, number in numbers
        ]

    def _format(self, part: str) -> Format:
        left = part in self.rank.settings.weights.leaves
        return self.rank.plain if left else self.rank.rates.blocks

    def experts(self, rows: Number) -> tuple[Operator, ...]:
        """The routed experts, where there are some; `rows` are the mean of the ranks that share them."""
        return (self.routed.operator(rows),) if self.routed else ()

    def pointwise(self, rows: Number) -> Operator:
        """Norms, residuals, rotary embedding, casts and activation."""
        moved = kernels.pointwise_bytes(rows, self.block.hidden, self.hidden_bytes, self.ffn_matrices, self.ffn_size)
        return self.rank.streaming("norms and activation", moved)


def products(groups: list[tuple[Number, Layer]]) -> list[tuple[Number, Product]]:
    """The matrix products of a model with how many layers have each: what several groups share is one."""
    found: dict[Any, tuple[Number, Product]] = {}
    for layers, layer in groups:
        for product in layer.matrices:
            matrix, number, _ = product
            sizes = matrix.inputs, matrix.outputs
            key = len(found) if is_array(*sizes) else (matrix.name, *sizes, id(number))
            found[key] = add(found[key][0], layers) if key in found else layers, product
    return list(found.values())
