"""A serving scenario with what several groups of results share: constants, passes, memory, steady state."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledgers.serving_memory import ServingMemory, serving_memory
from ..model.layers import Model
from ..numeric import Number
from ..scenario import Scenario
from . import steady
from .iteration import Pass
from .loop import Steady, steady_state
from .requests import MEAN
from .separate import Pools, separate
from .settings import Settings, settings_of


@dataclass(frozen=True)
class Plan:
    scenario: Scenario
    #: The scenario with the mean lengths of its requests.
    mean: Scenario
    model: Model
    settings: Settings
    passes: Pass
    memory: ServingMemory
    steady: Steady
    #: Engines for prompts and for decoding, where they are apart.
    pools: Pools | None = None

    @property
    def decoding(self) -> Number:
        """Engines that decode."""
        return self.pools.decode if self.pools else self.memory.busy


def plan_of(scenario: Scenario, model: Model) -> Plan:
    """Memory and steady state of a scenario (numbers or arrays)."""
    settings = settings_of(scenario)
    passes, memory = Pass(scenario, model, settings), serving_memory(scenario, model, settings)
    return _composed(scenario, model, settings, passes, memory)


def _composed(scenario: Scenario, model: Model, settings: Settings, passes: Pass, memory: ServingMemory) -> Plan:
    mean = with_mean_lengths(scenario)
    state, pools = steady_state(mean, passes, memory), None
    if scenario.serving.disaggregated:
        state, pools = separate(mean, passes, memory, state)
    return Plan(scenario, mean, model, settings, passes, memory, state, pools)


def with_requests(plan: Plan, requests: int) -> Plan:
    """The plan with another number of requests, on passes of which most are timed.

    Ranks that share experts do so with those that have a request: their passes are others.
    """
    scenario, memory = plan.scenario.with_("serving.concurrency", requests), plan.memory.for_requests(requests)
    passes = Pass(scenario, plan.model, plan.settings) if plan.passes.exchange else plan.passes
    return _composed(scenario, plan.model, plan.settings, passes, memory)


def with_mean_lengths(scenario: Scenario) -> Scenario:
    """The scenario with the mean lengths of its requests, where they are drawn."""
    serving = scenario.serving
    share = MEAN[serving.lengths]
    if share == 1:
        return scenario
    for name in ("prompt_tokens", "output_tokens"):
        scenario = scenario.with_(f"serving.{name}", steady.mean_length(getattr(serving, name), share))
    return scenario
