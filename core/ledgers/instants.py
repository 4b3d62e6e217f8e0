"""The instants at which the memory of a training stage may peak, and the fullest of them."""

from __future__ import annotations

from dataclasses import dataclass

from ..numeric import Number, is_array, where
from .training_items import total_bytes

ITEMS = (
    "weights",
    "low_precision_weights",
    "gradients",
    "master_weights",
    "momentum",
    "variance",
    "activations",
    "logits",
    "gathered",
    "workspace",
)
INSTANTS = ("loss", "backward", "optimizer step")


@dataclass(frozen=True)
class StageMemory:
    """Items of one stage (or array of stages) at its peak, with the instant's index in INSTANTS."""

    items: dict[str, Number]
    total: Number
    instant: Number


def instant_items(
    static: dict[str, Number],
    gradients: Number,
    activations: Number,
    logits: Number,
    gathered: Number,
    workspace: Number,
) -> dict[str, Number]:
    """The items at one instant."""
    return static | {
        "gradients": gradients,
        "activations": activations,
        "logits": logits,
        "gathered": gathered,
        "workspace": workspace,
    }


def fullest_instant(instants: tuple[dict[str, Number], ...]) -> StageMemory:
    """The items at the instant of the largest sum."""
    totals = [total_bytes(*(items[name] for name in ITEMS)) for items in instants]
    best, items, instant = totals[0], instants[0], 0
    for index in (1, 2):
        more = totals[index] > best
        if is_array(more):
            items = {name: where(more, instants[index][name], items[name]) for name in ITEMS}
            best, instant = where(more, totals[index], best), where(more, index, instant)
        elif more:
            best, items, instant = totals[index], instants[index], index
    return StageMemory(items, best, instant)
