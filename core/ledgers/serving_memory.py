"""Memory of one device of a serving engine: weights, what the engine sets aside, and the cache that is left.

With a pipeline the figures are those of the fullest stage: the most layers, and embedding or head.
Sources: paging of the cache, Kwon 2023 (PagedAttention, arXiv 2309.06180); budgets by the engines' own start-up code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.layers import Model
from ..model.parameters import padded_vocabulary
from ..numeric import Number, ceil, floor, is_array, maximum, minimum, where
from ..scenario import Scenario
from ..serving.iteration import VOCABULARY_MULTIPLE, element_width
from ..serving.settings import Settings
from ..terms import formula
from .training_memory import usable_bytes

#: Share of what the engine may use above which a plan is called tight.
TIGHT = 0.92
#: Least tokens of a batch that the first generation of vLLM profiles.
PROFILED_CONTEXT = 2048

_PROFILE = "vLLM profiling run: buffers of the widest point of a block, measured on start-up logs"


@formula("P·b/8 + K·w_idx + 2·P_vec", "B")
def block_bytes(matrices: Number, bits: Number, rows: Number, index_bytes: Number, vectors: Number) -> Number:
    """Weights of one block on one rank: matrices in their format, norms and biases in 16 bits."""
    return matrices * bits / 8 + rows * index_bytes + 2 * vectors


@formula("K", "rows")
def index_rows(
    hidden: Number, heads: Number, head_dim: Number, ffn_size: Number, inputs: Number, tensor: Number
) -> Number:
    """Input rows of the matrices of a block on one rank, each with its place in the order of quantisation."""
    return (3 + inputs) * hidden + heads * head_dim / tensor + ffn_size / tensor


@formula("V·h·b/(8·t)", "B")
def vocabulary_bytes(vocabulary: Number, hidden: Number, bits: Number, tensor: Number) -> Number:
    """An embedding or an output head on one rank."""
    return vocabulary * hidden * bits / 8 / tensor


@formula("⌈L/p⌉", "layers")
def most_layers(layers: Number, pipeline: Number) -> Number:
    """Layers of the fullest stage."""
    return ceil(layers / pipeline)


@formula("min(⌈L/p⌉, ⌊(L+1)/p⌋)", "layers", "longer stages stand in the middle")
def end_layers(layers: Number, pipeline: Number) -> Number:
    """Layers of the first stage, which is the last but one to get one more."""
    return minimum(ceil(layers / pipeline), floor((layers + 1) / pipeline))


@formula("ends", "B")
def ends_bytes(
    pipeline: Number, embedding: Number, head: Number, tied: Number, positions: Number, norm: Number
) -> Number:
    """Embedding, head and final norm of the stage that holds most of them; a tied matrix exists once without pipeline."""
    return where(
        pipeline > 1,
        maximum(embedding + positions, where(tied > 0, embedding, head) + norm),
        embedding + head + positions + norm,
    )


@formula("W", "B")
def stage_weights(most: Number, at_ends: Number, block: Number, ends: Number) -> Number:
    """Weights of the fullest stage on one device."""
    return maximum(most * block, at_ends * block + ends)


@formula("W_pass", "B")
def pass_weights(
    layers: Number, block: Number, embedding: Number, head: Number, positions: Number, norm: Number
) -> Number:
    """Weights of one tensor parallel rank, all stages together; what a token passes."""
    return layers * block + embedding + head + positions + norm


@formula("2·g·d·w_kv·L", "B/token", "arXiv 1911.02150; grouped heads arXiv 2305.13245")
def kv_bytes_per_token(kv_heads: Number, head_dim: Number, width: Number, layers: Number) -> Number:
    """Keys and values of one token in some layers."""
    return 2 * kv_heads * head_dim * width * layers


@formula("⌈n/blk⌉·blk", "tokens", "PagedAttention, arXiv 2309.06180")
def paged_tokens(tokens: Number, block: Number) -> Number:
    """Tokens of a sequence rounded up to whole cache blocks."""
    return ceil(tokens / block) * block


@formula("n·KV", "B")
def sequence_bytes(tokens: Number, per_token: Number) -> Number:
    """Cache of one sequence."""
    return tokens * per_token


@formula("B·n·KV", "B")
def cache_bytes(sequences: Number, sequence: Number) -> Number:
    """Cache of all sequences of an engine on one device."""
    return sequences * sequence


@formula("A_fwd", "B", _PROFILE)
def forward_bytes(
    tokens: Number,
    hidden: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    inputs: Number,
    ffn_size: Number,
    tensor: Number,
) -> Number:
    """Activations of the forward pass of a batch at its widest point."""
    return tokens * (
        4 * hidden
        + 2
        * maximum(
            (2 * heads + 2 * kv_heads) * head_dim / tensor,
            (inputs + 1) * ffn_size / tensor,
        )
    )


@formula("c·S·V", "B", "vLLM: 16- and 32-bit logits, sort keys and indices, softmax and its sum; start-up logs")
def sampler_bytes(per_logit: Number, sequences: Number, vocabulary: Number) -> Number:
    """Logits and what sampling needs beside them, on every rank."""
    return per_logit * sequences * vocabulary


@formula("A", "B")
def larger_activations(forward: Number, sampler: Number) -> Number:
    """Activations set aside where the sampler is profiled after the forward pass."""
    return maximum(forward, sampler)


@formula("A", "B")
def summed_activations(forward: Number, sampler: Number) -> Number:
    """Activations set aside where forward pass and sampler are alive together."""
    return forward + sampler


@formula("S", "sequences", "vLLM defaults by memory of the device")
def profiled_sequences(memory: Number, large: Number, small_count: Number, large_count: Number) -> Number:
    """Most sequences that the engine runs together."""
    return where(memory >= large, large_count, small_count)


@formula("T", "tokens")
def profiled_context(context: Number, least: Number) -> Number:
    """Tokens of the profiling batch where prompts are not cut into chunks."""
    return maximum(context, least)


@formula("other", "B")
def workspace_bytes(fixed: Number, communicators: Number, tensor: Number) -> Number:
    """Device context, libraries, buffers of the engine, and of communicators when tensor parallel."""
    return fixed + where(tensor > 1, communicators, 0.0)


@formula("KV budget", "B", "vLLM: usable·utilisation − everything else", "graphs captured after the pool is sized")
def budget_of_device(
    usable: Number, utilization: Number, weights: Number, activations: Number, workspace: Number
) -> Number:
    """What the engine leaves for the cache of its share of the device."""
    return usable * utilization - weights - activations - workspace


@formula("KV budget", "B", "TensorRT-LLM: a share of what is free after loading")
def budget_of_free(
    usable: Number, utilization: Number, weights: Number, activations: Number, workspace: Number
) -> Number:
    """What the engine takes for the cache of the memory that is free after loading."""
    return utilization * (usable - weights - activations - workspace)


@formula("⌊budget/(blk·KV)⌋·blk", "tokens")
def pool_tokens(budget: Number, per_token: Number, block: Number) -> Number:
    """Tokens that the cache of one engine holds, in whole blocks."""
    return floor(maximum(budget, 0) / (block * per_token)) * block


@formula("c·n", "tokens")
def over_replicas(each: Number, replicas: Number) -> Number:
    """All engines of the plan together."""
    return each * replicas


@formula("⌊pool/n⌋", "sequences")
def full_sequences(pool: Number, tokens: Number) -> Number:
    """Sequences of full length that the cache of one engine is sure to hold."""
    return floor(pool / tokens)


@formula("total", "B")
def total_bytes(weights: Number, kv_cache: Number, activations: Number, workspace: Number) -> Number:
    """Memory of one device with every sequence at full length."""
    return weights + kv_cache + activations + workspace


@formula("headroom", "B")
def headroom_bytes(budget: Number, kv_cache: Number) -> Number:
    """What is left of the cache's budget."""
    return budget - kv_cache


@formula("fits", "yes or no")
def fits(headroom: Number) -> Any:
    """Whether every sequence fits at full length."""
    return headroom >= 0


@formula("verdict", "word")
def verdict(total: Number, headroom: Number, tight: Number) -> Any:
    """fits, tight or does-not-fit."""
    return where(headroom < 0, "does-not-fit", where(total > tight * (total + headroom), "tight", "fits"))


@formula("c", "engines")
def replicas(gpus: Number, tensor: Number, pipeline: Number) -> Number:
    """Engines side by side."""
    return maximum(1, floor(gpus / (tensor * pipeline)))


@formula("B", "sequences")
def sequences_each(concurrency: Number, replicas: Number) -> Number:
    """Requests of one engine."""
    return concurrency / replicas


@dataclass(frozen=True)
class ServingMemory:
    """Bytes of the fullest device, and what the cache of an engine holds."""

    replicas: Number
    weights: Number
    pass_weights: Number
    activations: Number
    workspace: Number
    kv_cache: Number
    kv_per_token: Number
    kv_per_token_each: Number
    kv_per_sequence: Number
    usable: Number
    kv_budget: Number
    pool: Number
    full_sequences: Number
    max_sequences: Number
    total: Number
    headroom: Number


def serving_memory(scenario: Scenario, model: Model, settings: Settings) -> ServingMemory:
    """The memory ledger of a serving scenario."""
    serving, parallel, engine = scenario.serving, scenario.parallelism, settings.engine
    attention = model.block.attention
    weights, passed = _weights(scenario, model, settings)
    width = element_width(settings.kv.bytes, settings.kv.head_bytes, attention.head_dim)
    most = most_layers(model.layers, parallel.pp)
    whole = kv_bytes_per_token(attention.kv_heads, attention.head_dim, width, model.layers)
    each = kv_bytes_per_token(attention.local_kv_heads(parallel.tp), attention.head_dim, width, most)
    tokens = paged_tokens(serving.max_context, engine.block)
    engines = replicas(scenario.cluster.gpus, parallel.tp, parallel.pp)
    kv_cache = cache_bytes(sequences_each(serving.concurrency, engines), sequence_bytes(tokens, each))
    most_sequences = _max_sequences(scenario, settings)
    activations = _activations(scenario, model, settings, most_sequences)
    workspace = workspace_bytes(engine.overhead, engine.tp_overhead, parallel.tp)
    device = scenario.cluster.accelerator
    usable = usable_bytes(device.memory, device.memory if device.memory_reported is None else device.memory_reported)
    budget = budget_of_free if engine.pool_of_free else budget_of_device
    kv_budget = budget(usable, serving.memory_utilization, weights, activations, workspace)
    pool = pool_tokens(kv_budget, each, engine.block)
    return ServingMemory(
        engines, weights, passed, activations, workspace, kv_cache, whole, each, sequence_bytes(tokens, whole), usable,
        kv_budget, pool, full_sequences(pool, tokens), most_sequences,
        total_bytes(weights, kv_cache, activations, workspace), headroom_bytes(kv_budget, kv_cache),
    )  # fmt: skip


def _weights(scenario: Scenario, model: Model, settings: Settings) -> tuple[Number, Number]:
    """Weights of the fullest stage, and of all stages together, on one tensor parallel rank."""
    parallel, number, spec = scenario.parallelism, settings.weights, model.spec
    tensor, pipeline, block = parallel.tp, parallel.pp, model.block
    attention, ffn = block.attention, block.feed_forward
    rows = (
        index_rows(model.hidden, attention.heads, attention.head_dim, ffn.ffn_size, 1 + ffn.gated, tensor)
        if number.index_bytes
        else 0.0
    )
    each = block_bytes(matrix_share(block, tensor), number.bits, rows, number.index_bytes, vectors(block))
    head_bits = number.bits if settings.engine.quantises_head else number.head_bits
    vocabulary = padded_vocabulary(spec.vocabulary, VOCABULARY_MULTIPLE, tensor)
    embedding = vocabulary_bytes(vocabulary, model.hidden, number.embedding_bits, tensor)
    head = 0.0 if spec.tied else vocabulary_bytes(vocabulary, model.hidden, head_bits, tensor)
    ends = (embedding, head)
    return None
