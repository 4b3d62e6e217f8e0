"""Time of the optimizer step: what it moves, what Muon multiplies, and what travels where the states are on the host.

Source: Muon, arXiv 2502.16982.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

from ..catalogue import table
from ..ledgers.training_memory import TrainingMemory
from ..machine.device import Machine
from ..model.layers import Block, Model
from ..numeric import Number, largest, maximum, minimum
from ..scenario import Scenario
from ..sums import add_bytes, add_flops, add_parameters, add_seconds, times_bytes, times_flops
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


@formula("10·(4·min·max + 5·min²)", "B", "operands read and results written of five iterations, in 16 bits")
def orthogonal_moved(rows: Number, columns: Number, count: Number) -> Number:
    """Bytes that these products move."""
    return 10 * count * minimum(rows, columns) * (4 * maximum(rows, columns) + 5 * minimum(rows, columns))


@formula("F/n", "FLOP", "matrices dealt over all ranks of a stage", "gathering of updates")
def dealt_flops(flops: Number, tensor: Number, ranks: Number) -> Number:
    """FLOPs of one rank on the matrices of a stage."""
    return flops / (tensor * ranks)


@formula("bytes/n", "B", "matrices dealt over all ranks of a stage", "gathering of updates")
def dealt_bytes(moved: Number, tensor: Number, ranks: Number) -> Number:
    """Bytes that one rank moves for the matrices of a stage."""
    return moved / (tensor * ranks)


@formula("max(F/Π_s, bytes/β_s)", "s")
def orthogonal_seconds(flops: Number, rate: Number, moved: Number, memory_rate: Number) -> Number:
    """Time of making updates orthogonal: small matrices are bound by their bytes."""
    return maximum(flops / rate, moved / memory_rate)


@formula("(w_g + w_w)·ψ/D", "B", "gradients to the host, weights back: ZeRO-Offload, arXiv 2101.06840")
def host_bytes(owned: Number, gradient_width: Number, weight_width: Number) -> Number:
    """Bytes between device and host in a step with the optimizer on the host."""
    return owned * (gradient_width + weight_width)


@formula("t_host", "s", "nothing of it hidden", "the update itself, bound by the memory of the host")
def host_seconds(moved: Number, rate: Number) -> Number:
    """Time of an optimizer step on the host."""
    return moved / rate


@formula("2·D", "ranks", "DualPipe: two ranks hold the same two stages")
def ranks_of_pair(ranks: Number) -> Number:
    """Ranks that share the update of the two stages of a pair."""
    return 2 * ranks


class OptimizerTime(NamedTuple):
    """Seconds of the optimizer step of one rank; of kernels that stream, and of products: FLOPs, bytes, seconds."""

    seconds: Number
    streamed: Number
    products: tuple[Number, Number, Number] | None = None


def optimizer_time(
    scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, machine: Machine
) -> OptimizerTime:
    """The optimizer step of the rank that updates most."""
    training = scenario.training
    owned = largest(_owned_on(scenario, layout, memory, stage) for stage in _stages(model, memory))
    if training.offload_optimizer:
        moved = host_bytes(owned, memory.widths.gradients, memory.widths.gathered)
        return OptimizerTime(host_seconds(moved, layout.fabric.host_rate), 0.0)
    fused = training.fused_optimizer
    per_parameter = FUSED_STEP_BYTES if fused else unfused_step_bytes(UNFUSED_STEP_BYTES, machine.gradient_bytes)
    streamed = machine.stream(step_bytes(per_parameter, owned), OPTIMIZER_KERNELS)
    if memory.adapters or not table("optimizers")[training.optimizer]["orthogonal"]:
        return OptimizerTime(streamed, streamed)
    products = _orthogonal(scenario, model, layout, memory, machine)
    return OptimizerTime(add_seconds(streamed, products[2]), streamed, products)


def _orthogonal(
    scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, machine: Machine
) -> tuple[Number, Number, Number]:
    """FLOPs, bytes and seconds of making updates orthogonal, of a rank of the stage with most."""
    ranks = layout.data_group.ranks if scenario.parallelism.zero else 1.0
    if layout.both_ways:
        ranks = ranks_of_pair(ranks)
    kinds, blocks = memory.rank.kinds, [block for _, block in model.groups]
    flops, moved = (
        dealt(
            largest(
                reduce(add, map(times, kinds.on(stage), [reduce(add, _of_matrices(block, one)) for block in blocks]))
                for stage in kinds.distinct
            ),
            layout.tensor,
            ranks,
        )
        for one, add, times, dealt in (
            (orthogonal_flops, add_flops, times_flops, dealt_flops),
            (orthogonal_moved, add_bytes, times_bytes, dealt_bytes),
        )
    )
    return flops, moved, orthogonal_seconds(flops, machine.kept_rate, moved, machine.memory_rate)


def _of_matrices(block: Block, one: Callable[[Number, Number, Number], Number]) -> list[Number]:
    """Work on the matrices of a block."""
    work = [one(each.inputs, each.outputs, 1.0) for each in block.projections(1)]
    if block.experts:
        routed = block.experts.expert_projections(1)
        work += [one(each.inputs, each.outputs, block.experts.experts) for each in routed]
    return work


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
