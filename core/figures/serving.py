"""Serving: output tokens a second of one GPU against the time of a token, with the requests along the curve."""

from __future__ import annotations

import math

import numpy as np

from ..report import Report
from ..scenario import Scenario
from ..units import digits, format_quantity
from .curves import Curve, along, between, runs
from .figure import Axis, Figure, Line, Mark, Rule
from .ticks import log_ticks
from .words import count, milliseconds, plural, seconds

#: The curve reaches this many times beyond the plan's concurrency, and at least to the second number.
_BEYOND, _LEAST = 8, 256
_MS = 1e-3


def concurrency_sweep(scenario: Scenario) -> Scenario:
    """The plan at other concurrencies: powers of two and its own, in rising order in `serving.concurrency`."""
    own = int(scenario.serving.concurrency)
    last = max(_LEAST, own * _BEYOND)
    values = sorted({own, *(2**k for k in range(last.bit_length()) if 2**k <= last)})
    return scenario.with_("serving.concurrency", np.array(values, dtype=float))


def serving(report: Report, curve: Report, baseline: Report | None = None) -> Figure:
    """Tokens/s of a GPU against seconds a token, both logarithmic. `curve` is the report of `concurrency_sweep`."""
    requests, tpot, rate = _curve(curve)
    capacity = float(report.get("serving.max_concurrency", requests[-1]))
    target = float(report.scenario.serving.tpot_target)
    plan = _point(report)
    before = _point(baseline) if baseline else plan
    times, rates = [*tpot, plan[0], before[0]], [*rate, plan[1], before[1]]
    left, right = min(times) / 1.4, max(*times, min(target, max(times) * 3)) * 1.4
    low, high = min(rates) / 1.5, max(rates) * 1.7
    lines = _lines(requests, tpot, rate, capacity)
    marks = [*_full(lines, capacity), *_steps(requests, tpot, rate, report), _plan_mark(report)]
    if baseline:
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
    while end > 1 and math.isclose(tpot[end - 2], tpot[end - 1], rel_tol=1e-3):
        end -= 1
    return requests[:end], tpot[:end], rate[:end]


def _point(report: Report) -> tuple[float, float]:
    rate = report["serving.output_tokens_per_s"] / report.scenario.cluster.gpus
    return float(report["serving.tpot_s"]), float(rate)


def _lines(requests: Curve, tpot: Curve, rate: Curve, capacity: float) -> list[Line]:
    """The curve, solid up to the capacity and dashed beyond it."""
    if requests[0] < capacity < requests[-1] and capacity not in requests:
        cut = sum(b < capacity for b in requests)
        tpot = (*tpot[:cut], between(requests, tpot, capacity), *tpot[cut:])
        rate = (*rate[:cut], between(requests, rate, capacity), *rate[cut:])
        requests = (*requests[:cut], capacity, *requests[cut:])
    lines = []
    for x, y, fit in runs(tpot, rate, [b <= capacity for b in requests]):
        hover = "requests that the KV cache holds" if fit else "more requests than the KV cache holds"
        lines.append(Line("curve", "prediction", x, y, "solid" if fit else "dashed", 2.2, hover=hover))
    return lines


def _full(lines: list[Line], capacity: float) -> list[Mark]:
    """A mark where the solid part of the curve ends and a dashed one goes on."""
    if [line.style for line in lines] != ["solid", "dashed"]:
        return []
    x, y, label = lines[0].x[-1], lines[0].y[-1], f"{count(capacity)} fill the KV cache"
    return [Mark("capacity", "capacity", x, y, "hollow", 8, label, hover=f"{label}: {_pair(x, y)}")]


def _steps(requests: Curve, tpot: Curve, rate: Curve, report: Report) -> list[Mark]:
    """Small dots along the curve, each with its number of requests; the plan has its own mark."""
    own = float(report.scenario.serving.concurrency)
    return [
        Mark(count(b), "prediction", t, r, "dot", 6, count(b), hover=f"{plural(b, 'request')}: {_pair(t, r)}")
        for b, t, r in zip(requests, tpot, rate, strict=True)
        if b != own
    ]


def _plan_mark(report: Report) -> Mark:
    own = plural(float(report.scenario.serving.concurrency), "request")
    return Mark("plan", "plan", *_point(report), "ring", 13, own, True, f"{own}: {_words(report)}")


def _words(report: Report) -> str:
    return _pair(*_point(report))


def _pair(tpot: float, rate: float) -> str:
    return f"{format_quantity(rate, 'tokens/s')} a GPU, {seconds(tpot, 3)} a token, {digits(1 / tpot)} tok/s each"


def _title(report: Report, capacity: float) -> str:
    tpot, rate = _point(report)
    own, target = float(report.scenario.serving.concurrency), float(report.scenario.serving.tpot_target)
    speed = f"{plural(own, 'request')}: {format_quantity(rate, 'tokens/s')} a GPU at {seconds(tpot, 3)} a token"
    if own > capacity:
        return f"{speed}; the KV cache holds {count(capacity)}"
    return speed if tpot <= target else f"{speed}, over the {milliseconds(target)} target"
