"""How much faster drafts make tokens, along the batch and for shorter and longer contexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..report import Report
from ..scenario_model import model_of
from ..serving import steady
from ..serving.drafting import Drafting
from ..serving.plan import plan_of
from ..units import digits
from ..words import NO_ROOM, count, plural
from .curves import Curve, crossing
from .figure import Axis, Figure, Line, Mark, Rule
from .ticks import linear_ticks, log_ticks

#: Draft tokens of a plan that has none.
_DRAFTS = 4
_BATCHES = tuple(float(2**power) for power in range(13))
#: Contexts beside the plan's own, as multiples of it, with the style of their lines.
_CONTEXTS = ((0.25, "dotted"), (1.0, "solid"), (4.0, "dashed"))


@dataclass(frozen=True)
class _Gains:
    context: float
    style: str
    values: Curve


def speculation(report: Report, _baseline: Report | None = None) -> Figure:
    """Gain of the plan's draft tokens, of four where it has none, against sequences that an engine decodes together."""
    if not report.holds_a_request:
        return Figure.without("speculation", "No tokens", NO_ROOM, report.scenario.name)
    own = report.scenario.serving.speculative.draft_tokens
    drafts = own if own > 0 else _DRAFTS
    plan = plan_of(report.scenario, model_of(report.scenario))
    drafting = Drafting.of(plan.mean.with_("serving.speculative.draft_tokens", drafts), plan.passes)
    assert drafting is not None
    batches, context = np.array(_BATCHES), plan.steady.context
    curves = []
    for times, style in _CONTEXTS:
        gains = drafting.gain(batches, times * context, plan.passes.decode(batches, times * context))
        curves.append(_Gains(float(times * context), style, tuple(gains.tolist())))
    running = float(steady.micro_batch(plan.steady.running, report.scenario.parallelism.pp))
    here = float(drafting.gain(running, context, plan.passes.decode(running, context)))
    high = max(*(max(each.values) for each in curves), here, 1.0) * 1.15
    words = f"{plural(running, 'sequence')}: {digits(here)} times"
    return Figure(
        "speculation",
        _title(float(drafts), curves[1], running, here),
        f"context {_styles(curves)}; {digits(float(drafting.tokens))} tokens a cycle",
        Axis("sequences decoded together by an engine", _BATCHES[0], _BATCHES[-1], True, log_ticks(1.0, _BATCHES[-1])),
        Axis("times as fast as without drafts", 0.0, high, ticks=linear_ticks(0.0, high)),
        lines=tuple(_line(each) for each in curves),
        marks=(Mark("plan", "plan", running, here, "ring", 13, words, True, words),),
        rules=(Rule("no gain", "bound", "y", 1.0, "dashed", "no gain", "as fast as without drafts"),),
        columns=("sequences", *(f"gain at {each.context:.0f} tokens of context" for each in curves)),
        rows=tuple(zip(_BATCHES, *(each.values for each in curves), strict=True)),
        scenario=report.scenario.name,
    )


def _line(gains: _Gains) -> Line:
    context = f"{count(round(gains.context))} tokens"
    hover = f"contexts of {context}"
    return Line(context, "prediction", _BATCHES, gains.values, gains.style, 2.2, hover=hover)


def _styles(curves: list[_Gains]) -> str:
    """Which line is which: at many requests they run too close together for names beside them."""
    return ", ".join(f"{count(round(each.context))} {each.style}" for each in curves)


def _title(drafts: float, own: _Gains, running: float, here: float) -> str:
    """The gain of the plan, and where there is none any more."""
    end = crossing(_BATCHES, own.values, 1.0)
    until = "" if end is None else f"; no gain from {count(round(end))} sequences on"
    return f"{plural(drafts, 'draft')}: tokens {digits(here)} times as fast with {plural(running, 'sequence')}{until}"
