"""A few machine constants fitted to a person's own runs, and only those that the runs can tell.

The loss is the mean of √(x² + 0.02²) over the logarithms x of predicted over measured: far rows pull no more than near
ones. A constant is refused when the rows stand for machines with different published values of it, when it hardly
moves any prediction, or when what it moves is what an accepted constant moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from ..machine.rates import rates
from ..serving.settings import settings_of
from .comparison import Case

#: Constants that may be fitted, in this order, by kind of plan.
CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "training": ("e_gemm", "e_mem", "e_nic", "e_nv"),
    "serving": ("e_mem", "t_host", "e_kv", "e_16", "e_8"),
}
#: Errors of this size and below count nearly alike.
_NEAR = 0.02
#: A constant must change predictions by this share of its own change, beside what accepted ones change (root mean
#: square over the rows).
_TELLING = 0.15
_FEWEST = 3
#: Constants describe runs where half of the errors are no larger; published runs are met several times as closely.
DESCRIBED = 0.25
_GRID = np.geomspace(0.5, 2.0, 81)
_PASSES = 4


@dataclass(frozen=True)
class Fit:
    """One constant: published and fitted value, and how much it moves predictions (elasticity, root mean square)."""

    name: str
    published: float
    fitted: float
    elasticity: float


@dataclass(frozen=True)
class Refusal:
    """A constant that was not fitted, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Calibration:
    """Fitted constants, refused ones, and errors of the runs (predicted over measured, less one) before and after."""

    fits: tuple[Fit, ...]
    refusals: tuple[Refusal, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def describes(self) -> bool:
        """Whether the fitted constants describe the runs: half of them within a quarter of what was measured."""
        return median(map(abs, self.after)) <= DESCRIBED


def calibrate(cases: Sequence[Case]) -> Calibration:
    """Constants fitted to some runs of one kind of plan."""
    kind = cases[0].scenario.kind
    before = _logarithms(cases, {})
    fits, refusals = _tellable(cases, kind)
    values = {fit.name: fit.published for fit in fits}
    for _ in range(_PASSES):
        for name in values:
            values[name] = _best(cases, values, name)
    fitted = tuple(Fit(fit.name, fit.published, values[fit.name], fit.elasticity) for fit in fits)
    after = _logarithms(cases, values) if values else before
    return Calibration(fitted, tuple(refusals), tuple(np.expm1(before).tolist()), tuple(np.expm1(after).tolist()))


def _tellable(cases: Sequence[Case], kind: str) -> tuple[list[Fit], list[Refusal]]:
    """The constants that the cases can tell, with how much each moves the predictions."""
    fits: list[Fit] = []
    refusals: list[Refusal] = []
    columns: list[np.ndarray] = []
    for name in CONSTANTS[kind]:
        published = {_published(case, name) for case in cases}
        if len(cases) < _FEWEST + len(fits):
            refusals.append(Refusal(name, f"{len(cases)} runs tell no more than {len(fits)} constants"))
        elif len(published) > 1:
            listed = ", ".join(f"{value:g}" for value in sorted(published)[:4])
            refusals.append(Refusal(name, f"the runs are of machines with different values ({listed})"))
        else:
            value = published.pop()
            moved = _elasticity(cases, name, value) if value else np.zeros(len(cases))
            alone, beside = _size(moved), _size(_beside(moved, columns))
            if alone < _TELLING:
                refusals.append(Refusal(name, f"hardly moves these runs ({alone:.2f} of its own change)"))
            elif beside < _TELLING:
                refusals.append(Refusal(name, f"what it moves, {' and '.join(fit.name for fit in fits)} moves too"))
            else:
                fits.append(Fit(name, value, value, alone))
                columns.append(moved)
    return fits, refusals


def _published(case: Case, name: str) -> float:
    """The value that a case takes without an assumption."""
    if case.scenario.kind == "training":
        return float(getattr(rates(case.scenario), name))
    settings = settings_of(case.scenario)
    owner = next(row for row in (settings.engine, settings.device) if hasattr(row, name))
    return float(getattr(owner, name))


def _elasticity(cases: Sequence[Case], name: str, value: float) -> np.ndarray:
    """Relative change of each prediction for a relative change of a constant."""
    step = 0.05
    pair = np.array([value * (1 - step), value * (1 + step)])
    low, high = np.array([_predicted(case, {name: pair}, 2) for case in cases]).T
    return np.log(high / low) / np.log((1 + step) / (1 - step))


def _beside(moved: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    """What is left of a constant's effect beside the effects of others."""
    if not columns:
        return moved
    others = np.array(columns).T
    return moved - others @ np.linalg.lstsq(others, moved, rcond=None)[0]


def _size(column: np.ndarray) -> float:
    return float(np.sqrt(np.mean(column**2)))


def _predicted(case: Case, values: Mapping[str, float | np.ndarray], count: int) -> np.ndarray:
    scenario = case.scenario
    for name, value in values.items():
        scenario = scenario.with_(f"assumptions.{name}", value)
    return np.broadcast_to(np.asarray(case.predict(scenario), dtype=float), (count,))


def _logarithms(cases: Sequence[Case], values: Mapping[str, float]) -> np.ndarray:
    return np.array([np.log(_predicted(case, values, 1)[0] / case.measured) for case in cases])


def _best(cases: Sequence[Case], values: Mapping[str, float], name: str) -> float:
    """The value of one constant, others as they are, for which the loss is smallest."""
    grid = values[name] * _GRID
    if name.startswith("e_"):
        grid = grid[grid <= 1.0]
    tried = dict(values) | {name: grid}
    errors = np.array([np.log(_predicted(case, tried, len(grid)) / case.measured) for case in cases])
    loss = np.mean(np.sqrt(errors**2 + _NEAR**2), axis=0)
    return float(grid[int(np.argmin(loss))])
