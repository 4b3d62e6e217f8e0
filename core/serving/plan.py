"""A serving scenario with what several groups of results share: constants, passes, memory, steady state."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledgers.serving_memory import ServingMemory, serving_memory
from ..model.layers import Model
from ..scenario import Scenario
from .iteration import Pass
from .loop import Steady, steady_state
from .settings import Settings, settings_of


@dataclass(frozen=True)
class Plan:
    scenario: Scenario
    model: Model
    settings: Settings
    passes: Pass
    memory: ServingMemory
    steady: Steady


def plan_of(scenario: Scenario, model: Model) -> Plan:
    """Memory and steady state of a scenario (numbers or arrays)."""
    settings = settings_of(scenario)
    passes = Pass(scenario, model, settings)
    memory = serving_memory(scenario, model, settings)
    return Plan(scenario, model, settings, passes, memory, steady_state(scenario, passes, memory))
