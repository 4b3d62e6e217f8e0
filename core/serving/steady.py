"""The steady state of an engine: how many sequences it runs, time to first token, time per token, throughput.

Closed loop (request rate 0): `concurrency` clients ask again as soon as they are answered. An answer ends an
iteration, so the next request waits for no running one; a request beyond what the cache holds waits for a place.
Open loop: requests come at a rate, find an iteration half done, and as many run as Little's law says.
Waits of random arrivals are those of `queueing`. Left out: bursts, the first wave of a benchmark, preemption.
Source: Little 1961; Yu 2022 (Orca) for iterations that mix prompts and decoding.
"""

from __future__ import annotations

from ..numeric import Number, ceil, maximum, minimum, ratio, sqrt, where
from ..terms import formula

_LITTLE = "Little 1961: requests in the system = rate · time in the system"


@formula("c", "tokens")
def mean_context(prompt: Number, output: Number) -> Number:
    """Mean tokens in the cache of a decoding sequence."""
    return prompt + output / 2


@formula("n̄", "tokens")
def mean_length(nominal: Number, share: Number) -> Number:
    """Mean tokens of prompts or outputs whose lengths are drawn."""
    return nominal * share


@formula("n", "tokens")
def whole_sequence(prompt: Number, output: Number) -> Number:
    """Tokens of a request with its whole output, which a scheduler reserves that admits it only if all of it fits."""
    return prompt + output


@formula("B", "sequences", leaves_out="preemption")
def running_sequences(asked: Number, held: Number, most: Number) -> Number:
    """Sequences an engine runs together: as asked, as the cache holds, as its batch limit allows; at least one."""
    return maximum(1, minimum(minimum(asked, held), most))


@formula("B_p", "sequences")
def micro_batch(running: Number, pipeline_parallel: Number) -> Number:
    """Sequences of one micro-batch of a full pipeline; at least one."""
    return maximum(1, running / pipeline_parallel)


@formula("t_step", "s", "MLPerf and TensorRT-LLM rows with pipelines: 0.92 to 0.95 of the ideal")
def pipelined_seconds(seconds: Number, pipeline_parallel: Number, running: Number, reached: Number) -> Number:
    """Time of an iteration in a pipeline that several micro-batches share."""
    return where(pipeline_parallel > 1, where(running > 1, seconds / reached, seconds), seconds)


@formula("max(t, R/β)", "s", "the floor counts the input embedding whole, of which a step reads some rows")
def not_below_floor(seconds: Number, weights: Number, cache: Number, bandwidth: Number) -> Number:
    """Time of an iteration, at least that of the bytes that are said to be unavoidable."""
    return maximum(seconds, (weights + cache) / bandwidth)


@formula("t − t_pass", "s")
def idle_seconds(seconds: Number, iteration: Number) -> Number:
    """What the pipeline, or waiting for other ranks, loses in an iteration."""
    return seconds - iteration


@formula("q", "tokens")
def chunk_budget(batched_tokens: Number, decoding: Number) -> Number:
    """Prompt tokens that fit into an iteration beside the decoding sequences."""
    return maximum(1, batched_tokens - decoding)


@formula("n_q", "iterations", "Agrawal 2024 (Sarathi-Serve, arXiv 2403.02310)")
def chunk_count(prompt: Number, budget: Number) -> Number:
    """Iterations that a prompt takes."""
    return ceil(prompt / budget)


@formula("q", "tokens", leaves_out="a shorter last chunk: chunks are taken as equal")
def chunk_tokens(prompt: Number, chunks: Number) -> Number:
    """Tokens of a prompt in one iteration."""
    return prompt / chunks


@formula("P/n", "pairs")
def mean_pairs(pairs: Number, chunks: Number) -> Number:
    """(query, key) pairs of a mean chunk."""
    return pairs / chunks


@formula("I·(n+1)/(2n)", "tokens")
def mean_keys(prompt: Number, chunks: Number) -> Number:
    """Keys of the last token of a mean chunk."""
    return prompt * (chunks + 1) / (2 * chunks)


@formula("n_shared + k", "tokens")
def keys_after(cached: Number, keys: Number) -> Number:
    """Keys of a token behind the ones that were there before its prompt."""
    return cached + keys


@formula("t_prompt", "s")
def prompt_seconds(chunks: Number, iteration: Number) -> Number:
    """Time from the start of a prompt to its first token on the device."""
    return chunks * iteration


@formula("Δt", "s")
def added_seconds(chunks: Number, mixed: Number, decode: Number) -> Number:
    """What a prompt adds to the iterations of those that decode beside it."""
    return chunks * maximum(0.0, mixed - decode)


@formula(
    "B_other", "sequences", "in a closed loop a request meets the others; at a rate it meets the mean of the system"
)
def others(rate: Number, micro_batch: Number, running: Number, pipeline_parallel: Number) -> Number:
    """Sequences that decode beside a request."""
    return where(rate > 0, running / pipeline_parallel, maximum(0.0, micro_batch - 1))


@formula("TPOT", "s", "each of the others brings a prompt once in O tokens; the same as t/(1 − ρ_p) at a rate")
def shared_tpot(decode: Number, others: Number, output: Number, added: Number) -> Number:
    """Time per output token when the prompts of other requests share the device; a step for a single token."""
    return decode + where(output > 1, others / maximum(1, output) * added, 0.0)


@formula("λ", "1/s")
def rate_each(rate: Number, engines: Number, pipeline_parallel: Number) -> Number:
    """Requests a second of one micro-batch of one engine."""
    return rate / (engines * pipeline_parallel)


@formula("C", "s")
def slope(at_one: Number, at_most: Number, most: Number) -> Number:
    """Time that one more sequence adds to a decode iteration, mean from one to the most."""
    return ratio(at_most - at_one, most - 1)


@formula("t_p", "s")
def device_seconds(added: Number, least: Number) -> Number:
    """Time that a prompt takes of the device, at least that at the peak."""
    return maximum(added, least)


@formula("λ/λ_max", "share")
def load_share(rate: Number, most: Number) -> Number:
    """A request rate over the most that is answered."""
    return rate / most


@formula("λ·O·(A − C)", "sequences")
def batch_at_rest(rate: Number, output: Number, one: Number, slope: Number) -> Number:
    """Sequences that run together as long as one more delays none; one takes A for a token, one more adds C."""
    return rate * output * maximum(0.0, one - slope)


@formula("1 − λ·(O·C + t_p − C_p)", "share")
def time_left(rate: Number, output: Number, slope: Number, prompt: Number, prompt_slope: Number) -> Number:
    """Share of the time that further sequences and prompts leave; another prompt takes t_p, one more sequence C_p."""
    return 1 - rate * (output * slope + prompt - prompt_slope)


@formula("B", "sequences", _LITTLE)
def littles_batch(rest: Number, left: Number, bend: Number, load: Number, most: Number) -> Number:
    """Sequences that run together at a request rate: B = λ·(O·t_step(B) + B·t_p(B)); the most when saturated."""
    return where(
        load < 1,
        minimum(most, 2 * rest / maximum(1e-9, left + sqrt(maximum(0.0, left * left - 4 * bend * rest)))),
        most,
    )


@formula("λ·C_p", "1")
def prompt_bend(rate: Number, prompt_slope: Number) -> Number:
    """Share of the time that prompts take more for each sequence."""
    return rate * prompt_slope


@formula("p·B", "sequences")
def in_all_micro_batches(sequences: Number, pipeline_parallel: Number) -> Number:
    """Sequences of all micro-batches of a pipeline."""
    return sequences * pipeline_parallel


@formula("B", "sequences")
def closed_or_open(rate: Number, closed: Number, opened: Number) -> Number:
    """Sequences that run together: all that can in a closed loop, what the rate keeps busy in an open one."""
    return where(rate > 0, opened, closed)


@formula("t_wait", "s")
def iteration_wait(rate: Number, tpot: Number) -> Number:
    """Wait of a request for the iteration that runs when it comes; in a closed loop it comes when one has ended."""
    return where(rate > 0, tpot / 2, 0.0)


@formula("TTFT", "s", leaves_out="waits of random arrivals, which are added; compilation in a first wave")
def first_token_seconds(
    wait: Number, prompt: Number, request: Number, interface: Number, lag: Number, tpot: Number
) -> Number:
    """Time to first token of a request that has its place: waiting, prompt, interface, and the engine's step lag."""
    return wait + prompt + request + interface + lag * tpot


@formula("t_api", "s")
def interface_seconds(request: Number, interface: Number) -> Number:
    """Fixed time of a request outside the iterations: the engine's own, and the interface's."""
    return request + interface


@formula("n_lag·TPOT", "s")
def lag_seconds(lag: Number, tpot: Number) -> Number:
    """Iterations between a token and its answer in an engine that schedules ahead."""
    return lag * tpot


@formula("t_others", "s")
def beside_seconds(prompt: Number, alone: Number) -> Number:
    """What decoding others in the iterations of a prompt costs it."""
    return maximum(0.0, prompt - alone)


@formula("F·n/Π", "s", "data-sheet peak")
def least_prompt_seconds(flops: Number, chunks: Number, peak: Number) -> Number:
    """Least time a prompt takes of the device."""
    return flops * chunks / peak


@formula("t_busy", "s")
def busy_seconds(micro_batch: Number, output: Number, decode: Number, added: Number, least: Number) -> Number:
    """Time a device works to answer each request of a micro-batch once: decode steps, and a prompt of each."""
    return maximum(0.0, output - 1) * decode + micro_batch * maximum(added, least)


@formula("t_queue", "s", "a device takes one prompt after the other")
def prompt_queue(busy: Number, first: Number, output: Number, tpot: Number) -> Number:
    """Wait behind the prompts of other requests where outputs are so short that prompts fill the device."""
    return maximum(0.0, busy - first - maximum(0.0, output - 1) * tpot)


@formula("t_request", "s")
def request_seconds(first: Number, queue: Number, output: Number, tpot: Number) -> Number:
    """Time of a request from its place to its last token."""
    return first + queue + maximum(0.0, output - 1) * tpot


@formula("t_place", "s", _LITTLE)
def place_wait(rate: Number, asked: Number, running: Number, request: Number) -> Number:
    """Wait for a place in a closed loop in which more clients ask than run together."""
    return where(rate > 0, 0.0, maximum(0.0, asked / maximum(1, running) - 1) * request)


@formula("TTFT", "s")
def with_waits(first: Number, queue: Number, place: Number) -> Number:
    """Time to first token with the waits behind other prompts and for a place."""
    return first + queue + place


@formula("X", "1/s", _LITTLE)
def closed_loop_rate(engines: Number, running: Number, request: Number) -> Number:
    """Requests a second of all engines that have one when as many run as can."""
    return engines * running / request


@formula("X", "1/s")
def answered_rate(rate: Number, most: Number, closed: Number) -> Number:
    """Requests a second that are answered: all that come, at most what the engines can; else those of clients."""
    return where(rate > 0, minimum(rate, most), closed)


@formula("X_tok", "tokens/s")
def output_rate(requests: Number, output: Number) -> Number:
    """Output tokens a second of all engines, with the prompts they need."""
    return requests * output
