"""Tokens on their way to experts on other ranks and back: two all-to-alls in each layer with experts.

Tokens leave in 8 bits and come back in 16. Source: DeepSeek-V3, arXiv 2412.19437; latencies and rates of its published
kernels. Ranks that split one sequence have its tokens anyway, so only ranks with tokens of their own exchange any.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.collectives import domains_spanned, ranks_inside
from ..numeric import Number, both, maximum, minimum, where
from ..scenario import Scenario
from ..sums import add_seconds
from ..terms import formula
from .collectives import Transfer, reached
from .expert_ranks import expert_ranks
from .settings import Settings

_COPIES = "dispatch in 1 byte and combine in 2 of an element; copies for one rank are sent once"
_ACROSS = "dispatch in 1 byte and combine in 2 of an element; copies are not merged by node"


@formula("W", "B/s", "nccl-tests: 0.78 of NVLink; PCIe without a link for all")
def exchange_rate(inside: Number, domain: Number, link: Number, pcie: Number, e_nv: Number, e_pcie: Number) -> Number:
    """Bandwidth of an all-to-all inside a node."""
    return where(both(inside <= domain, link > pcie), link * e_nv, pcie * e_pcie)


@formula("M/t", "rows")
def own_rows(rows: Number, tensor_parallel: Number, attention_dp: Number) -> Number:
    """Rows that one of the tensor parallel ranks sends: each takes a share of those they all have."""
    return where(attention_dp > 1, rows / tensor_parallel, 0.0)


@formula("S_in", "B", _COPIES)
def bytes_inside(rows: Number, hidden: Number, per_token: Number, ranks: Number, inside: Number) -> Number:
    """Bytes that a rank sends to experts in its node and back."""
    return (
        3
        * rows
        * hidden
        * where(ranks > inside, per_token * (inside - 1) / ranks, minimum(per_token, ranks) * (ranks - 1) / ranks)
    )


@formula("S_out", "B", _ACROSS)
def bytes_across(rows: Number, hidden: Number, per_token: Number, ranks: Number, inside: Number) -> Number:
    """Bytes that a rank sends to experts in other nodes and back; none inside one node."""
    return 3 * rows * hidden * per_token * (1 - inside / ranks)


@formula("t_a2a", "s")
def inside_seconds(sent: Number, rate: Number, latency: Number) -> Number:
    """Time of both all-to-alls inside the node; nothing where nothing is sent."""
    return where(sent > 0, 2 * latency + sent / rate, 0.0)


@formula("Δt", "s", "both ways at once; the slower one counts")
def longer_across(across: Number, network: Number, inside: Number, rate: Number) -> Number:
    """Time that the network takes longer than the links in the node."""
    return maximum(0.0, across / network - inside / rate)


@dataclass(frozen=True)
class Exchange:
    """The ranks among which tokens travel to experts."""

    ranks: Number
    inside: Number
    nodes: Number
    tensor: Number
    attention: Number
    rate: Number
    network: Number
    latency: Number

    @staticmethod
    def of(scenario: Scenario, settings: Settings) -> Exchange:
        cluster, device = scenario.cluster, settings.device
        ranks, link, pcie = expert_ranks(scenario).ranks, cluster.accelerator.link, cluster.accelerator.pcie
        inside = ranks_inside(ranks, cluster.gpus_per_node, 1)
        return Exchange(
            ranks,
            inside,
            domains_spanned(ranks, inside),
            scenario.parallelism.tp,
            scenario.serving.attention_dp,
            exchange_rate(inside, link.domain, link.bandwidth, pcie, device.e_nv, device.e_pcie),
            reached(cluster.network.bandwidth, device.e_exchange),
            settings.engine.exchange,
        )

    def send(self, rows: Number, hidden: Number, per_token: Number) -> Transfer:
        """Both all-to-alls of one layer for the rows of a rank."""
        own = own_rows(rows, self.tensor, self.attention)
        sent = bytes_inside(own, hidden, per_token, self.ranks, self.inside)
        across = bytes_across(own, hidden, per_token, self.ranks, self.inside)
        seconds = inside_seconds(sent, self.rate, self.latency)
        longer = longer_across(across, self.network, sent, self.rate)
        return Transfer(sent, seconds, across, longer, add_seconds(seconds, longer))
