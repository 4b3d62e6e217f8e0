"""A published run as a plan that can be opened like any other, with what was measured put in where it was seen."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ScenarioError, did_you_mean
from ..legality import require_legal
from ..scenario import Scenario
from .comparison import Case, NotExpressibleError
from .kv_rows import kv_plan
from .rows import Row, shipped_tables
from .serving_rows import serving_case
from .sources import name_of, settings_of, source_of
from .training_rows import training_case, training_plan

#: What stands before a run's id where a scenario is asked for.
PREFIX = "run:"
#: Metric -> the field for what a person saw.
_SEEN = {
    "step time": "measured.step_time",
    "time per token": "measured.tpot",
    "mean time per token": "measured.tpot",
    "mean time to first token": "measured.ttft",
    "output": "measured.tokens_per_s",
}


def run_scenario(reference: str) -> Scenario:
    """The plan of a published run, named `run:` and its id. ScenarioError where there is none, with the reason."""
    name = reference.removeprefix(PREFIX)
    rows = {row.id: (table.kind, row) for table in reversed(shipped_tables()) for row in table.rows}
    if name not in rows:
        raise ScenarioError(reference, 0, "", f"no published run is called {name!r}; {did_you_mean(name, rows)}")
    kind, row = rows[name]
    try:
        scenario = _PLANS[kind](row)
    except NotExpressibleError as reason:
        raise ScenarioError(reference, 0, "", f"cannot be expressed: {reason}") from None
    scenario = scenario.with_("name", f"{name_of(kind, source_of(kind, row))}: {row.id}")
    require_legal(scenario, reference)
    return scenario


def _seen(case: Case) -> Scenario:
    path = _SEEN.get(case.metric)
    return case.scenario.with_(path, case.measured) if path else case.scenario


_PLANS: dict[str, Callable[[Row], Scenario]] = {
    "training": lambda row: _seen(training_case(row)),
    "serving": lambda row: _seen(serving_case(row)),
    "memory": lambda row: training_plan(settings_of("memory", row)),
    "vllm_kv": lambda row: kv_plan(row)[0],
}
