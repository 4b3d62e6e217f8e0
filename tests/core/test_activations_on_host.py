"""Activations that wait in the memory of the host: bytes on both sides, and what a step waits for the link."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.plans import plan
from triledger.core import evaluate
from triledger.core.ledgers.activations import block_activations, keeping_of
from triledger.core.legality import violations
from triledger.core.machine.rates import rates
from triledger.core.model.layers import build
from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.core.training.layout import layout_of

USUAL: dict[str, Any] = {"cluster__gpus": 8, "training__micro_batch": 2, "training__global_batch": 16}


def llama(**changes: Any) -> Scenario:
    return plan("llama-2-7b", **(USUAL | changes))


def kept(scenario: Scenario) -> float:
    """Bytes that one block keeps of a micro-batch."""
    layout = layout_of(scenario, rates(scenario))
    return block_activations(build(scenario.model).block, keeping_of(scenario, layout)).held * layout.tokens


def test_half_of_the_layers_on_the_host() -> None:
    near, far = evaluate(llama()), evaluate(llama(training__offload_layers=16))
    one = kept(llama())
    assert near["memory.activations_bytes"] - far["memory.activations_bytes"] == pytest.approx(16 * one, rel=1e-12)
    assert far["memory.host_bytes"] == pytest.approx(16 * one, rel=1e-12)
    # one layer on its way and the next
    assert far["memory.workspace_bytes"] - near["memory.workspace_bytes"] == pytest.approx(2 * one, rel=1e-12)


def passes(report: Report) -> list[float]:
    return [float(report[f"time.block_{way}_s"]) for way in ("forward", "backward")]


def test_what_the_link_does_not_hide_is_waited_for() -> None:
    near = passes(evaluate(llama()))
    far = passes(evaluate(llama(training__offload_layers=32)))
    seconds = kept(llama()) / (0.8 * 31.5e9)
    assert seconds > max(near)
    assert far == pytest.approx([seconds, seconds], rel=1e-12)
    fast = passes(evaluate(llama(training__offload_layers=32, cluster__accelerator__pcie=1e12)))
    assert fast == near


def test_arrays_and_numbers_wait_alike() -> None:
    layers = np.array([0.0, 8.0, 32.0])
    together = evaluate(llama(training__offload_layers=layers))
    for index, each in enumerate(layers):
        alone = evaluate(llama(training__offload_layers=float(each)))
        for key in ("time.step_s", "memory.total_bytes"):
            assert together[key][index] == pytest.approx(alone[key], rel=1e-12)


def test_no_more_layers_than_there_are() -> None:
    assert [broken.field for broken in violations(llama(training__offload_layers=33))] == ["training.offload_layers"]
    assert not violations(llama(training__offload_layers=32))
