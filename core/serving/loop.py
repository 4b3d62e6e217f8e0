"""Finds the steady state of the engines of a scenario: composition of the formulas of `steady`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..ledgers.serving_memory import ServingMemory
from ..ledgers.serving_sharing import own_tokens
from ..model.kinds.mixer import present
from ..numeric import Number, is_array, where
from ..scenario import Scenario
from ..sums import add_seconds
from . import kernels, queueing, speculative, steady
from .drafting import Drafting
from .iteration import Iteration, Pass
from .waits import Queues


@dataclass(frozen=True)
class Prompt:
    """A prompt in iterations: their number, and the tokens, pairs and keys of each."""

    chunks: Number
    tokens: Number
    pairs: Number
    keys: Number

    @staticmethod
    def of(tokens: Number, shared: Number, batched_tokens: Number, decoding: Number) -> Prompt:
        """How a prompt is cut where some sequences decode beside it; its shared start is in the cache already."""
        if present(shared):
            tokens = own_tokens(tokens, shared)
        chunks = steady.chunk_count(tokens, steady.chunk_budget(batched_tokens, decoding))
        pairs = steady.mean_pairs(kernels.chunk_pairs(tokens, shared), chunks)
        keys = steady.mean_keys(tokens, chunks)
        if present(shared):
            keys = steady.keys_after(shared, keys)
        return Prompt(chunks, steady.chunk_tokens(tokens, chunks), pairs, keys)


@dataclass(frozen=True)
class Full:
    """As many sequences as can run together, in one micro-batch and in all, and a prompt alone.

    A prompt is a number of iterations of `prompt` seconds, `alone` all of them; `least` its time at the peak.
    """

    most: Number
    running: Number
    context: Number
    decode: Iteration
    drafting: Drafting | None
    chunks: Number
    prompt: Number
    alone: Number
    least: Number


@dataclass(frozen=True)
class Line:
    """Decode iterations of one micro-batch on a line from one sequence to the most, in seconds."""

    one: Number
    #: What one more sequence adds.
    slope: Number
    #: What a prompt takes of the device beside the decoding of few, and of as many as run together.
    added: Number
    crowded: Number


@dataclass(frozen=True)
class Steady:
    """The steady state; times in seconds, rates of all engines together."""

    #: Sequences one engine runs together.
    running: Number
    context: Number
    decode: Iteration
    step: Number
    #: Time per token of the step alone, shorter where drafts give several in a cycle, and how many times.
    token: Number
    drafting: Drafting | None
    gain: Number
    idle: Number
    prefill: Iteration
    prompt: Prompt
    prompt_alone: Number
    full: Full
    #: Found at a request rate only; see `line_of`.
    line: Line | None
    #: Time to first token but for the waits of random arrivals.
    settled: Number
    ttft: Number
    tpot: Number
    #: What a prompt adds to the iterations of those that decode beside it.
    added: Number
    #: A prompt in its iterations, and the wait for the one that runs when it comes.
    in_prompt: Number
    wait: Number
    #: Waits behind the prompts of other requests, and for a place in the batch; part of the time to first token.
    queue: Number
    place_wait: Number
    requests: Number
    output: Number


class _Running(NamedTuple):
    """Sequences that one engine runs together, in all and in one micro-batch; a line and queues at a request rate."""

    sequences: Number
    micro: Number
    decode: Iteration
    line: Line | None = None
    queues: Queues | None = None


def steady_state(scenario: Scenario, passes: Pass, memory: ServingMemory) -> Steady:
    """The steady state of a scenario, in a closed loop (request rate 0) or an open one; arrays may hold both."""
    serving, engine = scenario.serving, passes.settings.engine
    rate, output = serving.request_rate, serving.output_tokens
    prompt = Prompt.of(serving.prompt_tokens, memory.cache.sharing.shared, serving.max_batched_tokens, 0.0)
    prefill = passes.prefill(1.0, prompt.tokens, prompt.pairs, prompt.keys)
    full = _full(scenario, passes, memory, prompt.chunks, prefill)
    running, micro, decode, line, queues = _running(scenario, passes, memory, full)
    read = passes.read_weights(memory.pass_weights, running)
    step = step_seconds(scenario, decode, running, engine.pipeline, read)
    token, gain = token_of(step, full.drafting, micro, full.context, decode)
    beside = steady.others(rate, micro, running, scenario.parallelism.pp)
    in_prompt, added = _prompt_beside(scenario, passes, memory, full, beside, decode)
    tpot = steady.shared_tpot(token, beside, output, added)
    wait = steady.iteration_wait(rate, tpot)
    least_read = passes.read_weights(memory.pass_weights, serving.prompt_tokens)
    in_prompt = steady.not_below_floor(in_prompt, least_read, 0.0, scenario.cluster.accelerator.memory_bandwidth)
    first = steady.first_token_seconds(wait, in_prompt, engine.t_request, engine.t_api, engine.lag, tpot)
    queue = steady.prompt_queue(steady.busy_seconds(micro, output, token, added, full.least), first, output, tpot)
    request = steady.request_seconds(first, queue, output, tpot)
    place = steady.place_wait(rate, memory.asked, running, request)
    requests = steady.closed_loop_rate(memory.busy, running, request)
    settled = ttft = steady.with_waits(first, queue, place)
    if queues:
        behind, taken = queues.mean_waits(rate, steady.device_seconds(added, full.least), in_prompt)
        queue, place = add_seconds(queue, behind), add_seconds(place, taken)
        ttft = steady.with_waits(settled, behind, taken)
        requests = steady.answered_rate(rate, queues.most, requests)
    return Steady(
        running=running,
        context=full.context,
        decode=decode,
        step=step,
        token=token,
        drafting=full.drafting,
        gain=gain,
        idle=steady.idle_seconds(step, decode.working),
        prefill=prefill,
        prompt=prompt,
        prompt_alone=full.alone,
        full=full,
        line=line,
        settled=settled,
        ttft=ttft,
        tpot=tpot,
        added=added,
        in_prompt=in_prompt,
        wait=wait,
        queue=queue,
        place_wait=place,
        requests=requests,
        output=steady.output_rate(requests, output),
    )


def _full(scenario: Scenario, passes: Pass, memory: ServingMemory, chunks: Number, prefill: Iteration) -> Full:
    """As many sequences as can run together, and a prompt alone in chunks like `prefill`."""
    context = steady.mean_context(scenario.serving.prompt_tokens, scenario.serving.output_tokens)
    most = most_running(scenario, passes, memory, context, memory.asked)
    alone = steady.prompt_seconds(chunks, prefill.seconds)
    least = steady.least_prompt_seconds(prefill.flops, chunks, passes.rates.blocks.peak)
    micro = steady.micro_batch(most, scenario.parallelism.pp)
    decode, drafting = passes.decode(micro, context), Drafting.of(scenario, passes)
    return Full(micro, most, context, decode, drafting, chunks, prefill.seconds, alone, least)


def most_running(scenario: Scenario, passes: Pass, memory: ServingMemory, context: Number, asked: Number) -> Number:
    """Sequences of a mean context that one engine runs together at most, where so many are asked for."""
    serving, reserve = scenario.serving, passes.settings.engine.reserve
    resident = steady.whole_sequence(serving.prompt_tokens, serving.output_tokens) if reserve else context
    return steady.running_sequences(asked, memory.cache.held(resident), memory.most_sequences)


def _running(scenario: Scenario, passes: Pass, memory: ServingMemory, full: Full) -> _Running:
    """All that can run in a closed loop, what the rate keeps running in an open one."""
    rate, output, pipeline = scenario.serving.request_rate, scenario.serving.output_tokens, scenario.parallelism.pp
    if not present(rate):
        return _Running(full.running, full.most, full.decode)
    line = line_of(passes, full, _crowded(scenario, passes, memory, full))
    engines = steady.in_all_micro_batches(memory.busy, pipeline)
    most = most_answered(full, line, output, engines)
    queues = Queues.of(scenario, memory.busy, memory.busy, full.most, most)
    each = steady.rate_each(rate, memory.busy, pipeline)
    opened = steady.in_all_micro_batches(running_at(full, line, output, each, steady.load_share(rate, most)), pipeline)
    running = steady.closed_or_open(rate, full.running, opened)
    micro = steady.micro_batch(running, pipeline)
    return _Running(running, micro, passes.decode(micro, full.context), line, queues)


def _prompt_beside(
    scenario: Scenario, passes: Pass, memory: ServingMemory, full: Full, beside: Number, decode: Iteration
) -> tuple[Number, Number]:
    """Seconds of a prompt beside some decoding sequences, and what it adds to their iterations."""
    if passes.settings.engine.prefill_first or not present(beside):
        return full.alone, full.alone
    prompt, added = beside_others(scenario, passes, memory.cache.sharing.shared, full.context, beside, decode)
    if is_array(beside):  # among many plans there may be some with a single request
        return where(beside > 0, prompt, full.alone), where(beside > 0, added, full.alone)
    return prompt, added


def step_seconds(scenario: Scenario, decode: Iteration, running: Number, reached: Number, weights: Number) -> Number:
    """Time of a decode step of all micro-batches of a pipeline, at least that of its bytes."""
    seconds = steady.pipelined_seconds(decode.seconds, scenario.parallelism.pp, running, reached)
    cache = decode.cache_bytes
    bandwidth = scenario.cluster.accelerator.memory_bandwidth
    return steady.not_below_floor(seconds, weights, cache, bandwidth)


def token_of(
    step: Number, drafting: Drafting | None, sequences: Number, context: Number, decode: Iteration
) -> tuple[Number, Number]:
    """Time per token of a decode step alone, and how many times shorter drafts make it than the step."""
    if drafting is None:
        return step, 1.0
    gain = drafting.gain(sequences, context, decode)
    return speculative.token_seconds(step, gain), gain


def beside_others(
    scenario: Scenario, passes: Pass, shared: Number, context: Number, beside: Number, decode: Iteration
) -> tuple[Number, Number]:
    """Seconds of a prompt whose iterations also decode others, and what it adds to theirs."""
    serving = scenario.serving
    prompt = Prompt.of(serving.prompt_tokens, shared, serving.max_batched_tokens, beside)
    mixed = passes.mixed(beside, context, 1.0, prompt.tokens, prompt.pairs, prompt.keys)
    return (
        steady.prompt_seconds(prompt.chunks, mixed.seconds),
        steady.added_seconds(prompt.chunks, mixed.seconds, decode.seconds),
    )


def line_of(passes: Pass, full: Full, crowded: Number) -> Line:
    """Decode iterations from one sequence to the most, and what a prompt adds; `crowded`: beside all others."""
    engine = passes.settings.engine
    steps = passes.decode(1.0, full.context), full.decode
    one, at_most = (
        steady.pipelined_seconds(step.seconds, passes.pipeline, full.running, engine.pipeline) for step in steps
    )
    added = full.alone if engine.prefill_first else steady.added_seconds(full.chunks, full.prompt, one)
    one, at_most = (
        token_of(seconds, full.drafting, sequences, full.context, step)[0]
        for seconds, sequences, step in zip((one, at_most), (1.0, full.most), steps, strict=True)
    )
    return Line(one, steady.slope(one, at_most, full.most), added, crowded)


def most_answered(full: Full, line: Line, output: Number, micro_batches: Number) -> Number:
    """Requests a second at which as many sequences run as can."""
    step = queueing.step_at(line.one, line.slope, full.most)
    return queueing.most_requests(micro_batches, full.most, output, step, line.crowded, full.least)


def running_at(full: Full, line: Line, output: Number, rate: Number, load: Number) -> Number:
    """Sequences of a micro-batch that a request rate keeps running, at a share of the most that it answers."""
    few, many = (steady.device_seconds(added, full.least) for added in (line.added, line.crowded))
    prompt_slope = steady.slope(few, many, full.most)
    rest = steady.batch_at_rest(rate, output, line.one, line.slope)
    left = steady.time_left(rate, output, line.slope, few, prompt_slope)
    return steady.littles_batch(rest, left, steady.prompt_bend(rate, prompt_slope), load, full.most)


def _crowded(scenario: Scenario, passes: Pass, memory: ServingMemory, full: Full) -> Number:
    """What a prompt adds to the iterations of as many others as can run."""
    if passes.settings.engine.prefill_first:
        return full.alone
    beside = queueing.all_others(full.most)
    return beside_others(scenario, passes, memory.cache.sharing.shared, full.context, beside, full.decode)[1]
