"""`triledger simulate`: a serving plan iteration by iteration, beside its steady state.

Clients that ask again when they are answered or, where the plan has a request rate, requests that come at random.
"""

from __future__ import annotations

import argparse
import json
import sys
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
    text = "requests of each engine, instead of rounds; at a request rate 2000 by default"
    parser.add_argument("--requests", type=_positive, metavar="N", help=text)
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    from ..core.scenario_model import model_of
    from ..core.serving.plan import plan_of
    from ..core.serving.simulation import arriving, benchmark
    from ..core.words import NO_ROOM

    scenario = scenario_of(options)
    if scenario.kind != "serving":
        raise InputError(f"simulate: {scenario.name} is a {scenario.kind} plan; only serving plans are simulated")
    if scenario.serving.disaggregated:
        raise InputError("serving.disaggregated: separate pools are not simulated (false does)")
    if scenario.serving.speculative.draft_tokens > 0:
        raise InputError("serving.speculative.draft_tokens: drafts are not simulated (0 does)")
    if scenario.serving.output_tokens < 1:
        raise InputError("serving.output_tokens: a simulated benchmark needs answers (1 or more does)")
    plan = plan_of(scenario, model_of(scenario))
    if plan.memory.held_requests < 1:
        print(f"triledger: {scenario.name}: {NO_ROOM[0].lower()}{NO_ROOM[1:-1]}", file=sys.stderr)
        return 1
    arrive = scenario.serving.request_rate > 0
    found = arriving(plan, options.requests) if arrive else benchmark(plan, options.requests, options.rounds)
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
    from ..core.serving import bounds
    from ..core.serving.goodput import tail_values
    from ..core.units import digits, format_quantity

    def seconds(*values: float) -> list[str]:
        return [format_quantity(value, "seconds") for value in values]

    state, rate = plan.steady, plan.scenario.serving.request_rate
    asked = f"of {found.clients} clients" if found.clients else f"at random, {digits(rate)} requests/s in all,"
    yield f"{plan.scenario.name}: {found.requests} requests {asked} to each engine"
    yield ""
    tails, saturated = tail_values(plan) if rate > 0 else {}, bounds.saturated(rate, state.requests)

    def said(key: str) -> list[str]:
        """What the formulas say of a time, and of its longest hundredth."""
        return seconds(getattr(state, key), *([tails[f"serving.p99_{key}_s"]] if tails else []))

    times = (("time to first token", found.ttft, "ttft"), ("time per output token", found.tpot, "tpot"))
    rows = [
        (
            name,
            *seconds(each.mean, each.p50, each.p90, each.p99),
            *(["endless"] * (1 + bool(tails)) if key == "ttft" and saturated else said(key)),
        )
        for name, each, key in times
        if each is not None
    ]
    steady_head = "spread out" if found.clients else "steady state"
    heads = ("", "mean", "median", "90 %", "99 %", steady_head, *(["its 99 %"] if tails else []))
    yield from aligned([heads, *rows], "<" + ">" * (len(heads) - 1))
    yield ""
    output, steady = (format_quantity(value, "tokens/s") for value in (found.output, state.output))
    answered, span = digits(found.answered), format_quantity(found.seconds, "seconds")
    yield f"  {output}, {answered} requests/s for {span}; steady state {steady}"
    yield from _notes(plan, found)
    if saturated:
        yield f"  saturated: {digits(state.requests)} requests/s can be answered, so waits grow with the run"


def _notes(plan: Plan, found: Benchmark) -> Iterator[str]:
    """What a closed loop is compared with, and requests that were asked for and not simulated."""
    from ..core.serving.simulation import MOST_REQUESTS
    from ..core.units import format_quantity

    if found.clients:
        yield "  spread out: the steady state of clients that ask at any time, not all together"
    if found.clients > 1 and plan.scenario.serving.lengths == "fixed":
        yield "  equal lengths keep clients that start together in step: first tokens wait for the prompts of all"
        yield "  others, further tokens for few (serving.lengths: drawn spreads them)"
    if found.asked > MOST_REQUESTS * plan.scenario.parallelism.pp:
        asked, most = (format_quantity(each, "count") for each in (found.asked, MOST_REQUESTS))
        yield f"  {asked} requests were asked for; at most {most} an engine are simulated, more change nothing"
