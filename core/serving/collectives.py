"""All-reduces and pipeline hops of an engine iteration.

Engines reduce small messages with their own kernels, so latencies and rates differ from those of training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..machine.collectives import bytes_sent, domains_spanned, ranks_inside
from ..numeric import Number, both, ceil, is_array, minimum, where
from ..scenario import Scenario
from ..sums import add_bytes, add_seconds, times_bytes, times_seconds
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
    domain: Number,
    link: Number,
    pcie: Number,
    alpha_0: Number,
    alpha_1: Number,
    pcie_latency: Number,
) -> Number:
    """Latency of an all-reduce inside a node: a base, and more for each further rank."""
    return where(both(inside <= domain, link > pcie), alpha_0, pcie_latency) + alpha_1 * (inside - 1)


@formula("t_AR", "s", "α–β model: Thakur 2005")
def inside_seconds(sent: Number, ranks: Number, rate: Number, alpha: Number) -> Number:
    """Time of the part of an all-reduce inside the node; nothing for a group of one."""
    return where(ranks > 1, alpha + sent / rate, 0.0)


@formula("t_AR", "s", "α–β model: Thakur 2005; each local rank reduces its share over its own network card")
def across_seconds(sent: Number, nodes: Number, network: Number, alpha: Number) -> Number:
    """Time of the part of an all-reduce between nodes; nothing inside one node."""
    return where(nodes > 1, alpha + sent / network, 0.0)


@formula("S/q", "B")
def rail_bytes(buffer: Number, inside: Number) -> Number:
    """Share of a buffer that one local rank reduces across nodes."""
    return buffer / inside


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


@formula("h_out", "hops")
def hops_across(tensor: Number, pipeline: Number, gpus_per_node: Number) -> Number:
    """Hops of a pass through the pipeline that leave a node."""
    return minimum(pipeline - 1, ceil(tensor * pipeline / gpus_per_node) - 1)


@formula("p − 1 − h_out", "hops")
def hops_inside(pipeline: Number, across: Number) -> Number:
    """Hops of a pass through the pipeline that stay in a node."""
    return pipeline - 1 - across


@formula("W_hop", "B/s")
def slower(first: Number, second: Number) -> Number:
    """Rate of a path over two links."""
    return minimum(first, second)


class Transfer(NamedTuple):
    """What one device sends: bytes and seconds inside its node, across nodes, and seconds of both."""

    inside_bytes: Number
    inside_seconds: Number
    across_bytes: Number
    across_seconds: Number
    seconds: Number

    def times(self, count: Number) -> Transfer:
        """The same several times."""
        inside = times_seconds(count, self.inside_seconds)
        sent = times_bytes(count, self.inside_bytes)
        if not is_array(self.across_bytes) and not self.across_bytes:
            return Transfer(sent, inside, 0.0, 0.0, inside)
        across = times_seconds(count, self.across_seconds)
        return Transfer(sent, inside, times_bytes(count, self.across_bytes), across, add_seconds(inside, across))

    def and_(self, other: Transfer) -> Transfer:
        """Both, one after the other."""
        return Transfer(
            add_bytes(self.inside_bytes, other.inside_bytes),
            add_seconds(self.inside_seconds, other.inside_seconds),
            add_bytes(self.across_bytes, other.across_bytes),
            add_seconds(self.across_seconds, other.across_seconds),
            add_seconds(self.seconds, other.seconds),
        )


#: Nothing sent.
NOTHING = Transfer(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class TensorGroup:
    """The tensor parallel group of a scenario as its all-reduces see it."""

    ranks: Number
    inside: Number
    nodes: Number
    rate: Number
    network: Number
    alpha: Number
    alpha_across: Number

    @staticmethod
    def of(scenario: Scenario, settings: Settings) -> TensorGroup:
        cluster, ranks = scenario.cluster, scenario.parallelism.tp
        device, engine, link = settings.device, settings.engine, scenario.cluster.accelerator.link
        pcie = cluster.accelerator.pcie
        inside = ranks_inside(ranks, cluster.gpus_per_node, 1)
        nodes = domains_spanned(ranks, inside)
        joined = (link.domain, link.bandwidth, pcie)
        return TensorGroup(
            ranks,
            inside,
            nodes,
            link_rate(inside, nodes, *joined, device.e_nv, device.nvls, engine.link, device.e_pcie),
            reached(cluster.network.bandwidth, device.e_nic),
            latency(inside, *joined, engine.alpha_0, engine.alpha_1, device.pcie_latency),
            device.node_latency,
        )

    def reduce(self, buffer: Number) -> Transfer:
        """An all-reduce of a buffer: a ring inside the node, and one over each rail between nodes."""
        sent = bytes_sent(buffer, self.inside, 2)
        inside = inside_seconds(sent, self.ranks, self.rate, self.alpha)
        if not is_array(self.nodes) and self.nodes == 1:
            return Transfer(sent, inside, 0.0, 0.0, inside)
        crossing = bytes_sent(rail_bytes(buffer, self.inside), self.nodes, 2)
        across = across_seconds(crossing, self.nodes, self.network, self.alpha_across)
        return Transfer(sent, inside, crossing, across, add_seconds(inside, across))


@dataclass(frozen=True)
class Pipeline:
    """The hops of a pass through the pipeline of a scenario."""

    inside: Number
    across: Number
    rate: Number
    across_rate: Number
    latency: Number

    @staticmethod
    def of(scenario: Scenario, settings: Settings) -> Pipeline:
        cluster, parallel, device = scenario.cluster, scenario.parallelism, settings.device
        across = hops_across(parallel.tp, parallel.pp, cluster.gpus_per_node)
        rate = reached(cluster.accelerator.pcie, device.e_hop)
        network = reached(cluster.network.bandwidth, device.e_nic)
        return Pipeline(hops_inside(parallel.pp, across), across, rate, slower(rate, network), settings.engine.hop)

    def send(self, buffer: Number) -> Transfer:
        """All hops of a buffer through the stages."""
        inside = times_seconds(self.inside, hop_seconds(buffer, self.rate, self.latency))
        sent = times_bytes(self.inside, buffer)
        if not is_array(self.across) and self.across == 0:
            return Transfer(sent, inside, 0.0, 0.0, inside)
        across = times_seconds(self.across, hop_seconds(buffer, self.across_rate, self.latency))
        return Transfer(sent, inside, times_bytes(self.across, buffer), across, add_seconds(inside, across))
