"""The physical floor of a step: no schedule and no software is faster on the same machine."""

from __future__ import annotations

from typing import NamedTuple

from ..ledgers import training_memory as held
from ..ledgers.frozen_states import frozen_width
from ..ledgers.training_items import optimizer_bytes
from ..model.layers import Model
from ..numeric import Number, maximum
from ..scenario import Scenario
from ..sums import add_parameters
from . import days
from .layout import Layout


class LinkBytes(NamedTuple):
    """Bytes one GPU sends in groups that stay inside its scale-up domain, and through its network adapter."""

    within: Number
    across: Number


def physical_floor(
    sent: LinkBytes,
    scenario: Scenario,
    model: Model,
    layout: Layout,
    memory: held.TrainingMemory,
    flops: Number,
    peak: Number,
) -> tuple[Number, Number]:
    """The physical floor of a step, and the bytes that one GPU cannot avoid moving."""
    cluster, widths = scenario.cluster, memory.widths
    link = maximum(cluster.accelerator.link.bandwidth, cluster.accelerator.pcie)
    psi, owned = _mean_rank(scenario, model, layout, memory)
    optimizer = optimizer_bytes(widths.master, widths.momentum, widths.every_variance)
    moved = days.unavoidable_bytes(psi, widths.gathered, widths.gradients, optimizer, owned)
    if memory.adapters:
        moved = days.unavoidable_bytes(psi, frozen_width(scenario.training), 0.0, 0.0, owned)
    floor = days.bound_seconds(
        days.compute_floor(flops, cluster.gpus, peak),
        days.memory_floor(moved, cluster.accelerator.memory_bandwidth),
        days.link_floor(sent.within, link),
        days.link_floor(sent.across, cluster.network.bandwidth),
    )
    return floor, moved


def _mean_rank(scenario: Scenario, model: Model, layout: Layout, memory: held.TrainingMemory) -> tuple[Number, Number]:
    """Parameters a rank holds, and those whose states it updates; mean over the stages."""
    sharded = scenario.parallelism.zero > 0
    if not memory.rank.any_routed:
        psi = days.mean_parameters(model.parameters, layout.tensor, layout.pipeline)
        return psi, days.owned_mean(psi, layout.shards) if sharded else psi
    routed = days.mean_routed(memory.routed_share, layout.layers, layout.pipeline)
    everywhere = days.routed_everywhere(routed, layout.pipeline, layout.expert, layout.expert_tensor)
    common = days.mean_parameters(days.without(model.parameters, everywhere), layout.tensor, layout.pipeline)
    psi = add_parameters(common, routed)
    if not sharded:
        return psi, psi
    return psi, add_parameters(
        days.owned_mean(common, layout.shards), days.owned_mean(routed, memory.rank.expert_shards)
    )
