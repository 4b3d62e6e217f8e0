"""The order of layouts: Kendall's τ, sweeps, and how good the layout called best is on published runs."""

from __future__ import annotations

import pytest

from tests.core.plans import plan, with_all
from triledger.core.measured.comparison import Comparison
from triledger.core.measured.ranking import kendall, rankings
from triledger.core.measured.validation import Validation

PLAN = plan("llama-2-7b", cluster__gpus=8, training__global_batch=64)


def run(name: str, measured: float, predicted: float, **changes: object) -> Comparison:
    """A run of one source; changes of the plan as `parallelism__tp=2`."""
    scenario = with_all(PLAN, {path.replace("__", "."): value for path, value in changes.items()})
    return Comparison(name, "training", "own", "step time", "s", measured, predicted, scenario)


def test_kendall_of_known_orders() -> None:
    assert kendall([(1, 1), (2, 2), (3, 3)]) == 1.0
    assert kendall([(1, 3), (2, 2), (3, 1)]) == -1.0
    assert kendall([(1, 1), (2, 3), (3, 2), (4, 4)]) == pytest.approx(4 / 6)
    # of 15 pairs ten agree and one does not; one is a tie in the first number, three in the second
    assert kendall([(1, 1), (2, 2), (2, 3), (3, 3), (4, 4), (5, 3)]) == pytest.approx(9 / (14 * 12) ** 0.5)
    assert kendall([(1, 1), (1, 2)]) == 0.0


def test_a_sweep_names_the_layout_called_best_and_what_it_cost_more() -> None:
    rows = [run("a", 10.0, 9.0, parallelism__tp=1), run("b", 9.5, 9.5, parallelism__tp=2), run("c", 12.0, 13.0)]
    (found,) = rankings(rows)
    (sweep,) = found.sweeps
    assert (sweep.best, sweep.layouts) == ("a", 3)
    assert sweep.excess == pytest.approx(10.0 / 9.5 - 1)
    assert sweep.tau == pytest.approx(1 / 3)


def test_runs_of_one_layout_count_once_at_their_median() -> None:
    repeated = [run(f"a{i}", seen, 9.0) for i, seen in enumerate((8.0, 10.0, 30.0))]
    (found,) = rankings([*repeated, run("b", 9.0, 9.5), run("c", 12.0, 13.0)])
    assert found.sweeps[0].layouts == 3
    assert found.sweeps[0].excess == pytest.approx(10.0 / 9.0 - 1)


def test_size_of_job_does_not_count_as_a_worse_layout() -> None:
    larger = {"cluster__gpus": 64, "training__global_batch": 512}
    rows = [run("a", 10.0, 10.0), run("b", 9.0, 9.0, **larger), run("c", 11.0, 11.0, **larger)]
    assert rankings(rows)[0].sweeps[0].best == "b"
    (alone,) = rankings([run("a", 10.0, 10.0), run("b", 9.9, 9.9, cluster__gpus=64), run("c", 11.0, 11.0)])
    assert alone.sweeps[0].best == "a", "eight times the GPUs for one per cent of the time"


def test_other_models_devices_and_formats_are_other_sweeps() -> None:
    rows = [run(name, 10.0, 10.0 + i) for i, name in enumerate("ab")]
    assert rankings([*rows, run("c", 8.0, 8.0, training__precision="fp16")]) == []


def test_layouts_of_published_sweeps_are_put_in_order(shipped: Validation) -> None:
    found = {ranking.source: ranking for ranking in rankings(shipped.comparisons)}
    assert found["bloom"].tau >= 0.7
    assert found["nano"].tau >= 0.7
    sweeps = [sweep for ranking in found.values() for sweep in ranking.sweeps]
    assert len(sweeps) >= 25
    near = [sweep for sweep in sweeps if sweep.excess <= 0.05]
    assert len(near) >= 0.85 * len(sweeps)
