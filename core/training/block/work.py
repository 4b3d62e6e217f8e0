"""One block of a plan, its layout and its machine: what every timing function asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...catalogue import table
from ...ledgers.adapters import Adapters, adapters_of
from ...machine.device import NOTHING, Kernel, Machine
from ...model.layers import Block
from ...numeric import Number
from ...scenario import Overlap, Scenario, Training
from ..layout import Layout, rank_tokens
from ..overlap import elements, where_there


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
    def adapters(self) -> Adapters | None:
        """Adapters beside frozen matrices; None where the model itself is trained."""
        return adapters_of(self.training, table("frameworks")[self.training.framework])

    @property
    def frozen(self) -> bool:
        return self.training.finetune != "full"

    def weight_gradient(self, machine: Machine, inputs: Number, outputs: Number, rows: Number, **kernel: Any) -> Kernel:
        """The product that gives the gradient of a matrix; none where it is frozen."""
        if self.frozen:
            return NOTHING
        width = 2.0 * machine.gradient_bytes if self.training.fused_gradient_accumulation else 2.0
        return machine.matrix(inputs, outputs, rows, output=width, **kernel)

    @cached_property
    def image_tokens(self) -> Number:
        """Image tokens of one micro-batch on one rank, which context parallel ranks share out like text."""
        layout = self.layout
        return rank_tokens(layout.micro_batch, self.block.mixer.images, layout.context)

    def seen(self, seconds: Number) -> Number:
        """Time that images take; nothing in those of many plans that have none."""
        return where_there(self.block.mixer.images, seconds)

    @cached_property
    def residual(self) -> Number:
        """Elements of the residual stream that a rank norms and adds to."""
        return elements(self.layout.tokens, self.block.hidden, self.layout.sequence_share)
