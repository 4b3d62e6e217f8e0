"""Catalogue entries: mappings of a file to a ModelSpec, an Accelerator or a Network, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from dataclasses import Field as Attribute
from typing import Any

from .errors import ScenarioError, did_you_mean
from .field_values import parse_value, write_value
from .fields import FACTS, FIELDS, Field
from .model.consistency import faults
from .model.spec import ModelSpec
from .model_runs import RUNS, read_runs, write_runs
from .scenario import Accelerator, Link, MeasuredRates, Network, Peak
from .units import QuantityError
from .yaml_tree import Node

#: The paths of a scenario at which an entry stands, and what it is read into.
ENTRIES: dict[str, type] = {"model": ModelSpec, "cluster.accelerator": Accelerator, "cluster.network": Network}
_NESTED: dict[str, type] = {
    "cluster.accelerator.peak": Peak,
    "cluster.accelerator.link": Link,
    "cluster.accelerator.measured": MeasuredRates,
}
_SIZES_OF_EQUAL_LAYERS = ("heads", "kv_heads", "ffn_size", "vocabulary")
#: What an entry that a person adds may leave out beside the defaults of its class.
_IMPLIED: dict[str, Any] = {
    "id": "custom",
    "name": "Custom",
    "vendor": "",
    "generation": "other",
    "link": Link("none", 1.25e9, 1),
}


def entry_field(path: str) -> Field | None:
    """The field of one fact of an entry (`cluster.accelerator.peak.fp8`), or None where there is no such fact."""
    prefix, _, name = path.rpartition(".")
    kind = ENTRIES.get(prefix) or _NESTED.get(prefix)
    attribute = next((a for a in fields(kind) if a.name == name), None) if kind else None
    if attribute is None or path in _NESTED or path == RUNS:
        return None
    return FIELDS.get(path) or FACTS.get(path) or Field(path, name, "text", "", "")


def entry_paths() -> list[str]:
    """The paths of all facts of entries."""
    tables = {**ENTRIES, **_NESTED}
    paths = (f"{prefix}.{attribute.name}" for prefix, kind in tables.items() for attribute in fields(kind))
    return [path for path in paths if path not in _NESTED and path != RUNS]


def read_entry(node: Node, path: str, file: str, base: Any = None) -> Any:
    """The entry that a mapping at `path` describes, on top of `base` where one is given.

    Raises ScenarioError for unknown or missing facts and for values that are not possible.
    """
    kind = ENTRIES.get(path) or _NESTED[path]
    if not isinstance(node.value, dict):
        raise ScenarioError(file, node.line, path, "is not a mapping; write key: value lines")
    attributes = {attribute.name: attribute for attribute in fields(kind)}
    values = {}
    for name, child in node.value.items():
        if name not in attributes:
            raise ScenarioError(file, child.line, f"{path}.{name}", f"unknown key; {did_you_mean(name, attributes)}")
        unset = _default(attributes[name])
        values[name] = _fact(child, f"{path}.{name}", file, unset, getattr(base, name, unset))
    if "memory" in values:
        values.setdefault("memory_reported", None)  # the vendor's total is that of the part as built
    if base is not None:
        return _consistent(replace(base, **values), node, file)
    if kind is ModelSpec and "heads" in values:
        values.setdefault("kv_heads", values["heads"])
    usual = {name: value for name, a in attributes.items() if (value := _default(a)) is not MISSING}
    if kind is ModelSpec and "runs" not in values:  # equal layers have attention and a feed-forward part
        usual = {name: value for name, value in usual.items() if name not in _SIZES_OF_EQUAL_LAYERS}
    missing = [name for name in attributes if name not in usual | values]
    if missing:
        raise ScenarioError(file, node.line, path, f"needs {', '.join(missing)} too, or base: and the id to start from")
    return _consistent(kind(**usual | values), node, file)


def _consistent(entry: Any, node: Node, file: str) -> Any:
    """The entry; ScenarioError, with the line of the fact, where it is a model that contradicts itself."""
    for path, message in faults(entry) if isinstance(entry, ModelSpec) else ():
        at = node.value.get(path.rpartition(".")[2], node)
        raise ScenarioError(file, at.line, path, message)
    return entry


def out_of_range(model: ModelSpec) -> Iterator[tuple[str, str]]:
    """(field, message) of every number of a model that no file could state."""
    for attribute in fields(model):
        value, field = getattr(model, attribute.name), entry_field(f"model.{attribute.name}")
        if not field or value == attribute.default or not isinstance(value, (int, float)):
            continue
        if not field.minimum <= value <= field.maximum:
            yield field.path, f"{value:.0f} is not within {field.minimum:.0f} to {field.maximum:.0f}"


def _default(attribute: Attribute[Any]) -> Any:
    return _IMPLIED.get(attribute.name, MISSING) if attribute.default is MISSING else attribute.default


def _fact(node: Node, path: str, file: str, unset: Any, below: Any) -> Any:
    """One fact; `unset` is what it is when it is not given, `below` what the base says."""
    if path in _NESTED:
        return read_entry(node, path, file, None if below is MISSING else below)
    if path == RUNS:
        return read_runs(node, file)
    field = entry_field(path)
    assert field is not None
    if not isinstance(node.value, str):
        raise ScenarioError(file, node.line, path, "takes one value, not a mapping or a list")
    try:
        return parse_value(field, node.value, None if unset is MISSING else unset)
    except QuantityError as error:
        raise ScenarioError(file, node.line, path, str(error)) from None


def write_entry(entry: Any, path: str, base: Any = None) -> dict[str, Any]:
    """The facts in which an entry differs from `base`, or from the defaults of its class, as a file says them."""
    result = {}
    for attribute in fields(entry):
        value, name = getattr(entry, attribute.name), f"{path}.{attribute.name}"
        usual = getattr(base, attribute.name) if base is not None else _default(attribute)
        if value == usual:
            continue
        if name in _NESTED:
            result[attribute.name] = write_entry(value, name, usual if is_dataclass(usual) else None)
        elif name == RUNS:
            result[attribute.name] = write_runs(value)
        elif field := entry_field(name):
            result[attribute.name] = write_value(field, value)
    return result
