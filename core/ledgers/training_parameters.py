"""Parameters that a rank holds while it trains: of the layers of its stage, and of what stands before and after them.

Those of routed experts are told apart: they lie over other ranks than the rest, and are sharded over fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from typing import Any

from ..model import parameters as count
from ..model.kinds.feed_forward import Experts
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..numeric import Number, maximum, where
from ..sums import add_parameters
from ..terms import formula
from ..training.layout import Layout
from ..training.stage_kinds import stage_kinds

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


@formula("P_r", "parameters", "routed experts that one rank alone holds are not sharded")
def gathered_experts(routed: Number, shards: Number) -> Number:
    """Routed experts of a block that ZeRO-3 gathers: all where several ranks share them, else none."""
    return where(shards > 1, routed, 0.0)


@formula("ψ − P_mat", "parameters")
def outer_parameters(parameters: Number, matrices: Number) -> Number:
    """Parameters outside the matrices of blocks: embedding, head, norms and biases."""
    return parameters - matrices


@formula("P − P_mat·(1 − w_q/w)", "parameters", "as many 16-bit parameters as have the bytes of these")
def sixteen_bit_parameters(parameters: Number, matrices: Number, width: Number) -> Number:
    """Parameters by their bytes, those in matrices quantised."""
    return parameters - matrices + matrices * width / 2


@formula("n·(rows + columns)", "values", "Shazeer 2018, arXiv 1804.04235")
def factored_values(rows: Number, columns: Number, count: Number) -> Number:
    """Second moments of a matrix that are kept by its rows and columns."""
    return count * (rows + columns)


def flag(condition: Any) -> Number:
    """1 where a condition holds, else 0."""
    return where(condition, 1.0, 0.0)


class RankParameters:
    """Parameters of a rank under a layout.

    Prediction modules are trained with the model and stand on its last stage; a vision tower is not trained.
    """

    def __init__(self, model: Model, layout: Layout) -> None:
        self.model, self.layout = model, layout
        self.kinds = stage_kinds(model, layout.stages, layout.pipeline)
        blocks = [block for _, block in model.groups]
        self.any_routed = any(block.experts for block in blocks)
        #: Parameters of one block of each group on a rank: routed experts apart, of routed experts, and both.
        self.common = tuple(block.common_share(layout.tensor) for block in blocks)
        self.routed = tuple(block.ffn.routed_share(layout.expert, layout.expert_tensor) for block in blocks)
        self.blocks = tuple(map(add_parameters, self.common, self.routed)) if self.any_routed else self.common
        #: The same of one block, mean over the layers.
        self.mean_common, self.mean_routed, self.mean_block = map(self.mean, (self.common, self.routed, self.blocks))
        spec = model.spec
        #: Rows of the vocabulary, padded for the ranks.
        self.vocabulary = count.padded_vocabulary(spec.vocabulary, spec.vocabulary_multiple, layout.tensor)
        #: Parameters of the output matrix on a rank, also where it is the embedding, and of the embedding.
        self.head_matrix = self._rows_share(self.vocabulary)
        self.embedding = self.head_matrix
        if present(spec.extra_rows):
            self.embedding = self._rows_share(count.embedding_rows(self.vocabulary, spec.extra_rows))
        #: Of the output head; a tied one is the embedding on the same rank, a copy on another.
        self.head = self._tied_head() if spec.tied else self.head_matrix
        self._before, self._behind = self._beside_embedding(), self._beside_head()
        self._after = self._with_trained_modules()

    def _tied_head(self) -> Number:
        return 0.0 if self.layout.one_rank_ends else where(self.layout.pipeline > 1, self.head_matrix, 0.0)

    def _rows_share(self, rows: Number) -> Number:
        return count.ffn_share(count.embedding_matrix(rows, self.model.width), self.layout.tensor)

    def _beside_embedding(self) -> Number:
        """Parameters beside the embedding on the first stage."""
        model, spec = self.model, self.model.spec
        before = model.positions
        if spec.embedding_norm:
            before = add_parameters(before, count.outer_vectors(model.hidden, model.norm_vectors, 0.0, 1.0))
        if present(spec.embedding_size):
            before = add_parameters(before, width_projection(model.hidden, model.width))
        return before

    def _beside_head(self) -> Number:
        """Parameters beside the head on the last stage, prediction modules apart."""
        model, spec = self.model, self.model.spec
        behind = count.outer_vectors(model.hidden, model.norm_vectors, float(spec.final_norm), 0.0)
        if spec.head_bias:
            behind = add_parameters(behind, head_bias_share(self.vocabulary, self.layout.tensor))
        if present(spec.embedding_size):
            behind = add_parameters(behind, width_projection(model.hidden, model.width))
        return behind

    def _with_trained_modules(self) -> Number:
        """The same with prediction modules, routed experts apart."""
        model, spec = self.model, self.model.spec
        if not present(spec.mtp_modules):
            return self._behind
        block = self.common[model.last_group]
        sizes = block, model.hidden, model.norm_vectors, self.layout.tensor
        return add_parameters(self._behind, prediction_share(spec.mtp_modules, *sizes))

    @cached_property
    def common_matrices(self) -> tuple[Number, ...]:
        """Parameters in the matrices of one block of each group on a rank, routed experts apart."""
        tensor, blocks = self.layout.tensor, [block for _, block in self.model.groups]
        return tuple(count.block_share(b.mixer.share(tensor), b.ffn.common_share(tensor), 0.0) for b in blocks)

    def mean(self, shares: tuple[Number, ...]) -> Number:
        """Something of one block of each group, mean over the layers."""
        if len(shares) == 1:
            return shares[0]
        layers = [layers for layers, _ in self.model.groups]
        return mean_of_layers(_sum(layers, shares), self.model.layers)

    def common_on(self, stage: Number) -> Number:
        """Parameters a rank of the stage holds, routed experts apart."""
        first, last = self.kinds.firsts(stage), self.kinds.lasts(stage)
        ends = stage_ends(first, self._before, last, self._after)
        return stage_parameters(_sum(self.kinds.on(stage), self.common), first, last, self.embedding, self.head, ends)

    def routed_on(self, stage: Number) -> Number:
        """Parameters of routed experts that a rank of the stage holds."""
        return self.with_modules(stage, self.routed)

    def with_modules(self, stage: Number, shares: tuple[Number, ...]) -> Number:
        """Something of the blocks of a stage, and of the blocks of prediction modules on the last one."""
        blocks, modules = _sum(self.kinds.on(stage), shares), self.model.spec.mtp_modules
        if not present(modules):
            return blocks
        last = self.kinds.lasts(stage)
        return add_parameters(blocks, count.layers_parameters(last * modules, shares[self.model.last_group]))

    @cached_property
    def gathered_blocks(self) -> tuple[Number, ...]:
        """Parameters of one block of each group that ZeRO-3 gathers; experts no other rank holds are never sharded."""
        return self._gathered_of(self.common)

    @cached_property
    def gathered_matrices(self) -> tuple[Number, ...]:
        """Those of them in matrices."""
        return self._gathered_of(self.common_matrices)

    def _gathered_of(self, common: tuple[Number, ...]) -> tuple[Number, ...]:
        """Something of one block of each group with those of its routed experts that are gathered."""
        if not self.any_routed:
            return common
        experts = [gathered_experts(routed, self.expert_shards) for routed in self.routed]
        return tuple(map(add_parameters, common, experts))

    def matrices_on(self, stage: Number) -> Number:
        """Parameters in the matrices of the blocks of a stage on a rank, routed experts apart."""
        return self.with_modules(stage, self.common_matrices)

    def factored_on(self, stage: Number) -> tuple[Number, Number]:
        """Second moments of a stage by rows and columns: routed experts apart, and of routed experts."""
        layout, model = self.layout, self.model
        first, last = self.kinds.firsts(stage), self.kinds.lasts(stage)
        end = factored_values(self.vocabulary / layout.tensor, model.width, 1.0)
        ends = stage_ends(first, add_parameters(end, self._before), last, add_parameters(end, self._behind))
        common = tuple(
            reduce(
                add_parameters,
                [factored_values(matrix.inputs, matrix.outputs, 1.0) for matrix in block.projections(layout.tensor)],
                outer_parameters(whole, matrices),
            )
            for (_, block), whole, matrices in zip(model.groups, self.common, self.common_matrices, strict=True)
        )
        routed = tuple(self._factored_experts(block.experts) for _, block in model.groups)
        return add_parameters(self.with_modules(stage, common), ends), self.with_modules(stage, routed)

    def _factored_experts(self, experts: Experts | None) -> Number:
        """Second moments of the routed experts of one block on a rank, by rows and columns."""
        if experts is None:
            return 0.0
        each = experts.expert_projections(self.layout.expert_tensor)
        held = experts.experts / self.layout.expert
        return reduce(add_parameters, [factored_values(matrix.inputs, matrix.outputs, held) for matrix in each])

    @cached_property
    def expert_shards(self) -> Number:
        """Ranks over which ZeRO shards routed experts."""
        return expert_shards(self.layout.expert_replicas, self.layout.replica_group.ranks)


def _sum(layers: tuple[Number, ...] | list[Number], shares: tuple[Number, ...]) -> Number:
    """Parameters of some layers of each group."""
    if len(shares) == 1:
        return count.layers_parameters(layers[0], shares[0])
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
