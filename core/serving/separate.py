"""The steady state of engines that either run prompts or decode: composition of the formulas of `pools`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ledgers.serving_memory import ServingMemory, mean_sequences_each
from ..ledgers.serving_sharing import own_tokens
from ..model.kinds.mixer import present
from ..numeric import Number
from ..scenario import Scenario
from ..sums import add_seconds
from . import pools, queueing, steady
from .collectives import reached
from .iteration import Pass
from .loop import Full, Line, Steady, line_of, most_answered, most_running, running_at, step_seconds, token_of
from .waits import Queues

#: Rounds in which sequences, and the rate that hangs on their speed, are found.
_ROUNDS = 3


@dataclass(frozen=True)
class Pools:
    """Engines for prompts and for decoding, the cache that moves between them, and the same engines doing both."""

    prefill: Number
    decode: Number
    #: Time to move the cache of a prompt, and what of it is waited for.
    transfer: Number
    exposed: Number
    #: Requests a second that both pools keep up with, and engines that the plan's request rate needs.
    capacity: Number
    prefill_needed: Number
    decode_needed: Number
    line: Line
    together: Steady


def separate(scenario: Scenario, passes: Pass, memory: ServingMemory, together: Steady) -> tuple[Steady, Pools]:
    """The steady state of the engines of a plan as two pools, from that of the same engines doing both."""
    serving, engine, pipeline = scenario.serving, passes.settings.engine, scenario.parallelism.pp
    rate, output, prompt = serving.request_rate, serving.output_tokens, together.prompt_alone
    both, line = together.full, together.line
    busiest = queueing.step_at(line.one, line.slope, both.most) if line else together.token
    work = pools.decode_seconds(output, busiest, both.running)
    prefill = pools.prefill_engines(memory.replicas, prompt, work)
    decoding = pools.decode_engines(memory.replicas, prefill)
    transfer = _transfer(scenario, passes, memory)
    exposed = pools.exposed_seconds(transfer, passes.model.layers, prompt)
    full, line = _decoding(scenario, passes, memory, together, decoding)
    largest = queueing.step_at(line.one, line.slope, full.most)
    most_rate = pools.capacity(prefill, prompt, decoding, full.running, output, largest)
    in_prompt = add_seconds(prompt, exposed)
    running = _running(scenario, passes, full, line, decoding, in_prompt, most_rate)
    whole = steady.in_all_micro_batches(running, pipeline)
    decode = passes.decode(running, together.context)
    step = step_seconds(scenario, decode, whole, engine.pipeline, passes.read_weights(memory.pass_weights, whole))
    token, gain = token_of(step, together.drafting, running, together.context, decode)
    requests, first = _rates(scenario, passes, in_prompt, token, most_rate)
    settled = ttft = pools.first_token(first, rate, serving.concurrency, requests, output, token)
    queue, place = 0.0, pools.pool_wait(settled, first)
    if present(rate):
        queues = Queues.of(scenario, prefill, decoding, full.most, most_rate)
        queue, taken = queues.mean_waits(rate, prompt, in_prompt)
        place, ttft = add_seconds(place, taken), steady.with_waits(settled, queue, taken)
    state = replace(
        together,
        running=whole,
        decode=decode,
        step=step,
        token=token,
        gain=gain,
        idle=steady.idle_seconds(step, decode.working),
        full=full,
        line=line,
        settled=settled,
        ttft=ttft,
        tpot=token,
        added=0.0,
        in_prompt=in_prompt,
        wait=0.0,
        queue=queue,
        place_wait=place,
        requests=requests,
        output=steady.output_rate(requests, output),
    )
    prefill_needed, decode_needed = (
        pools.engines_needed(rate, seconds, pools.BUSIEST)
        for seconds in (prompt, pools.decode_seconds(output, largest, full.running))
    )
    found = Pools(prefill, decoding, transfer, exposed, most_rate, prefill_needed, decode_needed, line, together)
    return state, found


def _decoding(
    scenario: Scenario, passes: Pass, memory: ServingMemory, together: Steady, engines: Number
) -> tuple[Full, Line]:
    """As many sequences as an engine that only decodes can run together, and its iterations at any load."""
    asked = mean_sequences_each(scenario.serving.concurrency, engines)
    most = most_running(scenario, passes, memory, together.context, asked)
    micro = steady.micro_batch(most, scenario.parallelism.pp)
    full = replace(together.full, most=micro, running=most, decode=passes.decode(micro, together.context))
    line = line_of(passes, full, 0.0)
    return replace(full, least=0.0), replace(line, added=0.0)


def _running(
    scenario: Scenario, passes: Pass, full: Full, line: Line, engines: Number, prompt: Number, most: Number
) -> Number:
    """Sequences that decode together in a micro-batch; `most` requests a second are answered."""
    output, running = scenario.serving.output_tokens, full.most
    alone = most_answered(full, line, output, 1.0)
    for _ in range(_ROUNDS):
        token = queueing.step_at(line.one, line.slope, running)
        requests, _first = _rates(scenario, passes, prompt, token, most)
        each = steady.rate_each(requests, engines, scenario.parallelism.pp)
        running = running_at(full, line, output, each, steady.load_share(each, alone))
    return running


def _transfer(scenario: Scenario, passes: Pass, memory: ServingMemory) -> Number:
    """Time to move the cache of a prompt to its decode engine."""
    tokens = own_tokens(scenario.serving.prompt_tokens, memory.cache.sharing.shared)
    moved = pools.moved_bytes(tokens, memory.kv_per_token)
    rate = reached(scenario.cluster.network.bandwidth, passes.settings.device.e_nic)
    return pools.transfer_seconds(moved, pools.engine_gpus(scenario.cluster.gpus, memory.replicas), rate)


def _rates(scenario: Scenario, passes: Pass, prompt: Number, token: Number, most: Number) -> tuple[Number, Number]:
    """Requests a second that are answered, and the time to first token of one that finds a place."""
    serving, engine = scenario.serving, passes.settings.engine
    first = steady.first_token_seconds(0.0, prompt, engine.t_request, engine.t_api, engine.lag, token)
    offered = pools.offered(serving.request_rate, serving.concurrency, first, serving.output_tokens, token)
    return pools.answered(offered, most), first
