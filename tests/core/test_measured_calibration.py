"""Constants fitted to runs: found again where runs can tell them, refused where they cannot."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import plan
from triledger.core import evaluate
from triledger.core.measured.calibration import calibrate
from triledger.core.measured.comparison import Case
from triledger.core.measured.training_rows import step_of
from triledger.core.scenario import Scenario


def case(scenario: Scenario, factor: float = 1.0, **truth: float) -> Case:
    """A run as it would be measured on a machine with other constants."""
    machine = scenario
    for name, value in truth.items():
        machine = machine.with_(f"assumptions.{name}", value)
    return Case(scenario, step_of, "own", "step time", "s", factor * float(step_of(machine)))


def runs(network: str = "ib-hdr-200", **changes: Any) -> list[Scenario]:
    """Runs of several sizes on one machine, bound by products and by the network in different shares."""
    shapes = ((8, 1, 1), (16, 1, 1), (64, 1, 1), (128, 1, 2), (256, 1, 1), (512, 1, 1))
    return [
        plan(
            "llama-2-7b",
            network=network,
            cluster__gpus=gpus,
            parallelism__tp=tp,
            parallelism__zero=3,
            training__micro_batch=micro,
            training__global_batch=micro * gpus // tp,
            training__sequence_length=1024,
            **changes,
        )
        for gpus, tp, micro in shapes
    ]


def test_the_constants_of_a_machine_are_found_again() -> None:
    found = calibrate([case(run, e_gemm=0.60, e_nic=0.5) for run in runs("roce-100")])
    fitted = {fit.name: fit.fitted for fit in found.fits}
    assert fitted["e_gemm"] == pytest.approx(0.60, rel=0.05)
    assert fitted["e_nic"] == pytest.approx(0.5, rel=0.05)
    assert max(map(abs, found.after)) < 0.03 < max(map(abs, found.before))


def test_one_run_that_went_wrong_does_not_pull_the_others() -> None:
    cases = [case(run, e_gemm=0.60) for run in runs()]
    spoiled = [*cases[:-1], case(runs()[-1], factor=3.0)]
    fitted = {fit.name: fit.fitted for fit in calibrate(spoiled).fits}
    assert fitted["e_gemm"] == pytest.approx(0.60, rel=0.05)


def test_what_the_runs_do_not_move_is_refused() -> None:
    single = [plan("llama-2-7b", cluster__gpus=1, training__global_batch=batch) for batch in (1, 2, 4, 8)]
    found = calibrate([case(run) for run in single])
    reasons = {refusal.name: refusal.reason for refusal in found.refusals}
    assert "hardly moves" in reasons["e_nic"]
    assert [fit.name for fit in found.fits] == ["e_gemm"]
    assert found.fits[0].fitted == pytest.approx(found.fits[0].published, rel=0.02)


def test_runs_of_different_machines_have_no_common_constant() -> None:
    mixed = [plan("llama-2-7b", accelerator=name) for name in ("a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm-180gb")]
    reasons = {refusal.name: refusal.reason for refusal in calibrate([case(run) for run in mixed]).refusals}
    assert "different values" in reasons["e_gemm"]


def test_few_runs_tell_nothing() -> None:
    found = calibrate([case(run, e_gemm=0.6) for run in runs()[:2]])
    assert not found.fits
    assert found.before == found.after


def test_fitted_constants_change_the_prediction_as_assumptions() -> None:
    run = runs()[0]
    slower = evaluate(run.with_("assumptions.e_gemm", 0.41))["time.step_s"]
    assert slower > evaluate(run)["time.step_s"]
