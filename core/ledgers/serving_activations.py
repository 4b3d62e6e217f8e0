"""Activations that a serving engine sets aside: the widest point of a forward pass, and sampling.

Source: profiling runs and start-up logs of vLLM.
"""

from __future__ import annotations

from functools import reduce

from ..model.layers import Block, Model
from ..numeric import Number, largest, maximum
from ..scenario import Scenario
from ..serving.settings import Settings
from ..terms import formula

#: Least tokens of the profiling batch of engines that do not cut prompts into chunks.
PROFILED_CONTEXT = 2048

_PROFILE = "vLLM profiling run: buffers at the widest point of a block; start-up logs"


@formula("n_mix", "elements")
def mixing_width(first: Number, second: Number) -> Number:
    """Width of what the matrices of token mixing give and of what the last of them takes."""
    return first + second


@formula("A_fwd", "B", _PROFILE)
def forward_bytes(
    tokens: Number, hidden: Number, mixing: Number, inputs: Number, ffn_size: Number, tensor_parallel: Number
) -> Number:
    """Activations of the forward pass of a batch at its widest point."""
    return tokens * (4 * hidden + 2 * maximum(mixing / tensor_parallel, (inputs + 1) * ffn_size / tensor_parallel))


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


@formula("T", "tokens")
def profiled_context(context: Number, least: Number) -> Number:
    """Tokens of the profiling batch where prompts are not cut into chunks."""
    return maximum(context, least)


def activations(scenario: Scenario, model: Model, settings: Settings, sequences: Number) -> Number:
    """What the engine's profiling run finds; 0 where a fixed workspace stands for it."""
    serving, engine = scenario.serving, settings.engine
    if engine.profile == "none":
        return 0.0
    tokens = serving.max_batched_tokens
    if engine.profiled_tokens == "context":
        tokens = profiled_context(serving.max_context, PROFILED_CONTEXT)
    forward = largest(
        forward_bytes(tokens, model.hidden, _mixing_width(block), *_inner(block), scenario.parallelism.tp)
        for _, block in model.groups
    )
    sampler = sampler_bytes(engine.sampler_bytes, sequences, model.spec.vocabulary)
    combined = summed_activations if engine.profile == "sum" else larger_activations
    return combined(forward, sampler)


def _mixing_width(block: Block) -> Number:
    """Width of what the matrices of token mixing give, and of what the last of them takes."""
    matrices = block.mixer.projections(1)
    if not matrices:
        return 0.0
    return reduce(mixing_width, [*(each.outputs for each in matrices[:-1]), matrices[-1].inputs])


def _inner(block: Block) -> tuple[Number, Number]:
    """Matrices that a feed-forward part begins with, and its inner width for a token."""
    experts, dense = block.experts, block.ffn.dense_part()
    if experts is not None:
        return 1 + experts.gated, routed_width(experts.size, experts.per_token)
    return (1 + dense.gated, dense.ffn_size) if dense else (0, 0.0)
