"""Any chart of a plan by its name. A view that knows its charts imports their modules, and no others."""

from __future__ import annotations

from ..errors import OutputError, did_you_mean
from ..measured.similar import most_similar
from ..report import Report
from ..scenario import Scenario
from .communication import communication
from .figure import Figure
from .latency import latency
from .measured import measured_like
from .memory import memory
from .roofline import roofline
from .serving import concurrency_sweep, serving
from .speculation import speculation
from .training import gpus_sweep, training_days
from .waterfall import waterfall

#: The charts by name, each with the kinds of plan it is drawn for.
FIGURES = {
    "roofline": ("training", "serving"),
    "memory": ("training", "serving"),
    "communication": ("training", "serving"),
    "training": ("training",),
    "serving": ("serving",),
    "waterfall": ("training", "serving"),
    "latency": ("serving",),
    "speculation": ("serving",),
    "measured": ("training", "serving"),
}

_OF_ONE_REPORT = {
    "roofline": roofline,
    "memory": memory,
    "communication": communication,
    "waterfall": waterfall,
    "latency": latency,
    "speculation": speculation,
    "measured": lambda report, _baseline: measured_like(report, most_similar(report.scenario)),
}
_ALONG_A_CURVE = {"training": (training_days, gpus_sweep), "serving": (serving, concurrency_sweep)}


def figure(name: str, scenario: Scenario, report: Report, baseline: Report | None = None) -> Figure:
    """The chart of a name for a scenario and its report; the curve that some charts need is evaluated here.

    Raises OutputError with what would do where there is no such chart of such a plan.
    """
    if name not in FIGURES:
        raise OutputError(f"no chart is called {name!r}; {did_you_mean(name, FIGURES)}")
    if scenario.kind not in FIGURES[name]:
        drawn = ", ".join(chart for chart, kinds in FIGURES.items() if scenario.kind in kinds)
        raise OutputError(f"a {scenario.kind} plan has no {name} chart; it has {drawn}")
    if name in _OF_ONE_REPORT:
        return _OF_ONE_REPORT[name](report, baseline)
    from ..engine import evaluate

    build, sweep = _ALONG_A_CURVE[name]
    return build(report, evaluate(sweep(scenario)), baseline)
