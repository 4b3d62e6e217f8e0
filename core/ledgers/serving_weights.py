"""Weights of a serving engine on one device, in their number format.

With a pipeline the figure is that of the fullest stage: the most layers, and embedding or head.
"""

from __future__ import annotations

from ..model import parameters as count
from ..model.kinds.feed_forward import Experts
from ..model.kinds.mixer import present
from ..model.layers import Block, Model
from ..numeric import Number, ceil, floor, maximum, minimum, where
from ..scenario import Scenario
from ..serving.settings import Settings
from ..terms import formula

#: The vocabulary is padded to a multiple of this before it is split over ranks.
VOCABULARY_MULTIPLE = 64


@formula("W_block", "B")
def block_bytes(matrices: Number, bits: Number, rows: Number, index_bytes: Number, vectors: Number) -> Number:
    """Weights of one block on one rank: matrices in their format, norms and biases in 16 bits."""
    return matrices * bits / 8 + rows * index_bytes + 2 * vectors


@formula("K", "rows", "GPTQ, arXiv 2210.17323")
def index_rows(
    hidden: Number, heads: Number, head_dim: Number, ffn_size: Number, inputs: Number, tensor_parallel: Number
) -> Number:
    """Input rows of the matrices of a block on one rank, each with its place in the order of quantisation."""
    return (3 + inputs) * hidden + heads * head_dim / tensor_parallel + ffn_size / tensor_parallel


@formula("K", "rows", "GPTQ, arXiv 2210.17323")
def expert_index_rows(
    hidden: Number,
    heads: Number,
    head_dim: Number,
    experts: Number,
    size: Number,
    inputs: Number,
    tensor_parallel: Number,
) -> Number:
    """The same of a block with routed experts."""
    return 3 * hidden + heads * head_dim / tensor_parallel + experts * (inputs * hidden + size / tensor_parallel)


@formula("P_router", "parameters")
def router_parameters(hidden: Number, experts: Number) -> Number:
    """Parameters of a router, which stays in 16 bits."""
    return hidden * experts


@formula("P", "parameters")
def without_router(matrices: Number, router: Number) -> Number:
    """Matrix parameters that take the weight format."""
    return matrices - router


@formula("P", "parameters", "a steering bias is in 32 bits")
def plain_values(vectors: Number, buffers: Number, router: Number) -> Number:
    """Values of a block outside the weight format, as 16-bit ones."""
    return vectors + 2 * buffers + router


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


@formula("L_max", "layers")
def most_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the fullest stage."""
    return ceil(layers / pipeline_parallel)


@formula("L_end", "layers", "longer stages stand in the middle")
def end_layers(layers: Number, pipeline_parallel: Number) -> Number:
    """Layers of the first stage; of all but the last it is the last to get one more."""
    return minimum(ceil(layers / pipeline_parallel), floor((layers + 1) / pipeline_parallel))


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


@formula("W", "B")
def stage_weights(most: Number, at_ends: Number, block: Number, ends: Number) -> Number:
    """Weights of one device of the fullest stage."""
    return maximum(most * block, at_ends * block + ends)


@formula("W_pass", "B")
def pass_weights(
    layers: Number, block: Number, embedding: Number, head: Number, positions: Number, norm: Number
) -> Number:
    """Weights that a token passes on one tensor parallel rank of each stage; a tied matrix counts once."""
    return layers * block + embedding + head + positions + norm


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
    block = _block(model.block, settings, tensor)
    head_bits = number.bits if engine.quantises_head else number.head_bits
    vocabulary = serving_vocabulary(model, tensor)
    embedding = vocabulary_bytes(vocabulary, model.hidden, number.embedding_bits, tensor)
    tied = 1.0 if model.spec.tied else 0.0
    head = 0.0 if tied else vocabulary_bytes(vocabulary, model.hidden, head_bits, tensor)
    first, norm = plain_bytes(model.positions), plain_bytes(model.final_norm)
    if present(model.spec.vision_parameters):
        first = with_tower(first, model.spec.vision_parameters, tensor)
    ends = ends_bytes(pipeline, embedding, head, tied, first, norm)
    return (
        stage_weights(most_layers(model.layers, pipeline), end_layers(model.layers, pipeline), block, ends),
        pass_weights(model.layers, block, embedding, head, plain_bytes(model.positions), norm),
    )


def _block(block: Block, settings: Settings, tensor_parallel: Number) -> Number:
    attention, number, experts = block.attention, settings.weights, block.experts
    matrices = count.block_share(attention.share(tensor_parallel), block.ffn.share(tensor_parallel), 0.0)
    vectors = block.vectors() if experts is None else plain_values(block.vectors(), experts.buffers(), router(experts))
    if experts is not None:
        matrices = without_router(matrices, router(experts))
    rows = 0.0
    if number.index_bytes:
        sizes = block.hidden, attention.heads, attention.head_dim
        if experts is None:
            ffn = block.feed_forward
            rows = index_rows(*sizes, ffn.ffn_size, 1 + ffn.gated, tensor_parallel)
        else:
            rows = expert_index_rows(*sizes, experts.experts, experts.size, 1 + experts.gated, tensor_parallel)
    return block_bytes(matrices, number.bits, rows, number.index_bytes, vectors)
