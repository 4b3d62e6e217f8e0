"""Prompts and decoding on engines of their own: how many of each, the cache that moves between them, and the gain.

A prompt then holds no token up, but neither pool can take over for the other, and the cache of a prompt has to move.
Sources: Zhong 2024 (DistServe, arXiv 2401.09670), Patel 2023 (Splitwise, arXiv 2311.18677).
"""

from __future__ import annotations

from ..numeric import Number, ceil, floor, maximum, minimum, where
from ..terms import formula

#: Share of its time that a pool is planned to be busy.
BUSIEST = 0.8

_PLANNED = "pools that are busy four fifths of their time"


@formula("(O − 1)·TPOT/B", "s")
def decode_seconds(output: Number, token: Number, running: Number) -> Number:
    """Time that an engine spends on the further tokens of a request."""
    return maximum(0.0, output - 1) * token / running


@formula("c_P", "engines", "in proportion to the work, one at least")
def prefill_engines(engines: Number, prompt: Number, decode: Number) -> Number:
    """Engines for prompts."""
    return maximum(1, minimum(engines - 1, floor(engines * prompt / (prompt + decode) + 0.5)))


@formula("c − c_P", "engines")
def decode_engines(engines: Number, prefill: Number) -> Number:
    """Engines for decoding."""
    return maximum(1, engines - prefill)


@formula("n_P", "engines", _PLANNED)
def engines_needed(rate: Number, seconds: Number, busiest: Number) -> Number:
    """Engines that some work of each request keeps busy at a rate."""
    return ceil(rate * seconds / busiest)


@formula("n/c", "GPUs")
def engine_gpus(gpus: Number, engines: Number) -> Number:
    """GPUs of one engine."""
    return gpus / engines


@formula("I·KV", "B")
def moved_bytes(tokens: Number, per_token: Number) -> Number:
    """Cache of a prompt that moves to the engine that decodes it."""
    return tokens * per_token


@formula("t_KV", "s", "every GPU of the engine sends its part over its own network card")
def transfer_seconds(moved: Number, gpus: Number, rate: Number) -> Number:
    """Time to move the cache of a prompt."""
    return moved / (gpus * rate)


@formula("t_exposed", "s", "each layer's cache moves while the next one is computed")
def exposed_seconds(transfer: Number, layers: Number, prompt: Number) -> Number:
    """What of it is waited for: the last layer's part, or what takes longer than the prompt."""
    return maximum(transfer / layers, transfer - prompt)


@formula("X_max", "1/s")
def capacity(prefill: Number, prompt: Number, decode: Number, most: Number, output: Number, token: Number) -> Number:
    """Requests a second that both pools keep up with."""
    return minimum(prefill / prompt, decode * most / (maximum(1, output - 1) * token))


@formula("X", "1/s", "Little 1961: requests in the system = rate · time in the system")
def offered(rate: Number, clients: Number, first: Number, output: Number, token: Number) -> Number:
    """Requests a second that come: the rate, or as fast as clients are answered."""
    return where(rate > 0, rate, clients / (first + maximum(0.0, output - 1) * token))


@formula("X", "1/s")
def answered(offered: Number, capacity: Number) -> Number:
    """Requests a second that are answered."""
    return minimum(offered, capacity)


@formula("TTFT", "s", "Little 1961: clients that are not decoding wait for their first token")
def first_token(first: Number, rate: Number, clients: Number, requests: Number, output: Number, tpot: Number) -> Number:
    """Time to first token with the wait for the pool that is full."""
    return where(rate > 0, first, maximum(first, clients / requests - maximum(0.0, output - 1) * tpot))


@formula("TTFT − TTFT_0", "s")
def pool_wait(ttft: Number, first: Number) -> Number:
    """Wait for a place in the pool that is full."""
    return ttft - first


@formula("x/x_together", "ratio")
def over_together(separate: Number, together: Number) -> Number:
    """A value of separate pools over that of the same engines doing both."""
    return separate / together
