"""Time of the optimizer step: what it moves, what Muon multiplies, and what travels where the states are on the host.

Source: Muon, arXiv 2502.16982.
"""

from __future__ import annotations

from functools import reduce

from ..catalogue import table
from ..ledgers.compute import step_flops
from ..ledgers.training_memory import TrainingMemory
from ..machine.device import Machine
from ..model.kinds.mixer import add_core_flops, add_parameters
from ..model.layers import Block, Model
from ..numeric import Number, largest, maximum, minimum
from ..scenario import Scenario
from ..sums import add_seconds
from ..terms import formula
from .layout import Layout

#: Bytes an optimizer step moves per owned parameter beside 2 per gradient byte, unfused and fused.
UNFUSED_STEP_BYTES = 58.0
FUSED_STEP_BYTES = 34.0
OPTIMIZER_KERNELS = 20


@formula(
    "58 + 2·w_g", "B/parameter", "mixed-precision AdamW: upcast 4, unscale 8, norm 4, clip 8, update 28, write back 6"
)
def unfused_step_bytes(fixed: Number, gradient_bytes: Number) -> Number:
    """Bytes an unfused mixed-precision AdamW step moves for each parameter it owns."""
    return fixed + 2 * gradient_bytes


@formula("ψ/D", "parameters")
def owned_parameters(parameters: Number, shards: Number) -> Number:
    """Parameters whose optimizer states a rank holds."""
    return parameters / shards


@formula("t_opt·bytes", "B")
def step_bytes(per_parameter: Number, owned: Number) -> Number:
    """Bytes of the optimizer step on one rank."""
    return per_parameter * owned


@formula("30·min²·max", "FLOP", "five iterations of three products: arXiv 2502.16982")
def orthogonal_flops(rows: Number, columns: Number, count: Number) -> Number:
    """FLOPs of making the updates of some matrices of one size orthogonal."""
    return 30 * count * minimum(rows, columns) ** 2 * maximum(rows, columns)


@formula("F/(n·Π_s)", "s", "matrices dealt over all ranks of a stage", "gathering of updates")
def orthogonal_seconds(flops: Number, tensor: Number, ranks: Number, rate: Number) -> Number:
    """Time of making updates orthogonal."""
    return flops / (tensor * ranks * rate)


@formula("(w_g + w_w)·ψ/D", "B", "gradients to the host, weights back: ZeRO-Offload, arXiv 2101.06840")
def host_bytes(owned: Number, gradient_width: Number, weight_width: Number) -> Number:
    """Bytes between device and host in a step with the optimizer on the host."""
    return owned * (gradient_width + weight_width)


@formula("t_host", "s", "nothing of it hidden", "the update itself, bound by the memory of the host")
def host_seconds(moved: Number, rate: Number) -> Number:
    """Time of an optimizer step on the host."""
    return moved / rate


def optimizer_seconds(
    scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, machine: Machine
) -> Number:
    """Time of the optimizer step of the rank that updates most."""
    fused = scenario.training.fused_optimizer
    per_parameter = FUSED_STEP_BYTES if fused else unfused_step_bytes(UNFUSED_STEP_BYTES, machine.gradient_bytes)
    owned = largest(_owned_on(scenario, layout, memory, stage) for stage in _stages(model, memory))
    training = scenario.training
    if training.offload_optimizer:
        moved = host_bytes(owned, memory.widths.gradients, memory.widths.gathered)
        return host_seconds(moved, layout.fabric.host_rate)
    seconds = machine.stream(step_bytes(per_parameter, owned), OPTIMIZER_KERNELS)
    if not table("optimizers")[training.optimizer]["orthogonal"]:
        return seconds
    return add_seconds(seconds, _orthogonal(scenario, model, layout, memory, machine))


def _orthogonal(scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, machine: Machine) -> Number:
    """Time of making the updates of the matrices of blocks orthogonal, dealt over the ranks of the fullest stage."""
    if memory.adapters:
        return 0.0
    each = [_block_flops(block) for _, block in model.groups]
    kinds = memory.rank.kinds
    flops = largest(
        reduce(add_core_flops, [step_flops(one, layers) for one, layers in zip(each, kinds.on(stage), strict=True)])
        for stage in kinds.distinct
    )
    ranks = layout.data_group.ranks if scenario.parallelism.zero else 1.0
    return orthogonal_seconds(flops, layout.tensor, ranks, machine.kept_rate)


def _block_flops(block: Block) -> Number:
    matrices = [orthogonal_flops(each.inputs, each.outputs, 1.0) for each in block.projections(1)]
    if block.experts:
        routed = block.experts.expert_projections(1)
        matrices += [orthogonal_flops(each.inputs, each.outputs, block.experts.experts) for each in routed]
    return reduce(add_core_flops, matrices)


def _stages(model: Model, memory: TrainingMemory) -> list[Number]:
    """Stages among which the one that updates most is found: the first, where all layers are equal and trained."""
    return [0.0] if len(model.groups) == 1 and memory.adapters is None else memory.rank.kinds.distinct


def _owned_on(scenario: Scenario, layout: Layout, memory: TrainingMemory, stage: Number) -> Number:
    """Parameters whose states a rank of a stage updates."""
    held = memory.trained(stage)
    if not scenario.parallelism.zero:
        return held.total
    common = owned_parameters(held.common, layout.shards)
    if not memory.rank.any_routed:
        return common
    return add_parameters(common, owned_parameters(held.routed, memory.rank.expert_shards))
