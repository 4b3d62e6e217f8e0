"""The communication ledger of a training step: who sends what to whom, how much, and who waits."""

from __future__ import annotations

from ..machine.collectives import collective
from ..model.kinds.mixer import present
from ..model.layers import Model
from ..numeric import Number, is_array, minimum, where
from ..scenario import Scenario
from ..sums import add_bytes, times_bytes, times_count, times_seconds
from ..terms import formula
from .expert_traffic import expert_rows
from .layout import Layout
from .ledger_rows import Row, block_passes, both_passes, forward_passes, ledger_row, present_degree
from .overlap import elements, pointwise_bytes
from .pipeline import boundary_bytes, in_one_domain, only_in_pipeline
from .step import StepTime


@formula("2·v·m", "times", "Narayanan 2021, arXiv 2104.04473, section 4.1")
def boundary_crossings(pipeline: Number, virtual: Number, micro_batches: Number) -> Number:
    """Activation transfers the busiest stage sends in a step: v forward and v backward, one less where all are ends."""
    return where(pipeline > 2, 2 * virtual, 2 * virtual - 1) * micro_batches


@formula("2·v·m", "times", "Qi 2023, arXiv 2401.10241: the middle chunks are on one rank")
def turning_crossings(pipeline: Number, virtual: Number, micro_batches: Number) -> Number:
    """Transfers the busiest rank sends where the pipeline turns on its last rank; of two each has one neighbour."""
    return where(pipeline > 2, 2 * virtual, virtual) * micro_batches


@formula("x", "s", leaves_out="hops of other stages in fill and drain")
def transfer_exposed(bubble_part: Number, waited: Number, micro_batches: Number, seconds: Number) -> Number:
    """What its transfers cost a stage: those it waits for, or fill, drain and the tax of the rest."""
    return minimum(seconds, bubble_part + waited * micro_batches)


def traffic(scenario: Scenario, model: Model, layout: Layout, step: StepTime) -> list[Row]:
    """One row a collective; a group of one has no row, nor has one in which nothing is sent."""
    rows: list[Row] = []
    if present_degree(layout.tensor):
        rows += _tensor_rows(scenario, model, layout, step)
    if present_degree(layout.context) and present(step.pipeline.block.context_sent):
        rows.append(_context_row(scenario, layout, step))
    rows += expert_rows(scenario, model, layout, step)
    if present_degree(layout.pipeline):
        rows.append(_pipeline_row(layout, step, model))
    rows += [
        ledger_row(
            f"data parallel {flow.name}",
            flow.what,
            flow.kind,
            "data parallel",
            flow.group.ranks,
            flow.group.outside,
            flow.times,
            flow.sent,
            flow.seconds,
            flow.behind,
            flow.exposed,
        )
        for flow in step.data_parallel.flows
        if present_degree(flow.group.ranks)
    ]
    if is_array(step.tied_sent) or step.tied_sent:
        inside = in_one_domain(layout.tensor, layout.context, layout.data, layout.pipeline, layout.fabric.domain)
        rows.append(
            ledger_row(
                "tied embedding",
                "gradients",
                "all-reduce",
                "first and last stage",
                2,
                where(inside, 0.0, 1.0),
                1,
                step.tied_sent,
                step.tied,
                "",
                step.tied,
            )
        )
    return rows


def _tensor_rows(scenario: Scenario, model: Model, layout: Layout, step: StepTime) -> list[Row]:
    block, group = step.pipeline.block, layout.tensor_group
    again = forward_passes(1.0 if scenario.training.recompute == "full" else 0.0)
    pairs = block.tensor_pairs
    buffer = pointwise_bytes(2.0, elements(layout.tokens, model.hidden, 1.0))
    sent = collective("all-reduce", buffer, group, layout.fabric).sent
    gathered = collective("all-gather", buffer, group, layout.fabric).sent
    kind = "all-gather, reduce-scatter" if layout.sp else "all-reduce"
    hides = scenario.overlap.tp_backward or layout.sp
    ahead = block_passes(layout.layers, layout.pipeline, layout.micro_batches, again)
    back = block_passes(layout.layers, layout.pipeline, layout.micro_batches, 1.0)
    ahead_times, back_times = times_count(ahead, pairs), times_count(back, pairs)
    back_bytes = times_bytes(back_times, sent)
    if layout.sp:
        back_bytes = add_bytes(back_bytes, times_bytes(back_times, gathered))
    rows = [
        ledger_row(
            "tensor parallel, forward",
            "activations",
            kind,
            "tensor parallel",
            layout.tensor,
            group.outside,
            ahead_times,
            times_bytes(ahead_times, sent),
            times_seconds(ahead, block.forward.tensor_traffic),
            "matrix products, in chunks" if scenario.overlap.tp_forward and layout.sp else "",
            times_seconds(ahead, block.forward.tensor),
        ),
        ledger_row(
            "tensor parallel, backward",
            "gradients of activations",
            kind,
            "tensor parallel",
            layout.tensor,
            group.outside,
            back_times,
            back_bytes,
            times_seconds(back, block.backward.tensor_traffic),
            "gradient products" if hides else "",
            times_seconds(back, block.backward.tensor),
        ),
    ]
    ends = collective("all-reduce", buffer, group, layout.fabric)
    count = ends_per_step(layout.micro_batches, layout.pipeline)
    seconds = times_seconds(count, ends.seconds)
    rows.append(
        ledger_row(
            "tensor parallel, embedding and head",
            "activations",
            "all-reduce",
            "tensor parallel",
            layout.tensor,
            group.outside,
            count,
            times_bytes(count, ends.sent),
            seconds,
            "",
            seconds,
        )
    )
    return rows


@formula("2·m/p", "times")
def ends_per_step(micro_batches: Number, pipeline: Number) -> Number:
    """All-reduces of embedding output and head gradient in a step, mean over stages."""
    return 2 * micro_batches / pipeline


def _context_row(scenario: Scenario, layout: Layout, step: StepTime) -> Row:
    block = step.pipeline.block
    count = block_passes(layout.layers, layout.pipeline, layout.micro_batches, 1.0)
    again = forward_passes(1.0 if scenario.training.recompute == "full" else 0.0)
    scheme, group = layout.context_scheme, layout.context_group
    kind, back = ("all-to-all", 1.0) if scheme == "ulysses" else ("all-gather", 2.0)
    ahead, behind = block.forward, block.backward
    return ledger_row(
        "context parallel keys and values",
        "activations",
        "ring of send, receive" if scheme == "ring" else kind,
        "context parallel",
        layout.context,
        group.outside,
        count,
        times_bytes(count, sent_in_passes(block.context_sent, again, back)),
        times_seconds(count, both_passes(ahead.context_traffic, again, behind.context_traffic)),
        "attention of the previous chunk" if scheme == "ring" else "",
        times_seconds(count, both_passes(ahead.context, again, behind.context)),
    )


@formula("S·(n_fwd + n_bwd)", "B", "keys and values again backward, and their gradients: Liu 2023, arXiv 2310.01889")
def sent_in_passes(sent: Number, forward: Number, backward: Number) -> Number:
    """Bytes of all passes over one block; backward counts in forward passes."""
    return sent * (forward + backward)


def _pipeline_row(layout: Layout, step: StepTime, model: Model) -> Row:
    pipe = step.pipeline
    crossings = turning_crossings if layout.turns else boundary_crossings
    count = crossings(layout.pipeline, layout.virtual, layout.micro_batches)
    sent = times_bytes(count, boundary_bytes(layout.tokens, model.hidden, layout.tensor))
    inside = in_one_domain(layout.tensor, layout.context, layout.data, layout.pipeline, layout.fabric.domain)
    outside = where(inside, 0.0, 1.0)
    hidden, seconds = layout.async_transfer, times_seconds(count, pipe.transfer)
    behind = "compute of other micro-batches" if (is_array(hidden) or hidden) else ""
    return ledger_row(
        "pipeline activations",
        "activations",
        "send, receive",
        "pipeline",
        layout.pipeline,
        outside,
        count,
        only_in_pipeline(layout.pipeline, sent),
        seconds,
        behind,
        transfer_exposed(pipe.hidden_transfers, pipe.waited, layout.micro_batches, seconds),
    )
