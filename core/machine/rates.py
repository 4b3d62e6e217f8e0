"""The machine constants of a scenario: what its accelerator and network reach of their data-sheet rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..catalogue import table
from ..numeric import Number, sqrt
from ..scenario import Accelerator, Scenario
from ..terms import formula

#: Bytes of one stored element by number format of the matrix products.
ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1}

#: Steps of head sizes of the kernels that have more than multiples of 64.
_HEAD_STEPS = {"fa2": 32, "fa3": 32}


@dataclass(frozen=True)
class Rates:
    """Constants by the names under which `assumptions` overrides them; times in seconds, the rest fractions."""

    e_gemm: Number
    e_fa_forward: Number
    e_fa_backward: Number
    alpha_net: Number
    k_half: Number
    e_mem: Number
    t_k: Number
    s_half: Number
    e_nv: Number
    e_nic: Number
    alpha_c: Number
    alpha_nv: Number
    alpha_ring: Number
    alpha_p2p: Number
    kappa: Number
    sigma: Number
    t_fixed: Number
    context_bytes: Number
    communicator_bytes: Number
    peak_margin: Number
    tight: Number
    band_low: Number
    band_high: Number
    small_head: Number
    #: Sustained fraction of the 16-bit products that an 8-bit recipe keeps: attention and head.
    e_gemm_16: Number
    #: Step in which the attention kernels of the device come in head sizes.
    head_step: int
    #: Whether a constant of this accelerator rests on published rates of this very part.
    calibrated: bool = True
    #: Relative rates by alignment; empty where the library does not mind.
    alignment: tuple[tuple[int, float], ...] = ()
    tiles: tuple[tuple[float, float, float], ...] = ()
    source: str = "published kernel and link measurements (presets/rates.yaml)"


@formula("e·√((P/Π)/(P_ref/Π_ref))", "fraction of peak", "clock follows about the square root of power")
def at_power(fraction: Number, power: Number, peak: Number, reference_power: Number, reference_peak: Number) -> Number:
    """Sustained fraction of a part of the same generation at another power limit."""
    return fraction * sqrt((power / peak) / (reference_power / reference_peak))


@cache
def _published(accelerator: str, generation: str, precision: str, kernel: str, fabric: str) -> tuple[Rates, Any]:
    """The table's constants, and the reference (power, peak) of the generation or None."""
    data = table("rates")
    gemm = data["gemm"].get(accelerator) or data["gemm"].get(generation) or data["gemm"]["default"]
    attention = data["attention"].get(generation, data["attention"]["default"])
    name = kernel if kernel in attention else attention["usual"]
    forward, backward = attention[name]
    low = {"fp8": "fp8"}.get(precision, "bf16")
    rates = Rates(
        e_gemm=gemm[low],
        e_fa_forward=forward,
        e_fa_backward=backward,
        alpha_net=data["latency"].get(fabric, data["latency"]["ib"]),
        small_head=attention["small_head"],
        e_gemm_16=gemm["bf16"],
        head_step=_HEAD_STEPS.get(name, 64),
        calibrated=bool(gemm["calibrated"]),
        alignment=tuple((int(k), float(v)) for k, v in data["alignment"].get(generation, {}).items()),
        tiles=tuple((float(r), float(c), float(x)) for r, c, x in data["tiles"]),
        **data["constants"],
    )
    return rates, (gemm["power"], gemm["peak"]) if "power" in gemm else None


def rates(scenario: Scenario) -> Rates:
    """The constants of a scenario, with its own assumptions put in place of the published ones."""
    device, training = scenario.cluster.accelerator, scenario.training
    published, reference = _published(
        str(device.id),
        str(device.generation),
        training.precision,
        training.attention_kernel,
        scenario.cluster.network.latency_class,
    )
    if reference and device.peak.bf16 is not None:
        published = replace(
            published,
            e_gemm=at_power(published.e_gemm, device.power, device.peak.bf16, *reference),
            e_gemm_16=at_power(published.e_gemm_16, device.power, device.peak.bf16, *reference),
        )
    stated = {name: value for name, value in scenario.assumptions if hasattr(published, name)}
    return replace(published, **stated) if stated else published


def peak_flops(accelerator: Accelerator, precision: str) -> Number:
    """Dense peak of the matrix units in FLOP/s for a number format; the 16-bit peak where the part has no such unit."""
    peak = getattr(accelerator.peak, precision, None)
    for fallback in (peak, accelerator.peak.bf16, accelerator.peak.fp16, accelerator.peak.fp32):
        if fallback is not None:
            return fallback
    return 1.0
