"""A tail of slow collectives: what it adds to a step if some of them take several times as long."""

from __future__ import annotations

from dataclasses import replace

from ..numeric import Number, is_array
from ..scenario import Reliability
from ..sums import add_seconds, total_seconds
from ..terms import formula
from .step import StepTime, step_seconds
from .traffic import Row


@formula("x·(y−1)·t", "s", "a sensitivity that a person asks for; nothing of it is in the constants")
def delay_seconds(share: Number, factor: Number, seconds: Number) -> Number:
    """What a collective costs more when a share of its calls takes some times as long."""
    return share * (factor - 1) * seconds


def delayed(rows: list[Row], step: StepTime, reliability: Reliability) -> tuple[list[Row], StepTime]:
    """The traffic and the step when a share of all collectives is late. Nothing hides a delay."""
    share, factor = reliability.straggling_share, reliability.straggling_factor
    if not is_array(share, factor) and share * (factor - 1) == 0:
        return rows, step
    late = [delay_seconds(share, factor, row.seconds) for row, _ in rows]
    longer = [
        (
            replace(
                row,
                seconds=add_seconds(row.seconds, more),
                exposed_seconds=add_seconds(row.exposed_seconds, more),
            ),
            outside,
        )
        for (row, outside), more in zip(rows, late, strict=True)
    ]
    ideal = add_seconds(step.ideal, total_seconds(late))
    return longer, replace(step, ideal=ideal, seconds=step_seconds(ideal, step.straggler))
