"""All-reduces and pipeline hops of an engine iteration.

Engines reduce small messages with their own kernels, so latencies and rates differ from those of training.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.collectives import bytes_sent, domains_spanned, ranks_inside
from ..numeric import Number, both, where
from ..scenario import Scenario
from ..terms import formula
from .settings import Settings


@formula("W", "B/s", "nccl-tests: 0.78 of NVLink, reduction in the switch from 4 ranks on; PCIe without a link for all")
def link_rate(
    inside: Number,
    nodes: Number,
    domain: Number,
    link: Number,
    pcie: Number,
    e_nv: Number,
    nvls: Number,
    engine: Number,
    e_pcie: Number,
) -> Number:
    """Bandwidth of an all-reduce inside a node; the engine's own kernels work in one node only."""
    return where(
        both(inside <= domain, link > pcie),
        link * e_nv * where(both(inside >= 4, nodes == 1), nvls, 1.0),
        pcie * e_pcie,
    ) * where(nodes == 1, engine, 1.0)


@formula("α", "s", "all-reduce kernels of the engine; FasterTransformer and TensorRT-LLM rows")
def latency(
    inside: Number,
    nodes: Number,
    domain: Number,
    link: Number,
    pcie: Number,
    alpha_0: Number,
    alpha_1: Number,
    pcie_latency: Number,
    node_latency: Number,
) -> Number:
    """Latency of an all-reduce: a base, more for each further rank of a node, more again across nodes."""
    return (
        where(both(inside <= domain, link > pcie), alpha_0, pcie_latency)
        + alpha_1 * (inside - 1)
        + where(nodes > 1, node_latency, 0.0)
    )


@formula("t_AR", "s", "α–β model: Thakur 2005; second level over the network cards of all local ranks")
def allreduce_seconds(
    sent: Number,
    buffer: Number,
    ranks: Number,
    inside: Number,
    nodes: Number,
    rate: Number,
    network: Number,
    alpha: Number,
) -> Number:
    """Time of an all-reduce of `buffer` bytes; nothing for a group of one."""
    return where(
        ranks > 1,
        alpha + sent / rate + where(nodes > 1, 2 * (nodes - 1) / nodes * buffer / inside / network, 0.0),
        0.0,
    )


@formula("e·W", "B/s")
def reached(bandwidth: Number, fraction: Number) -> Number:
    """Share of a link's rate that is reached."""
    return bandwidth * fraction


@formula("S", "B")
def hidden_bytes(rows: Number, hidden: Number) -> Number:
    """Bytes of the residual stream of some rows in 16 bits."""
    return 2 * rows * hidden


@formula("S", "B")
def gathered_bytes(rows: Number, vocabulary: Number, ranks: Number) -> Number:
    """Half of the 16-bit logits of one rank: an all-reduce of it sends as much as the gather."""
    return rows * vocabulary / ranks


@formula("t_hop", "s")
def hop_seconds(moved: Number, rate: Number, latency: Number) -> Number:
    """Time of one hop to the next pipeline stage."""
    return latency + moved / rate


@formula("p − 1", "hops")
def hops(pipeline: Number) -> Number:
    """Hops of a pass through the pipeline."""
    return pipeline - 1


@dataclass(frozen=True)
class TensorGroup:
    """The tensor parallel group of a scenario as its all-reduces see it."""

    ranks: Number
    inside: Number
    nodes: Number
    rate: Number
    network: Number
    alpha: Number

    @staticmethod
    def of(scenario: Scenario, settings: Settings) -> TensorGroup:
        cluster, ranks = scenario.cluster, scenario.parallelism.tp
        device, engine, link = settings.device, settings.engine, scenario.cluster.accelerator.link
        pcie = cluster.accelerator.pcie
        inside = ranks_inside(ranks, cluster.gpus_per_node, 1)
        nodes = domains_spanned(ranks, inside)
        at = (inside, nodes, link.domain, link.bandwidth, pcie)
        return TensorGroup(
            ranks,
            inside,
            nodes,
            link_rate(*at, device.e_nv, device.nvls, engine.link, device.e_pcie),
            reached(cluster.network.bandwidth, device.e_nic),
            latency(*at, engine.alpha_0, engine.alpha_1, device.pcie_latency, device.node_latency),
        )

    def sent(self, buffer: Number) -> Number:
        """Bytes one rank sends in an all-reduce of a buffer."""
        return bytes_sent(buffer, self.ranks, 2)

    def seconds(self, buffer: Number) -> Number:
        """Time of an all-reduce of a buffer."""
        return allreduce_seconds(
            self.sent(buffer), buffer, self.ranks, self.inside, self.nodes, self.rate, self.network, self.alpha
        )

    @property
    def link(self) -> str:
        """scale-up or scale-out; an array of groups is named by whether any leaves the node."""
        leaves = self.nodes > 1
        return "scale-out" if (leaves.any() if hasattr(leaves, "any") else leaves) else "scale-up"
