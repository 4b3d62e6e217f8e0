"""Money, energy and carbon of served tokens."""

from __future__ import annotations

from typing import Any

from .. import economics
from ..numeric import Number
from ..scenario import Scenario
from ..terms import formula
from .loop import Steady

_MILLION = 1e6


@formula("USD/h", "USD/h")
def usd_per_hour(gpus: Number, price: Number) -> Number:
    """Rental of all GPUs for an hour."""
    return gpus * price


@formula("$/10⁶", "USD", leaves_out="idle hours, storage, egress, staff")
def usd_per_million(usd_per_hour: Number, tokens_per_second: Number) -> Number:
    """Price of a million output tokens with the prompts they need."""
    return usd_per_hour / 3600 / tokens_per_second * 1000000


@formula("$/10⁶ in", "USD", "split by device-seconds: what a prompt takes when it runs alone")
def usd_per_million_input(usd_per_hour: Number, replicas: Number, prompt_seconds: Number, prompt: Number) -> Number:
    """Price of a million prompt tokens by the time they take."""
    return usd_per_hour / replicas / 3600 * prompt_seconds / prompt * 1000000


@formula("n·t", "s")
def seconds_a_million(tokens_per_second: Number, million: Number) -> Number:
    """Time of a million output tokens."""
    return million / tokens_per_second


def price_band(values: dict[str, Any]) -> dict[str, Any]:
    """The band of the price of output tokens: that of their rate."""
    hourly, key = values["cost.usd_per_hour"], "cost.usd_per_million_output_tokens"
    ends = {"low": "high", "high": "low"}
    return {
        f"{key}_{end}": usd_per_million(hourly, values[f"serving.output_tokens_per_s_{other}"])
        for end, other in ends.items()
    }


def cost_values(scenario: Scenario, steady: Steady, replicas: Number) -> dict[str, Any]:
    """The cost keys of a serving scenario; energy and carbon are those of a million output tokens."""
    cluster, money = scenario.cluster, scenario.economics
    hourly = usd_per_hour(cluster.gpus, money.gpu_price)
    hours = economics.gpu_hours(cluster.gpus, seconds_a_million(steady.output, _MILLION))
    power = economics.mean_power(cluster.accelerator.power, economics.IDLE_SHARE, economics.DECODE_LOAD)
    energy = economics.energy_kwh(hours, power, money.power_usage_effectiveness)
    prompt = usd_per_million_input(hourly, replicas, steady.prompt_alone, scenario.serving.prompt_tokens)
    return {
        "cost.usd_per_hour": hourly,
        "cost.usd_per_million_output_tokens": usd_per_million(hourly, steady.output),
        "cost.usd_per_million_input_tokens": prompt,
        "cost.energy_kwh_per_million_output_tokens": energy,
        "cost.carbon_kg_per_million_output_tokens": economics.carbon_kg(energy, money.grid_intensity),
    }
