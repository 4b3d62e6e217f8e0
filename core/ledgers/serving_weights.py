"""Weights of a serving engine on one device, in their number format.

With a pipeline the figure is that of the fullest stage: the most layers, and embedding or head.
"""

from __future__ import annotations

from functools import reduce

from ..model import parameters as count
from ..model.kinds.feed_forward import Experts, routed_share
from ..model.kinds.mixer import present
from ..model.layers import Block, Model
from ..numeric import Number, ceil, largest, maximum, where
from ..scenario import Scenario
from ..serving.expert_ranks import ExpertRanks, expert_ranks
from ..serving.experts import group_share, padded_size
from ..serving.settings import Settings, WeightFormat
from ..sums import add_bytes, add_parameters, total_bytes
from ..terms import formula
from .serving_stages import Stage, stages_of

#: The vocabulary is padded to a multiple of this before it is split over ranks.
VOCABULARY_MULTIPLE = 64


@formula("W_block", "B")
def block_bytes(matrices: Number, bits: Number, rows: Number, index_bytes: Number, vectors: Number) -> Number:
    """Weights of one block on one rank: matrices in their format, norms and biases in 16 bits."""
    return matrices * bits / 8 + rows * index_bytes + 2 * vectors


@formula("K", "rows", "GPTQ, arXiv 2210.17323")
def index_rows(first: Number, second: Number) -> Number:
    """Input rows of matrices on one rank, each with its place in the order of quantisation."""
    return first + second


@formula("n·K", "rows", "GPTQ, arXiv 2210.17323")
def rows_of_equal(count: Number, rows: Number) -> Number:
    """Input rows of some equal matrices."""
    return count * rows


@formula("W_round", "B", "DeepSeek-V3, arXiv 2412.19437: a block of scales is whole at the edges of a matrix")
def scale_rounding(inputs: Number, outputs: Number, block: Number) -> Number:
    """Bytes of 32-bit scales of square blocks beyond those that the bits of a weight count."""
    return 4 * (ceil(inputs / block) * ceil(outputs / block) - inputs * outputs / block**2)


@formula("P_router", "parameters")
def router_parameters(hidden: Number, experts: Number) -> Number:
    """Parameters of a router, which stays in 16 bits."""
    return hidden * experts


@formula("P", "parameters")
def without_router(common: Number, router: Number) -> Number:
    """Matrix parameters of shared experts, which take the weight format."""
    return common - router


@formula("P", "parameters", "a steering bias is in 32 bits")
def plain_values(vectors: Number, buffers: Number, router: Number) -> Number:
    """Values of a block outside the weight format, as 16-bit ones."""
    return vectors + 2 * buffers + router


@formula("ψ_E", "parameters", "experts are laid over e groups of t_e ranks; kernels may pad them")
def kept_experts(share: Number, size: Number, padded: Number) -> Number:
    """Matrix parameters of routed experts as one rank keeps them."""
    return share * padded / size


def router(experts: Experts) -> Number:
    """Parameters of the router of a layer with experts."""
    return router_parameters(experts.hidden, experts.experts)


@formula("W_V", "B")
def vocabulary_bytes(vocabulary: Number, hidden: Number, bits: Number, tensor_parallel: Number) -> Number:
    """An embedding or an output head on one rank."""
    return vocabulary * hidden * bits / 8 / tensor_parallel


@formula("W", "B")
def plain_bytes(parameters: Number) -> Number:
    """Parameters in 16 bits."""
    return 2 * parameters


@formula("W_end", "B", "a tied matrix exists twice with a pipeline")
def ends_bytes(
    pipeline_parallel: Number, embedding: Number, head: Number, tied: Number, positions: Number, norm: Number
) -> Number:
    """Embedding, head and final norm of the stage that holds most of them; of all without a pipeline."""
    return where(
        pipeline_parallel > 1,
        maximum(embedding + positions, where(tied > 0, embedding, head) + norm),
        embedding + head + positions + norm,
    )


@formula("L·W", "B")
def layers_weights(layers: Number, block: Number) -> Number:
    """Weights of some equal layers on one rank."""
    return layers * block


@formula("W", "B")
def stage_weights(most: Number, at_ends: Number, ends: Number) -> Number:
    """Weights of one device of the fullest stage."""
    return maximum(most, at_ends + ends)


@formula("W_pass", "B")
def pass_weights(layers: Number, embedding: Number, head: Number, positions: Number, norm: Number) -> Number:
    """Weights that a token passes on one tensor parallel rank of each stage; a tied matrix counts once."""
    return layers + embedding + head + positions + norm


@formula("W_first + 2·P_vision/t", "B")
def with_tower(first: Number, parameters: Number, tensor_parallel: Number) -> Number:
    """Weights beside the embedding of the first stage, with a vision tower in 16 bits."""
    return first + 2 * parameters / tensor_parallel


def serving_vocabulary(model: Model, tensor_parallel: Number) -> Number:
    """Rows of embedding and head: padded to a multiple of 64, then to whole rows for each rank."""
    padded = count.padded_vocabulary(model.spec.vocabulary, VOCABULARY_MULTIPLE, 1)
    return count.padded_vocabulary(padded, 1, tensor_parallel)


def serving_weights(scenario: Scenario, model: Model, settings: Settings) -> tuple[Number, Number]:
    """Weights in bytes of one device of the fullest stage, and of a tensor parallel rank over all stages."""
    parallel, number, engine = scenario.parallelism, settings.weights, settings.engine
    tensor, pipeline = parallel.tp, parallel.pp
    blocks = [_block(block, settings, tensor, expert_ranks(scenario)) for _, block in model.groups]
    head_bits = number.bits if engine.quantises_head else number.head_bits
    vocabulary, spec = serving_vocabulary(model, tensor), model.spec
    rows = count.embedding_rows(vocabulary, spec.extra_rows) if present(spec.extra_rows) else vocabulary
    embedding = vocabulary_bytes(rows, model.width, number.embedding_bits, tensor)
    tied = 1.0 if spec.tied else 0.0
    head = 0.0 if tied else vocabulary_bytes(vocabulary, model.width, head_bits, tensor)
    first, norm = plain_bytes(model.positions), plain_bytes(_last_values(model))
    if present(spec.vision_parameters):
        first = with_tower(first, spec.vision_parameters, tensor)
    ends = ends_bytes(pipeline, embedding, head, tied, first, norm)

    def weights(stages: list[Stage]) -> Number:
        return largest(total_bytes(list(map(layers_weights, stage, blocks))) for stage in stages)

    whole = weights([[layers for layers, _ in model.groups]])
    positions = plain_bytes(model.positions)
    return (
        stage_weights(*map(weights, stages_of(model, pipeline)), ends),
        pass_weights(whole, embedding, head, positions, norm),
    )


def expert_weights(scenario: Scenario, model: Model, settings: Settings) -> Number:
    """Weights in bytes of the routed experts of all layers on one rank; scales are left out."""
    number, ranks = settings.weights, expert_ranks(scenario)
    bits = 16.0 if "experts" in number.leaves else number.bits
    return total_bytes(
        [
            layers_weights(layers, block_bytes(_routed(block.experts, number, ranks), bits, 0.0, 0.0, 0.0))
            for layers, block in model.groups
            if block.experts
        ]
    )


def _last_values(model: Model) -> Number:
    """Values outside the blocks that stay in 16 bits: norms, a bias of the head, and matrices around a narrow width."""
    values, spec = model.final_norm, model.spec
    if spec.head_bias:
        values = add_parameters(values, spec.vocabulary)
    if present(spec.embedding_size):
        values = add_parameters(values, count.embedding_projections(model.hidden, model.width))
    return values


def _block(block: Block, settings: Settings, tensor: Number, ranks: ExpertRanks) -> Number:
    """Weights of one layer on one rank, by the parts that the format leaves in 16 bits."""
    number, experts = settings.weights, block.experts
    parts = [(block.mixer.part, block.mixer.share(tensor)), *_feed_forward(block, number, tensor, ranks)]
    kept = [share for part, share in parts if part not in number.leaves]
    left = [share for part, share in parts if part in number.leaves]
    matrices = reduce(add_parameters, kept) if kept else 0.0
    plain = block.common_vectors()
    if experts is not None:
        plain = plain_values(plain, experts.buffers(), router(experts))
        left += [experts.routed_vectors(ranks.groups)] if experts.bias else []
    plain = reduce(add_parameters, left, plain)
    rows = _index_rows(block, tensor) if number.index_bytes else 0.0
    weights = block_bytes(matrices, number.bits, rows, number.index_bytes, plain)
    if not number.scale_block:
        return weights
    return add_bytes(weights, _rounding(block, number, tensor, ranks))


def _feed_forward(block: Block, number: WeightFormat, tensor: Number, ranks: ExpertRanks) -> list[tuple[str, Number]]:
    """Matrix parameters of the feed-forward part on one rank, shared and routed experts apart; without a router."""
    experts = block.experts
    if experts is None:
        return [(block.ffn.part, block.ffn.share(tensor))]
    common = without_router(experts.common_share(tensor), router(experts))
    return [(block.ffn.part, common), ("experts", _routed(experts, number, ranks))]


def _routed(experts: Experts, number: WeightFormat, ranks: ExpertRanks) -> Number:
    """Matrix parameters of the routed experts of one layer on one rank, as its kernels pad them."""
    share = routed_share(experts.experts, experts.expert(), ranks.groups, ranks.split)
    return kept_experts(share, experts.size, padded_size(experts.size, number.pad)) if number.pad > 1 else share


def _index_rows(block: Block, tensor: Number) -> Number:
    """Input rows of all matrices of one layer on one rank; those of queries, keys and values are matrices each."""
    experts = block.experts
    rows = [rows_of_equal(_FUSED.get(m.name, 1.0), m.inputs) for m in block.mixer.projections(tensor)]
    if dense := block.ffn.dense_part():
        up, down = dense.projections(tensor)
        rows += [rows_of_equal(1.0 + dense.gated, up.inputs), down.inputs]
    if experts:
        up, down = experts.expert_projections(tensor)
        each = index_rows(rows_of_equal(1.0 + experts.gated, up.inputs), down.inputs)
        rows.append(rows_of_equal(experts.experts, each))
    return reduce(index_rows, rows)


#: Matrices that stand side by side in one of the kinds' matrices.
_FUSED = {"QKV": 3.0}


def _rounding(block: Block, number: WeightFormat, tensor: Number, ranks: ExpertRanks) -> Number:
    """Whole blocks of scales at the edges of the matrices of one layer on one rank."""
    experts, size = block.experts, number.scale_block
    parts = [scale_rounding(m.inputs, m.outputs, size) for m in block.mixer.projections(tensor)]
    parts += [scale_rounding(m.inputs, m.outputs, size) for m in block.ffn.projections(tensor) if m.name != "router"]
    if experts:
        each = [scale_rounding(m.inputs, m.outputs, size) for m in experts.expert_projections(ranks.split)]
        parts.append(layers_weights(group_share(experts.experts, ranks.groups), total_bytes(each)))
    return total_bytes(parts)
