"""A row of a table of memory figures as a plan, and the figure that the source reports.

Sources report different numbers: the peak of live tensors, the peak of what the allocator reserved, or what the
vendor's tool shows. Which one is told by the metric; how each follows from the predicted peak of live tensors stands
in the table of sources. A run that failed for memory tests only whether the plan is said to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..engine import evaluate
from ..report import Report
from .comparison import Comparison, NotExpressibleError, Verdict
from .kv_rows import kv_plan
from .rows import Row
from .sources import Settings, figures_of, settings_of
from .training_rows import training_plan

GIB = 2.0**30
#: Bytes of the units in which figures are printed.
_UNITS = {"bytes": 1.0, "MiB": 2.0**20, "GiB": GIB}
#: Parts of a start-up, by metric.
_PARTS = {
    "weights per GPU": ("weights", "memory.weights_bytes"),
    "peak activation increase per GPU": ("activations", "memory.activations_bytes"),
    "non-torch per GPU": ("outside the framework", "memory.workspace_bytes"),
}


@dataclass(frozen=True)
class Figure:
    """A reported number: factor on the predicted peak, and GiB beside it, more with several ranks."""

    metric: str
    name: str
    factor: float = 1.0
    context: float = 0.0
    communicators: float = 0.0

    def of(self, report: Report) -> float:
        """The number in bytes for a predicted plan; never more than the device has."""
        many = float(report.scenario.cluster.gpus) > 1
        beside = self.context + (self.communicators if many else 0.0)
        size = self.factor * float(report["memory.total_bytes"]) + beside * GIB
        return min(size, float(report["memory.usable_bytes"])) if beside else size


def compare_memory(row: Row) -> Iterator[Comparison | Verdict]:
    """What a row says of memory, measured and predicted. Raises NotExpressibleError where it cannot be predicted."""
    settings = settings_of("memory", row)
    row = settings.row
    if row["workload"] == "vLLM startup":
        yield _part(row, settings)
        return
    figure = _figure(row)
    report = evaluate(training_plan(settings))
    failed = row["reported_value"] == "OOM" or row["outcome"] == "failed"
    if row["verdict"] == "yes" or failed:
        yield Verdict(row.id, settings.source, not failed, bool(report["memory.fits"]), row.flagged)
    if not failed:
        told = (figure.name, "GiB", _bytes(row) / GIB, figure.of(report) / GIB)
        yield Comparison(row.id, "memory", settings.source, *told, report.scenario, flagged=row.flagged)


def _part(row: Row, settings: Settings) -> Comparison:
    if row["mem_metric"] not in _PARTS:
        raise NotExpressibleError(f"{row['mem_metric']} is not predicted")
    name, key = _PARTS[row["mem_metric"]]
    scenario, _ = kv_plan(row)
    told = (name, "GiB", _bytes(row) / GIB, float(evaluate(scenario)[key]) / GIB)
    return Comparison(row.id, "memory", settings.source, *told, scenario, flagged=row.flagged)


def _figure(row: Row) -> Figure:
    """The figure that a row's metric means."""
    for entry in figures_of("memory"):
        if re.search(entry["metric"], row["mem_metric"]):
            return Figure(**entry)
    raise NotExpressibleError(f"what {row['mem_metric']!r} counts is not defined")


def _bytes(row: Row) -> float:
    if row["peak_mem_gib"]:
        return row.positive("peak_mem_gib") * GIB
    unit = row["unit"].split(" ")[0]
    if unit not in _UNITS:
        raise NotExpressibleError(f"{row['unit']!r} is no unit of certain size")
    return row.positive("reported_value") * _UNITS[unit]
