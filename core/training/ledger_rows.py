"""A row of the communication ledger of a training step, and how often things happen in one."""

from __future__ import annotations

from ..machine.collectives import link_name
from ..numeric import Number, is_array
from ..report import Traffic
from ..terms import formula


@formula("n", "times")
def block_passes(layers: Number, pipeline: Number, micro_batches: Number, passes: Number) -> Number:
    """How often something happens a step that happens some times in each block and micro-batch; mean over stages."""
    return layers / pipeline * micro_batches * passes


@formula("forward + recomputation", "passes")
def forward_passes(recomputed: Number) -> Number:
    """Forward passes of a block in a step: 2 where it is recomputed in full, else 1."""
    return 1 + recomputed


@formula("Σ", "s")
def both_passes(forward: Number, passes: Number, backward: Number) -> Number:
    """Forward, as often as it is computed, and backward together."""
    return forward * passes + backward


#: A row of the ledger, and the share of its bytes that pass the network adapter of a GPU.
Row = tuple[Traffic, Number]


def present_degree(degree: Number) -> bool:
    """Whether a group has more than one rank; an array of them may."""
    return is_array(degree) or degree > 1


def ledger_row(
    name: str,
    what: str,
    kind: str,
    group: str,
    size: Number,
    outside: Number,
    times: Number,
    sent: Number,
    seconds: Number,
    behind: str,
    exposed: Number,
) -> Row:
    """A row, with the link named by the share of its bytes that pass the network adapter."""
    link = link_name(outside)
    return Traffic(name, what, kind, group, size, link, times, sent, seconds, behind, exposed), outside
