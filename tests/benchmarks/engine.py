"""One evaluation, with and without the working, and many layouts at once."""

from __future__ import annotations

import statistics

import numpy as np

from triledger.core import evaluate, load_scenario
from triledger.core.scenario import Scenario

from .measure import Table, seconds_of

#: Layouts of one call: small enough for the arrays of a step to stay in the cache.
CHUNK = 16_384


def layouts(scenario: Scenario, count: int) -> Scenario:
    """One scenario that stands for many: degrees, micro-batches and GPUs as a search would try them."""
    grid = np.array(
        [
            (tp, pp, micro, tp * pp * dp)
            for tp in (1, 2, 4, 8)
            for pp in (1, 2, 4, 8)
            for micro in (1, 2, 4)
            for dp in (1, 2, 4, 8, 16, 32)
        ],
        dtype=float,
    )
    rows = np.resize(grid, (count, grid.shape[1])).T.copy()
    for path, values in zip(
        ("parallelism.tp", "parallelism.pp", "training.micro_batch", "cluster.gpus"), rows, strict=True
    ):
        scenario = scenario.with_(path, values)
    return scenario.with_("training.global_batch", 4096)


def run(table: Table) -> None:
    for preset in ("7b-8xa100-train", "70b-64xh100-train", "70b-bf16-8xa100-serve"):
        scenario = load_scenario(preset)
        table.times(f"evaluate {preset}", seconds_of(lambda s=scenario: evaluate(s), 200))
        table.times(f"evaluate {preset}, with its working", seconds_of(lambda s=scenario: evaluate(s, record=True), 50))
    for count in (1024, CHUNK):
        many = layouts(load_scenario("70b-64xh100-train"), count)
        seconds = seconds_of(lambda s=many: evaluate(s), 15)
        table.times(f"evaluate {count:,} layouts in one call", seconds, "numpy loop")
        table.amount("  layouts on one core", count / statistics.median(seconds), "/s")
