"""`triledger sweep`: a table over the values of one or more fields, as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Collection, Sequence

from .arguments import InputError, add_scenario, refuse_other_kind, scenario_of, split_setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    parser.add_argument(
        "--over",
        metavar="PATH=A,B,C",
        action="append",
        required=True,
        help="a field and its values, for example training.micro_batch=1,2,4; repeated: every combination",
    )
    parser.add_argument("--metric", metavar="KEY", nargs="+", action="extend", help="results to list, by key")


def run(options: argparse.Namespace) -> int:
    from ..core.engine import evaluate
    from ..core.errors import ScenarioError
    from ..core.explore.sweep import METRICS, sweep

    scenario = scenario_of(options)
    over = [_axis(text) for text in options.over]
    if not any(path == "kind" for path, _ in over):
        refuse_other_kind([path for path, _ in over], scenario.kind)
    metrics = options.metric or METRICS[scenario.kind]
    plan = evaluate(scenario)
    _require_known(metrics, [*plan.values, *plan.withheld, *METRICS[scenario.kind]])
    try:
        rows = sweep(scenario, over, metrics, evaluate)
    except ScenarioError as error:
        raise InputError(f"--over: {error}") from None
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*(path for path, _ in over), *metrics, "reason"])
    for row in rows:
        writer.writerow([*row.settings, *(row.results.get(key, "") for key in metrics), row.reason])
    return 0


def _axis(text: str) -> tuple[str, list[str]]:
    path, values = split_setting("--over", text)
    return path, [value.strip() for value in values.split(",")]


def _require_known(metrics: Sequence[str], known: Collection[str]) -> None:
    from ..core.errors import did_you_mean

    for key in metrics:
        if key not in known:
            raise InputError(f"--metric: no result is called {key!r}; {did_you_mean(key, known)}")
