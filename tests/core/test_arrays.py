"""One engine: a thousand plans evaluated one by one and as arrays give the same numbers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.core.plans import MACHINES, plan, random_numbers, random_words, with_all
from triledger.core import evaluate
from triledger.core.legality import legal
from triledger.core.report import Report
from triledger.core.scenario import Scenario

TOLERANCE = 1e-12
GROUPS, PLANS_A_GROUP = 50, 20


def same(one: Any, many: Any) -> bool:
    if isinstance(one, str):
        return one == str(many)
    return abs(float(one) - float(many)) <= TOLERANCE * max(abs(float(one)), abs(float(many)))


def entry(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, np.ndarray) and value.ndim else value


def differences(one: Report, many: Report, index: int) -> list[str]:
    """Keys and rows in which a plan evaluated alone differs from its entry in the arrays."""
    found = [key for key, value in many.values.items() if not same(one[key], entry(value, index))]
    rows = {row.name: row for row in one.communication}
    for row in many.communication:
        alone = rows.get(row.name)
        for name in ("bytes_per_gpu", "seconds", "exposed_seconds"):
            value = getattr(alone, name) if alone else 0.0  # a group of one has no row of its own
            if not same(value, entry(getattr(row, name), index)):
                found.append(f"{row.name}: {name}")
    return found


@pytest.mark.parametrize("group", range(GROUPS))
def test_arrays_are_many_single_plans(group: int) -> None:
    choose = random.Random(group)
    base = with_all(plan("llama-3-70b", MACHINES[group % len(MACHINES)]), random_words(choose))
    rows = [random_numbers(choose, base.parallelism.schedule) for _ in range(PLANS_A_GROUP)]
    together = with_all(base, {path: np.array([float(row[path]) for row in rows]) for path in rows[0]})
    many = evaluate(together)
    for index, row in enumerate(rows):
        alone = with_all(base, row)
        assert legal(alone), row
        one = evaluate(alone)
        assert not differences(one, many, index), row
        assert set(one.values) - set(many.values) <= {"time.bottleneck"}


def test_legality_of_arrays_is_that_of_single_plans() -> None:
    choose = random.Random(0)
    base = with_all(plan("llama-3-70b"), {"parallelism.schedule": "interleaved"})
    rows = [random_numbers(choose, "interleaved") for _ in range(200)]
    for row in rows[::2]:
        row["training.global_batch"] += choose.choice((0, 1))
        row["model.kv_heads"] = choose.choice((3, 8))
    together = with_all(base, {path: np.array([float(row[path]) for row in rows]) for path in rows[0]})
    alone = [bool(legal(with_all(base, row))) for row in rows]
    assert legal(together).tolist() == alone
    assert 0 < sum(alone) < len(alone)


def test_one_number_may_be_an_array_and_the_others_not() -> None:
    base = plan("llama-3-8b", cluster__gpus=64, parallelism__tp=8)
    bandwidths = np.array([1e9, 1e10, 1e11])
    many = evaluate(base.with_("cluster.network.bandwidth", bandwidths))
    for index, bandwidth in enumerate(bandwidths):
        one = evaluate(base.with_("cluster.network.bandwidth", float(bandwidth)))
        assert not differences(one, many, index)


def test_arrays_bring_no_findings() -> None:
    many: Scenario = plan("llama-3-8b", cluster__gpus=8, training__micro_batch=np.array([1.0, 64.0]))
    assert evaluate(many).findings == ()
    assert evaluate(many)["memory.verdict"].tolist() == ["fits", "does-not-fit"]
