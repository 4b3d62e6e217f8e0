"""States of a stage whose matrices are frozen, in 16 bits or quantised, beside adapters that are trained.

Sources: LoRA (arXiv 2106.09685), QLoRA (arXiv 2305.14314); FSDP's notes on frozen units (PyTorch documentation).
"""

from __future__ import annotations

from functools import cached_property, reduce

from ..catalogue import table
from ..model.kinds.mixer import present
from ..model.parameters import layers_parameters
from ..numeric import Number, largest, where
from ..scenario import Training
from ..sums import add_bytes, add_parameters, times_bytes
from ..terms import formula
from ..widths import element_bytes
from .adapters import Adapters, column_adapter, common_adapters, linears, routed_adapters
from .states import Held, States
from .training_items import gathered_root_bytes, nothing_held, resident_bytes, sharded_bytes
from .training_parameters import RankParameters, largest_present, sixteen_bit_parameters

_QLORA = "Dettmers 2023, arXiv 2305.14314"


@formula("w_q·P_lin + 2·P_rest", "B", _QLORA)
def quantised_bytes(width: Number, matrices: Number, parameters: Number, element: Number) -> Number:
    """Bytes of some frozen parameters: the matrices of blocks quantised, everything else in 16 bits."""
    return width * matrices + element * (parameters - matrices)


@formula("w_q·V·h/t − 2·V·h/t", "B", "LitGPT public code")
def head_saving(width: Number, head: Number, element: Number, last: Number) -> Number:
    """Bytes by which a quantised output head is smaller."""
    return last * (width - element) * head


@formula("2·in·out", "B", "the largest frozen matrix, in 16 bits while it multiplies")
def dequantised_bytes(inputs: Number, outputs: Number, tensor: Number) -> Number:
    """A quantised matrix made 16-bit for its product."""
    return 2 * inputs * outputs / tensor


@formula("max B", "B", "of the kinds of layer on the stage")
def larger_bytes(most: Number, layers: Number, other: Number) -> Number:
    """The larger of two sizes, the second only where the stage has such layers."""
    return largest((most, where(layers > 0, other, 0.0)))


@formula("Σ L_i·w·P", "B", "pipelines over FSDP gather once a step: torchtitan")
def kept_frozen_bytes(pipeline: Number, blocks: Number) -> Number:
    """Frozen blocks that a pipeline over ZeRO-3 keeps gathered for the whole step."""
    return where(pipeline > 1, blocks, 0.0)


@formula(
    "(L_i − 2)·R·h·T", "B", "hooks of FSDP1 on frozen units keep block inputs and their gradients: PyTorch public code"
)
def pinned_bytes(layers: Number, checkpoint: Number, tokens: Number, shards: Number) -> Number:
    """Inputs of recomputed frozen blocks that stay alive until the backward pass ends."""
    return where(shards > 1, (layers - 2) * checkpoint * tokens, 0.0)


@formula("n·T·h", "B", "copy and mask of the input of the head, or the input alone without dropout")
def head_input_bytes(width: Number, tokens: Number, hidden: Number, last: Number) -> Number:
    """What adapters on the output head keep at the loss."""
    return last * width * tokens * hidden


def frozen_width(training: Training) -> float:
    """Bytes of a parameter in a frozen matrix."""
    if training.finetune == "qlora":
        return float(table("adapters")["bases"][training.lora.base_format]["bytes"])
    return element_bytes(training)


class FrozenStates:
    """States of a stage with a frozen base and adapters."""

    def __init__(self, states: States, adapters: Adapters, stage: Number) -> None:
        self.states, self.adapters, self.stage = states, adapters, stage
        self.base = states.held(stage)
        self.last = states.rank.kinds.lasts(stage)
        training = states.scenario.training
        self.quantised = training.finetune == "qlora"
        self.element = element_bytes(training)
        self.width = frozen_width(training)
        self.quantised_head = self.quantised and bool(states.framework["quantised_head"])

    @cached_property
    def trained(self) -> Held:
        """Parameters of the adapters whose gradients and states a rank keeps."""
        return self.states.owned(self.beside)

    @cached_property
    def beside(self) -> Held:
        """Parameters of the adapters that a rank holds."""
        states, layout, adapters = self.states, self.states.layout, self.adapters
        layers, blocks = states.rank.kinds.on(self.stage), [block for _, block in states.rank.model.groups]
        each = [
            layers_parameters(n, common_adapters(b, adapters, layout.tensor))
            for n, b in zip(layers, blocks, strict=True)
        ]
        common = reduce(add_parameters, each)
        if "head" in adapters.targets:
            model = states.rank.model
            head = column_adapter(adapters.rank, model.width, states.rank.vocabulary, layout.tensor, self.last)
            common = add_parameters(common, head)
        if not states.rank.any_routed:
            return Held.of(common)
        experts = layout.expert, layout.expert_tensor
        each = [
            layers_parameters(n, routed_adapters(b, adapters, *experts)) for n, b in zip(layers, blocks, strict=True)
        ]
        return Held.of(common, reduce(add_parameters, each))

    def _frozen_bytes(self, matrices: Number, parameters: Number, width: float) -> Number:
        """Bytes of some frozen parameters, with those of matrices in `width` bytes."""
        if width == self.element:
            return resident_bytes(self.element, parameters)
        return quantised_bytes(width, matrices, parameters, self.element)

    def _base_bytes(self) -> tuple[Number, Number]:
        """Bytes of the frozen base of the stage: routed experts apart, and of routed experts."""
        rank, low = self.states.rank, self.states.low
        # low-precision weights that stand alone are an item of their own
        width = 0.0 if low and low.alone else self.width
        common = self._frozen_bytes(rank.matrices_on(self.stage), self.base.common, width)
        if self.quantised_head:
            common = add_bytes(common, head_saving(self.width, rank.head, self.element, self.last))
        return common, self._frozen_bytes(self.base.routed, self.base.routed, width) if rank.any_routed else 0.0

    @property
    def _apart(self) -> bool:
        """Whether the adapters are whole on every rank though the base is sharded."""
        return self.quantised and bool(self.states.framework["quantised_apart"])

    def _state(self, width: Number) -> Number:
        states = self.states
        sharded = states.zero and not self._apart
        return (states.sharded if sharded else states.whole)(width, self.trained)

    @cached_property
    def static(self) -> dict[str, Number]:
        states = self.states
        common, routed = self._base_bytes()
        if states.zero == 3:
            common = sharded_bytes(1.0, common, states.layout.shards)
            routed = sharded_bytes(1.0, routed, states.rank.expert_shards) if states.rank.any_routed else routed
        base = add_bytes(common, routed) if states.rank.any_routed else common
        width = states.widths.weights
        weights = states.sharded if states.zero == 3 and not self._apart else states.whole
        return {
            "weights": add_bytes(base, weights(width, self.beside)),
            "low_precision_weights": states.cast_weights(self.stage),
            "gradients": self._gradients(),
            "master_weights": nothing_held(),
            "momentum": self._state(states.widths.momentum) if states.widths.momentum else nothing_held(),
            "variance": self._state(states.widths.variance) if states.widths.variance else nothing_held(),
        }

    def _gradients(self) -> Number:
        states, width = self.states, self.states.widths.gradients
        if states.framework["mixed_units"] and states.zero == 3:
            return resident_bytes(self.element, self.base.total)
        return (states.sharded if states.zero >= 2 and not self._apart else states.whole)(width, self.trained)

    def gathered(self, layers: tuple[Number, ...], first: Number, last: Number) -> tuple[Number, Number]:
        states, rank = self.states, self.states.rank
        if states.zero < 3:
            return nothing_held(), nothing_held()
        root = gathered_root_bytes(self.element, first, last, rank.embedding, rank.head)
        width = states.low.gathered if states.low and states.low.gathered else self.width
        blocks = tuple(
            self._frozen_bytes(*each, width) for each in zip(rank.gathered_matrices, rank.gathered_blocks, strict=True)
        )
        kept = reduce(add_bytes, map(times_bytes, layers, blocks))
        kept = kept_frozen_bytes(states.layout.pipeline, kept)
        block = where(states.layout.pipeline > 1, 0.0, largest_present(layers, blocks, larger_bytes))
        root = add_bytes(root, kept)
        return root, add_bytes(root, block)

    def step_copy(self) -> Number:
        width = self.states.widths.weights
        return self._state(width) if self.states.copies else nothing_held()

    def pinned(self, layers: Number, checkpoint: Number) -> Number:
        """Block inputs that FSDP1 keeps with frozen units."""
        states, layout = self.states, self.states.layout
        recomputed = states.scenario.training.recompute == "full"
        if not (states.framework["fsdp1"] and states.zero == 3 and recomputed):
            return nothing_held()
        return pinned_bytes(layers, checkpoint, layout.tokens, layout.shards)

    def dequantised(self) -> tuple[Number, Number]:
        """Quantised matrices made 16-bit at the loss and at the backward pass of a block."""
        if not self.quantised:
            return nothing_held(), nothing_held()
        rank, tensor = self.states.rank, self.states.layout.tensor
        head = dequantised_bytes(rank.head_matrix, self.last, 1.0) if self.quantised_head else nothing_held()
        parts = [part for _, block in rank.model.groups for part in (block.mixer, block.ffn)]
        sizes = [dequantised_bytes(each.inputs, each.outputs, tensor) for part in parts for each in linears(part)]
        return head, largest(sizes)

    def head_inputs(self) -> Number:
        """What adapters on the output head keep."""
        if "head" not in self.adapters.targets:
            return nothing_held()
        width = 3.0 if self.adapters.dropout else 2.0
        return head_input_bytes(width, self.states.layout.tokens, self.states.rank.model.hidden, self.last)


def adapter_means(rank: RankParameters, adapters: Adapters) -> tuple[Number, Number, Number, Number]:
    """Parameters of the adapters of one block, mean over the layers, of embedding, of head, and of routed experts."""
    layout, blocks = rank.layout, [block for _, block in rank.model.groups]
    common = tuple(common_adapters(block, adapters, layout.tensor) for block in blocks)
    routed = tuple(routed_adapters(block, adapters, layout.expert, layout.expert_tensor) for block in blocks)
    head = 0.0
    if "head" in adapters.targets:
        head = column_adapter(adapters.rank, rank.model.width, rank.vocabulary, layout.tensor, 1.0)
    return rank.mean(common), 0.0, head, rank.mean(routed) if any(map(present, routed)) else 0.0


def frozen_means(rank: RankParameters, training: Training) -> tuple[Number, Number, Number, Number]:
    """Frozen parameters of one block, mean over the layers, of embedding, of head, and of routed experts."""
    head = 0.0 if rank.model.spec.tied else rank.head_matrix
    if training.finetune == "lora":
        return rank.mean_common, rank.embedding, head, rank.mean_routed
    width = frozen_width(training)
    common = sixteen_bit_parameters(rank.mean_common, rank.mean(rank.common_matrices), width)
    return common, rank.embedding, head, sixteen_bit_parameters(rank.mean_routed, rank.mean_routed, width)
