"""Operators of a decode step and of a prompt on the roofline."""

from __future__ import annotations

from dataclasses import replace

from ..numeric import Number
from ..report import Point
from ..roofline import Roof, right_of_knee
from ..sums import times_bytes, times_seconds, total_bytes, total_seconds
from ..units import format_quantity
from . import kernels
from .operators import Operator, all_flops
from .plan import Plan
from .rates import has_units


def points(plan: Plan) -> list[Point]:
    """Operators of the decode step, then linear layers, attention and the whole of one prompt alone."""
    steady = plan.steady
    rows = [_point(each, "decode", plan) for each in steady.decode.operators]
    prefill, chunks = steady.prefill.operators, steady.prompt.chunks
    attention = [each for each in prefill if each.core]
    linear = [each for each in prefill if not each.core and each.flops]
    peak = plan.passes.rates.blocks.peak
    whole = _together("whole prefill", list(prefill), chunks, peak)._replace(seconds=steady.prompt_alone)
    parts = [_together("linear layers", linear, chunks, peak)]
    if attention:
        parts.append(_together("attention", attention, chunks, attention[0].peak))
    return rows + [_point(each, "prefill", plan) for each in (*parts, whole)]


def _together(name: str, operators: list[Operator], chunks: Number, peak: Number) -> Operator:
    """Several operators of the iterations of a prompt as one."""
    return Operator(
        name,
        kernels.flops_in_all(chunks, all_flops([each.flops for each in operators])),
        times_bytes(chunks, total_bytes([each.bytes for each in operators])),
        times_seconds(chunks, total_seconds([each.math for each in operators])),
        times_seconds(chunks, total_seconds([each.memory for each in operators])),
        times_seconds(chunks, total_seconds([each.seconds for each in operators])),
        peak,
    )


def _point(each: Operator, phase: str, plan: Plan) -> Point:
    roof = Roof(each.peak, plan.scenario.cluster.accelerator.memory_bandwidth)
    point = roof.point(each.name, phase, each.flops, each.bytes, each.seconds, "memory")
    return replace(point, ceiling=ceiling(each, plan)) if phase == "decode" else point


def below_roof(each: Operator, plan: Plan) -> bool:
    """Whether a kernel is left of the knee and its mathematics takes longer than its bytes."""
    bandwidth = plan.scenario.cluster.accelerator.memory_bandwidth
    return each.math > each.memory and not right_of_knee(each.flops, each.peak, each.bytes, bandwidth)


def ceiling(each: Operator, plan: Plan) -> str:
    """What holds a kernel left of the knee below the roof, in words; empty where nothing does.

    Source: ceilings within the roofline, Williams 2009.
    """
    if not below_roof(each, plan):
        return ""
    rate = each.flops / each.math
    words = f"kernel ceiling {format_quantity(rate, 'FLOP/s')}, {format_quantity(rate / each.peak, 'ratio', 2)} of peak"
    if each.core:
        return f"{words}: {'vector' if plan.settings.engine.vector_flops else 'matrix'} units"
    number = plan.settings.weights
    expanded = number.bits < 16 and not has_units(plan.scenario.cluster.accelerator, number)
    return f"{words}: few rows for its tiles{', weights expanded to 16 bits' if expanded else ''}"
