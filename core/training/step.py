"""Time of one optimizer step: pipeline, exposed communication, optimizer, stragglers."""

from __future__ import annotations

from dataclasses import dataclass

from ..catalogue import table
from ..ledgers.training_memory import TrainingMemory
from ..machine.collectives import Group, collective
from ..machine.device import Machine
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..model.parameters import padded_vocabulary
from ..numeric import Number, is_array, log, maximum, sqrt, where
from ..scenario import Scenario
from ..sums import add_seconds
from ..terms import formula
from .block import BlockTimer, mean_block
from .data_parallel import DataParallel, DataParallelTime, Owned
from .ends import embedding_time, head_time, with_predictions
from .layout import Layout, product_of_degrees, stages_of, timed
from .optimizer import OptimizerTime, optimizer_time
from .pipeline import PartTimes, PipelineTime, in_one_domain, pipeline_time, steady_seconds
from .reduction import only_if_sharded
from .stages import balanced_last_layers


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
    update: OptimizerTime
    steady: Number
    straggler: Number
    ideal: Number
    seconds: Number
    machine: Machine

    @property
    def optimizer(self) -> Number:
        """Seconds of the optimizer."""
        return self.update.seconds


def time_parts(scenario: Scenario, model: Model, layout: Layout, machine: Machine) -> PartTimes:
    """Time a block of each kind, the embedding and the head of a layout."""
    framework = table("frameworks")[scenario.training.framework]
    spec, frozen = model.spec, scenario.training.finetune != "full"
    vocabulary = padded_vocabulary(spec.vocabulary, spec.vocabulary_multiple, layout.tensor)
    blocks = tuple(BlockTimer(block, layout, machine, scenario).time() for _, block in model.groups)
    head = head_time(model.hidden, vocabulary, layout, machine, framework, frozen)
    if present(spec.mtp_modules):
        head = with_predictions(head, spec.mtp_modules, blocks[model.last_group], model.hidden, layout, machine)
    return PartTimes(
        blocks,
        mean_block([layers for layers, _ in model.groups], blocks, model.layers),
        embedding_time(model.hidden, layout, machine, frozen),
        head,
    )


def balanced(scenario: Scenario, layout: Layout, parts: PartTimes) -> Layout:
    """The layout with its stages dealt by time where the scenario asks for it."""
    if scenario.parallelism.stage_balance != "by-time":
        return layout
    block = add_seconds(parts.block.forward_seconds, parts.block.backward_seconds)
    head = add_seconds(parts.head.forward, parts.head.backward)
    last = balanced_last_layers(layout.layers, stages_of(layout.schedule, layout.pipeline), head, block)
    return timed(layout, last)


def step_time(
    scenario: Scenario, model: Model, layout: Layout, memory: TrainingMemory, parts: PartTimes, machine: Machine
) -> StepTime:
    """Time of one step of a layout whose parts are timed."""
    rates = machine.rates
    framework = table("frameworks")[scenario.training.framework]
    pipe = pipeline_time(memory.rank.kinds, layout, parts, rates.kappa)
    reduction = DataParallel(
        scenario,
        layout,
        pipe,
        owned=_owned(model, layout, memory),
        gathered=_gathered(model, layout, memory),
        gradient_width=machine.gradient_bytes,
        weight_width=_weight_width(scenario, memory),
        framework=framework,
        kappa=rates.kappa,
    ).time()
    tied, tied_sent = _tied(model, layout, memory, machine)
    update = optimizer_time(scenario, model, layout, memory, machine)
    steady = steady_seconds(layout.micro_batches, pipe.slowest_stage)
    ideal = step_before_stragglers(
        steady, pipe.bubble, pipe.hidden_transfers, reduction.exposed, tied, update.seconds, rates.t_fixed
    )
    straggler = straggler_factor(rates.sigma, layout.data_group.ranks)
    return StepTime(
        pipe,
        reduction,
        tied,
        tied_sent,
        update,
        steady,
        straggler,
        ideal,
        step_seconds(ideal, straggler),
        machine,
    )


def _owned(model: Model, layout: Layout, memory: TrainingMemory) -> tuple[Owned, ...]:
    """What is reduced over which ranks: routed experts over those that hold the same ones, the rest over the others."""
    head = 0.0 if model.spec.tied else memory.embedding_share
    whole = memory.common_share, memory.embedding_share, head, memory.routed_share
    return _over_ranks(layout, memory, memory.mean_adapters() if memory.adapters else whole)


def _gathered(model: Model, layout: Layout, memory: TrainingMemory) -> tuple[Owned, ...]:
    """What ZeRO-3 gathers: what is trained, or a frozen base beside it."""
    if memory.adapters is None:
        return _owned(model, layout, memory)
    return _over_ranks(layout, memory, memory.mean_frozen())


def _over_ranks(
    layout: Layout, memory: TrainingMemory, parameters: tuple[Number, Number, Number, Number]
) -> tuple[Owned, ...]:
    """Parameters of a block, the embedding, the head, and the routed experts of a block, over their ranks."""
    common, embedding, head, routed = parameters
    rest = Owned("", common, embedding, head, layout.data_group, layout.shard_group)
    if not memory.rank.any_routed or not present(routed):
        return (rest,)
    spacing = product_of_degrees(layout.expert_tensor, layout.expert)
    shards = Group.of(memory.rank.expert_shards, spacing, layout.fabric)
    return rest, Owned(" of experts", routed, 0.0, 0.0, layout.expert_data_group, shards)


def _weight_width(scenario: Scenario, memory: TrainingMemory) -> Number:
    """Bytes of a gathered weight on the wire; those of a frozen base are counted as 16-bit ones."""
    frozen = memory.adapters is not None and scenario.parallelism.zero == 3
    return _travelling(scenario, 2.0 if frozen else memory.widths.gathered)


def _travelling(scenario: Scenario, width: Number) -> Number:
    """Bytes a parameter has on the wire."""
    low = table("precisions")[scenario.training.precision]["gather"]
    return float(low) if scenario.fp8.parameter_gather and low < width else width


@formula("w_g·V_p·h/t", "B")
def tied_bytes(width: Number, embedding: Number) -> Number:
    """Gradient of the embedding that the first and the last stage sum."""
    return width * embedding


def _tied(model: Model, layout: Layout, memory: TrainingMemory, machine: Machine) -> tuple[Number, Number]:
    """All-reduce of a tied embedding's gradient between the first and the last stage."""
    one_stage = layout.turns or (not is_array(layout.pipeline) and layout.pipeline == 1)
    if not model.spec.tied or memory.adapters or one_stage:
        return 0.0, 0.0
    inside = in_one_domain(layout.tensor, layout.context, layout.data, layout.pipeline, layout.fabric.domain)
    ranks = where(layout.pipeline > 1, 2.0, 1.0)
    ends = Group(ranks, where(inside, ranks, 1.0), where(inside, 1.0, ranks))
    reduce = collective("all-reduce", tied_bytes(machine.gradient_bytes, memory.embedding_share), ends, layout.fabric)
    return only_if_sharded(layout.pipeline, reduce.seconds), only_if_sharded(layout.pipeline, reduce.sent)
