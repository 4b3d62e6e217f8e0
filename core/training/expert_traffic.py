"""Rows of the communication ledger for tokens on their way to routed experts and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..ledgers.compute import trained_groups
from ..model.layers import Model
from ..numeric import Number
from ..scenario import Scenario
from ..sums import add_times, times_bytes, times_count, times_seconds, total_bytes, total_seconds
from .block import BlockTime, Exchange, ExpertTraffic
from .layout import Layout
from .ledger_rows import Row, block_passes, both_passes, forward_passes, ledger_row, present_degree
from .reduction import in_proportion
from .step import StepTime

_KINDS = {"all-gather": ("all-gather", "reduce-scatter")}
_BEHIND = "compute of another micro-batch"


def expert_rows(scenario: Scenario, model: Model, layout: Layout, step: StepTime) -> list[Row]:
    """Dispatch and combine over the expert parallel group, and the gathering of rows where experts are split."""
    blocks = [
        (block_passes(layers, layout.pipeline, layout.micro_batches, 1.0), block, block.experts)
        for (layers, _), block in zip(trained_groups(model), step.pipeline.blocks, strict=True)
        if block.experts
    ]
    if not blocks:
        return []
    again = forward_passes(1.0 if scenario.training.recompute == "full" else 0.0)
    behind = _BEHIND if scenario.moe.overlap else ""
    kinds = _KINDS.get(layout.expert_dispatch, ("all-to-all", "all-to-all"))
    rows: list[Row] = []

    def add(name: str, what: str, kind: str, size: Number, outside: Number, of: Callable[[ExpertTraffic], Exchange]):
        sent, seconds, exposed, times = [], [], [], []
        for count, block, exchanged in blocks:
            one = of(exchanged)
            times.append(times_count(count, add_times(again, 1.0)))
            sent.append(times_bytes(times[-1], one.sent))
            seconds.append(times_seconds(times[-1], one.seconds))
            exposed.append(times_seconds(count, _exposed(block, exchanged, one.seconds, again)))
        rows.append(
            ledger_row(
                name,
                what,
                kind,
                "expert parallel",
                size,
                outside,
                reduce(add_times, times),
                total_bytes(sent),
                total_seconds(seconds),
                behind,
                total_seconds(exposed),
            )
        )

    first = blocks[0][2]
    if present_degree(layout.expert):
        size, outside = layout.expert, first.dispatch.outside
        add("expert parallel dispatch", "activations", kinds[0], size, outside, lambda each: each.dispatch)
        add("expert parallel combine", "activations", kinds[1], size, outside, lambda each: each.combine)
    if present_degree(first.gathering):
        group = layout.expert_tensor_group
        kind = "all-gather, reduce-scatter"
        add("expert tensor parallel", "activations", kind, group.ranks, group.outside, lambda each: each.split)
    return rows


def _exposed(block: BlockTime, exchanged: ExpertTraffic, seconds: Number, again: Number) -> Number:
    """What one of the exchanges of a block costs: its share of what all of them do."""
    ahead, back = (in_proportion(one.expert, seconds, exchanged.seconds) for one in (block.forward, block.backward))
    return both_passes(ahead, again, back)
