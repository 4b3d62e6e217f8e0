"""How people call what the ranks of a pipeline hold: stage 3, or stage 3+12 where a rank holds two of them."""

from __future__ import annotations

from ..scenario import Scenario
from .layout import BOTH_WAYS


def stage_number(scenario: Scenario, stage: float) -> str:
    """The number of a stage; where two ranks hold the same two stages, both, the lower first."""
    last = int(scenario.parallelism.pp) - 1
    if scenario.parallelism.schedule != BOTH_WAYS or last < 1:
        return f"{int(stage)}"
    return "+".join(str(each) for each in sorted((int(stage), last - int(stage))))


def shown_stages(scenario: Scenario, ranks: int) -> int:
    """How many stages there are to show: half as many as ranks where two ranks hold the same."""
    return ranks // 2 if scenario.parallelism.schedule == BOTH_WAYS and ranks > 1 else ranks
