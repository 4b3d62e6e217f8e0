"""The roofline: peak, bandwidth, knee, and what each operator could reach. Source: Williams 2009, CACM 52-4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


@formula("F/Π ≥ R/β", "yes or no", _WILLIAMS)
def right_of_knee(flops: Number, peak: Number, moved: Number, bandwidth: Number) -> Any:
    """Whether FLOPs at the peak take longer than bytes at full bandwidth: compute bound, else memory bound."""
    return flops / peak >= moved / bandwidth


@dataclass(frozen=True)
class Roof:
    """The roof of one device: its peak in FLOP/s and its memory bandwidth in bytes/s."""

    peak: Number
    bandwidth: Number

    def point(self, name: str, phase: str, flops: Number, moved: Number, seconds: Number, bound: str) -> Point:
        """An operator or phase under the roof; FLOPs, bytes and seconds of one GPU in one step.

        Between compute and memory the knee decides, whatever a kernel makes of its side of it.
        """
        if bound in ("compute", "memory"):
            bound = "compute" if right_of_knee(flops, self.peak, moved, self.bandwidth) else "memory"
        ratio = intensity(flops, moved)
        roof = attainable(self.peak, ratio, self.bandwidth)
        return Point(name, phase, flops, moved, ratio, roof, achieved(flops, seconds), seconds, bound)
