"""Finds the steady state of the engines of a scenario: composition of the formulas of `steady`."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledgers.serving_memory import ServingMemory
from ..numeric import Number, is_array
from ..scenario import Scenario
from . import kernels, steady
from .iteration import Iteration, Pass


@dataclass(frozen=True)
class Prompt:
    """A prompt in iterations: their number, and the tokens, pairs and keys of each."""

    chunks: Number
    tokens: Number
    pairs: Number
    keys: Number

    @staticmethod
    def of(tokens: Number, batched_tokens: Number, decoding: Number) -> Prompt:
        """How a prompt is cut where some sequences decode beside it."""
        chunks = steady.chunk_count(tokens, steady.chunk_budget(batched_tokens, decoding))
        pairs = steady.mean_pairs(kernels.chunk_pairs(tokens, 0.0), chunks)
        return Prompt(chunks, steady.chunk_tokens(tokens, chunks), pairs, steady.mean_keys(tokens, chunks))


@dataclass(frozen=True)
class Steady:
    """The steady state; times in seconds, rates of all engines together."""

    #: Sequences one engine runs together.
    running: Number
    context: Number
    decode: Iteration
    step: Number
    idle: Number
    prefill: Iteration
    prompt: Prompt
    prompt_alone: Number
    ttft: Number
    tpot: Number
    #: Waits behind the prompts of other requests, and for a place in the batch; part of the time to first token.
    queue: Number
    place_wait: Number
    requests: Number
    output: Number


def steady_state(scenario: Scenario, passes: Pass, memory: ServingMemory) -> Steady:
    """The steady state of a scenario, in a closed loop (request rate 0) or an open one; arrays may hold both."""
    serving, engine, pipeline = scenario.serving, passes.settings.engine, scenario.parallelism.pp
    rate, output = serving.request_rate, serving.output_tokens
    context = steady.mean_context(serving.prompt_tokens, output)
    resident = steady.whole_sequence(serving.prompt_tokens, output) if engine.reserve else context
    most = steady.running_sequences(memory.asked, memory.pool, resident, memory.most_sequences)
    prompt = Prompt.of(serving.prompt_tokens, serving.max_batched_tokens, 0.0)
    prefill = passes.prefill(1.0, prompt.tokens, prompt.pairs, prompt.keys)
    alone = steady.prompt_seconds(prompt.chunks, prefill.seconds)
    least = steady.least_prompt_seconds(prefill.flops, prompt.chunks, passes.rates.blocks.peak)
    running = most
    if is_array(rate) or rate > 0:
        opened = _open_batch(scenario, passes, memory, context, most, (prompt.chunks, prefill.seconds), least)
        running = steady.closed_or_open(rate, most, opened)
    micro = steady.micro_batch(running, pipeline)
    decode = passes.decode(micro, context)
    read = passes.read_weights(memory.pass_weights, running)
    step = _step_seconds(scenario, decode, running, engine.pipeline, read)
    beside = steady.others(rate, micro, running, pipeline)
    in_prompt, added = alone, alone
    if not engine.prefill_first and (is_array(beside) or beside > 0):
        in_prompt, added = _beside(scenario, passes, context, beside, decode)
    tpot = steady.shared_tpot(step, beside, output, added)
    wait = steady.iteration_wait(rate, tpot)
    least_read = passes.read_weights(memory.pass_weights, serving.prompt_tokens)
    in_prompt = steady.not_below_floor(in_prompt, least_read, 0.0, scenario.cluster.accelerator.memory_bandwidth)
    first = steady.first_token_seconds(wait, in_prompt, engine.t_request, engine.t_api, engine.lag, tpot)
    busy = steady.busy_seconds(micro, output, step, added, least)
    queue = steady.prompt_queue(busy, first, output, tpot)
    request = steady.request_seconds(first, queue, output, tpot)
    place = steady.place_wait(rate, memory.asked, running, request)
    capacity = steady.closed_loop_rate(memory.busy, running, request)
    requests = steady.answered_rate(rate, running, most, capacity)
    return Steady(
        running=running,
        context=context,
        decode=decode,
        step=step,
        idle=steady.idle_seconds(step, decode.seconds),
        prefill=prefill,
        prompt=prompt,
        prompt_alone=alone,
        ttft=steady.with_waits(first, queue, place),
        tpot=tpot,
        queue=queue,
        place_wait=place,
        requests=requests,
        output=steady.output_rate(requests, output),
    )


def _step_seconds(scenario: Scenario, decode: Iteration, running: Number, reached: Number, weights: Number) -> Number:
    """Time of a decode step of all micro-batches of a pipeline, at least that of its bytes."""
    seconds = steady.pipelined_seconds(decode.seconds, scenario.parallelism.pp, running, reached)
    cache = decode.operator("attention core").bytes
    bandwidth = scenario.cluster.accelerator.memory_bandwidth
    return steady.not_below_floor(seconds, weights, cache, bandwidth)


def _beside(
    scenario: Scenario, passes: Pass, context: Number, beside: Number, decode: Iteration
) -> tuple[Number, Number]:
    """Seconds of a prompt whose iterations also decode others, and what it adds to theirs."""
    serving = scenario.serving
    prompt = Prompt.of(serving.prompt_tokens, serving.max_batched_tokens, beside)
    mixed = passes.mixed(beside, context, 1.0, prompt.tokens, prompt.pairs, prompt.keys)
    return (
        steady.prompt_seconds(prompt.chunks, mixed.seconds),
        steady.added_seconds(prompt.chunks, mixed.seconds, decode.seconds),
    )


def _open_batch(
    scenario: Scenario,
    passes: Pass,
    memory: ServingMemory,
    context: Number,
    most: Number,
    prompt: tuple[Number, Number],
    least: Number,
) -> Number:
    """Sequences that a request rate keeps running, decode iterations taken as a line from one sequence to the most.

    `prompt` is the number of iterations of a prompt and the time of one that is alone, `least` its time at the peak.
    """
    pipeline, output, engine = scenario.parallelism.pp, scenario.serving.output_tokens, passes.settings.engine
    rate = steady.rate_each(scenario.serving.request_rate, memory.busy, pipeline)
    micro = steady.micro_batch(most, pipeline)
    one, full = (
        steady.pipelined_seconds(passes.decode(batch, context).seconds, pipeline, most, engine.pipeline)
        for batch in (1.0, micro)
    )
    added = steady.prompt_seconds(*prompt) if engine.prefill_first else steady.added_seconds(*prompt, one)
    prefill = steady.prefill_share(rate, added, least)
    found = steady.littles_batch(rate, output, one, steady.slope(one, full, micro), prefill, micro)
    return steady.in_all_micro_batches(found, pipeline)
