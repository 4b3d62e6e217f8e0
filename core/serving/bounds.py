"""What no software can beat, and the hand calculation: bytes over bandwidth, FLOPs over peak."""

from __future__ import annotations

from typing import Any

from ..numeric import Number, largest, maximum, where
from ..terms import formula

_DECODE = "decoding reads the weights once and the cache once a step: Pope 2022, arXiv 2211.05102"


@formula("R", "B", _DECODE, "activations; the input embedding counts whole")
def step_bytes(weights: Number, cache: Number) -> Number:
    """Bytes that one device cannot avoid reading in a decode step: weights once and cache once."""
    return weights + cache


@formula("T", "tokens")
def step_tokens(replicas: Number, running: Number) -> Number:
    """Tokens of one decode step of all engines."""
    return replicas * running


@formula("W", "B/s", "data-sheet rate, one way; a switch that adds on the way halves what each rank sends")
def link_peak(link: Number, pcie: Number, switch: Number) -> Number:
    """Most bytes of a ring that the links of one device stand for in a second inside a node."""
    return where(switch > 1, 2.0, 1.0) * maximum(link, pcie)


@formula("T_lower", "s", "max(F/Π, R/β, C/W): full overlap")
def step_floor(compute: Number, memory: Number, scale_up: Number, scale_out: Number, hops: Number) -> Number:
    """The physical floor of a decode step that no software can beat."""
    return largest((compute, memory, scale_up, scale_out, hops))


@formula("F/Π", "s", "data-sheet peak")
def prompt_floor(flops: Number, chunks: Number, peak: Number, weights: Number, bandwidth: Number) -> Number:
    """Least time of a prompt: its FLOPs at the peak, or the weights once at full bandwidth."""
    return maximum(flops * chunks / peak, weights / bandwidth)


@formula("(b/8)·N/(t·β)", "s", "rule of thumb: every weight is read once a step", "cache and activations")
def whiteboard_step(parameters: Number, bits: Number, tensor_parallel: Number, bandwidth: Number) -> Number:
    """The hand calculation of a decode step: the label's parameters at the format's bytes over the bandwidth."""
    return parameters * bits / 8 / (tensor_parallel * bandwidth)


@formula("2·N·B/(t·Π)", "s", "rule of thumb: 2N FLOPs a token")
def whiteboard_compute(parameters: Number, sequences: Number, tensor_parallel: Number, peak: Number) -> Number:
    """The hand calculation of the mathematics of a decode step."""
    return 2 * parameters * sequences / (tensor_parallel * peak)


@formula("B/max(R/β, F/Π)", "tokens/s")
def whiteboard_rate(sequences: Number, memory: Number, compute: Number) -> Number:
    """The hand calculation of throughput."""
    return sequences / maximum(memory, compute)


@formula("(b/8)·N/(t·p)", "B")
def whiteboard_weights(parameters: Number, bits: Number, tensor_parallel: Number, pipeline_parallel: Number) -> Number:
    """The hand calculation of the weights of one device."""
    return parameters * bits / 8 / (tensor_parallel * pipeline_parallel)


@formula("t/target", "ratio")
def over_target(seconds: Number, target: Number) -> Number:
    """A time over the time that is wanted."""
    return seconds / target


@formula("1 − t_step/TPOT", "share")
def prefill_share(decode: Number, tpot: Number) -> Number:
    """Share of a token's time in which the device works on the prompts of other requests."""
    return 1 - decode / tpot


@formula("λ > X", "yes or no")
def saturated(rate: Number, answered: Number) -> Any:
    """Whether requests come faster than they are answered, so that the queue grows without end."""
    return rate > answered


@formula("c", "s")
def compute_part(right: Number, seconds: Number) -> Number:
    """Time of a kernel at or right of the knee; 0 left of it."""
    return where(right, seconds, 0.0)


@formula("m", "s")
def memory_part(right: Number, seconds: Number) -> Number:
    """Time of a kernel left of the knee; 0 right of it."""
    return where(right, 0.0, seconds)


@formula("l", "s")
def launch_part(launches: Number, seconds: Number, device: Number) -> Number:
    """Launches, and what the host adds to the time of the device."""
    return launches + seconds - device


@formula("x", "s")
def communication_part(allreduces: Number, gather: Number, exchange: Number, hops: Number) -> Number:
    """Communication of an iteration; nothing hides it."""
    return allreduces + gather + exchange + hops
