"""Tokens on their way to their experts and back: bytes a rank sends, and seconds, by the way they are sent.

Sources: the NCCL tests performance note for the library; DeepEP's and HybridEP's published tables for kernels that send
a token once to each node.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalogue import table
from ...machine.collectives import collective
from ...numeric import Number, minimum, ratio, where
from ...scenario import Scenario
from ...sums import total_seconds
from ...terms import formula
from ..layout import Layout


@formula("(T/t)·h·w·k", "B", "every expert of a token gets a copy of it")
def copies_bytes(tokens: Number, width: Number, element: Number, experts_per_token: Number) -> Number:
    """Bytes of the copies of a rank's own tokens, one for each expert that a token is sent to."""
    return tokens * width * element * experts_per_token


@formula("S·(q−1)/e", "B", "experts are dealt evenly over the ranks")
def library_inside(copies: Number, inside: Number, ranks: Number) -> Number:
    """Bytes a rank sends to ranks of its own scale-up domain."""
    return copies * (inside - 1) / ranks


@formula("S·(1−q/e)", "B", "experts are dealt evenly over the ranks")
def library_across(copies: Number, inside: Number, ranks: Number) -> Number:
    """Bytes a rank sends to other scale-up domains when every copy crosses."""
    return copies * (1 - inside / ranks)


@formula("S·(q−1)/q", "B", "what has crossed is spread inside the domain")
def spread_inside(copies: Number, inside: Number) -> Number:
    """Bytes a rank sends inside its domain when copies are made where they arrive."""
    return copies * (inside - 1) / inside


@formula("M", "domains", "k draws among k_n domains; a routing limit caps it: arXiv 2412.19437, section 2.1.2")
def domains_hit(domains: Number, experts_per_token: Number, limit: Number) -> Number:
    """Scale-up domains in which a token has an expert, expected for uniform routing."""
    return minimum(limit, domains * (1 - (1 - 1 / domains) ** experts_per_token))


@formula("(T/t)·h·w·M·(1−1/k_n)", "B", "DeepEP: a token crosses once for each domain that it is sent to")
def once_across(token_bytes: Number, hit: Number, domains: Number) -> Number:
    """Bytes a rank sends to other domains when a token crosses once for each."""
    return token_bytes * hit * (1 - 1 / domains)


@formula("Σ", "B")
def both_ways(inside: Number, across: Number) -> Number:
    """Bytes sent inside and across domains."""
    return inside + across


@formula("t_a2a", "s", "inside and across run at the same time", "imbalance of experts beyond the factor given")
def exchange_seconds(
    ranks: Number,
    inside: Number,
    link_rate: Number,
    across: Number,
    network_rate: Number,
    domains: Number,
    alpha_c: Number,
    alpha_net: Number,
    near: Number,
) -> Number:
    """Time of a dispatch or a combine; nothing where one rank holds all experts."""
    return where(
        ranks > 1,
        where(inside / link_rate >= across / network_rate, inside / link_rate, across / network_rate)
        + alpha_c
        + where(domains > 1, domains * alpha_net, near),
        0.0,
    )


@formula("(e−1)·α", "s", "pairwise all-to-all")
def pairwise_latency(ranks: Number, alpha_nv: Number) -> Number:
    """Hops of an all-to-all inside a domain."""
    return (ranks - 1) * alpha_nv


@formula("β·e", "B/s")
def reached(rate: Number, fraction: Number, usual: Number) -> Number:
    """Rate of a link under these kernels, from the rate that rings reach."""
    return rate / usual * fraction


@formula("e·S", "B")
def gathered_tokens(token_bytes: Number, ranks: Number) -> Number:
    """Bytes of the tokens of all ranks."""
    return token_bytes * ranks


@formula("share", "share")
def crossing_share(across: Number, sent: Number) -> Number:
    """Share of the bytes sent that pass the network adapter."""
    return ratio(across, sent)


@dataclass(frozen=True)
class Exchange:
    """One dispatch or combine: bytes a rank sends, their share through the network adapter, and seconds."""

    sent: Number
    outside: Number
    seconds: Number


@dataclass(frozen=True)
class ExpertTraffic:
    """Exchanges of one pass: dispatch, combine, and bringing rows together where `gathering` ranks split an expert."""

    dispatch: Exchange
    combine: Exchange
    split: Exchange
    gathering: Number

    @property
    def seconds(self) -> Number:
        return total_seconds([self.dispatch.seconds, self.combine.seconds, self.split.seconds])


@dataclass(frozen=True)
class Dispatcher:
    """A way to send tokens to experts, on the links of a plan."""

    layout: Layout
    facts: dict
    link_rate: Number
    network_rate: Number
    #: Scale-up domains that a token may reach.
    limit: Number

    @staticmethod
    def of(scenario: Scenario, layout: Layout, e_nv: Number, e_nic: Number) -> Dispatcher:
        facts = table("dispatchers")[layout.expert_dispatch]
        device, links = scenario.cluster.accelerator, facts["link"]
        link = links.get(str(device.id), links.get(str(device.generation), links["default"]))
        limit = scenario.moe.route_groups
        return Dispatcher(
            layout,
            facts,
            reached(layout.fabric.link_rate, link, e_nv),
            reached(layout.fabric.network_rate, facts["network"], e_nic),
            layout.expert if limit is None else limit,
        )

    def exchange(self, tokens: Number, width: Number, element: Number, per_token: Number) -> Exchange:
        """Tokens of a rank sent to their experts, `element` bytes a number; or their results sent back."""
        fabric, group = self.layout.fabric, self.layout.expert_group
        token = copies_bytes(tokens, width, element, 1.0)
        if self.facts["gathers"]:
            gather = collective("all-gather", gathered_tokens(token, group.ranks), group, fabric)
            return Exchange(gather.sent, group.outside, gather.seconds)
        copies = copies_bytes(tokens, width, element, per_token)
        if self.facts["once_a_node"]:
            inside = spread_inside(copies, group.inside)
            across = once_across(token, domains_hit(group.nodes, per_token, self.limit), group.nodes)
            near = 0.0
        else:
            inside = library_inside(copies, group.inside, group.ranks)
            across = library_across(copies, group.inside, group.ranks)
            near = pairwise_latency(group.ranks, fabric.alpha_nv)
        sent = both_ways(inside, across)
        seconds = exchange_seconds(
            group.ranks,
            inside,
            self.link_rate,
            across,
            self.network_rate,
            group.nodes,
            fabric.alpha_c,
            fabric.alpha_net,
            near,
        )
        return Exchange(sent, crossing_share(across, sent), seconds)
