"""Bytes and time of collectives on a ring, inside a scale-up domain or across it.

Sources: Thakur 2005; Patarasuk and Yuan 2009; the NCCL tests performance note for the byte factors; NCCL tuning
constants for the latencies. A group of one sends nothing and takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..numeric import Number, both, ceil, floor, is_array, log, maximum, minimum, where
from ..terms import formula

_RING = "ring algorithm: Thakur 2005; Patarasuk and Yuan 2009"

#: Trees are used for all-reduces of messages below this many bytes.
SMALL_MESSAGE = 4e6


@formula("(n−1)/n·S", "B", _RING)
def bytes_sent(buffer: Number, ranks: Number, passes: Number) -> Number:
    """Bytes one rank sends: one pass for all-gather or reduce-scatter, two for an all-reduce of the same buffer."""
    return passes * (ranks - 1) / ranks * buffer


@formula("W", "B/s", "every local rank drives its own network card", "in-switch reduction, hierarchical rings")
def group_bandwidth(inside: Number, nodes: Number, link_rate: Number, network_rate: Number) -> Number:
    """Bandwidth a rank sees in a group with `inside` ranks in each of `nodes` scale-up domains."""
    return where(nodes > 1, minimum(link_rate, inside * network_rate), link_rate)


@formula("α", "s", "NCCL tuning constants; measured small all-reduces of 15–25 µs on 8 GPUs")
def ring_latency(
    ranks: Number,
    nodes: Number,
    passes: Number,
    alpha_nv: Number,
    alpha_ring: Number,
    alpha_net: Number,
) -> Number:
    """Latency of the hops of a ring over some ranks in some scale-up domains."""
    return passes * where(nodes > 1, (ranks - nodes) * alpha_ring + nodes * alpha_net, (ranks - 1) * alpha_nv)


@formula("α_tree", "s", "double binary tree: NCCL tuning constants")
def tree_latency(
    latency: Number,
    message: Number,
    small: Number,
    inside: Number,
    nodes: Number,
    alpha_ring: Number,
    alpha_net: Number,
) -> Number:
    """Latency of an all-reduce: a tree across nodes where the message is small and that is faster, else the ring."""
    return where(
        both(nodes > 1, message < small),
        minimum(latency, 2 * (log(maximum(nodes, 1)) / 0.6931471805599453 * alpha_net + (inside - 1) * alpha_ring)),
        latency,
    )


@formula("t_comm", "s", "α–β model: Thakur 2005")
def collective_seconds(
    sent: Number, bandwidth: Number, ranks: Number, launches: Number, latency: Number, alpha_c: Number
) -> Number:
    """Time of a collective in `launches` pieces; nothing for a group of one."""
    return where(ranks > 1, sent / bandwidth + launches * (latency + alpha_c), 0.0)


@formula("q", "ranks")
def ranks_inside(ranks: Number, domain: Number, spacing: Number) -> Number:
    """Ranks of a group in one scale-up domain when its ranks stand `spacing` apart."""
    return maximum(1, minimum(ranks, floor(domain / spacing)))


@formula("k", "domains")
def domains_spanned(ranks: Number, inside: Number) -> Number:
    """Scale-up domains that a group spans."""
    return ceil(ranks / inside)


@formula("min(G/boards, domain)", "devices")
def node_domain(gpus_per_node: Number, link_domain: Number, boards: Number) -> Number:
    """Devices that share a scale-up link: the device's domain, at most a board of a node."""
    return minimum(gpus_per_node / boards, link_domain)


@formula("G, if boards > 1", "devices")
def devices_of_host(gpus_per_node: Number, boards: Number) -> Number:
    """Devices that a host joins where a node is made of several boards; 0 where one link joins them all."""
    return where(boards > 1, gpus_per_node, 0.0)


@dataclass(frozen=True)
class Fabric:
    """The links as collectives see them: sustained rates in bytes/s one way, latencies in seconds."""

    domain: Number
    link_rate: Number
    network_rate: Number
    alpha_c: Number
    alpha_nv: Number
    alpha_ring: Number
    alpha_net: Number
    alpha_p2p: Number
    #: Rate of one device through the host, and devices that share a host, where a node is made of boards; else 0.
    host_rate: Number = 0.0
    host: Number = 0.0


@dataclass(frozen=True)
class Group:
    """Ranks that communicate: how many, how many of them in one scale-up domain, and how many domains.

    `hosted` is 1 where the domains are boards of one node, joined through the host.
    """

    ranks: Number
    inside: Number
    nodes: Number
    hosted: Number = 0.0

    @staticmethod
    def of(ranks: Number, spacing: Number, fabric: Fabric) -> Group:
        """A group whose ranks stand `spacing` devices apart (1: neighbours)."""
        inside = ranks_inside(ranks, fabric.domain, spacing)
        hosted = 0.0
        if is_array(fabric.host) or fabric.host:
            hosted = where(both(ranks > inside, ranks * spacing <= fabric.host), 1.0, 0.0)
        return Group(ranks, inside, domains_spanned(ranks, inside), hosted)

    @property
    def outside(self) -> Number:
        """Share of a rank's bytes that pass its network adapter: every rank inside drives its own rail."""
        return where(both(self.nodes > 1, self.hosted == 0), 1.0 / self.inside, 0.0)


def link_name(outside: Number) -> str:
    """scale-up or scale-out; many plans at once are named by whether any crosses the network."""
    return "scale-out" if (outside.any() if is_array(outside) else outside) else "scale-up"


@dataclass(frozen=True)
class Collective:
    """One collective: bytes a rank sends and its time."""

    sent: Number
    seconds: Number


def fabric_bandwidth(group: Group, fabric: Fabric) -> Number:
    """Bandwidth a rank of a group sees: through the network between domains, or through the host between boards."""
    rate = fabric.network_rate
    if is_array(group.hosted) or group.hosted:
        rate = where(group.hosted > 0, fabric.host_rate, rate)
    return group_bandwidth(group.inside, group.nodes, fabric.link_rate, rate)


PASSES = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}


def collective(kind: str, buffer: Number, group: Group, fabric: Fabric, pieces: Number = 1) -> Collective:
    """An all-reduce, all-gather, reduce-scatter or all-to-all of a buffer over a group, in `pieces` launches."""
    passes = PASSES[kind]
    sent = bytes_sent(buffer, group.ranks, passes)
    bandwidth, nodes = fabric_bandwidth(group, fabric), group.nodes
    if is_array(group.hosted) or group.hosted:
        nodes = where(group.hosted > 0, 1.0, nodes)  # latencies are those inside a node
    latency = ring_latency(group.ranks, nodes, passes, fabric.alpha_nv, fabric.alpha_ring, fabric.alpha_net)
    if kind == "all-reduce":
        latency = tree_latency(
            latency,
            message_bytes(buffer, pieces),
            SMALL_MESSAGE,
            group.inside,
            nodes,
            fabric.alpha_ring,
            fabric.alpha_net,
        )
    return Collective(sent, collective_seconds(sent, bandwidth, group.ranks, pieces, latency, fabric.alpha_c))


@formula("S/pieces", "B")
def message_bytes(buffer: Number, pieces: Number) -> Number:
    """Bytes of one of the pieces that a buffer is sent in."""
    return buffer / pieces
