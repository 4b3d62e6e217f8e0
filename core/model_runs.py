"""The runs of layers of a model from what a file says, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from .errors import ScenarioError, did_you_mean
from .field_values import parse_value, write_value
from .fields import FACTS
from .model.spec import LayerRun
from .units import QuantityError
from .yaml_tree import Node

RUNS = "model.runs"


def read_runs(node: Node, file: str) -> tuple[LayerRun, ...]:
    """The runs that a list of mappings says. Raises ScenarioError with the line of what cannot be."""
    if not isinstance(node.value, list):
        raise ScenarioError(file, node.line, RUNS, "takes a list, for example [{count: 3, feed_forward: dense}]")
    return tuple(_run(child, file) for child in node.value)


def _run(node: Node, file: str) -> LayerRun:
    if not isinstance(node.value, dict):
        raise ScenarioError(file, node.line, RUNS, "holds something that is no run; write {count: 3, mixer: window}")
    return LayerRun(**{name: _fact(name, child, file) for name, child in node.value.items()})


def _fact(name: str, node: Node, file: str) -> Any:
    path, known = f"{RUNS}.{name}", [f.name for f in fields(LayerRun)]
    if name not in known:
        raise ScenarioError(file, node.line, path, f"unknown key; {did_you_mean(name, known)}")
    if not isinstance(node.value, str):
        raise ScenarioError(file, node.line, path, "takes one value, not a mapping or a list")
    try:
        value = parse_value(FACTS[path], node.value)
    except QuantityError as error:
        raise ScenarioError(file, node.line, path, str(error)) from None
    return int(value) if FACTS[path].unit == "count" else value


class OnOneLine(dict[str, Any]):
    """A mapping that a file says on one line."""


def write_runs(runs: tuple[LayerRun, ...]) -> list[OnOneLine]:
    """The list that a file says for some runs; what a run leaves open is not said."""
    return [OnOneLine(_written(run)) for run in runs]


def _written(run: LayerRun) -> Iterator[tuple[str, Any]]:
    usual = LayerRun(count=0)
    for f in fields(LayerRun):
        value = getattr(run, f.name)
        if value != getattr(usual, f.name):
            yield f.name, write_value(FACTS[f"{RUNS}.{f.name}"], value)
