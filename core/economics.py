"""Money, energy and carbon of GPU-hours."""

from __future__ import annotations

from .numeric import Number
from .terms import Datum, formula, traced

_ESTIMATE = "an estimate between published node powers of idle and busy accelerators"
#: Share of the board power drawn when idle, and mean load between idle and full.
IDLE_SHARE = traced(0.15, Datum("economics.idle_share", _ESTIMATE))
TRAINING_LOAD = traced(0.85, Datum("economics.training_load", _ESTIMATE))
DECODE_LOAD = traced(0.5, Datum("economics.decode_load", _ESTIMATE))


@formula("GPU-h", "h")
def gpu_hours(gpus: Number, seconds: Number) -> Number:
    """GPU-hours of a job."""
    return gpus * seconds / 3600


@formula("cost", "USD", leaves_out="storage, network egress, staff, failed runs beyond the effective ratio")
def rental_cost(gpu_hours: Number, price: Number) -> Number:
    """Rental of GPU-hours at a price per GPU-hour."""
    return gpu_hours * price


@formula("P_avg", "W", "P_idle + (TDP − P_idle)·u with P_idle = 0.15·TDP; shares are estimates")
def mean_power(board_power: Number, idle: Number, load: Number) -> Number:
    """Mean power of an accelerator between idle and board power."""
    return board_power * (idle + (1 - idle) * load)


@formula("E", "kWh", leaves_out="hosts, switches and storage (10–40 % more)")
def energy_kwh(gpu_hours: Number, power: Number, usage_effectiveness: Number) -> Number:
    """Energy of the accelerators of a job at the site's meter."""
    return gpu_hours * power / 1000 * usage_effectiveness


@formula("CO₂e", "kg", "grid intensity of the site", "embodied carbon")
def carbon_kg(energy: Number, intensity: Number) -> Number:
    """Carbon dioxide equivalent of energy."""
    return energy * intensity
