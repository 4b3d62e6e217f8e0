"""Bytes a GPU holds while it trains: states, activations, logits, gathered units, workspace; the peak and the fit rule.

The peak of a stage is the largest of three instants: the loss (last stage), the backward pass of one block, and the
optimizer step. Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from ..catalogue import table
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..model.parameters import layers_parameters
from ..numeric import Number, is_array, largest, where
from ..scenario import Scenario
from ..sums import add_bytes, add_token_bytes
from ..sums import total_bytes as total_of
from ..training.layout import Layout
from .activations import block_activations, checkpoint_bytes, in_flight, in_flight_one_way, keeping_of
from .frozen_states import FrozenStates, adapter_means, frozen_means
from .instants import ITEMS, StageMemory, fullest_instant, instant_items
from .states import Held, States, TrainedStates, state_widths
from .training_items import (
    activation_peak,
    bucket_bytes,
    dispatch_buffer_bytes,
    embedding_output_bytes,
    frozen_fused_loss_bytes,
    fused_loss_bytes,
    held_bytes,
    larger_working_set,
    layers_and_modules,
    layers_held,
    loss_bytes,
    losses,
    nothing_held,
    offloaded_bytes,
    offloaded_share,
    on_device,
    optimizer_bytes,
    pipeline_buffer_bytes,
    ring_buffer_bytes,
    steering_bytes,
    transit_bytes,
)
from .training_parameters import RankParameters, flag, largest_present

#: Items that an optimizer on the host does not keep on the device.
OPTIMIZER = ("master_weights", "momentum", "variance")


class TrainingMemory:
    """The memory ledger of one training scenario: ask it for any stage."""

    def __init__(self, scenario: Scenario, model: Model, layout: Layout) -> None:
        self.scenario, self.model, self.layout = scenario, model, layout
        self.framework = table("frameworks")[scenario.training.framework]
        self.widths = state_widths(scenario, self.framework)
        self.rank = RankParameters(model, layout)
        self.states = States(scenario, self.framework, layout, self.rank, self.widths)
        #: States of single stages: several items ask for those of the same one.
        self._found: dict[float, TrainedStates | FrozenStates] = {}
        self.keeping = keeping_of(scenario, layout)
        self.adapters, self.element = self.keeping.adapters, self.keeping.element
        #: What one block of each group keeps for its backward pass.
        self.kept = tuple(block_activations(block, self.keeping) for _, block in model.groups)
        self.common_share, self.routed_share = self.rank.mean_common, self.rank.mean_routed
        self.block_share, self.embedding_share = self.rank.mean_block, self.rank.embedding

    def parameters(self, stage: Number) -> Number:
        """Parameters of the model that a rank of the stage holds."""
        return self.states.held(stage).total

    def routed_parameters(self, stage: Number) -> Number:
        """Those of them that belong to routed experts."""
        return self.rank.routed_on(stage)

    def trained(self, stage: Number) -> Held:
        """Parameters that are trained of those that a rank of the stage holds."""
        return self._states(stage).trained

    def mean_adapters(self) -> tuple[Number, Number, Number, Number]:
        """Adapters of one block on a rank, mean over the layers, of embedding, of head, and of its routed experts."""
        return adapter_means(self.rank, self.adapters) if self.adapters else (0.0, 0.0, 0.0, 0.0)

    def mean_frozen(self) -> tuple[Number, Number, Number, Number]:
        """Frozen parameters in the same order, as many as have their bytes in 16 bits."""
        return frozen_means(self.rank, self.scenario.training)

    def expert_weights(self, stage: Number) -> Number:
        """Bytes of the weights of routed experts on a stage, where the model itself is trained."""
        states = self._states(stage)
        return states.expert_weights() if isinstance(states, TrainedStates) and self.rank.any_routed else 0.0

    def static(self, stage: Number) -> dict[str, Number]:
        """Weights, whole gradients and optimizer states between steps, on the device."""
        return self._on_device(self._states(stage).static)

    def on_host(self, stage: Number) -> Number:
        """What a rank of the stage keeps in the memory of its host: states of the optimizer, and activations."""
        training, found = self.scenario.training, []
        if training.offload_optimizer:
            static = self._states(stage).static
            found.append(optimizer_bytes(*(static[name] for name in OPTIMIZER)))
        if present(training.offload_layers):
            for flight, layers, _ in self._in_flight(stage):
                found.append(offloaded_bytes(flight, self._kept(layers), self.layout.tokens, self._offloaded))
        return total_of(found)

    @property
    def _offloaded(self) -> Number:
        """Share of the layers whose activations are on the host."""
        return offloaded_share(self.scenario.training.offload_layers, self.model.layers)

    def _in_flight(self, stage: Number) -> list[tuple[Number, tuple[Number, ...], Number]]:
        """Micro-batches whose activations a rank holds, of which layers, and 1 where the embedding is before them.

        Those of a rank whose micro-batches run both ways are told apart by the stage that they are in.
        """
        layout, kinds = self.layout, self.rank.kinds
        flight = in_flight(layout.schedule, layout.micro_batches, layout.pipeline, layout.virtual, stage)
        if not layout.both_ways:
            return [(flight, self._layers(kinds.on(stage), kinds.lasts(stage)), kinds.firsts(stage))]
        return [
            (
                in_flight_one_way(flight, layout.pipeline, held),
                self._layers(layers, flag(held == layout.pipeline - 1)),
                flag(held == 0),
            )
            for held, layers in kinds.apart(stage)
        ]

    def _kept(self, layers: tuple[Number, ...]) -> Number:
        """What the layers of a stage keep of one token."""
        kept = layers_held(layers[0], self.kept[0].held)
        for n, block in zip(layers[1:], self.kept[1:], strict=True):
            kept = add_token_bytes(kept, layers_held(n, block.held))
        return kept

    def _on_device(self, static: dict[str, Number]) -> dict[str, Number]:
        if not self.scenario.training.offload_optimizer:
            return static
        return static | dict.fromkeys(OPTIMIZER, nothing_held())

    def _states(self, stage: Number) -> TrainedStates | FrozenStates:
        if not is_array(stage) and stage in self._found:
            return self._found[stage]
        adapters = self.adapters
        states = TrainedStates(self.states, stage) if adapters is None else FrozenStates(self.states, adapters, stage)
        if not is_array(stage):
            self._found[stage] = states
        return states

    def stage(self, stage: Number) -> StageMemory:
        """Items of a stage at the largest of its three instants."""
        layout, states = self.layout, self._states(stage)
        static = self._on_device(states.static)
        kinds = self.rank.kinds
        first, last = kinds.firsts(stage), kinds.lasts(stage)
        layers = self._layers(kinds.on(stage), last)
        held, backward = self._activations(stage, layers)
        logits = self._logits(last)
        root, blocks = states.gathered(layers, first, last)
        at_loss = at_backward = self._buffers(layers)
        if isinstance(states, FrozenStates):
            backward = add_bytes(backward, states.pinned(layout.stages.layers_on(stage), self._checkpoint))
            logits = add_bytes(logits, states.head_inputs())
            head, block = states.dequantised()
            at_loss, at_backward = add_bytes(at_loss, head), add_bytes(at_backward, block)
        grown = static["gradients"]
        if not self.framework["gradient_buffer"]:
            grown = where(layout.micro_batches > 1, static["gradients"], 0.0)
        none = nothing_held()
        casting, copies = static, self.states.cast_block(layers)
        if copies is not None:
            casting = static | {"low_precision_weights": add_bytes(static["low_precision_weights"], copies)}
        copy = none if self.scenario.training.offload_optimizer else states.step_copy()
        return fullest_instant(
            (
                instant_items(static, grown, held, logits, root, at_loss),
                instant_items(casting, grown, backward, none, blocks, at_backward),
                instant_items(static, static["gradients"], none, none, none, copy),
            )
        )

    def _layers(self, layers: tuple[Number, ...], last: Number) -> tuple[Number, ...]:
        """Layers of each group on a stage with those of prediction modules, which stand behind the last one."""
        modules = self.model.spec.mtp_modules
        if not present(modules):
            return layers
        group = self.model.last_group
        return (*layers[:group], layers_and_modules(layers[group], last, modules), *layers[group + 1 :])

    @property
    def _checkpoint(self) -> Number:
        """The input of a block, bytes a token on one rank."""
        keeping = self.keeping
        return checkpoint_bytes(self.model.hidden, keeping.share * keeping.widened, 2.0)

    def _activations(self, stage: Number, layers: tuple[Number, ...]) -> tuple[Number, Number]:
        """Activations at the loss, and at the backward pass of the largest block of a stage."""
        layout = self.layout
        held = reduce(add_bytes, [self._held(*each) for each in self._in_flight(stage)])
        working = largest_present(layers, tuple(block.during_backward for block in self.kept), larger_working_set)
        return held, activation_peak(held, working, layout.tokens)

    def _held(self, flight: Number, layers: tuple[Number, ...], first: Number) -> Number:
        """Activations of the micro-batches in flight through some layers."""
        # what a frozen embedding gives is the input of the first block and nothing else
        embedding = 0.0
        if self.adapters is None:
            embedding = embedding_output_bytes(first, self.model.hidden, self.layout.sequence_share, self.element)
        kept = self._kept(layers)
        if present(self.scenario.training.offload_layers):
            kept = on_device(kept, self._offloaded)
        return held_bytes(flight, kept, self.layout.tokens, embedding)

    def _logits(self, last: Number) -> Number:
        """Logits and loss on the last stage; a loss of 0 bytes a logit is fused with the output head."""
        layout, framework, stated = self.layout, self.framework, self.scenario.training.logit_bytes
        width = framework["logit"] if stated is None else stated
        norm = framework["final_norm"]
        if self.adapters:
            norm = 4.0 if self.model.norm_vectors == 2 else framework["frozen_norm"]
        if present(self.model.spec.mtp_modules):
            last = losses(last, self.model.spec.mtp_modules)
        shape = (last, layout.tokens, self.rank.vocabulary, layout.tensor)
        if is_array(width) or width > 0:
            return loss_bytes(*shape, width, norm, self.model.hidden)
        if self.adapters:
            return frozen_fused_loss_bytes(last, layout.tokens, norm, self.model.hidden)
        return fused_loss_bytes(*shape, norm, self.model.hidden)

    def _buffers(self, layers: tuple[Number, ...]) -> Number:
        """Buffers of a stage with some layers of each group."""
        layout, scenario = self.layout, self.scenario
        passed_on = largest(block.passed_on for block in self.kept)
        buffers = pipeline_buffer_bytes(
            layout.tokens, self.model.hidden, layout.sequence_share, self.element, layout.pipeline
        )
        buffers = add_bytes(buffers, ring_buffer_bytes(layout.tokens, passed_on, self.element, layout.context))
        if not self.framework["gradient_buffer"] and scenario.parallelism.zero < 3:
            buffers = add_bytes(buffers, bucket_bytes(self.framework["bucket"], layout.shards))
        if present(scenario.training.offload_layers):
            most = largest(block.held for block in self.kept)
            buffers = add_bytes(buffers, transit_bytes(most, layout.tokens, scenario.training.offload_layers))
        return add_bytes(buffers, self._expert_buffers(layers)) if self.rank.any_routed else buffers

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
    for stage in memory.rank.kinds.distinct:
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
