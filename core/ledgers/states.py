"""Weights, gradients and optimizer states of a stage, and what is gathered of them, where the model itself is trained.

Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..catalogue import table
from ..numeric import Number, both, where
from ..scenario import Scenario
from ..sums import add_bytes, add_parameters
from ..terms import formula
from ..training.layout import Layout
from ..widths import gradient_bytes
from .low_precision import copied_bytes, low_precision_of
from .training_items import (
    gathered_block_bytes,
    gathered_root_bytes,
    kept_blocks_bytes,
    nothing_held,
    resident_bytes,
    sharded_bytes,
    step_copy_bytes,
)
from .training_parameters import (
    RankParameters,
    larger_block,
    largest_present,
    outer_parameters,
    sixteen_bit_parameters,
)


@formula(
    "(ψ_i + ψ_(p−1−i))/2",
    "parameters",
    "arXiv 2412.19437, table 2: two ranks hold the same two stages, of the weights alone two copies are kept",
    "gradients of the second copy until they are added up",
)
def half_of_pair(parameters: Number) -> Number:
    """Parameters whose gradients and states one of the two ranks keeps that hold the same stages."""
    return parameters / 2


@dataclass(frozen=True)
class Widths:
    """Bytes per parameter of each state, and what ZeRO shards."""

    weights: Number
    gradients: Number
    master: Number
    momentum: Number
    variance: Number
    gathered: Number
    #: Which parameters have a second moment of their own: all, outer (not the matrices of blocks) or factored.
    second: str = "all"

    @property
    def every_variance(self) -> Number:
        """Bytes of second moments that every parameter has."""
        return self.variance if self.second == "all" else 0.0


def state_widths(scenario: Scenario, framework: Mapping[str, Any]) -> Widths:
    """Bytes per trained parameter by precision, optimizer and stack (32-bit shards, or 16-bit with a master copy)."""
    training, optimizer = scenario.training, table("optimizers")[scenario.training.optimizer]
    momentum, variance = float(optimizer["momentum"]), float(optimizer["variance"])
    second, gather = optimizer["second"], float(framework["gather"])
    gradient = gradient_bytes(training)
    if training.finetune != "full":
        width = 4.0 if training.precision == "fp32" else float(framework["adapter"])
        return Widths(width, width, 0.0, min(momentum, width), min(variance, width), width, second)
    if training.precision == "fp32":
        return Widths(4.0, 4.0, 0.0, momentum, variance, 4.0, second)
    if training.state_precision == "bf16":
        return Widths(2.0, 2.0, 0.0, min(momentum, 2.0), min(variance, 2.0), 2.0, second)
    if framework["fp32_shards"]:
        return Widths(4.0, 4.0, 0.0, momentum, variance, gather, second)
    # a stack may keep 16-bit gradients beside the 32-bit ones, or a 32-bit copy of its shard of 16-bit ones
    beside = float(framework.get("gradients_beside", 0.0)) if gradient == 4 else 0.0
    copied = float(framework.get("gradient_shard", 0.0)) if gradient == 2 else 0.0
    return Widths(2.0, gradient + beside, 4.0 + copied, momentum, variance, gather, second)


class Held(NamedTuple):
    """Parameters a rank of a stage holds: routed experts apart, of routed experts, and both."""

    common: Number
    routed: Number
    total: Number

    @classmethod
    def of(cls, common: Number, routed: Number | None = None) -> Held:
        """Both added up; None: there are no routed experts, or none of them count."""
        if routed is None:
            return cls(common, 0.0, common)
        return cls(common, routed, add_parameters(common, routed))


class States:
    """What the states of any stage depend on."""

    def __init__(
        self, scenario: Scenario, framework: Mapping[str, Any], layout: Layout, rank: RankParameters, widths: Widths
    ) -> None:
        self.scenario, self.framework, self.layout, self.rank, self.widths = scenario, framework, layout, rank, widths
        self.zero = scenario.parallelism.zero
        #: What is kept cast for 8-bit products; None where nothing is.
        self.low = low_precision_of(scenario, framework)

    def held(self, stage: Number) -> Held:
        """Parameters a rank of the stage holds."""
        return Held.of(self.rank.common_on(stage), self._routed(stage))

    def owned(self, held: Held) -> Held:
        """Of what a rank holds, what it keeps gradients and states of: half where another rank holds the same."""
        if not self.layout.both_ways:
            return held
        common, total = half_of_pair(held.common), half_of_pair(held.total)
        return Held(common, half_of_pair(held.routed) if self.rank.any_routed else held.routed, total)

    def sharded(self, width: Number, held: Held) -> Number:
        """Bytes of a state that ZeRO shards: routed experts over the ranks that hold the same ones."""
        common = sharded_bytes(width, held.common, self.layout.shards)
        if not self.rank.any_routed:
            return common
        return add_bytes(common, sharded_bytes(width, held.routed, self.rank.expert_shards))

    def whole(self, width: Number, held: Held) -> Number:
        """Bytes of a state that every rank keeps whole."""
        return resident_bytes(width, held.total)

    def optimizer_state(self, width: Number, held: Held) -> Number:
        """Bytes of a state of the optimizer."""
        return (self.whole if self.zero < 1 else self.sharded)(width, held)

    def matrices(self, stage: Number) -> Held:
        """Parameters in the matrices of blocks, of those that a rank of the stage holds."""
        return Held.of(self.rank.matrices_on(stage), self._routed(stage))

    def _routed(self, stage: Number) -> Number | None:
        return self.rank.routed_on(stage) if self.rank.any_routed else None

    def cast_weights(self, stage: Number) -> Number:
        """Low-precision weights of a stage that are held all step: no copies of blocks that ZeRO-3 releases."""
        low = self.low
        if low is None:
            return nothing_held()
        held = self.matrices(stage)
        if self.zero < 3:
            copies = copied_bytes(low.beside_gathered if self.gathers_whole else low.kept, held.total)
        else:
            copies = kept_blocks_bytes(low.beside_gathered, self.layout.pipeline, held.total)
            if low.alone:
                copies = add_bytes(copies, self.sharded(low.element, held))
        return copies

    def cast_block(self, layers: tuple[Number, ...]) -> Number | None:
        """Those of the block in its backward pass, for which ZeRO-3 gathered the weights; None where they are not."""
        low = self.low
        if low is None or self.zero < 3 or not low.beside_gathered:
            return None
        width = where(self.layout.pipeline > 1, 0.0, low.beside_gathered)
        return copied_bytes(width, largest_present(layers, self.rank.gathered_matrices, larger_block))

    @property
    def gathers_whole(self) -> bool:
        """Whether 16-bit weights are gathered from 32-bit shards and kept from the first forward pass on."""
        return self.zero == 2 and bool(self.framework["fp32_shards"])

    def by_bytes(self, parameters: Number, matrices: Number) -> Number:
        """Parameters that are gathered, by their bytes: those in matrices may be gathered in low precision."""
        low = self.low.gathered if self.low else 0.0
        return sixteen_bit_parameters(parameters, matrices, low) if low else parameters

    @cached_property
    def gathered_blocks(self) -> tuple[Number, ...]:
        """Parameters of one block of each group that ZeRO-3 gathers, by their bytes."""
        if self.low is None:
            return self.rank.gathered_blocks
        return tuple(map(self.by_bytes, self.rank.gathered_blocks, self.rank.gathered_matrices))

    def stepped(self, width: Number, held: Held) -> Number:
        """Temporaries of an optimizer step that is not fused."""
        return step_copy_bytes(self.optimizer_state(width, held))

    @property
    def copies(self) -> bool:
        """Whether the stack holds a copy of the local shard in the step."""
        framework = self.framework
        fused = self.scenario.training.fused_optimizer and framework["gradient_buffer"]
        return bool(framework["step_copy"]) and not fused


class TrainedStates:
    """States of a stage whose parameters are all trained.

    `gathered` takes the layers of each group on the stage, and 1 for the stages at the ends.
    """

    def __init__(self, states: States, stage: Number) -> None:
        self.states, self.stage = states, stage
        self.psi = states.held(stage)
        self.trained = states.owned(self.psi)

    @cached_property
    def static(self) -> dict[str, Number]:
        """Weights, gradients and optimizer states between steps, by item."""
        states, owned, widths = self.states, self.trained, self.states.widths
        return {
            "weights": self._weights(self._in_sixteen_bits),
            "low_precision_weights": states.cast_weights(self.stage),
            "gradients": self._gradients(),
            "master_weights": states.optimizer_state(widths.master, owned) if widths.master else nothing_held(),
            "momentum": states.optimizer_state(widths.momentum, owned) if widths.momentum else nothing_held(),
            "variance": self._variance(),
        }

    def expert_weights(self) -> Number:
        """Weights of routed experts, a part of the weights."""
        routed = self._in_sixteen_bits.routed
        return self._weights(Held(0.0, routed, routed))

    @property
    def _in_sixteen_bits(self) -> Held:
        """Parameters with weights beside low-precision ones: all but those of matrices where these stand alone."""
        states, psi = self.states, self.psi
        if states.low is None or not states.low.alone:
            return psi
        common = outer_parameters(psi.common, states.rank.matrices_on(self.stage))
        return Held.of(common)

    def _weights(self, psi: Held) -> Number:
        states, width = self.states, self.states.widths.weights
        whole = states.zero < 3 and not states.gathers_whole
        return (states.whole if whole else states.sharded)(width, psi)

    def _variance(self) -> Number:
        """Second moments: of all parameters, of those outside the matrices of blocks, or of rows and columns."""
        states, rank, widths = self.states, self.states.rank, self.states.widths
        if not widths.variance:
            return nothing_held()
        if widths.second == "all":
            return states.optimizer_state(widths.variance, self.trained)
        if widths.second == "outer":
            common = outer_parameters(self.psi.common, rank.matrices_on(self.stage))
            return states.optimizer_state(widths.variance, states.owned(Held.of(common)))
        common, routed = rank.factored_on(self.stage)
        held = Held.of(common, routed if rank.any_routed else None)
        return states.optimizer_state(widths.variance, states.owned(held))

    def _gradients(self) -> Number:
        """Gradients between micro-batches: whole where the stack or a pipeline reduces only the last one."""
        states, layout, width = self.states, self.states.layout, self.states.widths.gradients
        whole = states.whole(width, self.trained)
        if states.zero < 2:
            return whole
        many = layout.micro_batches > 1
        if not states.framework["accumulate_whole"]:
            many = both(many, layout.pipeline > 1)
        return where(many, whole, states.sharded(width, self.trained))

    def gathered(self, layers: tuple[Number, ...], first: Number, last: Number) -> tuple[Number, Number]:
        """Weights gathered at the loss; the same with blocks and unit gradients at the backward pass of a block."""
        states, rank = self.states, self.states.rank
        width, pipeline = states.widths.gathered, states.layout.pipeline
        if states.zero == 3:
            root = gathered_root_bytes(width, first, last, rank.embedding, rank.head)
            root = add_bytes(
                root, kept_blocks_bytes(width, pipeline, rank.with_modules(self.stage, states.gathered_blocks))
            )
            held = where(pipeline > 1, 0.0, 2.0)
        elif states.gathers_whole:
            matrices = states.matrices(self.stage).total
            root, held = resident_bytes(width, states.by_bytes(self.psi.total, matrices)), 0.0
        else:
            return nothing_held(), nothing_held()
        block = largest_present(layers, rank.gathered_blocks, larger_block)
        most = largest_present(layers, states.gathered_blocks, larger_block)
        return root, add_bytes(root, gathered_block_bytes(width, most, block, last, rank.head_matrix, held))

    def step_copy(self) -> Number:
        """Temporaries of the optimizer step."""
        states = self.states
        if not states.copies:
            return nothing_held()
        width = states.framework["step_copy"]
        return states.stepped(min(width, states.widths.weights) if states.widths.master == 0 else width, self.trained)
