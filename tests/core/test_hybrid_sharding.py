"""Hybrid sharding: ZeRO inside a shard group, gradients summed over its replicas (FSDP, arXiv 2304.11277)."""

from __future__ import annotations

import pytest

from tests.core.plans import plan
from triledger.core import Report, evaluate


def sharded(replicas: int, zero: int = 3) -> Report:
    """Llama 3 8B on 64 H100 with its shard group kept in so many replicas."""
    return evaluate(
        plan(
            "llama-3-8b",
            "h100-sxm-80gb",
            cluster__gpus=64,
            parallelism__zero=zero,
            parallelism__hsdp_replicas=replicas,
            training__global_batch=64,
        )
    )


def flows(report: Report) -> dict[str, tuple[float, str]]:
    return {row.name: (row.group_size, row.link) for row in report.communication}


def test_the_shard_group_stays_in_the_node() -> None:
    assert flows(sharded(1))["data parallel weights"] == (64, "scale-out")
    found = flows(sharded(8))
    assert found["data parallel weights"] == (8, "scale-up")
    assert found["data parallel gradients of replicas"] == (8, "scale-out")


def test_replicas_cost_memory_and_spare_the_network() -> None:
    one, eight = sharded(1), sharded(8)
    assert eight["memory.total_bytes"] > one["memory.total_bytes"]
    crossing_one, crossing_eight = (
        sum(row.bytes_per_gpu for row in report.communication if row.link == "scale-out") for report in (one, eight)
    )
    assert crossing_eight < crossing_one / 5


def test_replicas_sum_the_shard_of_a_rank() -> None:
    row = next(r for r in sharded(8).communication if r.name.endswith("of replicas"))
    shard = 4 * 8_030_261_248 / 8
    assert row.bytes_per_gpu == pytest.approx(2 * 7 / 8 * shard, rel=1e-4)


def test_nothing_is_summed_where_nothing_is_sharded() -> None:
    assert flows(sharded(1, zero=0)).keys() == flows(sharded(8, zero=0)).keys()
