"""The rows of the tables a serving scenario takes its constants from: engine, device, weight and cache format."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..catalogue import table
from ..numeric import Number, is_array
from ..scenario import Scenario
from ..terms import is_recording, with_origins


@dataclass(frozen=True)
class Engine:
    """One generation of an engine; the columns are explained in presets/engines.yaml. Times in s, sizes in bytes."""

    name: str
    pool_of_free: bool
    overhead: Number
    tp_overhead: Number
    profile: str
    profiled_tokens: str
    sampler_bytes: Number
    max_sequences: Number
    large_sequences: Number
    large_memory: Number
    large_except: tuple[str, ...]
    block: Number
    reserve: bool
    kernels: Number
    t_k: Number
    alpha_0: Number
    alpha_1: Number
    e_kv: Number
    vector_flops: Number
    tensor_groups: tuple[int, ...]
    gemm: Number
    streaming: Number
    stream_cap: Number
    compiled: bool
    quantises_head: bool
    hidden_bytes: Number
    score_bytes: Number
    link: Number
    hop: Number
    pipeline: Number
    t_host: Number
    t_seq: Number
    overlapped: bool
    t_eager: Number
    grace: Number
    t_request: Number
    t_api: Number
    lag: Number
    prefill_first: bool
    moe_16: Number
    moe_8: Number
    moe_4: Number
    moe_mx: Number
    moe_memory: Number
    moe_bytes: Number
    moe_kernels: Number
    moe_skew: Number
    t_eager_moe: Number
    e_mla: Number
    mla_kernels: Number
    t_eager_mla: Number
    exchange: Number
    waiting: Number
    source: str


@dataclass(frozen=True)
class Device:
    """What serving kernels reach on a device, and constants of all devices (presets/serving_rates.yaml)."""

    e_mem: Number
    e_16: Number
    e_8: Number
    e_8_block: Number
    e_4: Number
    e_nv: Number
    e_pcie: Number
    nvls: Number
    e_fa: Number
    reference_power: Number
    ecc: Number
    grace: bool
    k_half: Number
    s_half: Number
    small_head: Number
    weight_only: Number
    pcie_latency: Number
    node_latency: Number
    e_nic: Number
    e_exchange: Number
    e_hop: Number
    #: A person's own band; None: that of the published runs like the plan.
    band_low: Number | None
    band_high: Number | None
    #: Whether published serving rows of this device generation stand behind the rates.
    calibrated: bool
    source: str


@dataclass(frozen=True)
class WeightFormat:
    """A number format of stored weights (presets/formats.yaml)."""

    bits: Number
    nominal_bits: Number
    head_bits: Number
    embedding_bits: Number
    index_bytes: Number
    peak: str
    rate: str
    expanded: bool
    activation_bytes: Number
    streaming: Number
    compiled: Number
    emulated: Number
    grouped: str
    leaves: tuple[str, ...]
    pad: Number
    scale_block: Number
    source: str


@dataclass(frozen=True)
class KvFormat:
    """A number format of the key-value cache (presets/formats.yaml)."""

    bytes: Number
    head_bytes: Number
    index_bytes: Number
    index_head_bytes: Number
    source: str


@dataclass(frozen=True)
class Settings:
    """The constants of one serving scenario."""

    engine: Engine
    device: Device
    weights: WeightFormat
    kv: KvFormat


@cache
def engine_row(name: str) -> Engine:
    """An engine by id, with the columns of the row it is like."""
    row: dict[str, Any] = dict(table("engines")[name])
    while "like" in row:
        row = table("engines")[row.pop("like")] | row
    lists: dict[str, Any] = {key: tuple(row[key]) for key in ("large_except", "tensor_groups")}
    return Engine(**row | lists)


@cache
def device_row(accelerator: str, generation: str) -> Device:
    """The rates of an accelerator: its own columns, then its generation's, then those of an unknown device."""
    data = table("serving_rates")
    known = data["generations"].get(generation, {})
    sustained = table("rates")["gemm"]
    training = sustained.get(accelerator) or sustained.get(generation) or sustained["default"]
    unknown = {"e_16": training["bf16"], "e_8": training["fp8"], "e_8_block": training["fp8"], "e_4": training["fp4"]}
    own = data["accelerators"].get(accelerator, {})
    row = unknown | data["default"] | data["constants"] | known | own
    return Device(**row, calibrated=bool(known))


@cache
def weight_format_row(name: str) -> WeightFormat:
    """A weight format by id."""
    row: dict[str, Any] = table("formats")["weight_defaults"] | table("formats")["weights"][name]
    leaves: dict[str, Any] = {"leaves": tuple(row["leaves"])}
    return WeightFormat(**row | leaves)


@cache
def kv_format_row(name: str) -> KvFormat:
    """A cache format by id."""
    return KvFormat(**table("formats")["kv"][name])


@cache
def tiles() -> tuple[tuple[float, float, float], ...]:
    """Tiles of matrix kernels: rows, columns, relative rate."""
    return tuple((float(rows), float(columns), float(rate)) for rows, columns, rate in table("serving_rates")["tiles"])


@cache
def row_grid() -> tuple[float, ...]:
    """Batch sizes for which kernels are tuned, in rising order."""
    return tuple(float(rows) for rows in table("serving_rates")["row_grid"])


def tuned_sizes(rows: Number) -> tuple[Number, Number]:
    """The tuned batch sizes below and above a number of rows."""
    if not is_array(rows):
        return _sizes_around(rows)
    table = np.asarray(row_grid())
    above = np.minimum(np.searchsorted(table, rows), len(table) - 1)
    exact = (table[above] <= rows) | (above == 0)
    return table[np.where(exact, above, above - 1)], table[above]


@lru_cache(maxsize=1024)
def _sizes_around(rows: float) -> tuple[float, float]:
    grid = row_grid()
    above = min(bisect_left(grid, rows), len(grid) - 1)
    below = above if grid[above] <= rows or above == 0 else above - 1
    return grid[below], grid[above]


def settings_of(scenario: Scenario) -> Settings:
    """The constants of a scenario, its own assumptions in place of the published ones."""
    serving, accelerator = scenario.serving, scenario.cluster.accelerator
    engine = engine_row(str(serving.engine))
    device = device_row(str(accelerator.id), str(accelerator.generation))
    weights, kv = weight_format_row(str(serving.weight_format)), kv_format_row(str(serving.kv_format))
    if scenario.assumptions:
        engine, device = _assumed(engine, scenario), _assumed(device, scenario)
        weights, kv = _assumed(weights, scenario), _assumed(kv, scenario)
    if is_recording():
        engine, device = with_origins(engine, "engine"), with_origins(device, "serving rates")
        weights, kv = with_origins(weights, "weight format"), with_origins(kv, "cache format")
    return Settings(engine, device, weights, kv)


def _assumed(row: Any, scenario: Scenario) -> Any:
    """A row with the scenario's assumptions in the columns of their names."""
    own = {column.name for column in fields(row)}
    return replace(row, **{name: value for name, value in scenario.assumptions if name in own})
