"""Waits of requests that come at random, and what one in a hundred of them meets. Approximate: ±20 %.

A prompt waits for the prompts before it, the engines taking one each (Erlang C), and where all places of a batch are
taken for one of those. Checked against simulated arrivals of equal, drawn and log-normal lengths.
Sources: Erlang 1917; Allen and Cunneen (Allen 1990) for service that is not exponential; Sakasegawa 1977 for many
servers.
"""

from __future__ import annotations

import math

from ..numeric import Number, is_array, log, maximum, minimum, sqrt, where
from ..terms import formula

#: Engines with a queue in common are counted up to here: i and i!.
MOST_SERVERS = 32
ORDERS = tuple((float(order), float(math.factorial(order))) for order in range(MOST_SERVERS + 1))
#: Share of requests that may wait longer.
TAIL = 0.01
#: Standard deviations above the mean that one in a hundred exceeds.
DEVIATIONS = 2.33
#: A queue grows without end at 1: waits behind prompts are those shortly before.
FULLEST = 0.99
#: The same of a queue for places, whose wait has no end where this is passed.
NEARLY_FULL = 1 - 1e-9

_POISSON = "arrivals at random, independent of each other"


@formula("c", "engines", "a longer row of engines waits less still")
def servers(engines: Number, pipeline_parallel: Number, most: Number) -> Number:
    """Prompts that are taken side by side, as far as the table of factorials goes."""
    return minimum(engines * pipeline_parallel, most)


@formula("λ·S", "share", leaves_out="what lies beyond a full queue")
def utilisation(rate: Number, service: Number, fullest: Number) -> Number:
    """Share of its time that a server is busy."""
    return minimum(fullest, rate * service)


@formula("λ/λ_max", "share", leaves_out="what lies beyond a full queue")
def taken_share(rate: Number, most: Number, fullest: Number) -> Number:
    """Share of the places that requests take, at a rate of which only so much is answered."""
    return minimum(fullest, rate / most)


@formula("A^c/c!", "ratio", "Erlang 1917")
def erlang_last(servers: Number, utilisation: Number, orders: tuple[tuple[float, float], ...]) -> Number:
    """Weight of all servers busy."""
    return sum(
        where(order == servers, (servers * utilisation) ** order / factorial, 0.0) for order, factorial in orders
    )


@formula("Σ A^i/i!", "ratio", "Erlang 1917")
def erlang_before(servers: Number, utilisation: Number, orders: tuple[tuple[float, float], ...]) -> Number:
    """Weight of a server free."""
    return sum(where(order < servers, (servers * utilisation) ** order / factorial, 0.0) for order, factorial in orders)


@formula("P_w", "share", "Erlang 1917: C formula")
def waiting_share(last: Number, before: Number, utilisation: Number) -> Number:
    """Share of requests that find all servers busy."""
    return last / (1 - utilisation) / (before + last / (1 - utilisation))


@formula("P_w", "share", "Sakasegawa 1977, of many servers")
def waiting_share_of_many(places: Number, utilisation: Number) -> Number:
    """Share of requests that find all places taken."""
    return utilisation ** (sqrt(2 * (places + 1)) - 1)


@formula("(C_a² + C_s²)/2", "factor", "Allen and Cunneen (Allen 1990)")
def variability(arrivals: Number, services: Number) -> Number:
    """How waits compare with those of exponential service, from squared coefficients of variation."""
    return (arrivals + services) / 2


@formula("W", "s", "Erlang 1917; Allen and Cunneen (Allen 1990)", "±20 %")
def mean_wait(service: Number, servers: Number, utilisation: Number, share: Number, variability: Number) -> Number:
    """Mean wait of requests that come at random."""
    return variability * share * service / (servers * (1 - utilisation))


@formula("W_99", "s", _POISSON)
def long_wait(
    service: Number, servers: Number, utilisation: Number, share: Number, variability: Number, tail: Number
) -> Number:
    """Wait that a small share of requests exceeds."""
    return maximum(0.0, variability * service * log(maximum(share, tail) / tail) / (servers * (1 - utilisation)))


@formula("W_99", "s")
def behind_all(wait: Number, running: Number, added: Number) -> Number:
    """Wait of a client in a closed loop, at most behind one prompt of each other client."""
    return minimum(wait, maximum(0.0, running - 1) * added)


@formula("S", "s")
def place_seconds(places: Number, most: Number) -> Number:
    """Time that a request holds its place when all are taken."""
    return places / most


@formula("λ_max", "1/s")
def most_requests(engines: Number, most: Number, output: Number, step: Number, added: Number, least: Number) -> Number:
    """Requests a second at which as many sequences run as can: more make the queue grow without end."""
    return engines * most / (maximum(1, output) * step + most * maximum(added, least))


@formula("B_knee", "requests", "Kleinrock 1979: throughput over latency is largest there")
def knee_requests(engines: Number, most: Number, one: Number, slope: Number, added: Number, output: Number) -> Number:
    """Requests at which a token takes about twice as long as alone: beyond, latency grows faster than throughput."""
    return engines * one / maximum(slope + added / maximum(1, output), one / most)


@formula("t_prompt", "s", leaves_out="what a fuller batch changes in the matrix products of a prompt")
def prompt_beside(alone: Number, chunks: Number, slope: Number, beside: Number) -> Number:
    """Time of a prompt whose iterations also decode other sequences."""
    return alone + chunks * slope * beside


@formula("B_99", "sequences", "a shared server: the spread of those in it grows as 1/(1 − ρ)")
def large_batch(running: Number, prefill: Number, deviations: Number, most: Number) -> Number:
    """Sequences that an engine seldom exceeds."""
    return minimum(most, running + deviations * sqrt(running) / (1 - prefill))


@formula("n_99", "prompts", _POISSON)
def many_prompts(running: Number, deviations: Number) -> Number:
    """Prompts of others during an answer that are seldom exceeded; as many as run together in the mean."""
    return running + deviations * sqrt(running)


@formula("B − 1", "sequences")
def all_others(most: Number) -> Number:
    """Sequences beside one, where as many run as can."""
    return maximum(0.0, most - 1)


@formula("t", "s")
def step_at(one: Number, slope: Number, running: Number) -> Number:
    """A decode step with some sequences, or what a prompt adds to it, on the line from one sequence to the most."""
    return one + slope * (running - 1)


@formula("TPOT_99", "s", leaves_out="±20 %")
def long_tpot(mean: Number, step: Number, prompts: Number, output: Number, added: Number, chunks: Number) -> Number:
    """Time per token that one in a hundred requests exceeds: at most a chunk of a prompt in every step."""
    return maximum(mean, step + minimum(prompts / maximum(1, output), 1 / chunks) * added)


@formula("TTFT_99", "s", leaves_out="±20 %; the first wave of a benchmark")
def long_ttft(first: Number, prompt_wait: Number, place_wait: Number, longer: Number) -> Number:
    """Time to first token that one in a hundred requests exceeds."""
    return first + maximum(prompt_wait, place_wait) + longer


@formula("TTFT_99", "s")
def at_least_mean(long: Number, mean: Number) -> Number:
    """The same, where hardly a request waits and the mean of the few that do is more."""
    return maximum(long, mean)


@formula("Δt", "s")
def longer_prompt(long: Number, mean: Number) -> Number:
    """What a long prompt takes more than a mean one."""
    return maximum(0.0, long - mean)


@formula("n_99", "tokens")
def long_prompt(nominal: Number, share: Number) -> Number:
    """Tokens of a prompt that one in a hundred exceeds."""
    return nominal * share


@formula("λ_good", "1/s", "both targets met for 99 of 100 requests", "±20 %")
def goodput_rate(share: Number, most: Number) -> Number:
    """Largest request rate at which both targets are met, from its share of the most, found by halving."""
    return share * most


def erlang_c(servers: Number, busy: Number) -> Number:
    """Share of requests that find all of some servers busy."""
    orders = ORDERS[: int(servers.max() if is_array(servers) else servers) + 1]
    return waiting_share(erlang_last(servers, busy, orders), erlang_before(servers, busy, orders), busy)
