"""The roofline: peak, bandwidth, knee, and what each operator could reach. Source: Williams 2009, CACM 52-4."""

from __future__ import annotations

from .numeric import Number, minimum
from .report import Point
from .terms import formula

_WILLIAMS = "Williams 2009, CACM 52-4"


@formula("Π/β", "FLOP/B", _WILLIAMS)
def knee(peak: Number, bandwidth: Number) -> Number:
    """Arithmetic intensity at which the memory roof meets the compute roof."""
    return peak / bandwidth


@formula("I", "FLOP/B", _WILLIAMS)
def intensity(flops: Number, moved: Number) -> Number:
    """Arithmetic intensity: FLOPs for each byte moved."""
    return flops / moved


@formula("min(Π, I·β)", "FLOP/s", _WILLIAMS)
def attainable(peak: Number, intensity: Number, bandwidth: Number) -> Number:
    """Rate that the roof allows at an intensity."""
    return minimum(peak, intensity * bandwidth)


@formula("F/t", "FLOP/s")
def achieved(flops: Number, seconds: Number) -> Number:
    """Rate that is reached."""
    return flops / seconds


def point(
    name: str, phase: str, flops: Number, moved: Number, seconds: Number, peak: Number, bandwidth: Number, bound: str
) -> Point:
    """An operator or phase on the roofline; FLOPs, bytes and seconds of one GPU in one step."""
    ratio = intensity(flops, moved)
    return Point(
        name, phase, flops, moved, ratio, attainable(peak, ratio, bandwidth), achieved(flops, seconds), seconds, bound
    )
