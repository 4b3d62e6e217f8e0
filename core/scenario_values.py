"""The value at any path of a scenario from what stands in a file or was typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from .catalogue import catalogue, table
from .entries import ENTRIES, entry_field, entry_paths, read_entry
from .errors import ScenarioError, did_you_mean, nearest
from .field_values import parse_list, parse_value
from .fields import FIELDS, Field
from .huggingface import import_file
from .machine.rates import Rates
from .model.spec import ModelSpec
from .scenario import Cluster, Network, Scenario
from .serving.settings import Device, Engine, KvFormat, WeightFormat
from .units import QuantityError, format_quantity, parse_any
from .yaml_tree import Node, parse_tree, read_text

HEAD = {
    "name": Field("name", "Name", "text", "", "What the plan is called."),
    "kind": Field("kind", "Kind", "choice", "", "Training or serving.", choices=("training", "serving")),
}
CATALOGUES = {"model": "models", "cluster.accelerator": "accelerators", "cluster.network": "networks"}
#: Constants beside efficiencies that formulas divide by.
_DIVISORS = {
    *("small_head", "gemm", "streaming", "link", "pipeline", "block", "weight_only", "nvls", "ecc"),
    *("bits", "nominal_bits", "head_bits", "embedding_bits", "compiled", "emulated", "bytes"),
}
_SUFFIXES = (".yaml", ".yml")


def default(path: str) -> Any:
    """The value at a path in a scenario with nothing set; None where there is none."""
    head, _, rest = path.partition(".")
    node: Any = Cluster if head == "cluster" else getattr(Scenario, head, None)
    for name in rest.split(".") if rest else ():
        node = getattr(node, name, None)
    return node


@cache
def assumption_names() -> tuple[str, ...]:
    """The constants of machines and engines that `assumptions` may override."""
    tables = (Rates, Engine, Device, WeightFormat, KvFormat)
    return tuple(dict.fromkeys(f.name for kind in tables for f in fields(kind) if f.type == "Number"))


def known_paths() -> list[str]:
    """Every path that can be set."""
    assumptions = (f"assumptions.{name}" for name in assumption_names())
    return list(dict.fromkeys((*HEAD, *FIELDS, *entry_paths(), *assumptions)))


def read_value(node: Node, path: str, file: str) -> Any:
    """The value that a node gives the path of a scenario. Raises ScenarioError with the node's line."""
    try:
        if path in ENTRIES:
            return _entry(node, path, file)
        if path.startswith("assumptions."):
            return _assumption(node, path)
        field = HEAD.get(path) or FIELDS.get(path) or entry_field(path)
        if field is None:
            raise QuantityError(_unknown(path))
        if isinstance(node.value, list):
            return parse_list(field, [str(item.value) for item in node.value])
        return _field_value(field, _text(node), default(path))
    except QuantityError as error:
        raise ScenarioError(file, node.line, path, str(error)) from None


def _text(node: Node) -> str:
    if not isinstance(node.value, str):
        raise QuantityError(f"takes one value, not a {'mapping' if isinstance(node.value, dict) else 'list'}")
    return node.value


def _unknown(path: str) -> str:
    """Why a path has no value, with what would do."""
    known = known_paths()
    if inside := [other for other in known if other.startswith(f"{path}.")]:
        return f"is a section; name one of its fields, for example {inside[0]}"
    return f"unknown key; {_meant(path, known)}"


def _meant(path: str, known: list[str]) -> str:
    """What was probably meant: a path with the same last name, else the most similar one, else what the section has."""
    section, _, name = path.rpartition(".")
    heads = list(dict.fromkeys(other.partition(".")[0] for other in known))
    if same := [other for other in known if other.rpartition(".")[2] == name]:
        return f"did you mean {' or '.join(same[:3])}?"
    if nearest(path, [*heads, *known]):
        return did_you_mean(path, [*heads, *known])
    inside = [other for other in known if section and other.rpartition(".")[0] == section]
    return did_you_mean(path, inside or heads)


def _field_value(field: Field, text: str, usual: Any) -> Any:
    if field.catalogue:
        if text not in table(field.catalogue):
            raise QuantityError(f"{text!r} is not in the catalogue; {did_you_mean(text, table(field.catalogue))}")
        return text
    return parse_value(field, text, usual)


def _assumption(node: Node, path: str) -> float:
    name, text = path.removeprefix("assumptions."), _text(node)
    if name not in assumption_names():
        raise QuantityError(f"unknown constant; {did_you_mean(name, assumption_names())}")
    value = parse_any(text)
    # Rates and sizes divide, times and shares may vanish, and only the lower end of an error band lies below zero.
    least = 1e-6 if name.startswith("e_") or name in _DIVISORS else -1.0 if name == "band_low" else 0.0
    if value < least:
        raise QuantityError(f"{text} is too small: {least:g} or more would do")
    return value


def _entry(node: Node, path: str, file: str) -> Any:
    """A catalogue entry by id, by a path or a rate where that is possible, or written out, maybe on a base."""
    entries: Mapping[str, Any] = getattr(catalogue(), CATALOGUES[path])
    if isinstance(node.value, dict):
        facts = dict(node.value)
        base = facts.pop("base", None)
        start = _picked(_text(base), entries, path) if base else None
        return read_entry(node._replace(value=facts), path, file, start)
    text = _text(node)
    if text in entries:
        return entries[text]
    if path == "cluster.network" and text[:1].isdecimal():
        return network_of(parse_value(FIELDS["cluster.network.bandwidth"], text))
    if path == "model" and ("/" in text or text.endswith((*_SUFFIXES, ".json"))):
        return _model_file(text, file)
    if path == "cluster.accelerator" and text.endswith(_SUFFIXES):
        return _entry_file(text, path, file)
    return _picked(text, entries, path)


def _picked(text: str, entries: Mapping[str, Any], path: str) -> Any:
    if text not in entries:
        rate = " nor a rate such as 25 GB/s" if path == "cluster.network" else ""
        raise QuantityError(f"{text!r} is not in the catalogue{rate}; {did_you_mean(text, entries)}")
    return entries[text]


def network_of(bandwidth: float) -> Network:
    """The network of a rate that a person states, in bytes/s for each GPU and direction."""
    return Network("custom", f"{format_quantity(bandwidth, 'bytes/s')} per GPU", bandwidth, source="as stated")


def _model_file(text: str, file: str) -> ModelSpec:
    """The model of a YAML file or a config.json, whose path is relative to the folder of the scenario's file."""
    if not text.endswith(".json"):
        return _entry_file(text, "model", file)
    path = Path(file).parent / text
    try:
        return import_file(path, str(path)).spec
    except ScenarioError as error:
        raise QuantityError(str(error)) from None


def _entry_file(text: str, path: str, file: str) -> Any:
    """The entry of a YAML file of its own, whose path is relative to the folder of the scenario's file."""
    place = Path(file).parent / text
    try:
        content = read_text(place, str(place))
    except ScenarioError as error:
        raise QuantityError(str(error)) from None
    tree = parse_tree(content, str(place))
    named = {"id": Node(place.stem, 0), "name": Node(place.stem, 0)} if "base" not in tree.value else {}
    return _entry(tree._replace(value=named | tree.value), path, str(place))
