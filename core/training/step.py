"""Time of one optimizer step: pipeline, exposed communication, optimizer, stragglers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..catalogue import table
from ..ledgers.training_memory import TrainingMemory
from ..machine.collectives import Group, collective
from ..machine.device import Machine
from ..model.kinds.mixer import add_parameters, present
from ..model.layers import Model
from ..model.parameters import padded_vocabulary
from ..numeric import Number, is_array, largest, log, maximum, sqrt, where
from ..scenario import Scenario
from ..sums import add_seconds
from ..terms import formula
from .block import BlockTimer, mean_block
from .data_parallel import DataParallel, DataParallelTime, Owned
from .ends import embedding_time, head_time, with_predictions
from .layout import Layout, product_of_degrees
from .pipeline import PartTimes, PipelineTime, in_one_domain, pipeline_time, steady_seconds
from .reduction import only_if_sharded
from .stage_kinds import StageKinds
from .stages import TimedStages, balanced_last_layers

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


@formula("1 + σ·√(2·ln(D·c))", "factor", "expected maximum of D·c nearly Gaussian replica times")
def straggler_factor(sigma: Number, ranks: Number) -> Number:
    """Slowdown by the slowest replica; 1 for one replica."""
    return where(ranks > 1, 1 + sigma * sqrt(2 * log(maximum(ranks, 1))), 1.0)


@formula("t_ideal", "s")
def step_before_stragglers(
    steady: Number,
    bubble: Number,
    transfers: Number,
    reduction: Number,
    tied: Number,
    optimizer: Number,
    fixed: Number,
) -> Number:
    """Step time of a replica that nothing slows down."""
    return steady + bubble + transfers + reduction + tied + optimizer + fixed


@formula("T_step", "s", leaves_out="data loading, logging, checkpoints, failures, host launch gaps")
def step_seconds(ideal: Number, straggler: Number) -> Number:
    """Time of one optimizer step."""
    return ideal * straggler


@dataclass(frozen=True)
class StepTime:
    """One step and its parts in seconds."""

    pipeline: PipelineTime
    data_parallel: DataParallelTime
    tied: Number
    tied_sent: Number
    optimizer: Number
    steady: Number
    straggler: Number
    ideal: Number
    seconds: Number
    machine: Machine


def time_parts(scenario: Scenario, model: Model, layout: Layout, machine: Machine) -> PartTimes:
    """Time a block of each kind, the embedding and the head of a layout."""
    framework = table("frameworks")[scenario.training.framework]
    spec = model.spec
    vocabulary = padded_vocabulary(spec.vocabulary, spec.vocabulary_multiple, layout.tensor)
    blocks = tuple(BlockTimer(block, layout, machine, scenario).time() for _, block in model.groups)
    head = head_time(model.hidden, vocabulary, layout, machine, framework)
    if present(spec.mtp_modules):
        head = with_predictions(head, spec.mtp_modules, blocks[model.last_group], model.hidden, layout, machine)
    return PartTimes(
        blocks,
        mean_block([layers for layers, _ in model.groups], blocks, model.layers),
        embedding_time(model.hidden, layout, machine),
        head,
    )


def balanced(scenario: Scenario, layout: Layout, parts: PartTimes) -> Layout:
    """The layout with its stages dealt by time where the scenario asks for it."""
    if scenario.parallelism.stage_balance != "by-time":
        return layout
    block = add_seconds(parts.block.forward_seconds, parts.block.backward_seconds)
    head = add_seconds(parts.head.forward, parts.head.backward)
    last = balanced_last_layers(layout.layers, layout.pipeline, head, block)
    return replace(layout, stages=TimedStages(layout.layers, layout.pipeline, last))


def step_time(
    scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, parts: PartTimes, machine: Machine
) -> StepTime:
    """Time of one step of a layout whose parts are timed."""
    rates = machine.rates
    framework = table("frameworks")[scenario.training.framework]
    pipe = pipeline_time(model, layout, parts, rates.kappa)
    reduction = DataParallel(
        scenario,
        layout,
        pipe,
        owned=_owned(model, layout, memory),
        gradient_width=machine.gradient_bytes,
        weight_width=_travelling(scenario, memory.widths.gathered),
        framework=framework,
        kappa=rates.kappa,
    ).time()
    tied, tied_sent = _tied(model, layout, memory, machine)
    optimizer = _optimizer(scenario, model, layout, memory, machine)
    steady = steady_seconds(layout.micro_batches, pipe.slowest_stage)
    ideal = step_before_stragglers(
        steady, pipe.bubble, pipe.hidden_transfers, reduction.exposed, tied, optimizer, rates.t_fixed
    )
    straggler = straggler_factor(rates.sigma, layout.data_group.ranks)
    return StepTime(
        pipe, reduction, tied, tied_sent, optimizer, steady, straggler, ideal, step_seconds(ideal, straggler), machine
    )


def _owned(model: Model, layout: Layout, memory: TrainingMemory) -> tuple[Owned, ...]:
    """What is reduced over which ranks: routed experts over those that hold the same ones, the rest over the others."""
    head = 0.0 if model.spec.tied else memory.embedding_share
    rest = Owned("", memory.common_share, memory.embedding_share, head, layout.data_group, layout.shard_group)
    if not memory.rank.any_routed:
        return (rest,)
    spacing = product_of_degrees(layout.expert_tensor, layout.expert)
    shards = Group.of(memory.rank.expert_shards, spacing, layout.fabric)
    return rest, Owned(" of experts", memory.routed_share, 0.0, 0.0, layout.expert_data_group, shards)


def _travelling(scenario: Scenario, width: Number) -> Number:
    """Bytes a parameter has on the wire."""
    low = table("precisions")[scenario.training.precision]["gather"]
    return float(low) if scenario.fp8.parameter_gather and low < width else width


def _optimizer(scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, machine: Machine) -> Number:
    fused = scenario.training.fused_optimizer
    per_parameter = FUSED_STEP_BYTES if fused else unfused_step_bytes(UNFUSED_STEP_BYTES, machine.gradient_bytes)
    owned = largest(_owned_on(scenario, layout, memory, stage) for stage in _stages(model, layout))
    return machine.stream(step_bytes(per_parameter, owned), OPTIMIZER_KERNELS)


def _stages(model: Model, layout: Layout) -> list[Number]:
    """Stages among which the one that updates most is found: the first, where all layers are equal."""
    if len(model.groups) == 1:
        return [0.0]
    return StageKinds(model, layout.stages, layout.pipeline).distinct()


def _owned_on(scenario: Scenario, layout: Layout, memory: TrainingMemory, stage: Number) -> Number:
    """Parameters whose states a rank of a stage updates."""
    if not scenario.parallelism.zero:
        return memory.parameters(stage)
    common = owned_parameters(memory.rank.common_on(stage), layout.shards)
    if not memory.rank.any_routed:
        return common
    return add_parameters(common, owned_parameters(memory.rank.routed_on(stage), memory.rank.expert_shards))


@formula("w_g·V_p·h/t", "B")
def tied_bytes(width: Number, embedding: Number) -> Number:
    """Gradient of the embedding that the first and the last stage sum."""
    return width * embedding


def _tied(model: Model, layout: Layout, memory: TrainingMemory, machine: Machine) -> tuple[Number, Number]:
    """All-reduce of a tied embedding's gradient between the first and the last stage."""
    if not model.spec.tied or (not is_array(layout.pipeline) and layout.pipeline == 1):
        return 0.0, 0.0
    inside = in_one_domain(layout.tensor, layout.context, layout.data, layout.pipeline, layout.fabric.domain)
    ranks = where(layout.pipeline > 1, 2.0, 1.0)
    ends = Group(ranks, where(inside, ranks, 1.0), where(inside, 1.0, ranks))
    reduce = collective("all-reduce", tied_bytes(machine.gradient_bytes, memory.embedding_share), ends, layout.fabric)
    return only_if_sharded(layout.pipeline, reduce.seconds), only_if_sharded(layout.pipeline, reduce.sent)
