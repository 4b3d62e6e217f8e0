"""The plan of a row: what the table of sources says of it, then what its own cells say.

Beside the usual columns a row may name a model and a device by their ids in the catalogue, and any field of a plan by
its path: a column `cluster.network` or `overlap.tp_forward` sets that field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..catalogue import catalogue
from ..errors import ScenarioError
from ..fields import FIELDS
from ..model.spec import ModelSpec
from ..scenario import Cluster, Scenario
from ..scenario_values import read_value
from ..yaml_tree import Node
from .comparison import NotExpressibleError
from .rows import Row
from .sources import Settings

_DEVICE = "cluster.accelerator"
_SIZES = tuple(f"model.{name}" for name in ("layers", "hidden_size", "heads", "kv_heads", "ffn_size", "vocabulary"))


def plan_of(
    settings: Settings,
    kind: str,
    model_of: Callable[[Row], ModelSpec],
    fields_of: Callable[[Row], Mapping[str, Any]],
) -> Scenario:
    """The plan of a row whose settings are known; `model_of` reads the sizes of a model that is not in the catalogue.

    `fields_of` reads layout and work. Raises NotExpressibleError where model, device or layout is not known, and
    ScenarioError for a cell that is not what its column holds.
    """
    row, own = settings.row, stated(settings.row)
    inside = [f"{entry}." for entry in ("model", _DEVICE) if entry in own]
    values = {path: value for path, value in settings.values.items() if not path.startswith(tuple(inside))} | own
    known = catalogue()
    model = values.pop("model", None)
    model = model_of(row) if model is None else known.models[model] if isinstance(model, str) else model
    device, network = values.pop(_DEVICE, None), values.pop("cluster.network", "ib-ndr-400")
    if device is None:
        raise NotExpressibleError(f"no accelerator of the catalogue is meant by {row['gpu']!r}")
    cluster = Cluster(
        known.accelerators[device] if isinstance(device, str) else device,
        known.networks[network] if isinstance(network, str) else network,
    )
    scenario = Scenario(model, cluster, name=row.id, kind=kind)
    for path in _SIZES:
        within_range(row, path, scenario.get(path))
    for path, value in {**fields_of(row), **values}.items():
        scenario = scenario.with_(path, within_range(row, path, value))
    return scenario


def within_range(row: Row, path: str, value: Any) -> Any:
    """The value, where a field of that path may have it. ScenarioError with the line of the row otherwise."""
    field = FIELDS.get(path)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if field and number and not field.minimum <= value <= field.maximum:
        ends = f"{field.minimum:g} to {field.maximum:g}"
        raise ScenarioError(row.file, row.line, path, f"{value:g} is out of range: {ends} would do")
    return value


def stated(row: Row) -> dict[str, Any]:
    """The entries and fields that a row states by id or path. ScenarioError names line and column of a bad value."""
    known = catalogue()
    values: dict[str, Any] = {}
    if row["model"] in known.models:
        values["model"] = known.models[row["model"]]
    if row["gpu"] in known.accelerators:
        values[_DEVICE] = known.accelerators[row["gpu"]]
    for column in row.cells:
        if "." in column and row[column]:
            values[column] = read_value(Node(row[column], row.line), column, row.file)
    return values
