"""The communication ledger of a decode step. Nothing hides it: each row is waited for in every layer or pass."""

from __future__ import annotations

from ..numeric import Number, is_array
from ..report import Traffic
from ..scenario import Scenario
from .collectives import hops
from .iteration import Iteration, Pass, allreduces


def traffic(scenario: Scenario, passes: Pass, decode: Iteration) -> list[Traffic]:
    """One row a collective, bytes sent by one GPU in a decode step; a group of one has no row."""
    parallel, rows = scenario.parallelism, []
    if _present(parallel.tp):
        group, count = passes.group, allreduces(passes.layers, passes.model.block.norms)
        rows += [
            _row(
                "tensor parallel", "activations", "all-reduce", "tensor parallel", parallel.tp, group.link, count,
                decode.allreduce_bytes, decode.allreduces,
            ),
            _row(
                "logits", "activations", "gather", "tensor parallel", parallel.tp, group.link, 1.0,
                decode.gather_bytes, decode.gather,
            ),
        ]  # fmt: skip
    if _present(parallel.pp):
        leaves = parallel.tp * parallel.pp > scenario.cluster.gpus_per_node
        link = "scale-out" if (leaves.any() if is_array(leaves) else leaves) else "scale-up"
        rows.append(
            _row(
                "pipeline activations",
                "activations",
                "send, receive",
                "pipeline",
                parallel.pp,
                link,
                hops(parallel.pp),
                decode.hop_bytes,
                decode.hops,
            )
        )
    return rows


def _present(degree: Number) -> bool:
    return is_array(degree) or degree > 1


def _row(
    name: str,
    what: str,
    collective: str,
    group: str,
    size: Number,
    link: str,
    count: Number,
    sent: Number,
    time: Number,
) -> Traffic:
    return Traffic(name, what, collective, group, size, link, count, sent, time, "", time)
