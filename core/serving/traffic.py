"""The communication ledger of a decode step. Nothing hides it: each row is waited for in every layer or pass."""

from __future__ import annotations

from collections.abc import Iterator

from ..numeric import Number, is_array
from ..report import Traffic
from ..scenario import Scenario
from .collectives import Transfer
from .iteration import Iteration, Pass


def traffic(scenario: Scenario, passes: Pass, decode: Iteration) -> list[Traffic]:
    """Rows of the collectives, bytes sent by one GPU in a decode step; a group of one has no row.

    A group across nodes has a row for what stays in the node and one for what crosses a network card.
    """
    parallel, rows = scenario.parallelism, []
    if _present(parallel.tp):
        count = passes.reductions
        rows += _rows(
            "tensor parallel", "all-reduce", "tensor parallel", parallel.tp, (count, count), decode.allreduces
        )
        rows += _rows("logits", "gather", "tensor parallel", parallel.tp, (1.0, 1.0), decode.gather)
    if passes.exchange:
        times, ranks = passes.exchanges, passes.exchange.ranks
        rows += _rows("expert tokens", "all-to-all", "experts", ranks, (times, times), decode.exchange)
    if _present(parallel.pp):
        hops = passes.stages.inside, passes.stages.across
        rows += _rows("pipeline activations", "send, receive", "pipeline", parallel.pp, hops, decode.hops)
    return rows


def _present(degree: Number) -> bool:
    return is_array(degree) or degree > 1


def _rows(
    name: str, collective: str, group: str, size: Number, counts: tuple[Number, Number], moved: Transfer
) -> Iterator[Traffic]:
    """The part inside nodes and the part between them, each where there is one."""
    parts = (
        ("scale-up", name, counts[0], moved.inside_bytes, moved.inside_seconds),
        ("scale-out", f"{name} between nodes", counts[1], moved.across_bytes, moved.across_seconds),
    )
    for link, words, count, sent, seconds in parts:
        if is_array(seconds) or seconds > 0:
            yield Traffic(words, "activations", collective, group, size, link, count, sent, seconds, "", seconds)
