"""Memory of one device of a serving engine: weights, what the engine sets aside, and the cache that is left.

Sources: paging of the cache, Kwon 2023 (PagedAttention, arXiv 2309.06180); budgets by the engines' own start-up code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..model.layers import Model
from ..numeric import Number, ceil, floor, is_array, largest, maximum, minimum, where
from ..scenario import Scenario, Serving
from ..serving.expert_ranks import expert_ranks
from ..serving.settings import Settings
from ..terms import formula
from .serving_activations import activations
from .serving_cache import SequenceCache, paged_tokens
from .serving_sharing import Sharing
from .serving_stages import stages_of
from .serving_weights import serving_weights
from .usable import usable_memory

#: Share of what the engine may use above which a plan is called tight.
TIGHT = 0.92


@formula("KV_all", "B")
def cache_bytes(sequences: Number, each: Number) -> Number:
    """Cache of the sequences of an engine on one device, each at full length."""
    return sequences * each


@formula("S", "sequences", "engine defaults by memory of the device")
def most_sequences(memory: Number, large: Number, small_count: Number, large_count: Number) -> Number:
    """Most sequences that the engine runs together, and profiles its sampler with."""
    return where(memory >= large, large_count, small_count)


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


@formula("pool", "tokens", "in sequences of full length: windows and states do not grow with each token")
def uneven_pool_tokens(budget: Number, sequence: Number, tokens: Number, block: Number) -> Number:
    """Tokens that the cache of one engine holds where they do not all take the same."""
    return floor(maximum(budget, 0.0) / sequence * tokens / block) * block


@formula("B", "sequences")
def held_tokens(pool: Number, tokens: Number) -> Number:
    """Sequences of some tokens that the cache of one engine holds."""
    return pool / tokens


@formula("B", "sequences")
def held_bytes(budget: Number, each: Number) -> Number:
    """The same where tokens do not all take the same."""
    return maximum(budget, 0.0) / each


@formula("pool", "tokens")
def tokens_of(sequences: Number, tokens: Number) -> Number:
    """Tokens of some sequences."""
    return sequences * tokens


@formula("B_max", "sequences")
def full_sequences(pool: Number, tokens: Number) -> Number:
    """Sequences of full length that the cache of one engine is sure to hold."""
    return floor(pool / tokens)


@formula("n", "tokens")
def planned_length(context: Number, prompt: Number, output: Number) -> Number:
    """Length of the longest sequence that is planned, or of a request where that is longer."""
    return maximum(context, prompt + output)


@formula("n", "tokens")
def whole_request(prompt: Number, output: Number) -> Number:
    """Length of a request with its whole answer."""
    return prompt + output


@formula("B_max", "sequences")
def whole_sequences(full: Number, held: Number) -> Number:
    """Whole sequences of those that the cache of one engine holds, at most those of full length."""
    return maximum(0.0, minimum(full, floor(held)))


@formula("total", "B")
def total_bytes(weights: Number, kv_cache: Number, activations: Number, workspace: Number) -> Number:
    """Memory of one device with every sequence at full length, or at that of the requests where these are longer."""
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
    #: Cache of a token of images in the whole model; 0 where no layer attends across to images.
    kv_per_image_token: Number
    usable: Number
    kv_budget: Number
    pool: Number
    #: Sequences of the longest length, and of the requests where these are longer.
    full_sequences: Number
    long_sequences: Number
    most_sequences: Number
    total: Number
    headroom: Number
    #: Cache of a sequence of the longest length, or of a request that is longer, on the fullest device.
    sequence: Number
    #: The caches of the stages, of which the fullest counts.
    caches: tuple[SequenceCache, ...]
    sharing: Sharing

    def for_requests(self, concurrency: Number) -> ServingMemory:
        """The memory of the same plan with another number of requests."""
        held = (self.sequence, self.caches, self.sharing, self.kv_budget)
        return replace(
            self, **_load(concurrency, self.replicas, *held, (self.weights, self.activations, self.workspace))
        )

    @property
    def even(self) -> bool:
        """Whether every token takes the same."""
        return all(cache.even for cache in self.caches)

    def room(self, tokens: Number) -> Number:
        """Tokens that the cache of one engine holds in sequences of so many, beside those that they share."""
        pool, own = self.sharing.beside(self.pool, tokens)
        return pool if self.even else tokens_of(self.held(tokens), own)

    def held(self, tokens: Number) -> Number:
        """Sequences of some tokens that the cache of one engine holds, parts of one included."""
        if self.even:
            return held_tokens(*self.sharing.tokens(self.pool, tokens))
        sequence = self.sharing.with_draft(
            largest(cache.sequence(self.sharing.length(tokens)) for cache in self.caches)
        )
        return held_bytes(*self.sharing.bytes(self.kv_budget, sequence, self.caches))

    def held_requests(self, serving: Serving) -> Number:
        """Requests at their full length, or at the longest that is planned, that all engines hold at once."""
        length = planned_length(serving.max_context, serving.prompt_tokens, serving.output_tokens)
        return all_sequences(whole_sequences(self.long_sequences, self.held(length)), self.replicas)

    def own_requests(self, serving: Serving) -> Number:
        """Requests at their own length that all engines hold at once, though longer ones are planned."""
        length = whole_request(serving.prompt_tokens, serving.output_tokens)
        return all_sequences(whole_sequences(self.pool, self.held(length)), self.replicas)


def serving_memory(scenario: Scenario, model: Model, settings: Settings) -> ServingMemory:
    """The memory ledger of a serving scenario."""
    sharing = Sharing.of(scenario, settings)
    serving, parallel, engine = scenario.serving, scenario.parallelism, settings.engine
    device, blocks = scenario.cluster.accelerator, [block for _, block in model.groups]
    weights, passed = serving_weights(scenario, model, settings)
    layers = [count for count, _ in model.groups]
    whole = SequenceCache(layers, blocks, settings.kv, 1, engine.block)
    caches = tuple(
        SequenceCache(stage, blocks, settings.kv, parallel.tp, engine.block)
        for stage in stages_of(model, parallel.pp)[0]
    )
    tokens, sequence = _sequence(serving.max_context, sharing, caches, engine.block)
    each = largest(cache.token() for cache in caches)
    engines = replicas(scenario.cluster.gpus, parallel.tp, parallel.pp)
    most = _most_sequences(scenario, settings)
    aside = activations(scenario, model, settings, most)
    workspace = workspace_bytes(engine.overhead, engine.tp_overhead, expert_ranks(scenario).ranks)
    usable = usable_memory(device)
    budget = budget_of_free if engine.pool_of_free else budget_of_device
    weights = sharing.with_draft(weights)
    kv_budget = budget(usable, serving.memory_utilization, weights, aside, workspace)
    if all(cache.even for cache in caches):
        pool = pool_tokens(kv_budget, sharing.with_draft(each), engine.block)
    else:
        pool = uneven_pool_tokens(kv_budget, sequence, tokens, engine.block)
    full = long = _full(pool, tokens, kv_budget, sequence, sharing, caches)
    longest = planned_length(serving.max_context, serving.prompt_tokens, serving.output_tokens)
    if is_array(longest) or longest > serving.max_context:
        tokens, sequence = _sequence(longest, sharing, caches, engine.block)
        long = _full(pool, tokens, kv_budget, sequence, sharing, caches)
    return ServingMemory(
        replicas=engines,
        weights=weights,
        pass_weights=passed,
        activations=aside,
        workspace=workspace,
        kv_per_token=whole.token(),
        kv_per_sequence=whole.sequence(serving.max_context),
        kv_per_token_per_gpu=each,
        kv_per_image_token=whole.image_token(layers, blocks),
        usable=usable,
        kv_budget=kv_budget,
        pool=pool,
        full_sequences=full,
        long_sequences=long,
        most_sequences=most,
        sequence=sequence,
        caches=caches,
        sharing=sharing,
        **_load(serving.concurrency, engines, sequence, caches, sharing, kv_budget, (weights, aside, workspace)),
    )


def _sequence(
    length: Number, sharing: Sharing, caches: tuple[SequenceCache, ...], block: Number
) -> tuple[Number, Number]:
    """Tokens of a sequence in whole blocks, and its cache on the fullest device."""
    length = sharing.length(length)
    cache = largest(cache.sequence(length) for cache in caches)
    return paged_tokens(length, block), sharing.with_draft(cache)


def _full(
    pool: Number,
    tokens: Number,
    budget: Number,
    sequence: Number,
    sharing: Sharing,
    caches: tuple[SequenceCache, ...],
) -> Number:
    """Sequences of some tokens that the cache of one engine is sure to hold."""
    if all(cache.even for cache in caches):
        return full_sequences(*sharing.beside(pool, tokens))
    return full_sequences(*sharing.bytes(maximum(budget, 0.0), sequence, caches))


def _load(
    concurrency: Number,
    engines: Number,
    sequence: Number,
    caches: tuple[SequenceCache, ...],
    sharing: Sharing,
    budget: Number,
    fixed: tuple[Number, Number, Number],
) -> dict[str, Number]:
    """What of the memory hangs on the number of requests; `fixed` are weights, activations and workspace."""
    busy, sequences = busy_engines(concurrency, engines), most_sequences_each(concurrency, engines)
    kv_cache = sharing.once(cache_bytes(sequences, sequence), sequences, caches)
    weights, aside, workspace = fixed
    return {
        "busy": busy,
        "asked": mean_sequences_each(concurrency, busy),
        "sequences": sequences,
        "kv_cache": kv_cache,
        "total": total_bytes(weights, kv_cache, aside, workspace),
        "headroom": headroom_bytes(budget, kv_cache),
    }


def _most_sequences(scenario: Scenario, settings: Settings) -> Number:
    engine, device = settings.engine, scenario.cluster.accelerator
    if device.generation in engine.large_except:
        return engine.max_sequences
    return most_sequences(device.memory, engine.large_memory, engine.max_sequences, engine.large_sequences)
