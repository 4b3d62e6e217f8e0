"""Activations on their way to the host and back, behind the compute of the same layer."""

from __future__ import annotations

from dataclasses import replace

from ...ledgers.activations import block_activations, keeping_of
from ...ledgers.training_items import offloaded_share
from ...model.kinds.mixer import present
from ...numeric import Number, maximum
from ...terms import formula
from .passes import Pass
from .work import Work


@formula("A·T/W_host", "s")
def host_seconds(held: Number, tokens: Number, rate: Number) -> Number:
    """Time of the activations of one layer on the link to the host, one way."""
    return held * tokens / rate


@formula("n/L·max(0, t_host − t)", "s", "what the compute of the layer does not hide, mean over the layers")
def waiting_for_host(share: Number, seconds: Number, window: Number) -> Number:
    """What a layer waits for the host."""
    return share * maximum(0.0, seconds - window)


def with_host_traffic(work: Work, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
    """Both passes with what they wait for the host."""
    offloaded, layout = work.training.offload_layers, work.layout
    if not present(offloaded):
        return forward, backward
    held = block_activations(work.block, keeping_of(work.scenario, layout)).held
    seconds = host_seconds(held, layout.tokens, layout.fabric.host_rate)
    share = offloaded_share(offloaded, layout.layers)
    return (
        replace(forward, host=waiting_for_host(share, seconds, forward.seconds)),
        replace(backward, host=waiting_for_host(share, seconds, backward.seconds)),
    )
