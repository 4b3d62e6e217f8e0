"""FLOPs: per token, per step, as the model defines them and as the hardware executes them.

A multiply-add is two FLOPs. Biases, norms, activations, softmax and rotary embedding are counted in bytes, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from ..catalogue import table
from ..model.block import Block
from ..model.kinds.mixer import present
from ..model.layers import Mixer, Model
from ..numeric import Number, is_array
from ..scenario import Scenario, Training
from ..sums import add_token_flops
from ..terms import formula
from .adapters import active_adapters, adapters_of

_KAPLAN = "Kaplan 2020, arXiv 2001.08361"


@formula("F_lin", "FLOP/token", "2·M·K·N for each matrix", "biases, norms, activations, softmax, rope")
def linear_flops(matrix_parameters: Number) -> Number:
    """Forward FLOPs of a token in the matrices of one block."""
    return 2 * matrix_parameters


@formula(
    "F_img", "FLOP/token", "2·M·K·N for each matrix, once an image: arXiv 2407.21783, section 7.1", "the vision tower"
)
def image_flops(matrix_parameters: Number, images: Number, sequence: Number) -> Number:
    """Forward FLOPs of image tokens in the matrices of one block, for each token of the text."""
    return 2 * matrix_parameters * images / sequence


@formula("F_core", "FLOP/token", "causal pairs s(s+1)/2 over s tokens")
def core_flops(pair: Number, sequence: Number) -> Number:
    """Forward FLOPs of a token in the attention core of one block, mean over a causal sequence."""
    return pair * (sequence + 1) / 2


@formula("F_core", "FLOP/token", "pairs inside the window or chunk, or among the keys an index picks")
def limited_core_flops(flops: Number, sequence: Number) -> Number:
    """The same where a query does not look at all that stands before it: FLOPs of a sequence over its tokens."""
    return flops / sequence


@formula("F_core,full", "FLOP/token", "PaLM, arXiv 2204.02311, appendix B: full mask")
def full_mask_core_flops(pair: Number, sequence: Number) -> Number:
    """The same counted with a full mask, as several published figures do."""
    return pair * sequence


@formula("F_head", "FLOP/token", "2·h·V")
def head_flops(hidden: Number, vocabulary: Number) -> Number:
    """Forward FLOPs of a token in the output head."""
    return 2 * hidden * vocabulary


@formula("F_layers", "FLOP/token")
def layers_flops(layers: Number, block: Number) -> Number:
    """Forward FLOPs of a token in some equal blocks."""
    return layers * block


@formula("L + n_mtp", "layers", "DeepSeek-V3, arXiv 2412.19437, section 2.2")
def layers_with_modules(layers: Number, modules: Number) -> Number:
    """Layers of the last kind with the blocks of modules that predict further tokens."""
    return layers + modules


@formula("F_head + n_mtp·(F_head + 4·h²)", "FLOP/token", "DeepSeek-V3, arXiv 2412.19437, section 2.2")
def heads_flops(head: Number, modules: Number, hidden: Number) -> Number:
    """Forward FLOPs of a token in the output head, and in the head and the projection of each prediction module."""
    return head + modules * (head + 4 * hidden**2)


@formula("F_fwd", "FLOP/token", leaves_out="embedding lookup (bytes only)")
def forward_flops(linear: Number, core: Number, head: Number) -> Number:
    """Forward FLOPs of a token in the whole model."""
    return linear + core + head


@formula(
    "F_train", "FLOP/token", "backward is one product for the input and one for the weight of each forward product"
)
def training_flops(forward: Number) -> Number:
    """Model FLOPs of a trained token: forward and twice as much backward."""
    return 3 * forward


@formula("F_train", "FLOP/token", "frozen matrices have no weight gradient: Hu 2021, arXiv 2106.09685")
def adapter_training_flops(linear: Number, core: Number, head: Number, adapters: Number) -> Number:
    """Model FLOPs of a trained token where adapters alone are trained: input gradients through frozen matrices."""
    return 2 * linear + 3 * core + 2 * head + 3 * adapters


@formula("F_rule", "FLOP/token", _KAPLAN, "attention, the head's share, what a lookup does not multiply")
def rule_flops(factor: Number, parameters: Number) -> Number:
    """The whiteboard's FLOPs of a token: 2N forward, 6N trained, 8N with full recomputation."""
    return factor * parameters


@formula("F_hw", "FLOP/token", "flash kernels recompute scores: 2.5 passes backward (arXiv 2307.08691)")
def executed_flops(linear: Number, core: Number, head: Number, linear_passes: Number, core_passes: Number) -> Number:
    """FLOPs the hardware executes for a trained token, recomputation included; the head is not recomputed."""
    return linear_passes * linear + core_passes * core + 3 * head


@formula("F_hw", "FLOP/token", "frozen matrices have no weight gradient: Hu 2021, arXiv 2106.09685")
def executed_adapter_flops(
    linear: Number, core: Number, head: Number, adapters: Number, linear_passes: Number, core_passes: Number
) -> Number:
    """The same where adapters alone are trained; the passes are those of a model that is trained."""
    return (linear_passes - 1) * linear + core_passes * core + 2 * head + linear_passes * adapters


@formula("F_step", "FLOP")
def step_flops(flops_per_token: Number, tokens: Number) -> Number:
    """FLOPs of one optimizer step."""
    return flops_per_token * tokens


@dataclass(frozen=True)
class ComputeLedger:
    """Forward FLOPs of a token by part; sums over all blocks."""

    linear: Number
    core: Number
    full_mask_core: Number
    head: Number
    forward: Number


def _core(mixer: Mixer, pair: Number, sequence: Number) -> Number:
    """FLOPs of a token in the core of one block, mean over a sequence."""
    if mixer.looks_back_fully:
        return core_flops(pair, sequence)
    return limited_core_flops(mixer.core_flops(sequence, 0.0), sequence)


def _full_core(mixer: Mixer, pair: Number, sequence: Number) -> Number:
    """The same with a full mask; where no key is masked there is no other."""
    return full_mask_core_flops(pair, sequence) if mixer.masked else _core(mixer, pair, sequence)


def _linear(block: Block, sequence: Number) -> Number:
    """FLOPs of a token in the matrices of one block, and of the image tokens that the text sees."""
    mixer, text = block.mixer, linear_flops(block.matrix_parameters())
    if not present(mixer.images):
        return text
    return add_token_flops(text, image_flops(mixer.image_matrices(), mixer.images, sequence))


def trained_groups(model: Model) -> list[tuple[Number, Block]]:
    """Groups of equal blocks that a trained token passes, those of prediction modules with the last layer's."""
    groups, modules = list(model.groups), model.spec.mtp_modules
    if present(modules):
        layers, block = groups[model.last_group]
        groups[model.last_group] = layers_with_modules(layers, modules), block
    return groups


def forward_ledger(model: Model, sequence: Number) -> ComputeLedger:
    """FLOPs of a trained token of a sequence, asked of each kind of block.

    Prediction modules count as the model: they are trained with it, on every token.
    """
    parts: list[tuple[Number, Number, Number]] = []
    for layers, block in trained_groups(model):
        mixer = block.mixer
        pair = mixer.pair_flops()
        parts.append(
            (
                layers_flops(layers, _linear(block, sequence)),
                layers_flops(layers, _core(mixer, pair, sequence)),
                layers_flops(layers, _full_core(mixer, pair, sequence)),
            )
        )
    linear, core, full = (reduce(add_token_flops, each) for each in zip(*parts, strict=True))
    head = head_flops(model.hidden, model.spec.vocabulary)
    if present(model.spec.mtp_modules):
        head = heads_flops(head, model.spec.mtp_modules, model.hidden)
    return ComputeLedger(linear, core, full, head, forward_flops(linear, core, head))


@formula("2·P_up·(c − 1)", "FLOP/token", "each other rank of the sequence makes keys and values of the latent")
def received_flops(matrix_parameters: Number, context_parallel: Number) -> Number:
    """FLOPs of one pass that the other context parallel ranks spend on a token whose latent they receive."""
    return 2 * matrix_parameters * (context_parallel - 1)


@formula("F_hw", "FLOP/token", "forward, again backward, and both gradients")
def with_received(executed: Number, received: Number, passes: Number) -> Number:
    """Executed FLOPs of a trained token with those of ranks that make keys and values of received latents."""
    return executed + passes * received


#: Forward passes executed for (matrices, attention core) in a training step, by recomputation and attention kernel.
EXECUTED_PASSES = {
    ("none", "flash"): (3, 3.5),
    ("none", "unfused"): (3, 3),
    ("selective", "flash"): (3, 3.5),
    ("selective", "unfused"): (3, 4),
    ("latent-up", "flash"): (3, 3.5),
    ("latent-up", "unfused"): (3, 3),
    ("selective-up", "flash"): (3, 3.5),
    ("selective-up", "unfused"): (3, 4),
    ("op-level", "flash"): (3.5, 3.5),
    ("op-level", "unfused"): (3.5, 3),
    ("full", "flash"): (4, 4.5),
    ("full", "unfused"): (4, 4),
}

#: Forward passes over (matrices, norms and activation, attention core) in a step that computes some of them again.
FORWARD_PASSES = {"op-level": (1.5, 2.0, 1.0), "full": (2.0, 2.0, 2.0)}
ONE_PASS = (1.0, 1.0, 1.0)

#: The whiteboard's factor on N for a trained token.
RULE_FACTOR = {"none": 6, "selective": 6, "latent-up": 6, "selective-up": 6, "op-level": 7, "full": 8}


def rule_factor(training: Training) -> int:
    """The whiteboard's factor on N: two less where the matrices are frozen."""
    return RULE_FACTOR[training.recompute] - (0 if training.finetune == "full" else 2)


class TrainedFlops(NamedTuple):
    """FLOPs of a trained token: the model's, the same with a full attention mask, and what the hardware executes."""

    model: Number
    full_mask: Number
    executed: Number


def trained_flops(ledger: ComputeLedger, model: Model, training: Training) -> TrainedFlops:
    """FLOPs of a trained token, of the model itself or of adapters beside it."""
    linear, core, full, head = ledger.linear, ledger.core, ledger.full_mask_core, ledger.head
    passes = EXECUTED_PASSES[training.recompute, training.attention]
    adapters = adapters_of(training, table("frameworks")[training.framework])
    if adapters is None:
        masked = training_flops(forward_flops(linear, full, head))
        return TrainedFlops(training_flops(ledger.forward), masked, executed_flops(linear, core, head, *passes))
    added = linear_flops(active_adapters(model, adapters))
    return TrainedFlops(
        adapter_training_flops(linear, core, head, added),
        adapter_training_flops(linear, full, head, added),
        executed_adapter_flops(linear, core, head, added, *passes),
    )


def executed_by_ranks(executed: Number, model: Model, scenario: Scenario) -> Number:
    """Executed FLOPs of a trained token with what ranks that share a sequence spend on latents of each other."""
    training, parallel = scenario.training, scenario.parallelism
    if not passes_latents(scenario):
        return executed
    passes = EXECUTED_PASSES[training.recompute, training.attention][0] + (1 if training.finetune == "full" else 0)
    for layers, block in trained_groups(model):
        for mixer in block.mixer.cores():
            if matrix := mixer.received_through(1.0):
                one = received_flops(matrix.inputs * matrix.outputs, parallel.cp)
                executed = with_received(executed, layers_flops(layers, one), passes)
    return executed


def passes_latents(scenario: Scenario) -> bool:
    """Whether ranks that share a sequence pass on latents; many plans at once do where some have such ranks."""
    parallel = scenario.parallelism
    shared = is_array(parallel.cp) or parallel.cp > 1
    return parallel.context_latent and parallel.context_scheme != "ulysses" and shared
