"""The model of a scenario with what its sequences have beside text."""

from __future__ import annotations

from .model.layers import Model, build
from .scenario import Scenario


def model_of(scenario: Scenario) -> Model:
    """The layers of a plan's model; those that attend across to images see as many image tokens as the plan says."""
    plan = scenario.training if scenario.kind == "training" else scenario.serving
    return build(scenario.model, plan.image_tokens)
