"""Memory of one device of a serving engine: weights, what the engine sets aside, and the cache that is left.

Source: budgets by the engines' own start-up code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..model.layers import Model
from ..numeric import Number, ceil, floor, is_array, maximum, minimum, where
from ..scenario import Scenario, Serving
from ..serving.expert_ranks import expert_ranks
from ..serving.settings import Settings
from ..serving.steady import whole_sequence
from ..terms import formula
from .serving_activations import activations
from .serving_cache import SequenceCache
from .serving_pool import CachePool, Sized
from .serving_sharing import Sharing
from .serving_stages import stages_of
from .serving_weights import serving_weights
from .usable import usable_memory

#: Share of what the engine may use above which a plan is called tight.
TIGHT = 0.92


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


@formula("n", "tokens")
def planned_length(context: Number, prompt: Number, output: Number) -> Number:
    """Length of the longest sequence that is planned, or of a request where that is longer."""
    return maximum(context, prompt + output)


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

    #: The load that the memory is for.
    serving: Serving
    replicas: Number
    weights: Number
    #: Weights of a tensor parallel rank over all stages.
    pass_weights: Number
    activations: Number
    workspace: Number
    #: Cache of a token and of a sequence in the whole model.
    kv_per_token: Number
    kv_per_sequence: Number
    #: Cache of a token of images in the whole model; 0 where no layer attends across to images.
    kv_per_image_token: Number
    usable: Number
    most_sequences: Number
    cache: CachePool

    def for_requests(self, concurrency: Number) -> ServingMemory:
        """The memory of the same plan with another number of requests."""
        return replace(self, serving=replace(self.serving, concurrency=concurrency))

    @cached_property
    def busy(self) -> Number:
        """Engines that have a request."""
        return busy_engines(self.serving.concurrency, self.replicas)

    @cached_property
    def asked(self) -> Number:
        """Requests of a busy engine in the mean."""
        return mean_sequences_each(self.serving.concurrency, self.busy)

    @cached_property
    def sequences(self) -> Number:
        """Requests of the fullest engine."""
        return most_sequences_each(self.serving.concurrency, self.replicas)

    @cached_property
    def kv_cache(self) -> Number:
        """Cache of the requests of the fullest engine, each at the longest length that is planned or its own."""
        return self.cache.all_of(self.sequences, self._longest)

    @cached_property
    def total(self) -> Number:
        """Memory of one device with these requests."""
        return total_bytes(self.weights, self.kv_cache, self.activations, self.workspace)

    @cached_property
    def headroom(self) -> Number:
        """What these requests leave of the cache's budget."""
        return headroom_bytes(self.cache.budget, self.kv_cache)

    @cached_property
    def full_sequences(self) -> Number:
        """Sequences of the longest length that one engine is sure to hold."""
        return self.cache.full(self.cache.planned)

    @cached_property
    def held_requests(self) -> Number:
        """Requests at their full length, or at the longest that is planned, that all engines hold at once."""
        longest = self._longest
        full = self.full_sequences if longest is self.cache.planned else self.cache.full(longest)
        return all_sequences(whole_sequences(full, self.cache.held(self._length)), self.replicas)

    @cached_property
    def own_requests(self) -> Number:
        """Requests at their own length that all engines hold at once, though longer ones are planned."""
        length = whole_sequence(self.serving.prompt_tokens, self.serving.output_tokens)
        return all_sequences(whole_sequences(self.cache.tokens, self.cache.held(length)), self.replicas)

    @cached_property
    def _length(self) -> Number:
        serving = self.serving
        return planned_length(serving.max_context, serving.prompt_tokens, serving.output_tokens)

    @cached_property
    def _longest(self) -> Sized:
        """A sequence of the longest length, or a request that is longer."""
        if is_array(self._length) or self._length > self.serving.max_context:
            return self.cache.sequence(self._length)
        return self.cache.planned


def serving_memory(scenario: Scenario, model: Model, settings: Settings) -> ServingMemory:
    """The memory ledger of a serving scenario."""
    serving, parallel, engine = scenario.serving, scenario.parallelism, settings.engine
    sharing, usable = Sharing.of(scenario, settings), usable_memory(scenario.cluster.accelerator)
    weights, passed = serving_weights(scenario, model, settings)
    weights, most = sharing.with_draft(weights), _most_sequences(scenario, settings)
    aside = activations(scenario, model, settings, most)
    workspace = workspace_bytes(engine.overhead, engine.tp_overhead, expert_ranks(scenario).ranks)
    budget = budget_of_free if engine.pool_of_free else budget_of_device
    layers, blocks = zip(*model.groups, strict=True)
    whole = SequenceCache(layers, blocks, settings.kv, 1, engine.block)
    return ServingMemory(
        serving=serving,
        replicas=replicas(scenario.cluster.gpus, parallel.tp, parallel.pp),
        weights=weights,
        pass_weights=passed,
        activations=aside,
        workspace=workspace,
        kv_per_token=whole.token(),
        kv_per_sequence=whole.sequence(serving.max_context),
        kv_per_image_token=whole.image_token(layers, blocks),
        usable=usable,
        most_sequences=most,
        cache=CachePool(
            tuple(
                SequenceCache(stage, blocks, settings.kv, parallel.tp, engine.block)
                for stage in stages_of(model, parallel.pp)[0]
            ),
            sharing,
            engine.block,
            budget(usable, serving.memory_utilization, weights, aside, workspace),
            serving.max_context,
        ),
    )


def _most_sequences(scenario: Scenario, settings: Settings) -> Number:
    engine, device = settings.engine, scenario.cluster.accelerator
    if device.generation in engine.large_except:
        return engine.max_sequences
    return most_sequences(device.memory, engine.large_memory, engine.max_sequences, engine.large_sequences)
