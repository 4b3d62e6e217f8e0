"""Rules about the layout of a serving plan: groups that leave a node, and caches that are kept several times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..report import Edit, Finding
from .plan import Plan
from .room import legal_edits, own_sequences


def group_leaves_node(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """Two all-reduces a layer cross the network, or PCIe where a bridge joins fewer cards than the group has."""
    cluster, parallel = plan.scenario.cluster, plan.scenario.parallelism
    node, link = cluster.gpus_per_node, cluster.accelerator.link
    tp = int(parallel.tp)
    if tp > node:
        message = f"Tensor parallel {tp} leaves the node of {int(node)}: every layer waits for the network twice."
        inside = max(d for d in range(1, int(node) + 1) if tp % d == 0)
        changes = (("parallelism.tp", inside), ("parallelism.pp", int(parallel.pp * tp // inside)))
        edits = (Edit(f"TP {inside}, PP {changes[1][1]}", changes),)
        yield Finding("tp-leaves-node", "warning", message, "parallelism.tp", edits)
    # a size that no result of this plan depends on may be an array
    elif bool(np.all(tp > link.domain)) and link.bandwidth > cluster.accelerator.pcie:
        message = f"{link.name} joins {int(link.domain)} GPUs; tensor parallel {tp} goes over PCIe."
        yield Finding("tp-over-pcie", "warning", message, "parallelism.tp")


def experts_leave_node(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """Tokens cross the network on their way to experts and back."""
    exchange = plan.passes.exchange
    if exchange and exchange.nodes > 1:
        ranks, node = int(exchange.ranks), int(plan.scenario.cluster.gpus_per_node)
        message = f"Experts on {ranks} ranks leave the node of {node}: tokens cross the network in each such layer."
        yield Finding("experts-leave-node", "hint", message, "serving.attention_dp")


def replicated_kv_heads(plan: Plan, _values: dict[str, Any]) -> Iterator[Finding]:
    """More tensor parallel ranks than key and value heads, or a latent, which has none to split."""
    tp = plan.scenario.parallelism.tp
    for mixer in (block.mixer for _, block in plan.model.groups if block.mixer.kv_elements()):
        heads = mixer.kv_heads_to_split()
        if tp > heads:
            what = "The latent" if mixer.part == "latent" else f"{int(heads)} KV head{'s' if heads > 1 else ''}"
            message = f"{what} on {int(tp)} tensor parallel ranks: each token's cache is kept {int(tp / heads)} times."
            edits = tuple(legal_edits(plan.scenario, own_sequences(plan.scenario)))
            yield Finding("kv-heads-replicated", "hint", message, "parallelism.tp", edits)
            return


RULES = (group_leaves_node, experts_leave_node, replicated_kv_heads)
