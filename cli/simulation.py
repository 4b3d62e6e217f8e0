"""`triledger simulate`: a benchmark of a serving plan, iteration by iteration, beside its steady state."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .arguments import InputError, add_scenario, scenario_of
from .text import aligned

if TYPE_CHECKING:
    from ..core.serving.plan import Plan
    from ..core.serving.simulation import Benchmark


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    parser.add_argument("--rounds", type=_positive, default=10.0, metavar="N", help="requests a client (default 10)")
    parser.add_argument("--requests", type=_positive, metavar="N", help="requests of each engine, instead of rounds")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    from ..core.model.layers import build
    from ..core.serving.plan import plan_of
    from ..core.serving.simulation import benchmark

    scenario = scenario_of(options)
    if scenario.kind != "serving":
        raise InputError(f"simulate: {scenario.name} is a {scenario.kind} plan; only serving plans are simulated")
    if scenario.serving.request_rate > 0:
        raise InputError("serving.request_rate: a simulated benchmark is a closed loop (0 does)")
    if scenario.serving.disaggregated:
        raise InputError("serving.disaggregated: separate pools are not simulated (false does)")
    if scenario.serving.output_tokens < 1:
        raise InputError("serving.output_tokens: a simulated benchmark needs answers (1 or more does)")
    plan = plan_of(scenario, build(scenario.model))
    found = benchmark(plan, options.requests, options.rounds)
    if options.format == "json":
        from dataclasses import asdict

        print(json.dumps(asdict(found), indent=2))
    else:
        print("\n".join(_text(plan, found)))
    return 0


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1e9")
    return number


def _text(plan: Plan, found: Benchmark) -> Iterator[str]:
    from ..core.units import digits, format_quantity

    def seconds(*values: float) -> list[str]:
        return [format_quantity(value, "seconds") for value in values]

    state = plan.steady
    yield f"{plan.scenario.name}: {found.requests} requests of {found.clients} clients to each engine"
    yield ""
    times = (("time to first token", found.ttft, state.ttft), ("time per output token", found.tpot, state.tpot))
    rows = [
        (name, *seconds(each.mean, each.p50, each.p90, each.p99, steady))
        for name, each, steady in times
        if each is not None
    ]
    yield from aligned([("", "mean", "median", "90 %", "99 %", "steady state"), *rows], "<>>>>>")
    yield ""
    output, steady = (format_quantity(value, "tokens/s") for value in (found.output, state.output))
    rate, span = digits(found.answered), format_quantity(found.seconds, "seconds")
    yield f"  {output}, {rate} requests/s for {span}; steady state {steady}"
