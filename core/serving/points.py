"""Operators of a decode step and of a prompt on the roofline."""

from __future__ import annotations

from dataclasses import replace

from ..numeric import Number
from ..report import Point
from ..roofline import Roof
from ..sums import times_bytes, times_seconds, total_seconds
from ..terms import formula
from . import kernels
from .iteration import Iteration, Operator
from .plan import Plan


@formula("Σ F", "FLOP")
def all_flops(parts: list[Number]) -> Number:
    """FLOPs of several operators."""
    return sum(parts)


@formula("Σ", "B")
def all_bytes(parts: list[Number]) -> Number:
    """Bytes of several operators."""
    return sum(parts)


def flops(iteration: Iteration) -> Number:
    """FLOPs of an iteration on one device."""
    return all_flops([each.flops for each in iteration.operators])


def points(plan: Plan) -> list[Point]:
    """Operators of the decode step, then linear layers, attention and the whole of one prompt alone."""
    steady, bandwidth = plan.steady, plan.scenario.cluster.accelerator.memory_bandwidth
    rows = [_point(each, "decode", bandwidth) for each in steady.decode.operators]
    prefill, chunks = steady.prefill.operators, steady.prompt.chunks
    attention = [each for each in prefill if each.name == "attention"]
    linear = [each for each in prefill if each.name != "attention" and each.flops]
    peak = plan.passes.rates.blocks.peak
    whole = replace(_together("whole prefill", list(prefill), chunks, peak), seconds=steady.prompt_alone)
    parts = (
        _together("linear layers", linear, chunks, peak),
        _together("attention", attention, chunks, attention[0].peak),
    )
    return rows + [_point(each, "prefill", bandwidth) for each in (*parts, whole)]


def _together(name: str, operators: list[Operator], chunks: Number, peak: Number) -> Operator:
    """Several operators of the iterations of a prompt as one."""
    return Operator(
        name,
        kernels.flops_in_all(chunks, all_flops([each.flops for each in operators])),
        times_bytes(chunks, all_bytes([each.bytes for each in operators])),
        total_seconds([each.math for each in operators]),
        total_seconds([each.memory for each in operators]),
        times_seconds(chunks, total_seconds([each.seconds for each in operators])),
        peak,
    )


def _point(each: Operator, phase: str, bandwidth: Number) -> Point:
    bound = "compute" if each.math >= each.memory else "memory"
    return Roof(each.peak, bandwidth).point(each.name, phase, each.flops, each.bytes, each.seconds, bound)
