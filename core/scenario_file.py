"""Scenario files: YAML to a Scenario with errors that name the line, single fields from text, and back to YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .catalogue import catalogue
from .entries import ENTRIES
from .errors import ScenarioError, did_you_mean
from .fields import FIELDS
from .legality import require_legal
from .scenario import Cluster, Scenario
from .scenario_values import CATALOGUES, read_value
from .scenario_writing import FORMAT, save_scenario, write_scenario
from .yaml_tree import Node, parse_tree, read_text

__all__ = [
    "load_scenario",
    "part_in",
    "read_scenario",
    "save_scenario",
    "set_field",
    "with_part",
    "write_scenario",
]

#: The network of a file that names none.
_USUAL_NETWORK = "ib-ndr-400"
#: What is said of a file that holds one part of a scenario, by the path of the part.
_PARTS = {
    "model": "is a model; name it with model: in a scenario, or give --set model=FILE",
    "cluster.accelerator": (
        "is an accelerator; name it with cluster.accelerator: in a scenario, or give --set cluster.accelerator=FILE"
    ),
    "assumptions": "is the section assumptions of a scenario; copy it into one, or give --set assumptions.NAME=VALUE",
}


def _sections() -> frozenset[str]:
    """Paths under which settings stand; entries and what is inside them are values."""
    paths = (path for path in FIELDS if not path.startswith(tuple(f"{entry}." for entry in ENTRIES)))
    parts = (path.split(".") for path in paths)
    return frozenset(".".join(words[:end]) for words in parts for end in range(1, len(words))) | {"assumptions"}


_SECTIONS = _sections()


def load_scenario(reference: str | Path) -> Scenario:
    """The scenario of a preset's id, of a published run ("run:" and its id), or of a YAML file's path.

    Raises ScenarioError, one line with file, line and field, for a file that cannot be read, a value that is not
    possible, or a layout in which something does not divide.
    """
    name, presets = str(reference), catalogue().presets
    if name.startswith("run:"):
        from .measured.runs import run_scenario  # the tables of runs are read when one is asked for

        return run_scenario(name)
    path = presets[name].path if name in presets else Path(reference)
    if name in ("", ".") or (not path.suffix and path.name == name and not path.exists()):
        raise ScenarioError(name, 0, "", f"is neither a preset nor a file; {did_you_mean(name, presets)}")
    if path.suffix == ".json":
        raise ScenarioError(name, 0, "", "is not a scenario, which is a YAML file that names its model")
    return read_scenario(read_text(path, str(path)), str(path))


def read_scenario(text: str, file_name: str) -> Scenario:
    """The scenario of a YAML text; `file_name` stands in messages, and paths in it are relative to its folder.

    Raises ScenarioError as `load_scenario` does.
    """
    tree = parse_tree(text, file_name)
    _check_format(tree, file_name)
    if part := _part_of(tree):
        raise ScenarioError(file_name, 0, "", _PARTS[part])
    values = _settings(tree, "", file_name)
    for path in ("model", "cluster.accelerator"):
        if path not in values:
            first = next(iter(getattr(catalogue(), CATALOGUES[path])))
            raise ScenarioError(file_name, 0, path, f"is missing; write for example {first}")
    network = values.pop("cluster.network", catalogue().networks[_USUAL_NETWORK])
    scenario = Scenario(values.pop("model"), Cluster(values.pop("cluster.accelerator"), network))
    for path, value in values.items():
        scenario = scenario.with_(path, value)
    require_legal(scenario, file_name, _lines(tree))
    return scenario


def part_in(path: Path) -> str:
    """The path of the part of a scenario that a YAML file holds by itself, such as model; empty for a whole scenario.

    Raises ScenarioError where it cannot be read.
    """
    return _part_of(parse_tree(read_text(path, str(path)), str(path)))


def with_part(scenario: Scenario, part: str, path: Path) -> Scenario:
    """A copy of the scenario with one part from the file that holds it. Raises ScenarioError with the place."""
    if part in ENTRIES:
        return set_field(scenario, part, str(path.resolve()))
    tree = parse_tree(read_text(path, str(path)), str(path))
    for name, value in _settings(tree, "", str(path)).items():
        scenario = scenario.with_(name, value)
    return scenario


def _part_of(tree: Node) -> str:
    keys = tree.value.keys() - {"triledger"}
    if keys == {"assumptions"}:
        return "assumptions"
    if keys & {"model", "cluster"}:
        return ""
    base = tree.value["base"].value if "base" in keys else ""
    if keys & {"measured", "memory_bandwidth"} or base in catalogue().accelerators:
        return "cluster.accelerator"
    return "model" if keys & {"layers", "hidden_size"} or base in catalogue().models else ""


def set_field(scenario: Scenario, path: str, text: str) -> Scenario:
    """A copy of the scenario in which one field has the value that a person wrote.

    Whether the layout is still possible is not asked here, as the next field may make it so. Raises ScenarioError
    without file and line.
    """
    node = Node(text.strip(), 0)
    return scenario.with_(path, read_value(node, path, ""))


def _check_format(tree: Node, file: str) -> None:
    node = tree.value.get("triledger")
    if node is None or node.value == str(FORMAT):
        return
    if isinstance(node.value, str) and node.value.isdecimal():
        reason = f"format {node.value} is not known; this version reads triledger: {FORMAT}, a newer one may read it"
    else:
        reason = f"is the version of the format; write triledger: {FORMAT}"
    raise ScenarioError(file, node.line, "triledger", reason)


def _settings(tree: Node, prefix: str, file: str) -> dict[str, Any]:
    """The values below a mapping by path."""
    values: dict[str, Any] = {}
    for key, node in tree.value.items():
        path = prefix + key
        if path not in _SECTIONS:
            if path != "triledger":
                values[path] = read_value(node, path, file)
        elif isinstance(node.value, dict):
            values |= _settings(node, f"{path}.", file)
        elif not node.is_empty:
            raise ScenarioError(file, node.line, path, "is a section; write key: value lines below it")
    return values


def _lines(tree: Node, prefix: str = "") -> dict[str, int]:
    """The line of every key by path."""
    lines: dict[str, int] = {}
    for key, node in tree.value.items():
        lines[prefix + key] = node.line
        if isinstance(node.value, dict):
            lines |= _lines(node, f"{prefix}{key}.")
    return lines
