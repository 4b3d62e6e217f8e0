"""What a device and an engine reach together: sustained rates of the kernels of a serving scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..machine.rates import peak_flops
from ..numeric import Number, minimum, sqrt, where
from ..scenario import Accelerator, Scenario
from ..terms import formula
from .settings import Engine, Settings, WeightFormat

_POWER = "clock follows about the square root of power: H100 NVL, GH200 and 1000 W H200 rows"


@formula("SM·clock", "units/s")
def unit_clocks(peak: Number, unit_flops: Number) -> Number:
    """Clock cycles a second over all units, from the 16-bit peak and the FLOPs of a unit and clock."""
    return peak / unit_flops


@formula("k·SM·clock", "B/s")
def per_clock(count: Number, unit_clocks: Number) -> Number:
    """Rate of something that each unit does a number of times a clock."""
    return count * unit_clocks


@formula("e_mem·β", "B/s", "plain vector kernels move at most some bytes a clock: llama.cpp rows on A100 and H100")
def memory_rate(bandwidth: Number, fraction: Number, engine: Number, ecc: Number, cap: Number) -> Number:
    """Bandwidth that weights stream at; a cap of 0 is none."""
    return where(cap > 0, minimum(bandwidth * fraction * engine * ecc, cap), bandwidth * fraction * engine * ecc)


@formula("√(P/P_ref)", "factor", _POWER)
def power_factor(power: Number, reference: Number) -> Number:
    """Rate of matrix units at a board power other than that of the class; 1 without a reference."""
    return where(reference > 0, sqrt(power / where(reference > 0, reference, 1.0)), 1.0)


@formula("Π·e", "FLOP/s")
def matrix_rate(peak: Number, fraction: Number, engine: Number, power: Number, expanded: Number) -> Number:
    """Rate of large matrix products, at most the peak; expanding weights to 16 bits costs a factor."""
    return peak * minimum(1.0, fraction * engine * power * expanded)


@formula("β·e_kv", "B/s")
def kv_rate(bandwidth: Number, fraction: Number) -> Number:
    """Bandwidth that decode attention reads the cache at."""
    return bandwidth * fraction


@formula("Π·e_fa", "FLOP/s")
def attention_rate(peak: Number, fraction: Number) -> Number:
    """Rate of prefill attention with heads of 128, or of absorbed latent attention."""
    return peak * fraction


@dataclass(frozen=True)
class Format:
    """How matrix products run in a weight format on the device."""

    bits: Number
    peak: Number
    rate: Number
    streaming: Number
    activation_bytes: Number


@dataclass(frozen=True)
class Rates:
    """Sustained rates of a scenario: B/s and FLOP/s of one device."""

    memory: Number
    kv: Number
    attention: Number
    attention_peak: Number
    vector: Number
    #: Absorbed latent attention on matrix units.
    latent: Number
    blocks: Format
    head: Format


def rates_of(scenario: Scenario, settings: Settings) -> Rates:
    """The sustained rates of a scenario."""
    accelerator, engine, device = scenario.cluster.accelerator, settings.engine, settings.device
    peak = peak_flops(accelerator, "bf16")
    clocks = unit_clocks(peak, accelerator.unit_flops)
    power = power_factor(accelerator.power, device.reference_power)
    weights = settings.weights
    head_bits = weights.bits if engine.quantises_head else weights.head_bits
    return Rates(
        memory=memory_rate(
            accelerator.memory_bandwidth,
            device.e_mem,
            engine.streaming,
            device.ecc,
            per_clock(engine.stream_cap, clocks),
        ),
        kv=kv_rate(accelerator.memory_bandwidth, engine.e_kv),
        attention=attention_rate(peak, device.e_fa),
        attention_peak=peak,
        vector=per_clock(engine.vector_flops, clocks),
        latent=attention_rate(peak, engine.e_mla),
        blocks=_format(accelerator, settings, weights, weights.bits, power),
        head=_format(accelerator, settings, weights, head_bits, power)
        if head_bits < 16
        else _plain(accelerator, settings, head_bits, power),
    )


def expert_format(scenario: Scenario, settings: Settings) -> Format:
    """How the grouped products of routed experts run."""
    weights, engine = settings.weights, settings.engine
    grouped = replace(settings, engine=replace(engine, gemm=getattr(engine, weights.grouped)))
    if "experts" in weights.leaves:
        return _plain(scenario.cluster.accelerator, grouped, 16.0, 1.0)
    return _format(scenario.cluster.accelerator, grouped, weights, weights.bits, 1.0)


def plain_format(scenario: Scenario, settings: Settings) -> Format:
    """How products of weights that stay in 16 bits run."""
    accelerator = scenario.cluster.accelerator
    return _plain(accelerator, settings, 16.0, power_factor(accelerator.power, settings.device.reference_power))


def has_units(accelerator: Accelerator, weights: WeightFormat) -> bool:
    """Whether the device multiplies in the format itself."""
    return not weights.expanded and getattr(accelerator.peak, weights.peak) is not None


def _format(accelerator: Accelerator, settings: Settings, weights: WeightFormat, bits: Number, power: Number) -> Format:
    """Products on the units of the format, or on 16-bit units after expanding the weights."""
    engine, device = settings.engine, settings.device
    if weights.bits >= 16:
        return _plain(accelerator, settings, bits, power)
    if has_units(accelerator, weights):
        peak = peak_flops(accelerator, weights.peak)
        rate = matrix_rate(peak, getattr(device, weights.rate), engine.gemm, power, 1.0)
        return Format(bits, peak, rate, weights.streaming, weights.activation_bytes)
    peak = peak_flops(accelerator, "bf16")
    rate = matrix_rate(peak, device.e_16, engine.gemm, power, device.weight_only)
    return Format(bits, peak, rate, _streaming(engine, weights), 2.0)


def _streaming(engine: Engine, weights: WeightFormat) -> Number:
    if not weights.expanded:
        return weights.emulated
    return weights.compiled if engine.compiled else weights.streaming


def _plain(accelerator: Accelerator, settings: Settings, bits: Number, power: Number) -> Format:
    """16-bit products."""
    peak = peak_flops(accelerator, "bf16")
    return Format(bits, peak, matrix_rate(peak, settings.device.e_16, settings.engine.gemm, power, 1.0), 1.0, 2.0)
