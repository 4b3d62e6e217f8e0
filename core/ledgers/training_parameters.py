"""Parameters that a rank holds while it trains: of the layers of its stage, and of what stands before and after them.

Those of routed experts are told apart: they lie over other ranks than the rest, and are sharded over fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from ..model import parameters as count
from ..model.kinds.mixer import add_parameters, present
from ..model.layers import Model
from ..numeric import Number, maximum, where
from ..terms import formula
from ..training.layout import Layout
from ..training.stage_kinds import StageKinds

_SPLIT = "Shoeybi 2019, arXiv 1909.08053"


@formula("ψ", "parameters", _SPLIT)
def stage_parameters(
    blocks: Number, first: Number, last: Number, embedding: Number, head: Number, ends: Number
) -> Number:
    """Parameters a rank of a stage holds; `first` and `last` are 1 on the stages with embedding and head."""
    return blocks + first * embedding + last * head + ends


@formula("ends", "parameters")
def stage_ends(first: Number, before: Number, last: Number, after: Number) -> Number:
    """Learned positions and the like on the first stage, the final norm and the like on the last."""
    return first * before + last * after


@formula("V/t", "parameters")
def head_bias_share(vocabulary: Number, tensor_parallel: Number) -> Number:
    """Parameters of the bias of the output head on one rank."""
    return vocabulary / tensor_parallel


@formula("h·w", "parameters", "kept whole on every rank")
def width_projection(hidden: Number, width: Number) -> Number:
    """Parameters of the matrix between an embedding of another width and the residual stream."""
    return hidden * width


@formula("ψ̄", "parameters", "mean over the layers of the model")
def mean_of_layers(parameters: Number, layers: Number) -> Number:
    """Parameters of one layer on a rank, mean over all layers."""
    return parameters / layers


@formula("ψ_mtp", "parameters", "arXiv 2412.19437, section 2.2; embedding and head are shared with the model")
def prediction_share(modules: Number, block: Number, hidden: Number, norm_vectors: Number, tensor: Number) -> Number:
    """Parameters on one rank of modules that predict further tokens, beside their routed experts."""
    return modules * (block + 2 * hidden**2 / tensor + 3 * norm_vectors * hidden)


@formula("D_e/D_r", "ranks")
def expert_shards(expert_replicas: Number, replicas: Number) -> Number:
    """Ranks over which ZeRO shards routed experts: those with the same ones, over the replicas of HSDP."""
    return maximum(1, expert_replicas / replicas)


def flag(condition: Any) -> Number:
    """1 where a condition holds, else 0."""
    return where(condition, 1.0, 0.0)


@dataclass(frozen=True)
class RankParameters:
    """Parameters of a rank under a layout.

    Prediction modules are trained with the model and stand on its last stage; a vision tower is not trained.
    """

    model: Model
    layout: Layout

    @cached_property
    def kinds(self) -> StageKinds:
        return StageKinds(self.model, self.layout.stages, self.layout.pipeline)

    @cached_property
    def common(self) -> tuple[Number, ...]:
        """Parameters of one block of each group on a rank, routed experts apart."""
        return tuple(block.common_share(self.layout.tensor) for _, block in self.model.groups)

    @cached_property
    def routed(self) -> tuple[Number, ...]:
        """Parameters of the routed experts of one block of each group on a rank."""
        layout = self.layout
        return tuple(block.ffn.routed_share(layout.expert, layout.expert_tensor) for _, block in self.model.groups)

    @cached_property
    def any_routed(self) -> bool:
        return any(block.experts for _, block in self.model.groups)

    @cached_property
    def blocks(self) -> tuple[Number, ...]:
        """Parameters of one block of each group on a rank."""
        if not self.any_routed:
            return self.common
        return tuple(add_parameters(*each) for each in zip(self.common, self.routed, strict=True))

    @cached_property
    def vocabulary(self) -> Number:
        """Rows of the vocabulary, padded for the ranks."""
        spec = self.model.spec
        return count.padded_vocabulary(spec.vocabulary, spec.vocabulary_multiple, self.layout.tensor)

    @cached_property
    def head_matrix(self) -> Number:
        """Parameters of the output matrix on a rank, also where it is the embedding."""
        return count.ffn_share(count.embedding_matrix(self.vocabulary, self.model.width), self.layout.tensor)

    @cached_property
    def embedding(self) -> Number:
        """Parameters of the embedding on a rank."""
        extra = self.model.spec.extra_rows
        if not present(extra):
            return self.head_matrix
        rows = count.embedding_rows(self.vocabulary, extra)
        return count.ffn_share(count.embedding_matrix(rows, self.model.width), self.layout.tensor)

    @cached_property
    def head(self) -> Number:
        """The same of the output head; a tied one is the embedding on one stage, a copy on the last of several."""
        if not self.model.spec.tied:
            return self.head_matrix
        return where(self.layout.pipeline > 1, self.head_matrix, 0.0)

    @cached_property
    def _before(self) -> Number:
        """Parameters beside the embedding on the first stage."""
        model, spec = self.model, self.model.spec
        before = model.positions
        if spec.embedding_norm:
            before = add_parameters(before, count.outer_vectors(model.hidden, model.norm_vectors, 0.0, 1.0))
        if present(spec.embedding_size):
            before = add_parameters(before, width_projection(model.hidden, model.width))
        return before

    @cached_property
    def _after(self) -> Number:
        """Parameters beside the head on the last stage, routed experts apart."""
        model, spec, tensor = self.model, self.model.spec, self.layout.tensor
        after = count.outer_vectors(model.hidden, model.norm_vectors, float(spec.final_norm), 0.0)
        if spec.head_bias:
            after = add_parameters(after, head_bias_share(self.vocabulary, tensor))
        if present(spec.embedding_size):
            after = add_parameters(after, width_projection(model.hidden, model.width))
        if present(spec.mtp_modules):
            block = self.common[model.last_group]
            modules = prediction_share(spec.mtp_modules, block, model.hidden, model.norm_vectors, tensor)
            after = add_parameters(after, modules)
        return after

    def _mean(self, shares: tuple[Number, ...]) -> Number:
        if len(shares) == 1:
            return shares[0]
        layers = [layers for layers, _ in self.model.groups]
        return mean_of_layers(_sum(layers, shares), self.model.layers)

    @cached_property
    def mean_common(self) -> Number:
        """Parameters of one block on a rank, mean over the layers, routed experts apart."""
        return self._mean(self.common)

    @cached_property
    def mean_routed(self) -> Number:
        """Parameters of the routed experts of one block on a rank, mean over the layers."""
        return self._mean(self.routed)

    @cached_property
    def mean_block(self) -> Number:
        """Parameters of one block on a rank, mean over the layers."""
        return add_parameters(self.mean_common, self.mean_routed) if self.any_routed else self.mean_common

    def common_on(self, stage: Number) -> Number:
        """Parameters a rank of the stage holds, routed experts apart."""
        first, last = flag(stage == 0), flag(stage == self.layout.pipeline - 1)
        ends = stage_ends(first, self._before, last, self._after)
        return stage_parameters(_sum(self.kinds.on(stage), self.common), first, last, self.embedding, self.head, ends)

    def routed_on(self, stage: Number) -> Number:
        """Parameters of routed experts that a rank of the stage holds."""
        blocks = _sum(self.kinds.on(stage), self.routed)
        modules = self.model.spec.mtp_modules
        if not present(modules):
            return blocks
        last = flag(stage == self.layout.pipeline - 1)
        return add_parameters(blocks, count.layers_parameters(last * modules, self.routed[self.model.last_group]))

    def blocks_on(self, stage: Number) -> Number:
        """Parameters of the blocks of a stage on a rank."""
        return _sum(self.kinds.on(stage), self.blocks)

    @cached_property
    def expert_shards(self) -> Number:
        """Ranks over which ZeRO shards routed experts."""
        return expert_shards(self.layout.expert_replicas, self.layout.replica_group.ranks)


def _sum(layers: tuple[Number, ...] | list[Number], shares: tuple[Number, ...]) -> Number:
    """Parameters of some layers of each group."""
    return reduce(add_parameters, [count.layers_parameters(*each) for each in zip(layers, shares, strict=True)])


@formula("max P", "parameters", "of the kinds of layer on the stage")
def larger_block(largest: Number, layers: Number, parameters: Number) -> Number:
    """The larger of two blocks, the second only where the stage has such layers."""
    return maximum(largest, where(layers > 0, parameters, 0.0))


def largest_present(
    layers: tuple[Number, ...], values: tuple[Number, ...], larger: Callable[[Number, Number, Number], Number]
) -> Number:
    """The largest value of the groups that a stage has layers of."""
    if len(values) == 1:
        return values[0]
    return reduce(lambda most, each: larger(most, *each), zip(layers, values, strict=True), 0.0)
