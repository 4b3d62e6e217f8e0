"""What a plan has, in words that fields of a panel ask for: kinds of layers, adapters, a frozen base, low precision."""

from __future__ import annotations

from collections.abc import Iterator

from .catalogue import table
from .model import traits as model_traits
from .scenario import Scenario


def traits(scenario: Scenario) -> frozenset[str]:
    """The words of a plan and of its model."""
    return model_traits.traits(scenario.model) | frozenset(_of_training(scenario))


def _of_training(scenario: Scenario) -> Iterator[str]:
    training = scenario.training
    if training.finetune != "full":
        yield "adapters"
    if training.finetune == "qlora":
        yield "frozen base"
    if table("precisions")[training.precision]["cast"]:
        yield "low precision"
