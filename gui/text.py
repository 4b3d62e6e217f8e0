"""Words for values, verdicts and changes."""

from __future__ import annotations

from typing import Any

from ..core.catalogue import catalogue
from ..core.fields import FIELDS, Field
from ..core.scenario import Scenario
from ..core.units import UNITS, format_quantity

VERDICTS = {
    "fits": "fits",
    "tight": "fits, with little room",
    "does-not-fit": "does not fit in memory",
    "illegal": "is not allowed",
}
_ON_OFF = {True: "on", False: "off"}


def shown(field: Field, value: Any) -> str:
    """A value as a person reads it beside its control: "2.00T", "selective", "on", "auto"."""
    if value is None or value == "auto":
        return "auto"
    if field.unit == "flag":
        return _ON_OFF[bool(value)]
    if field.unit in UNITS:
        return f"{format_quantity(value, field.unit)}{field.suffix}"
    if field.catalogue and isinstance(value, str):
        value = getattr(catalogue(), field.catalogue).get(value, value)
    return getattr(value, "name", None) or str(value)


def name_of_change(path: str, before: Scenario, after: Scenario) -> str:
    """The name of an undo step: "Tensor (TP) 8 → 4"."""
    field = FIELDS.get(path)
    if field is None:
        return {"kind": after.kind.capitalize(), "name": f"Rename to {after.name}"}.get(path, "Change")
    return f"{field.label} {shown(field, before.get(path))} → {shown(field, after.get(path))}"


def note(path: str, scenario: Scenario) -> str:
    """What a field comes to, said beside its label; empty for most."""
    if path == "cluster.gpus":
        nodes = scenario.cluster.gpus / scenario.cluster.gpus_per_node
        count = format_quantity(nodes, "count")
        return f"{count} nodes of {scenario.cluster.gpus_per_node:g}" if nodes > 1 else ""
    if path == "training.global_batch":
        tokens = scenario.training.global_batch * scenario.training.sequence_length
        return f"{format_quantity(tokens, 'tokens')} tokens"
    model = scenario.model
    if path == "model.head_dim" and not model.head_dim and model.heads:
        hidden, heads = (format_quantity(size, "count") for size in (model.hidden_size, model.heads))
        return f"{hidden} / {heads} = {format_quantity(model.hidden_size / model.heads, 'count')}"
    return ""


def data_parallel(scenario: Scenario) -> tuple[str, str]:
    """How the data parallel degree comes about, and its value: ("= 64 / (8·4)", "2")."""
    p = scenario.parallelism
    shards = [degree for degree in (p.tp, p.pp, p.cp) if degree != 1]
    ranks = scenario.cluster.gpus / (p.tp * p.pp * p.cp)
    gpus = format_quantity(scenario.cluster.gpus, "count")
    below = "·".join(f"{degree:g}" for degree in shards)
    working = f"= {gpus} / ({below})" if len(shards) > 1 else f"= {gpus} / {below}" if shards else f"= {gpus}"
    return working, format_quantity(ranks, "count")
