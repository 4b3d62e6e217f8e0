"""Time of the pipeline: stages, transfers between them, the bubble.

Sources: GPipe (arXiv 1811.06965), 1F1B (2006.09503), interleaving (2104.04473), zero bubble (2401.10241), DualPipe
(2412.19437). No published run was found for the last two: they are theory.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.collectives import collective
from ..numeric import Number, largest, maximum, minimum, where
from ..sums import add_seconds, times_seconds, total_seconds
from ..terms import formula
from .block import BlockTime
from .ends import EndTime
from .layout import Layout
from .overlap import pointwise_bytes
from .stage_kinds import StageKinds


@formula("t_stage", "s")
def stage_seconds(
    layers: Number, block: Number, first: Number, embedding: Number, last: Number, head: Number, transfers: Number
) -> Number:
    """Time of a stage for one micro-batch: its layers, the ends it holds, and transfers nothing hides."""
    return layers * block + first * embedding + last * head + transfers


@formula("(t_i + t_(p−1−i))/2", "s", "each of a rank's two stages computes half of the micro-batches: arXiv 2412.19437")
def paired_stage_seconds(
    layers: Number, block: Number, first: Number, embedding: Number, last: Number, head: Number, transfers: Number
) -> Number:
    """Time of a rank of DualPipe for one micro-batch, mean over its two stages, and transfers nothing hides."""
    return (layers * block + first * embedding + last * head) / 2 + transfers


@formula("mean t_stage", "s")
def mean_stage_seconds(
    layers: Number, block: Number, embedding: Number, head: Number, pipeline: Number, transfers: Number
) -> Number:
    """Mean over the stages."""
    return (layers * block + embedding + head) / pipeline + transfers


@formula("max t_stage", "s", "layers dealt by hand: no stage is longer than the mean or the head with one layer")
def spread_stage(
    pipeline: Number, mean: Number, head: Number, block: Number, virtual: Number, transfers: Number
) -> Number:
    """The longest stage where layers are dealt unevenly by hand."""
    return where(pipeline > 1, maximum(mean, head + block / virtual + transfers), mean)


@formula("t_bubble·m/m_f", "s")
def drained(bubble: Number, micro_batches: Number, every: Number) -> Number:
    """Idle time of a step whose pipeline runs empty several times."""
    return bubble * maximum(1, micro_batches / every)


@formula("t_p2p", "s", "α–β model; transfers inside a scale-up domain use its link")
def transfer_seconds(
    buffer: Number, inside: Number, link_rate: Number, network_rate: Number, alpha_c: Number, near: Number, far: Number
) -> Number:
    """Time of one activation transfer between neighbouring stages; `inside` says whether all stages share a domain."""
    return where(inside, buffer / link_rate + near, buffer / network_rate + far) + alpha_c


@formula("2·T·h/t", "B", "Narayanan 2021, arXiv 2104.04473, section 4.1: each rank sends its share")
def boundary_bytes(tokens: Number, hidden: Number, tensor_parallel: Number) -> Number:
    """Bytes of a stage boundary that one rank sends for one micro-batch."""
    return 2 * tokens * hidden / tensor_parallel


@formula("all stages in a domain", "yes or no")
def in_one_domain(tensor: Number, context: Number, data: Number, pipeline: Number, domain: Number) -> Number:
    """Whether the whole job stands in one scale-up domain."""
    return tensor * context * data * pipeline <= domain


@formula("p > 1", "s")
def only_in_pipeline(pipeline: Number, seconds: Number) -> Number:
    """Nothing is transferred where there is one stage."""
    return where(pipeline > 1, seconds, 0.0)


@formula("2·v·t_p2p", "s")
def waited_transfers(virtual: Number, transfer: Number, async_transfer: Number) -> Number:
    """Transfers of one micro-batch that a stage waits for: v forward and v backward."""
    return (1 - async_transfer) * 2 * virtual * transfer


@formula("t_async", "s", "asynchronous transfers hide in the steady state and show in fill and drain")
def hidden_transfers(
    pipeline: Number,
    transfer: Number,
    kappa: Number,
    virtual: Number,
    micro_batches: Number,
    slowest: Number,
    async_transfer: Number,
) -> Number:
    """Cost of transfers that run behind compute: fill and drain, what sticks out, and the tax of the rest."""
    return async_transfer * (
        2 * (pipeline - 1) * transfer
        + micro_batches * maximum(0.0, 2 * virtual * transfer - slowest)
        + kappa * minimum(2 * virtual * transfer * micro_batches, micro_batches * slowest / 2)
    )


@formula("(p−1)(F+B)/v", "s", "arXiv 2006.09503; interleaving divides by v: arXiv 2104.04473")
def bubble_1f1b(pipeline: Number, mean_stage: Number, virtual: Number) -> Number:
    """Idle time of fill and drain under GPipe (v = 1), 1F1B and interleaving."""
    return (pipeline - 1) * mean_stage / virtual


@formula("(p−1)·max(0, F+B−k·W)", "s", "Qi 2023, arXiv 2401.10241: k = 2 for ZB-H1, 3 for ZB-V")
def bubble_zero(pipeline: Number, mean_stage: Number, weight_gradient: Number, filled: Number) -> Number:
    """Idle time of the zero-bubble schedules."""
    return (pipeline - 1) * maximum(0.0, mean_stage - filled * weight_gradient)


@formula("(p/2−1)·max(0, F&B+B−3W)", "s", "DeepSeek-V3, arXiv 2412.19437, table 2")
def bubble_dualpipe(pipeline: Number, mean_stage: Number, backward: Number, weight_gradient: Number) -> Number:
    """Idle time of DualPipe; an overlapped pair takes a forward and a backward pass."""
    return maximum(0.0, pipeline / 2 - 1) * maximum(0.0, mean_stage + backward - 3 * weight_gradient)


@formula("L·W/p", "s")
def mean_of_layers(layers: Number, seconds: Number, pipeline: Number) -> Number:
    """Mean over the stages of something that each layer takes."""
    return layers * seconds / pipeline


@dataclass(frozen=True)
class PartTimes:
    """Times of a block of each kind, their mean, and the ends of the model, from which stages are made."""

    blocks: tuple[BlockTime, ...]
    block: BlockTime
    embedding: EndTime
    head: EndTime


@dataclass(frozen=True)
class PipelineTime:
    """Seconds of the pipeline in one step and what they are made of."""

    #: A block of each kind, and their mean.
    blocks: tuple[BlockTime, ...]
    block: BlockTime
    transfer: Number
    slowest_stage: Number
    mean_stage: Number
    bubble: Number
    hidden_transfers: Number
    #: Transfers that nothing hides, per micro-batch.
    waited: Number


@formula("m·max t_stage", "s")
def steady_seconds(micro_batches: Number, slowest: Number) -> Number:
    """Time of the steady state: every micro-batch takes as long as the slowest stage."""
    return micro_batches * slowest


def pipeline_time(kinds: StageKinds, layout: Layout, parts: PartTimes, kappa: Number) -> PipelineTime:
    """Stages, transfers and bubble of a layout whose blocks and ends are timed."""
    block, embedding, head = parts.block, parts.embedding, parts.head
    one_block = add_seconds(block.forward_seconds, block.backward_seconds)
    front, back = add_seconds(embedding.forward, embedding.backward), add_seconds(head.forward, head.backward)
    transfer = _transfer(layout, kinds.model.hidden)
    waited = only_in_pipeline(layout.pipeline, waited_transfers(layout.virtual, transfer, layout.async_transfer))
    of_stage = paired_stage_seconds if layout.both_ways else stage_seconds
    stages = [
        of_stage(
            *_layers(kinds.on(stage), parts.blocks, one_block),
            kinds.firsts(stage),
            front,
            kinds.lasts(stage),
            back,
            waited,
        )
        for stage in kinds.distinct
    ]
    slowest = largest(stages) if len(stages) > 1 else stages[0]
    mean = mean_stage_seconds(layout.layers, one_block, front, back, layout.pipeline, waited)
    if layout.spread:
        slowest = spread_stage(layout.pipeline, mean, back, one_block, layout.virtual, waited)
    behind = only_in_pipeline(
        layout.pipeline,
        hidden_transfers(
            layout.pipeline, transfer, kappa, layout.virtual, layout.micro_batches, slowest, layout.async_transfer
        ),
    )
    bubble = _bubble(layout, block, embedding, head, mean, waited)
    if layout.drain_every is not None:
        bubble = drained(bubble, layout.micro_batches, layout.drain_every)
    return PipelineTime(parts.blocks, block, transfer, slowest, mean, bubble, behind, waited)


def _layers(counts: tuple[Number, ...], blocks: tuple[BlockTime, ...], one_block: Number) -> tuple[Number, Number]:
    """How often what takes how long on a stage: its layers, or all of them once where they are of several kinds."""
    if len(blocks) == 1:
        return counts[0], one_block
    each = (add_seconds(block.forward_seconds, block.backward_seconds) for block in blocks)
    return 1.0, total_seconds([times_seconds(count, seconds) for count, seconds in zip(counts, each, strict=True)])


def _bubble(
    layout: Layout, block: BlockTime, embedding: EndTime, head: EndTime, mean: Number, waited: Number
) -> Number:
    weight = mean_of_layers(layout.layers, block.weight_gradient_seconds, layout.pipeline)
    if layout.schedule in ("zero-bubble", "zero-bubble-v"):
        return bubble_zero(layout.pipeline, mean, weight, 2.0 if layout.schedule == "zero-bubble" else 3.0)
    if layout.schedule == "dualpipe":
        back = mean_stage_seconds(
            layout.layers,
            block.backward_seconds,
            embedding.backward,
            head.backward,
            layout.pipeline,
            times_seconds(0.5, waited),
        )
        return bubble_dualpipe(layout.pipeline, mean, back, weight)
    return bubble_1f1b(layout.pipeline, mean, layout.virtual)


def _transfer(layout: Layout, hidden: Number) -> Number:
    fabric = layout.fabric
    buffer = boundary_bytes(layout.tokens, hidden, layout.tensor)
    inside = in_one_domain(layout.tensor, layout.context, layout.data, layout.pipeline, fabric.domain)
    seconds = transfer_seconds(
        buffer, inside, fabric.link_rate, fabric.network_rate, fabric.alpha_c, fabric.alpha_nv, fabric.alpha_p2p
    )
    if not layout.sp:
        whole = pointwise_bytes(2.0, received_elements(layout.tokens, hidden))
        gather = collective("all-gather", whole, layout.tensor_group, fabric).seconds
        seconds = add_seconds(seconds, gather)
    return only_in_pipeline(layout.pipeline, seconds)


@formula("T·h", "elements")
def received_elements(tokens: Number, hidden: Number) -> Number:
    """Elements of a stage boundary that are gathered again inside the tensor parallel group."""
    return tokens * hidden
