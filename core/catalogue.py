"""The shipped data: models, accelerators and networks by id, the preset scenarios, and tables of constants."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from .entries import read_entry
from .errors import ScenarioError, nearest
from .model.spec import ModelSpec
from .scenario import Accelerator, Network
from .units import parse_any
from .yaml_tree import Node, parse_tree, read_text

__all__ = ["Catalogue", "Engine", "Preset", "catalogue", "nearest", "table"]

_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class Preset:
    """A scenario that comes with the program."""

    id: str
    name: str
    path: Path


@dataclass(frozen=True)
class Engine:
    """A serving engine and its generation, as it is picked; its constants stand in the table of engines."""

    id: str
    name: str
    source: str


@dataclass(frozen=True)
class Catalogue:
    """Everything that can be picked by id, in the order of the files."""

    models: Mapping[str, ModelSpec]
    accelerators: Mapping[str, Accelerator]
    networks: Mapping[str, Network]
    presets: Mapping[str, Preset]

    @property
    def engines(self) -> Mapping[str, Engine]:
        """The serving engines; their file is read when one is asked for, as training needs none."""
        return MappingProxyType({key: Engine(key, row["name"], row["source"]) for key, row in table("engines").items()})


@cache
def catalogue() -> Catalogue:
    """The shipped catalogue. Raises ScenarioError if one of its files is damaged or a datum has no source."""
    return Catalogue(
        models=_entries("models", "model"),
        accelerators=_entries("accelerators", "cluster.accelerator"),
        networks=_entries("networks", "cluster.network"),
        presets=MappingProxyType({path.stem: _preset(path) for path in sorted(_folder("scenarios").glob("*.yaml"))}),
    )


@cache
def table(name: str) -> dict[str, Any]:
    """The data file `presets/NAME.yaml` as nested dicts and lists of numbers (quantities in SI), flags and words."""
    return cast(dict[str, Any], _plain(_tree(name)))


def _folder(name: str = "") -> Path:
    return Path(str(files(__name__.replace(".core.catalogue", ".presets")))) / name


def _tree(name: str) -> Node:
    path = _folder() / f"{name}.yaml"
    return parse_tree(read_text(path, str(path)), str(path))


def _entries(name: str, path: str) -> Mapping[str, Any]:
    """Entries by id; each mapping of the file is one, and must name its source."""
    file = f"{name}.yaml"
    result = {}
    for key, node in _tree(name).value.items():
        entry = replace(read_entry(node, path, file), id=key)
        if not entry.source:
            raise ScenarioError(file, node.line, key, "has no source; write source: and where the figures stand")
        result[key] = entry
    return MappingProxyType(result)


def _preset(path: Path) -> Preset:
    name = parse_tree(read_text(path, str(path)), str(path)).value.get("name")
    return Preset(path.stem, name.value if name else path.stem, path)


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [_plain(child) for child in node.value]
    if node.quoted:
        return node.value
    if node.value[:1] in "+-.0123456789":
        return _number(node.value)
    return None if node.is_empty else _WORDS.get(node.value, node.value)


def _number(text: str) -> Any:
    """The whole number, number or quantity that a plain text is; else the text."""
    for convert in (int, float, parse_any):
        with suppress(ValueError):
            return convert(text)
    return text
