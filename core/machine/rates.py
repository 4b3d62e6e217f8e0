"""The machine constants of a scenario: what its accelerator and network reach of their data-sheet rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..catalogue import table
from ..numeric import Number, sqrt
from ..scenario import Accelerator, Scenario
from ..terms import formula, is_recording, with_origins

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
    #: A person's own band; None: that of the published runs like the plan.
    band_low: Number | None
    band_high: Number | None
    first_year: Number
    eager_passes: Number
    grouped: Number
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


@formula("e·√(P/TDP)", "fraction of peak", "clock follows about the square root of power")
def at_limit(fraction: Number, limit: Number, power: Number) -> Number:
    """Sustained fraction of a part that is held to less power than it was designed for."""
    return fraction * sqrt(limit / power)


@formula("e·m", "fraction of peak", "same model and machine with the libraries of two years")
def matured(fraction: Number, maturity: Number) -> Number:
    """Sustained fraction with the libraries of a device generation's first year."""
    return fraction * maturity


@cache
def _published(accelerator: str, generation: str, precision: str, kernel: str, fabric: str) -> tuple[Rates, Any]:
    """The table's constants, and the reference (power, peak) of the generation or None."""
    data = table("rates")
    gemm = data["gemm"].get(accelerator) or data["gemm"].get(generation) or data["gemm"]["default"]
    attention = data["attention"].get(generation, data["attention"]["default"])
    name = kernel if kernel in attention else attention["usual"]
    forward, backward = attention[name]
    recipe = table("precisions")[precision]
    rates = Rates(
        e_gemm=gemm[recipe["rate"]] * recipe["relative"],
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
    published = _held_back(published, scenario)
    stated = {name: value for name, value in scenario.assumptions if hasattr(published, name)}
    constants = replace(published, **stated) if stated else published
    return with_origins(constants, "assumptions") if is_recording() else constants


def _held_back(published: Rates, scenario: Scenario) -> Rates:
    """The rates of matrix units under a power limit and with early libraries."""
    limit, power = scenario.cluster.power_limit, scenario.cluster.accelerator.power
    names = ("e_gemm", "e_gemm_16", "e_fa_forward", "e_fa_backward")
    if limit is not None:
        published = replace(published, **{name: at_limit(getattr(published, name), limit, power) for name in names})
    if scenario.training.kernel_maturity == "first-year":
        early = published.first_year
        published = replace(published, **{name: matured(getattr(published, name), early) for name in names})
    return published


def peak_flops(accelerator: Accelerator, precision: str) -> Number:
    """Dense peak of the matrix units in FLOP/s for a number format; the 16-bit peak where the part has no such unit."""
    peak = getattr(accelerator.peak, table("precisions").get(precision, {}).get("peak", precision), None)
    for fallback in (peak, accelerator.peak.bf16, accelerator.peak.fp16, accelerator.peak.fp32):
        if fallback is not None:
            return fallback
    return 1.0
