"""A scenario as the YAML of its file: only what differs from the defaults, in units a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from .catalogue import catalogue
from .entries import ENTRIES, write_entry
from .errors import OutputError, ScenarioError
from .field_values import write_value
from .fields import FIELDS
from .files import write_whole
from .model.spec import ModelSpec
from .model_runs import OnOneLine
from .scenario import Scenario
from .scenario_values import CATALOGUES, HEAD, default, network_of
from .terms import plain

#: Version of the file format.
FORMAT = 1


class _Dumper(yaml.SafeDumper):
    """Lists of numbers and runs of layers stand on one line each."""


_Dumper.add_representer(tuple, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True))
_Dumper.add_representer(OnOneLine, lambda dumper, items: dumper.represent_mapping("tag:yaml.org,2002:map", items, True))


def write_scenario(scenario: Scenario) -> str:
    """The text of a scenario's file. `read_scenario` of it gives an equal scenario."""
    content: dict[str, Any] = {"triledger": FORMAT}
    for path in _paths():
        value = scenario.get(path)
        if path in ENTRIES:
            _place(content, path, _entry(value, path))
        elif value != default(path):
            _place(content, path, write_value(HEAD.get(path) or FIELDS[path], value))
    if scenario.assumptions:
        content["assumptions"] = {name: plain(value) for name, value in scenario.assumptions}
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def write_model(spec: ModelSpec) -> str:
    """The text of a model's own file, whose path a scenario can name."""
    content = {"id": spec.id, "name": spec.name} | write_entry(spec, "model")
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def save_scenario(scenario: Scenario, path: str | Path) -> None:
    """Writes the scenario's file whole or not at all: on failure the old file still stands. Raises ScenarioError."""
    try:
        write_whole(path, write_scenario(scenario).encode())
    except OutputError as error:
        raise ScenarioError("", 0, "", str(error)) from None


def _paths() -> list[str]:
    """What a file may say, section by section; facts of entries are said with their entry."""
    inside = tuple(f"{entry}." for entry in ENTRIES)
    paths = [path for path in (*HEAD, *FIELDS) if not path.startswith(inside)]
    order = ["name", "kind", *(f.name for f in fields(Scenario) if f.name not in HEAD)]
    return sorted(paths, key=lambda path: order.index(path.partition(".")[0]))


def _place(content: dict[str, Any], path: str, value: Any) -> None:
    *sections, name = path.split(".")
    for section in sections:
        content = content.setdefault(section, {})
    content[name] = value


def _entry(entry: Any, path: str) -> Any:
    """An entry as its id, as what differs from the entry of its id, or written out; a stated network as its rate."""
    known: Mapping[str, Any] = getattr(catalogue(), CATALOGUES[path])
    base = known.get(entry.id)
    if base == entry:
        return str(entry.id)
    if path == "cluster.network" and entry == network_of(entry.bandwidth):
        return write_value(FIELDS["cluster.network.bandwidth"], entry.bandwidth)
    return ({"base": str(entry.id)} if base else {}) | write_entry(entry, path, base)
