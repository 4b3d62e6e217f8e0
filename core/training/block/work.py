"""One block of a plan, its layout and its machine: what every timing function asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...machine.device import Machine
from ...model.layers import Block
from ...numeric import Number
from ...scenario import Overlap, Scenario, Training
from ..layout import Layout
from ..overlap import elements


@dataclass(frozen=True)
class Work:
    """One block of a plan on one rank."""

    block: Block
    layout: Layout
    machine: Machine
    scenario: Scenario

    @property
    def training(self) -> Training:
        return self.scenario.training

    @property
    def overlap(self) -> Overlap:
        return self.scenario.overlap

    @cached_property
    def residual(self) -> Number:
        """Elements of the residual stream that a rank norms and adds to."""
        return elements(self.layout.tokens, self.block.hidden, self.layout.sequence_share)
