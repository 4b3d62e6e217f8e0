"""Operators of a decode step and of a prompt on the roofline."""

from __future__ import annotations

from ..numeric import Number
from ..report import Point
from ..roofline import Roof
from ..sums import total_seconds
from ..terms import formula
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
    decode, prefill = plan.steady.decode, plan.steady.prefill
    bandwidth = plan.scenario.cluster.accelerator.memory_bandwidth
    rows = [_operator(each, "decode", bandwidth) for each in decode.operators]
    named = {each.name: each for each in prefill.operators}
    attention = named.pop("attention")
    linear = _together("linear layers", [each for each in named.values() if each.flops])
    rows += [_operator(each, "prefill", bandwidth) for each in (linear, attention)]
    peak = plan.passes.rates.blocks.peak
    whole = _together("whole prefill", list(prefill.operators))
    bound = "compute" if whole.math >= whole.memory else "memory"
    rows.append(Roof(peak, bandwidth).point(whole.name, "prefill", whole.flops, whole.bytes, prefill.seconds, bound))
    return rows


def _together(name: str, operators: list[Operator]) -> Operator:
    return Operator(
        name,
        all_flops([each.flops for each in operators]),
        all_bytes([each.bytes for each in operators]),
        total_seconds([each.math for each in operators]),
        total_seconds([each.memory for each in operators]),
        total_seconds([each.seconds for each in operators]),
        operators[0].peak,
    )


def _operator(each: Operator, phase: str, bandwidth: Number) -> Point:
    bound = "compute" if each.math >= each.memory else "memory"
    return Roof(each.peak, bandwidth).point(each.name, phase, each.flops, each.bytes, each.seconds, bound)
