"""Edits that spread a plan over more whole nodes than it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .report import Edit
from .scenario import Cluster
from .scenario_values import default


def usual_node() -> int:
    """GPUs of a node where nothing else is said."""
    return int(default("cluster.gpus_per_node"))


def over_nodes(
    cluster: Cluster, node: int, stages: Iterable[int], also: tuple[tuple[str, Any], ...] = ()
) -> Iterator[Edit]:
    """Tensor parallel over all GPUs of a node and a stage on each, by number of stages, where that is more GPUs.

    `also` changes along.
    """
    for count in stages:
        gpus = node * count
        if gpus > cluster.gpus:
            layout = (("parallelism.tp", node), *also, ("parallelism.pp", count))
            size = (("cluster.gpus", gpus), ("cluster.gpus_per_node", node))
            yield Edit(f"TP {node}, PP {count} on {gpus} GPUs", (*layout, *size))
