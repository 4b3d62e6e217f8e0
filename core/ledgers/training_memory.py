"""Bytes a GPU holds while it trains: states, activations, logits, gathered units, workspace; the peak and the fit rule.

The peak of a stage is the largest of three instants: the loss (last stage), the backward pass of one block, and the
optimizer step. Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

from ..catalogue import table
from ..model.kinds.mixer import add_parameters
from ..model.layers import Model
from ..model.parameters import layers_parameters
from ..numeric import Number, both, is_array, largest, where
from ..scenario import Scenario
from ..sums import add_bytes
from ..training.layout import Layout
from .activations import BlockActivations, block_activations, in_flight
from .saved import Keeping, mixer_kept
from .training_items import (
    activation_peak,
    add_held,
    bucket_bytes,
    dispatch_buffer_bytes,
    embedding_output_bytes,
    fused_loss_bytes,
    gathered_block_bytes,
    gathered_root_bytes,
    held_bytes,
    kept_blocks_bytes,
    larger_working_set,
    layers_held,
    loss_bytes,
    nothing_held,
    pipeline_buffer_bytes,
    resident_bytes,
    ring_buffer_bytes,
    sharded_bytes,
    steering_bytes,
    step_copy_bytes,
    total_bytes,
)
from .training_parameters import RankParameters, flag, larger_block, largest_present

ITEMS = (
    "weights",
    "gradients",
    "master_weights",
    "momentum",
    "variance",
    "activations",
    "logits",
    "gathered",
    "workspace",
)
INSTANTS = ("loss", "backward", "optimizer step")

#: Bytes per parameter of (momentum, variance) by optimizer; 8-bit states carry one 32-bit scale a block of 256.
OPTIMIZER_BYTES = {"adamw": (4.0, 4.0), "adamw-8bit": (1.015625, 1.015625), "sgd": (4.0, 0.0)}


@dataclass(frozen=True)
class Widths:
    """Bytes per parameter of each state, and what ZeRO shards."""

    weights: Number
    gradients: Number
    master: Number
    momentum: Number
    variance: Number
    gathered: Number


def state_widths(scenario: Scenario, framework: dict) -> Widths:
    """Bytes per parameter by precision, optimizer and stack (32-bit shards, or 16-bit with a master copy)."""
    training = scenario.training
    momentum, variance = OPTIMIZER_BYTES[training.optimizer]
    gradient = 4.0 if training.gradient_precision == "fp32" else 2.0
    if training.precision == "fp32":
        return Widths(4.0, 4.0, 0.0, momentum, variance, 4.0)
    if training.state_precision == "bf16":
        return Widths(2.0, 2.0, 0.0, min(momentum, 2.0), min(variance, 2.0), 2.0)
    if framework["fp32_shards"]:
        return Widths(4.0, 4.0, 0.0, momentum, variance, float(framework["gather"]))
    # a stack may keep 16-bit gradients beside the 32-bit ones, or a 32-bit copy of its shard of 16-bit ones
    beside = float(framework.get("gradients_beside", 0.0)) if gradient == 4 else 0.0
    copied = float(framework.get("gradient_shard", 0.0)) if gradient == 2 else 0.0
    return Widths(2.0, gradient + beside, 4.0 + copied, momentum, variance, float(framework["gather"]))


class Held(NamedTuple):
    """Parameters a rank of a stage holds: routed experts apart, of routed experts, and both."""

    common: Number
    routed: Number
    total: Number


@dataclass(frozen=True)
class StageMemory:
    """Items of one stage (or array of stages) at its peak, with the instant's index in INSTANTS."""

    items: dict[str, Number]
    total: Number
    instant: Number


class TrainingMemory:
    """The memory ledger of one training scenario: ask it for any stage."""

    def __init__(self, scenario: Scenario, model: Model, layout: Layout) -> None:
        self.scenario, self.model, self.layout = scenario, model, layout
        self.framework = table("frameworks")[scenario.training.framework]
        self.widths = state_widths(scenario, self.framework)
        self.element = 4.0 if scenario.training.precision == "fp32" else 2.0
        self.rank = RankParameters(model, layout)
        self.common_share, self.routed_share = self.rank.mean_common, self.rank.mean_routed
        self.block_share, self.embedding_share = self.rank.mean_block, self.rank.embedding
        self.vocabulary = self.rank.vocabulary

    @cached_property
    def keeping(self) -> Keeping:
        """How the plan keeps tensors."""
        layout = self.layout
        return Keeping(
            self.scenario.training,
            self.framework,
            layout.tensor,
            layout.sequence_share,
            layout.sequence,
            self.element,
            layout.expert_tensor,
            self.scenario.moe.imbalance,
        )

    @cached_property
    def kept(self) -> tuple[BlockActivations, ...]:
        """What one block of each group keeps for its backward pass."""
        return tuple(block_activations(block, self.keeping) for _, block in self.model.groups)

    def parameters(self, stage: Number) -> Number:
        """Parameters a rank of the stage holds."""
        return self._held(stage).total

    def routed_parameters(self, stage: Number) -> Number:
        """Those of them that belong to routed experts."""
        return self.rank.routed_on(stage)

    def _held(self, stage: Number) -> Held:
        common = self.rank.common_on(stage)
        if not self.rank.any_routed:
            return Held(common, 0.0, common)
        routed = self.rank.routed_on(stage)
        return Held(common, routed, add_parameters(common, routed))

    def _sharded(self, width: Number, held: Held) -> Number:
        """Bytes of a state that ZeRO shards: routed experts over the ranks that hold the same ones."""
        common = sharded_bytes(width, held.common, self.layout.shards)
        if not self.rank.any_routed:
            return common
        return add_bytes(common, sharded_bytes(width, held.routed, self.rank.expert_shards))

    def _whole(self, width: Number, held: Held) -> Number:
        return resident_bytes(width, held.total)

    def static(self, stage: Number) -> dict[str, Number]:
        """Weights, whole gradients and optimizer states between steps."""
        return self._static(self._held(stage))

    def _static(self, held: Held) -> dict[str, Number]:
        zero, widths = self.scenario.parallelism.zero, self.widths
        state = self._whole if zero < 1 else self._sharded
        whole = zero < 2 or (zero == 2 and not self.framework["fp32_shards"])
        weights = (self._whole if whole else self._sharded)(widths.weights, held)
        if self.scenario.parallelism.schedule == "dualpipe":
            weights = resident_bytes(2.0, weights)
        return {
            "weights": weights,
            "gradients": self._gradients(held),
            "master_weights": state(widths.master, held) if widths.master else nothing_held(),
            "momentum": state(widths.momentum, held),
            "variance": state(widths.variance, held) if widths.variance else nothing_held(),
        }

    def _gradients(self, held: Held) -> Number:
        """Gradients between micro-batches: whole where the stack or a pipeline reduces only the last one."""
        layout, width, zero = self.layout, self.widths.gradients, self.scenario.parallelism.zero
        whole = self._whole(width, held)
        if zero < 2:
            return whole
        many = layout.micro_batches > 1
        if not self.framework["accumulate_whole"]:
            many = both(many, layout.pipeline > 1)
        return where(many, whole, self._sharded(width, held))

    def _gathered(self, psi: Held, stage: Number, first: Number, last: Number) -> tuple[Number, Number]:
        """Weights gathered at the loss; the same with blocks and unit gradients at the backward pass of a block."""
        zero, width, layout, rank = self.scenario.parallelism.zero, self.widths.gathered, self.layout, self.rank
        if zero == 3:
            root = gathered_root_bytes(width, first, last, rank.embedding, rank.head)
            kept = kept_blocks_bytes(width, layout.pipeline, rank.blocks_on(stage))
            root, held = add_bytes(root, kept), where(layout.pipeline > 1, 0.0, 2.0)
        elif zero == 2 and self.framework["fp32_shards"]:
            root, held = self._whole(width, psi), 0.0
        else:
            return nothing_held(), nothing_held()
        block = largest_present(rank.kinds.on(stage), rank.blocks, larger_block)
        return root, add_bytes(root, gathered_block_bytes(width, block, last, rank.head_matrix, held))

    def stage(self, stage: Number) -> StageMemory:
        """Items of a stage at the largest of its three instants."""
        scenario, layout, model = self.scenario, self.layout, self.model
        framework, training = self.framework, scenario.training
        psi = self._held(stage)
        static = self._static(psi)
        first, last = flag(stage == 0), flag(stage == layout.pipeline - 1)
        flight = in_flight(scenario.parallelism.schedule, layout.micro_batches, layout.pipeline, layout.virtual, stage)
        embedding = embedding_output_bytes(first, model.hidden, layout.sequence_share, self.element)
        layers = self.rank.kinds.on(stage)
        kept = reduce(add_held, [layers_held(n, block.held) for n, block in zip(layers, self.kept, strict=True)])
        held = held_bytes(flight, kept, layout.tokens, embedding)
        working = largest_present(layers, tuple(block.during_backward for block in self.kept), larger_working_set)
        backward = activation_peak(held, working, layout.tokens)
        logits = self._logits(last)
        root, blocks = self._gathered(psi, stage, first, last)
        buffers = self._buffers(layers)
        copy = nothing_held()
        if framework["step_copy"] and not (training.fused_optimizer and framework["gradient_buffer"]):
            width = (
                min(framework["step_copy"], self.widths.weights) if self.widths.master == 0 else framework["step_copy"]
            )
            copy = step_copy_bytes((self._sharded if scenario.parallelism.zero else self._whole)(width, psi))
        grown = static["gradients"]
        if not framework["gradient_buffer"]:
            grown = where(layout.micro_batches > 1, static["gradients"], 0.0)
        instants = (
            static
            | {"gradients": grown, "activations": held, "logits": logits, "gathered": root, "workspace": buffers},
            static
            | {
                "gradients": grown,
                "activations": backward,
                "logits": nothing_held(),
                "gathered": blocks,
                "workspace": buffers,
            },
            static
            | {"activations": nothing_held(), "logits": nothing_held(), "gathered": nothing_held(), "workspace": copy},
        )
        return _largest(instants)

    def _logits(self, last: Number) -> Number:
        """Logits and loss on the last stage; a loss of 0 bytes a logit is fused with the output head."""
        layout, framework, stated = self.layout, self.framework, self.scenario.training.logit_bytes
        width = framework["logit"] if stated is None else stated
        shape = (last, layout.tokens, self.vocabulary, layout.tensor)
        if not is_array(width) and width == 0:
            return fused_loss_bytes(*shape, framework["final_norm"], self.model.hidden)
        return loss_bytes(*shape, width, framework["final_norm"], self.model.hidden)

    def _buffers(self, layers: tuple[Number, ...]) -> Number:
        """Buffers of a stage with some layers of each group."""
        layout, scenario = self.layout, self.scenario
        buffers = pipeline_buffer_bytes(
            layout.tokens, self.model.hidden, layout.sequence_share, self.element, layout.pipeline
        )
        buffers = add_bytes(buffers, ring_buffer_bytes(layout.tokens, self._passed_on, self.element, layout.context))
        if not self.framework["gradient_buffer"] and scenario.parallelism.zero < 3:
            buffers = add_bytes(buffers, bucket_bytes(self.framework["bucket"], layout.shards))
        return add_bytes(buffers, self._expert_buffers(layers)) if self.rank.any_routed else buffers

    @cached_property
    def _passed_on(self) -> Number:
        """Elements of keys and values that a context parallel rank passes on, of the layers with most."""
        return largest(mixer_kept(block.mixer, self.keeping).passed_on for _, block in self.model.groups)

    def _expert_buffers(self, layers: tuple[Number, ...]) -> Number:
        """Tokens on their way to experts, and biases that steer routing."""
        layout, keeping = self.layout, self.keeping
        routed = [(n, block.experts) for n, (_, block) in zip(layers, self.model.groups, strict=True) if block.experts]
        dispatched = [
            dispatch_buffer_bytes(
                experts.per_token,
                layout.tokens,
                keeping.share,
                experts.width,
                keeping.element,
                keeping.imbalance,
                layout.expert,
            )
            for _, experts in routed
        ]
        steering = [steering_bytes(layers_parameters(n, experts.buffers())) for n, experts in routed]
        return add_bytes(largest(dispatched), reduce(add_bytes, steering))


def _largest(instants: tuple[dict[str, Number], ...]) -> StageMemory:
    totals = [total_bytes(**items) for items in instants]
    best, items, instant = totals[0], instants[0], 0
    for index in (1, 2):
        more = totals[index] > best
        if is_array(more):
            items = {name: where(more, instants[index][name], items[name]) for name in ITEMS}
            best, instant = where(more, totals[index], best), where(more, index, instant)
        elif more:
            best, items, instant = totals[index], instants[index], index
    return StageMemory(items, best, instant)


@dataclass(frozen=True)
class PeakMemory:
    """The fullest stage: its items, index and instant."""

    items: dict[str, Number]
    total: Number
    stage: Number
    instant: Number


def peak_memory(memory: TrainingMemory) -> PeakMemory:
    """The stage with the largest peak among the distinct stages."""
    best: PeakMemory | None = None
    for stage in memory.rank.kinds.distinct():
        found = memory.stage(stage)
        peak = PeakMemory(found.items, found.total, stage, found.instant)
        best = peak if best is None else _fuller(best, peak)
    assert best is not None
    return best


def _fuller(best: PeakMemory, other: PeakMemory) -> PeakMemory:
    more = other.total > best.total
    if not is_array(more):
        return other if more else best
    return PeakMemory(
        {name: where(more, other.items[name], best.items[name]) for name in ITEMS},
        where(more, other.total, best.total),
        where(more, other.stage, best.stage),
        where(more, other.instant, best.instant),
    )
