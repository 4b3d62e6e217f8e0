"""Serving: output tokens a second of one GPU against the time of a token, with the requests along the curve."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..ledgers.serving_memory import serving_memory
from ..report import Report
from ..scenario import Scenario
from ..scenario_model import model_of
from ..serving.settings import settings_of
from ..units import digits, format_quantity
from ..words import NO_ROOM, count, plural, seconds
from .curves import Curve, along, crossing, runs
from .figure import Axis, Figure, Line, Mark, Rule
from .ticks import log_ticks, milliseconds

#: The curve reaches this many times beyond the plan's concurrency, and at least to the second number.
_BEYOND, _LEAST = 8, 256
_MS = 1e-3


def concurrency_sweep(scenario: Scenario) -> Scenario:
    """The plan at other concurrencies, in rising order in `serving.concurrency`.

    Powers of two, its own, and what the cache holds where that is among them.
    """
    own = int(scenario.serving.concurrency)
    last = max(_LEAST, own * _BEYOND)
    memory = serving_memory(scenario, model_of(scenario), settings_of(scenario))
    full = int(memory.held_requests)
    values = {own, *(2**k for k in range(last.bit_length()) if 2**k <= last), *({full} if 0 < full < last else ())}
    return scenario.with_("serving.concurrency", np.array(sorted(values), dtype=float))


def serving(report: Report, curve: Report, baseline: Report | None = None) -> Figure:
    """Tokens/s of a GPU against seconds a token, both logarithmic. `curve` is the report of `concurrency_sweep`."""
    if not report.holds_a_request:
        return Figure.without("serving", "No rates", NO_ROOM, report.scenario.name)
    if "serving.tpot_s" not in report or "serving.tpot_s" not in curve:
        reason = "An answer of one token or none has no time per token."
        return Figure.without("serving", "No time per token", reason, report.scenario.name)
    requests, tpot, rate = _curve(curve)
    capacity = float(report.get("serving.held_requests", requests[-1]))
    target = float(report.scenario.serving.tpot_target)
    plan = _point(report)
    before = _point(baseline) if baseline and "serving.tpot_s" in baseline else None
    shown = [*zip(tpot, rate, strict=True), plan, *([before] if before else ())]
    times, rates = [x for x, _ in shown], [y for _, y in shown]
    left, right = min(times) / 1.4, max(*times, min(target, max(times) * 3)) * 1.4
    low, high = min(rates) / 1.5, max(rates) * 1.7
    lines = _lines(requests, tpot, rate, capacity)
    steps = _steps(requests, tpot, rate, curve)
    own = float(report.scenario.serving.concurrency)
    marks = [*_full(steps, lines, capacity), *(steps[b] for b in requests if b not in (own, capacity))]
    marks += _limits(report, curve, requests, tpot, rate)
    marks.append(_plan_mark(report))
    if before and baseline:
        hover = f"baseline: {_words(baseline)}"
        marks.insert(0, Mark("baseline", "baseline", *before, "hollow", 11, hover=hover))
    rule = Rule("target", "capacity", "x", target, "dashed", f"target {milliseconds(target)}", "time per token wanted")
    return Figure(
        "serving",
        _title(report, capacity),
        "along the curve: requests decoded together",
        Axis("ms per output token", left, right, True, log_ticks(left, right, _MS), unit=_MS),
        Axis("output tokens/s per GPU", low, high, True, log_ticks(low, high)),
        lines=tuple(lines),
        marks=tuple(marks),
        rules=(rule,) if target <= right else (),
        columns=("requests", "time per token [s]", "output tokens/s per GPU", "tokens/s per request"),
        rows=tuple((b, t, r, 1 / t) for b, t, r in zip(requests, tpot, rate, strict=True)),
        scenario=report.scenario.name,
    )


def _curve(curve: Report) -> tuple[Curve, Curve, Curve]:
    """Requests, seconds a token and tokens/s of a GPU, up to where more requests change nothing."""
    requests = tuple(np.atleast_1d(curve.scenario.serving.concurrency).tolist())
    tpot = along(curve["serving.tpot_s"], len(requests))
    rate = along(curve["serving.output_tokens_per_s"] / curve.scenario.cluster.gpus, len(requests))
    end = len(requests)
    while end > 1 and all(math.isclose(each[end - 2], each[end - 1], rel_tol=1e-3) for each in (tpot, rate)):
        end -= 1
    return requests[:end], tpot[:end], rate[:end]


def _point(report: Report) -> tuple[float, float]:
    rate = report["serving.output_tokens_per_s"] / report.scenario.cluster.gpus
    return float(report["serving.tpot_s"]), float(rate)


def _lines(requests: Curve, tpot: Curve, rate: Curve, capacity: float) -> list[Line]:
    """The curve, solid up to the capacity and dashed beyond it."""
    lines = []
    for x, y, fit in runs(tpot, rate, [b <= capacity for b in requests]):
        hover = "requests that the KV cache holds" if fit else "more requests than the KV cache holds"
        lines.append(Line("curve", "prediction", x, y, "solid" if fit else "dashed", 2.2, hover=hover))
    return lines


def _full(steps: dict[float, Mark], lines: list[Line], capacity: float) -> list[Mark]:
    """A mark where the solid part of the curve ends and a dashed one goes on."""
    if [line.style for line in lines] != ["solid", "dashed"] or capacity not in steps:
        return []
    label = f"{count(capacity)} fill the KV cache"
    full = steps[capacity]
    hover = f"{label}: {full.hover}"
    return [replace(full, name="capacity", series="capacity", shape="hollow", size=8, label=label, hover=hover)]


def _limits(report: Report, curve: Report, requests: Curve, tpot: Curve, rate: Curve) -> Iterator[Mark]:
    """Marks between the steps: the knee, and where the first token begins to take longer than its target."""
    knee = report.get("serving.knee_requests")
    first = along(curve.get("serving.ttft_s"), len(np.atleast_1d(curve.scenario.serving.concurrency)))[: len(requests)]
    if knee is not None and requests[0] < knee < requests[-1]:
        hover = f"knee, about {plural(round(knee), 'request')}: beyond it latency grows faster than throughput"
        yield _hollow("knee", "bound", _between(knee, requests, tpot, rate), "knee", hover)
    target = float(report.scenario.serving.ttft_target)
    late = _rising(requests, first, target) if first else None
    if late is not None:
        wanted = milliseconds(target)
        hover = f"with more than about {plural(round(late), 'request')} the first token takes longer than {wanted}"
        yield _hollow("first token", "capacity", _between(late, requests, tpot, rate), f"TTFT {wanted}", hover)


def _rising(requests: Curve, values: Curve, level: float) -> float | None:
    """Requests at which values first rise from below a level to above it; None where they do not."""
    below = crossing(requests, tuple(1 / value for value in values), 1 / level)
    return below if values[0] < level else None


def _hollow(name: str, series: str, place: tuple[float, float], label: str, hover: str) -> Mark:
    return Mark(name, series, place[0], place[1], "hollow", 7, label, hover=hover)


def _between(at: float, requests: Curve, tpot: Curve, rate: Curve) -> tuple[float, float]:
    """The curve at a number of requests between its steps, on straight lines between logarithms."""
    x, y = (float(np.exp(np.interp(np.log(at), np.log(requests), np.log(each)))) for each in (tpot, rate))
    return x, y


def _steps(requests: Curve, tpot: Curve, rate: Curve, curve: Report) -> dict[float, Mark]:
    """Small dots along the curve by their number of requests, each with what it would be there."""
    price = along(
        curve.get("cost.usd_per_million_output_tokens"), len(np.atleast_1d(curve.scenario.serving.concurrency))
    )
    return {
        b: Mark(count(b), "prediction", t, r, "dot", 6, count(b), hover=f"{plural(b, 'request')}: {_pair(t, r)}{cost}")
        for b, t, r, cost in zip(requests, tpot, rate, _costs(price, len(requests)), strict=True)
    }


def _costs(price: Curve, size: int) -> list[str]:
    """Words of what a million output tokens cost at each step."""
    return [f", {format_quantity(p, 'USD')} a million" for p in price[:size]] if price else [""] * size


def _plan_mark(report: Report) -> Mark:
    own = plural(float(report.scenario.serving.concurrency), "request")
    return Mark("plan", "plan", *_point(report), "ring", 13, own, True, f"{own}: {_words(report)}")


def _words(report: Report) -> str:
    price = report.get("cost.usd_per_million_output_tokens")
    return _pair(*_point(report)) + _costs(() if price is None else (price,), 1)[0]


def _pair(tpot: float, rate: float) -> str:
    return f"{format_quantity(rate, 'tokens/s')} a GPU, {seconds(tpot, 3)} a token, {digits(1 / tpot)} tok/s each"


def _title(report: Report, capacity: float) -> str:
    tpot, rate = _point(report)
    own, target = float(report.scenario.serving.concurrency), float(report.scenario.serving.tpot_target)
    speed = f"{plural(own, 'request')}: {format_quantity(rate, 'tokens/s')} a GPU at {seconds(tpot, 3)} a token"
    if own > capacity:
        return f"{speed}; the KV cache holds {count(capacity)}"
    return speed if tpot <= target else f"{speed}, over the {milliseconds(target)} target"
