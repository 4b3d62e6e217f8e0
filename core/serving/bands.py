"""Bands of a serving plan's results: what the errors on published runs like it leave open."""

from __future__ import annotations

from typing import Any

from ..ledgers import fit
from ..measured.band import band_of, ends_of, rows_of
from ..numeric import Number
from ..scenario import Scenario
from ..terms import formula
from ..training import days
from .settings import Device

_SOURCE = "errors of the predictions of published runs like the plan"


@formula("N·(1+ε)", "tokens", _SOURCE)
def pool_end(tokens: Number, relative: Number) -> Number:
    """One end of the band of the tokens that the cache holds."""
    return tokens * (1 + relative)


@formula("X/(1+ε)", "tokens/s", _SOURCE)
def rate_end(rate: Number, relative: Number) -> Number:
    """One end of a rate's band, at which its time is longer by a share."""
    return rate / (1 + relative)


def step_band(scenario: Scenario, device: Device, step: Number, bound: Number) -> dict[str, Any]:
    """The band of the decode step."""
    band = band_of(scenario, "pace")
    low, high = ends_of(band, device.band_low, device.band_high)
    return {
        "time.low_s": days.fast_end(step, low, bound),
        "time.high_s": days.slow_end(step, high),
        "time.band_rows": rows_of(band),
    }


def pool_band(scenario: Scenario, budget: Number, tokens: Number) -> dict[str, Any]:
    """The band of the cache: bytes of it on a device, and the tokens that all of it holds."""
    band = band_of(scenario, "cache")
    low, high = ends_of(band, None, None)
    return {
        "memory.kv_budget_low_bytes": fit.band_end(budget, low),
        "memory.kv_budget_high_bytes": fit.band_end(budget, high),
        "serving.kv_capacity_tokens_low": pool_end(tokens, low),
        "serving.kv_capacity_tokens_high": pool_end(tokens, high),
        "serving.kv_band_rows": rows_of(band),
    }


def request_bands(scenario: Scenario, device: Device, values: dict[str, Any]) -> dict[str, Any]:
    """The bands of what a request sees, as far as `values` has it: first token, time per token, throughput."""
    low, high = ends_of(band_of(scenario, "pace"), device.band_low, device.band_high)
    first = band_of(scenario, "first token")
    first_low, first_high = ends_of(first, None, None)
    bands = {
        "serving.ttft_low_s": days.fast_end(values["serving.ttft_s"], first_low, values["serving.ttft_bound_s"]),
        "serving.ttft_high_s": days.slow_end(values["serving.ttft_s"], first_high),
        "serving.ttft_band_rows": rows_of(first),
    }
    if "serving.output_tokens_per_s" in values:
        rate = values["serving.output_tokens_per_s"]
        bands["serving.output_tokens_per_s_low"] = rate_end(rate, high)
        bands["serving.output_tokens_per_s_high"] = rate_end(rate, low)
    if "serving.tpot_s" in values:
        token = values["serving.tpot_s"]
        bands["serving.tpot_low_s"] = days.fast_end(token, low, values["serving.tpot_bound_s"])
        bands["serving.tpot_high_s"] = days.slow_end(token, high)
    return bands
