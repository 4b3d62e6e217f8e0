"""Memory of one device of a serving engine: weights, what the engine sets aside, and the cache that is left.

Sources: paging of the cache, Kwon 2023 (PagedAttention, arXiv 2309.06180); budgets by the engines' own start-up code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.layers import Model
from ..numeric import Number, ceil, floor, maximum, minimum, where
from ..scenario import Scenario
from ..serving.settings import Settings
from ..terms import formula
from .serving_weights import most_layers, serving_weights
from .usable import usable_memory

#: Share of what the engine may use above which a plan is called tight.
TIGHT = 0.92
#: Least tokens of the profiling batch of engines that do not cut prompts into chunks.
PROFILED_CONTEXT = 2048

_PROFILE = "vLLM profiling run: buffers at the widest point of a block; start-up logs"


@formula("w_kv", "B", leaves_out="scales of fp8 caches")
def element_width(element: Number, head: Number, head_dim: Number) -> Number:
    """Bytes of one cached element with its share of the scales of a head."""
    return element + head / head_dim


@formula("KV", "B/token", "Shazeer 2019, arXiv 1911.02150; grouped heads: Ainslie 2023, arXiv 2305.13245")
def kv_bytes_per_token(kv_heads: Number, head_dim: Number, width: Number, layers: Number) -> Number:
    """Keys and values of one token in some layers."""
    return 2 * kv_heads * head_dim * width * layers


@formula("n", "tokens", "PagedAttention, arXiv 2309.06180")
def paged_tokens(tokens: Number, block: Number) -> Number:
    """Tokens of a sequence rounded up to whole cache blocks."""
    return ceil(tokens / block) * block


@formula("KV_seq", "B")
def sequence_bytes(tokens: Number, per_token: Number) -> Number:
    """Cache of one sequence."""
    return tokens * per_token


@formula("KV_all", "B")
def cache_bytes(sequences: Number, each: Number) -> Number:
    """Cache of the sequences of an engine on one device, each at full length."""
    return sequences * each


@formula("A_fwd", "B", _PROFILE)
def forward_bytes(
    tokens: Number,
    hidden: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    inputs: Number,
    ffn_size: Number,
    tensor_parallel: Number,
) -> Number:
    """Activations of the forward pass of a batch at its widest point."""
    return tokens * (
        4 * hidden
        + 2
        * maximum((2 * heads + 2 * kv_heads) * head_dim / tensor_parallel, (inputs + 1) * ffn_size / tensor_parallel)
    )


@formula("k·f", "elements")
def routed_width(size: Number, experts_per_token: Number) -> Number:
    """Inner width that a token has in all experts that it is sent to."""
    return size * experts_per_token


@formula("A_smp", "B", "vLLM: 16- and 32-bit logits, sort keys and indices, softmax and its sum; start-up logs")
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


@formula("S", "sequences", "engine defaults by memory of the device")
def most_sequences(memory: Number, large: Number, small_count: Number, large_count: Number) -> Number:
    """Most sequences that the engine runs together, and profiles its sampler with."""
    return where(memory >= large, large_count, small_count)


@formula("T", "tokens")
def profiled_context(context: Number, least: Number) -> Number:
    """Tokens of the profiling batch where prompts are not cut into chunks."""
    return maximum(context, least)


@formula("other", "B")
def workspace_bytes(fixed: Number, communicators: Number, tensor_parallel: Number) -> Number:
    """Device context, libraries and buffers of the engine, and communicators when tensor parallel."""
    return fixed + where(tensor_parallel > 1, communicators, 0.0)


@formula("budget", "B", "vLLM start-up code", "graphs, which are captured after the pool is sized")
def budget_of_device(
    usable: Number, utilization: Number, weights: Number, activations: Number, workspace: Number
) -> Number:
    """What the engine leaves for the cache of its share of the device."""
    return usable * utilization - weights - activations - workspace


@formula("budget", "B", "TensorRT-LLM: a share of what is free after loading")
def budget_of_free(
    usable: Number, utilization: Number, weights: Number, activations: Number, workspace: Number
) -> Number:
    """What the engine takes for the cache of the memory that is free after loading."""
    return utilization * (usable - weights - activations - workspace)


@formula("pool", "tokens", "PagedAttention, arXiv 2309.06180")
def pool_tokens(budget: Number, per_token: Number, block: Number) -> Number:
    """Tokens that the cache of one engine holds, in whole blocks."""
    return floor(maximum(budget, 0.0) / (block * per_token)) * block


@formula("B_max", "sequences")
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
def replicas(gpus: Number, tensor_parallel: Number, pipeline_parallel: Number) -> Number:
    """Engines side by side."""
    return maximum(1, floor(gpus / (tensor_parallel * pipeline_parallel)))


@formula("tokens", "tokens")
def all_tokens(each: Number, replicas: Number) -> Number:
    """Tokens that the caches of all engines hold."""
    return each * replicas


@formula("sequences", "sequences")
def all_sequences(each: Number, replicas: Number) -> Number:
    """Sequences of all engines together."""
    return each * replicas


@formula("⌈B/c⌉", "sequences")
def most_sequences_each(concurrency: Number, replicas: Number) -> Number:
    """Requests of the fullest engine."""
    return ceil(concurrency / replicas)


@formula("min(c, B)", "engines")
def busy_engines(concurrency: Number, replicas: Number) -> Number:
    """Engines that have a request: a request is not shared out."""
    return minimum(replicas, concurrency)


@formula("B/c", "sequences")
def mean_sequences_each(concurrency: Number, busy: Number) -> Number:
    """Requests of a busy engine; mean where they do not divide."""
    return concurrency / busy


@dataclass(frozen=True)
class ServingMemory:
    """Bytes of the fullest device, and what the cache of an engine holds in tokens and sequences."""

    replicas: Number
    #: Engines that have a request, and requests of one of them in the mean.
    busy: Number
    asked: Number
    #: Requests of the fullest engine.
    sequences: Number
    weights: Number
    #: Weights of a tensor parallel rank over all stages.
    pass_weights: Number
    activations: Number
    workspace: Number
    kv_cache: Number
    #: Cache of a token and of a sequence in the whole model, and of a token on one device.
    kv_per_token: Number
    kv_per_sequence: Number
    kv_per_token_per_gpu: Number
    usable: Number
    kv_budget: Number
    pool: Number
    full_sequences: Number
    most_sequences: Number
    total: Number
    headroom: Number


def serving_memory(scenario: Scenario, model: Model, settings: Settings) -> ServingMemory:
    """The memory ledger of a serving scenario."""
    serving, parallel, engine = scenario.serving, scenario.parallelism, settings.engine
    attention, device = model.block.attention, scenario.cluster.accelerator
    weights, passed = serving_weights(scenario, model, settings)
    width = element_width(settings.kv.bytes, settings.kv.head_bytes, attention.head_dim)
    whole = kv_bytes_per_token(attention.kv_heads, attention.head_dim, width, model.layers)
    local = attention.local_kv_heads(parallel.tp)
    each = kv_bytes_per_token(local, attention.head_dim, width, most_layers(model.layers, parallel.pp))
    tokens = paged_tokens(serving.max_context, engine.block)
    engines = replicas(scenario.cluster.gpus, parallel.tp, parallel.pp)
    busy = busy_engines(serving.concurrency, engines)
    sequences = most_sequences_each(serving.concurrency, engines)
    kv_cache = cache_bytes(sequences, sequence_bytes(tokens, each))
    most = _most_sequences(scenario, settings)
    activations = _activations(scenario, model, settings, most)
    workspace = workspace_bytes(engine.overhead, engine.tp_overhead, parallel.tp)
    usable = usable_memory(device)
    budget = budget_of_free if engine.pool_of_free else budget_of_device
    kv_budget = budget(usable, serving.memory_utilization, weights, activations, workspace)
    pool = pool_tokens(kv_budget, each, engine.block)
    return ServingMemory(
        replicas=engines,
        busy=busy,
        asked=mean_sequences_each(serving.concurrency, busy),
        sequences=sequences,
        weights=weights,
        pass_weights=passed,
        activations=activations,
        workspace=workspace,
        kv_cache=kv_cache,
        kv_per_token=whole,
        kv_per_sequence=sequence_bytes(tokens, whole),
        kv_per_token_per_gpu=each,
        usable=usable,
        kv_budget=kv_budget,
        pool=pool,
        full_sequences=full_sequences(pool, tokens),
        most_sequences=most,
        total=total_bytes(weights, kv_cache, activations, workspace),
        headroom=headroom_bytes(kv_budget, kv_cache),
    )


def _most_sequences(scenario: Scenario, settings: Settings) -> Number:
    engine, device = settings.engine, scenario.cluster.accelerator
    if device.generation in engine.large_except:
        return engine.max_sequences
    return most_sequences(device.memory, engine.large_memory, engine.max_sequences, engine.large_sequences)


def _activations(scenario: Scenario, model: Model, settings: Settings, sequences: Number) -> Number:
    """What the engine's profiling run finds; 0 where a fixed workspace stands for it."""
    serving, engine = scenario.serving, settings.engine
    if engine.profile == "none":
        return 0.0
    attention, experts = model.block.attention, model.block.experts
    gated = model.block.feed_forward.gated if experts is None else experts.gated
    size = model.block.feed_forward.ffn_size if experts is None else routed_width(experts.size, experts.per_token)
    tokens = serving.max_batched_tokens
    if engine.profiled_tokens == "context":
        tokens = profiled_context(serving.max_context, PROFILED_CONTEXT)
    forward = forward_bytes(
        tokens,
        model.hidden,
        attention.heads,
        attention.kv_heads,
        attention.head_dim,
        1 + gated,
        size,
        scenario.parallelism.tp,
    )
    sampler = sampler_bytes(engine.sampler_bytes, sequences, model.spec.vocabulary)
    combined = summed_activations if engine.profile == "sum" else larger_activations
    return combined(forward, sampler)
