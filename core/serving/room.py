"""Edits of a serving plan that make room: fewer sequences, smaller formats, more GPUs, a cache that is kept once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..ledgers.serving_memory import serving_memory
from ..legality import violations
from ..node_edits import over_nodes, usual_node
from ..numeric import is_array
from ..report import Edit
from ..scenario import Scenario
from ..scenario_model import model_of
from .rates import has_units
from .settings import settings_of

#: Formats to try where weights are too large, most accurate first.
SMALLER = ("fp8", "int8-g128", "int4-g128")
#: Nodes to try, one stage on each, where one node is too small.
_NODES = (2, 3, 4, 6, 8, 16)


def memory_edits(scenario: Scenario, values: dict[str, Any]) -> Iterator[Edit]:
    """Changes after which the plan fits, each tried; where the cache stays short, with fewer sequences as well."""
    spare = max(0.0, values["memory.headroom_bytes"])
    yielded = set()
    for edit in legal_edits(scenario, _candidates(scenario, values)):
        paths = tuple(path for path, _ in edit.changes)
        if paths in yielded and "parallelism.pp" in paths:
            continue  # as many nodes as are enough
        changed = _changed(scenario, edit)
        found = serving_memory(changed, model_of(changed), settings_of(changed))
        room = int(found.held_requests)
        if found.headroom >= spare:
            yielded.add(paths)
            yield edit
        elif values["serving.held_requests"] < room < changed.serving.concurrency:
            fewer = ("serving.concurrency", room)
            yield Edit(f"{edit.label}, concurrency {room}", (*edit.changes, fewer))


def _candidates(scenario: Scenario, values: dict[str, Any]) -> Iterator[Edit]:
    serving, cluster = scenario.serving, scenario.cluster
    most = int(values["serving.held_requests"])
    if 0 < most < serving.concurrency:
        yield Edit(f"Concurrency {most}", (("serving.concurrency", most),))
    yield from own_sequences(scenario)
    if serving.kv_format == "bf16":
        yield Edit("Cache in fp8", (("serving.kv_format", "fp8"),))
    bits = settings_of(scenario).weights.bits
    for name in SMALLER:
        number = settings_of(scenario.with_("serving.weight_format", name)).weights
        if number.bits < bits and (number.expanded or has_units(cluster.accelerator, number)):
            yield Edit(f"Weights in {name}", (("serving.weight_format", name),))
    yield from wider_groups(scenario)
    yield from _more_nodes(scenario)


def wider_groups(scenario: Scenario) -> Iterator[Edit]:
    """Tensor parallel over more GPUs of a node, on those of the plan or, where it has too few, on more."""
    parallel, cluster = scenario.parallelism, scenario.cluster
    if is_array(cluster.gpus_per_node, cluster.accelerator.link.domain):
        return  # nodes of many sizes between which the plan itself makes no difference
    for wider in (int(factor * parallel.tp) for factor in (2, 4, 8)):
        if wider * parallel.pp <= cluster.gpus:
            yield Edit(f"TP {wider}", (("parallelism.tp", wider),))
        elif wider <= cluster.accelerator.link.domain:
            needed, node = int(wider * parallel.pp), int(max(wider, cluster.gpus_per_node))
            changes = (("parallelism.tp", wider), ("cluster.gpus", needed), ("cluster.gpus_per_node", node))
            yield Edit(f"TP {wider} on {needed} GPUs", changes)


def _more_nodes(scenario: Scenario) -> Iterator[Edit]:
    """Tensor parallel over all of a node, and a stage on each of several."""
    parallel, cluster = scenario.parallelism, scenario.cluster
    node = int(min(cluster.accelerator.link.domain, max(cluster.gpus_per_node, usual_node())))
    if parallel.tp <= node:
        yield from over_nodes(cluster, node, [stages for stages in _NODES if stages > parallel.pp])


def own_sequences(scenario: Scenario) -> Iterator[Edit]:
    """Ranks that split every sequence get sequences of their own, and share experts, where these cost memory."""
    model, tp = model_of(scenario), int(scenario.parallelism.tp)
    experts = any(block.experts for _, block in model.groups)
    kept_often = any(block.mixer.kv_elements() and tp > block.mixer.kv_heads_to_split() for _, block in model.groups)
    if experts and kept_often and scenario.serving.attention_dp == 1:
        changes = (("parallelism.tp", 1), ("serving.attention_dp", tp), ("parallelism.ep", tp))
        yield Edit(f"Attention DP {tp}, EP {tp}", changes)


def legal_edits(scenario: Scenario, edits: Iterable[Edit]) -> Iterator[Edit]:
    """Those after which the plan breaks no rule."""
    return (edit for edit in edits if not violations(_changed(scenario, edit)))


def _changed(scenario: Scenario, edit: Edit) -> Scenario:
    for path, value in edit.changes:
        scenario = scenario.with_(path, value)
    return scenario
