"""Whether layouts are put in the order in which they were measured, and how good the one we call best is.

Compared are GPU-seconds per token and per L·h², which leave the size of job and model out. A sweep is the runs of one
source that differ in layout, batch or number of GPUs only; runs of one layout in it are one, at their median.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .comparison import Comparison

#: How near the best measured layout the one called best should be.
_NEAR = 0.05
#: Layouts from which on runs are called a sweep.
_FEWEST = 3
#: Predictions this close (relative) are of one layout.
_SAME = 1e-9


@dataclass(frozen=True)
class Sweep:
    """Runs of one model on one kind of device: Kendall's τ of predicted and measured cost, and the layout called best.

    `excess` is how much more than the best measured layout the one predicted to be best took, measured (ratio).
    """

    source: str
    name: str
    runs: int
    layouts: int
    tau: float
    best: str
    excess: float


@dataclass(frozen=True)
class Ranking:
    """Of one source: runs compared, τ of all pairs of them, τ of the pairs inside its sweeps, and the sweeps."""

    source: str
    runs: int
    tau: float
    tau_inside: float
    sweeps: tuple[Sweep, ...]


@dataclass(frozen=True)
class _Run:
    id: str
    measured: float
    predicted: float


def rankings(rows: Iterable[Comparison]) -> list[Ranking]:
    """The ranking of every source of step times that has a sweep."""
    sources: dict[str, dict[tuple[object, ...], list[Comparison]]] = {}
    for row in rows:
        if row.kind == "training" and not row.flagged:
            sources.setdefault(row.source, {}).setdefault(_of_one_sweep(row), []).append(row)
    ranked = (_ranking(source, list(groups.values())) for source, groups in sources.items())
    return [found for found in ranked if found.sweeps]


def called_best(found: Iterable[Ranking]) -> str:
    """In how many sweeps the layout called best is nearly the best, in words."""
    sweeps = [sweep for ranking in found for sweep in ranking.sweeps]
    near = sum(sweep.excess <= _NEAR for sweep in sweeps)
    return (
        f"the layout called best is within {_NEAR * 100:.0f} % of the best measured in {near} of {len(sweeps)} sweeps"
    )


def concordance(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Concordant less discordant pairs, and pairs that are no tie in either number (geometric mean of the two)."""
    first, second = np.array(pairs, dtype=float).T
    one, other = np.triu_indices(len(pairs), 1)
    up, across = np.sign(first[one] - first[other]), np.sign(second[one] - second[other])
    return float(np.sum(up * across)), float(np.sqrt(np.count_nonzero(up) * np.count_nonzero(across)))


def kendall(pairs: Sequence[tuple[float, float]]) -> float:
    """Kendall's rank correlation τ_b: 1 for the same order, −1 for the opposite one, 0 where all are ties."""
    agreed, counted = concordance(pairs)
    return agreed / counted if counted else 0.0


def _of_one_sweep(row: Comparison) -> tuple[object, ...]:
    """What all runs of a sweep share."""
    model, cluster, training = row.scenario.model, row.scenario.cluster, row.scenario.training
    sizes = (model.layers, model.hidden_size, model.heads)
    return (*sizes, cluster.accelerator.id, training.sequence_length, training.precision)


def _run(row: Comparison) -> _Run:
    """GPU-seconds per token and L·h²."""
    model, training = row.scenario.model, row.scenario.training
    work = training.global_batch * training.sequence_length * model.layers * model.hidden_size**2
    each = float(row.scenario.cluster.gpus / work)
    return _Run(row.id, row.measured * each, row.predicted * each)


def _ranking(source: str, groups: list[list[Comparison]]) -> Ranking:
    runs = [[_run(row) for row in group] for group in groups]
    inside = [concordance(_pairs(group)) for group in runs if len(group) > 1]
    agreed, counted = (sum(column) for column in zip(*inside, strict=True)) if inside else (0.0, 0.0)
    sweeps = (_sweep(source, rows, group) for rows, group in zip(groups, runs, strict=True))
    everything = [pair for group in runs for pair in _pairs(group)]
    tau = kendall(everything) if len(everything) > 1 else 0.0
    kept = tuple(sweep for sweep in sweeps if sweep.layouts >= _FEWEST)
    return Ranking(source, len(everything), tau, agreed / counted if counted else 0.0, kept)


def _pairs(runs: list[_Run]) -> list[tuple[float, float]]:
    return [(run.predicted, run.measured) for run in runs]


def _sweep(source: str, rows: list[Comparison], runs: list[_Run]) -> Sweep:
    layouts: list[list[_Run]] = []
    for run in sorted(runs, key=lambda run: run.predicted):
        if layouts and run.predicted <= layouts[-1][0].predicted * (1 + _SAME):
            layouts[-1].append(run)
        else:
            layouts.append([run])
    measured = [float(np.median([run.measured for run in layout])) for layout in layouts]
    model, cluster = rows[0].scenario.model, rows[0].scenario.cluster
    name = f"{model.layers:g} layers of {model.hidden_size:g}, {cluster.accelerator.name}"
    tau = kendall(_pairs(runs)) if len(runs) > 1 else 0.0
    return Sweep(source, name, len(runs), len(layouts), tau, layouts[0][0].id, measured[0] / min(measured) - 1)
