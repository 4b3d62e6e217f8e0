"""The plan in one sentence: does it fit, what binds it, by how much, what it loses, and what would help next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .cycle import idles_in_pipeline, tokens_per_cycle
from .fields import label_of
from .report import Edit, Report
from .training.stage_names import stage_number
from .units import digits, format_quantity
from .words import GIB, count, gib, plural, span

#: A loss below this share of the time is not worth a clause.
_WORTH_SAYING = 0.02
_BUBBLE = "the pipeline's bubble costs"
_UNEVEN = "uneven stages cost"
_RANKS = "waiting of attention ranks costs"
_SEVERITIES = ("error", "warning", "hint")
_BOUND = {
    "compute": "Compute bound",
    "memory": "Memory bound",
    "communication": "Communication bound",
    "launch": "Launch bound",
    "pipeline": "Pipeline bound",
    "balanced": "Balanced",
}


@dataclass(frozen=True)
class Verdict:
    """`severity` is good, warn or bad; `spans` are (text, emphasised) pairs; `edits` would help, best first."""

    severity: str
    spans: tuple[tuple[str, bool], ...]
    edits: tuple[Edit, ...] = ()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)


def verdict(report: Report, most: int = 3) -> Verdict:
    """The verdict of a report with at most `most` edits."""
    return Verdict(_severity(report), tuple(_spans(report)), helpful_edits(report, most))


def helpful_edits(report: Report, most: int) -> tuple[Edit, ...]:
    """The edits of the findings, most severe first, each change once.

    While something is wrong, only what mends it is worth a button.
    """
    findings = sorted(report.findings, key=lambda finding: _SEVERITIES.index(finding.severity))
    if any(f.severity == "error" and f.edits for f in findings):
        findings = [f for f in findings if f.severity == "error"]
    edits = {edit.changes: edit for finding in findings for edit in finding.edits}
    return tuple(edits.values())[:most]


def _severity(report: Report) -> str:
    if not _fits(report) or _is_saturated(report) or any(finding.severity == "error" for finding in report.findings):
        return "bad"
    warned = any(finding.severity == "warning" for finding in report.findings)
    return "warn" if warned or report["memory.verdict"] == "tight" or _missed_targets(report) else "good"


def _spans(report: Report) -> Iterator[tuple[str, bool]]:
    """What is impossible alone; else whether it fits, comes too late or drowns, then what binds it and its losses."""
    illegal = next((finding for finding in report.findings if finding.code == "illegal-layout"), None)
    if illegal:
        label = label_of(illegal.field)
        yield f"Not possible: {label}: {illegal.message}.", True
        return
    yield _fit(report) + " ", not _fits(report)
    if not report.holds_a_request:
        yield "Not one request fits, so there are no rates.", False
        return
    over, deadline = report.get("training.over_deadline", 0.0), report.scenario.training.deadline
    if not report.progresses:
        yield "No progress: failures come faster than restarts. ", True
    elif over > 1 and deadline:
        yield f"Too late: {span(report['training.days'])}, the deadline is {span(deadline / 86400)}. ", True
    if _is_saturated(report):
        yield "Saturated: the queue grows without end. ", True
    yield from _binding(report)


def _fits(report: Report) -> bool:
    return bool(report["memory.fits"])


def _is_saturated(report: Report) -> bool:
    return bool(report.get("serving.saturated")) or any(finding.code == "saturated" for finding in report.findings)


def _fit(report: Report) -> str:
    headroom, usable = report["memory.headroom_bytes"], report["memory.usable_bytes"]
    spare, most = format_quantity(abs(headroom), "bytes"), report.get("serving.held_requests")
    if not _fits(report):
        besides = "driver and slack" if most is None else "what the engine leaves free"
        needs = f"needs {gib(usable - headroom)} of {gib(usable)} GiB with {besides}"
        return f"Does not fit: {needs}, {digits(-headroom / GIB)} GiB too much{_where(report)}.{_own(report)}"
    tight = ", but tight" if report["memory.verdict"] == "tight" else ""
    room = f"; {count(report.scenario.serving.concurrency)} of at most {plural(most, 'request')}" if most else ""
    if tight:
        return f"Fits{tight}: {spare} to spare{_where(report)}{room}."
    return f"Fits with {spare} to spare{room}."


def _own(report: Report) -> str:
    """That requests run which would not fit if they grew as long as is planned."""
    asked, own = report.scenario.serving.concurrency, report.get("serving.held_own_requests", 0.0)
    if report["kind"] == "training" or asked > own:
        return ""
    length = count(report.scenario.serving.prompt_tokens + report.scenario.serving.output_tokens)
    return f" At their own {length} tokens all {count(asked)} run."


def _where(report: Report) -> str:
    if "memory.peak_stage" not in report or report.scenario.parallelism.pp == 1:
        return ""
    return f" on stage {stage_number(report.scenario, report['memory.peak_stage'])}"


def _binding(report: Report) -> Iterator[tuple[str, bool]]:
    """The bottleneck and the distance to the physical bound, then the largest loss and the missed targets."""
    bound = report.get("time.bound_s")
    if not bound or "time.bottleneck" not in report:
        return
    if report["kind"] == "training":
        step = f"the step takes {_times(report['time.step_s'], bound)} its physical bound"
        clauses = [step, *_largest_loss(report, _training_losses(report), report["time.step_s"])]
    else:
        clauses = _latencies(report, bound)
    word = str(report["time.bottleneck"])
    waits = word == "pipeline" and report["kind"] == "serving" and _idle(report) == _RANKS
    yield "Bound by waiting ranks" if waits else _BOUND.get(word, "Balanced"), True
    yield f": {'; '.join(clauses)}.", False


def _times(value: float, reference: float) -> str:
    return f"{digits(value / reference, 2)}×"


def _largest_loss(report: Report, losses: dict[str, float], whole: float) -> list[str]:
    """The clause of the largest loss of a plan that fits; of idle time where that is what binds a served token."""
    if report["time.bottleneck"] == "pipeline" and report["kind"] == "serving":
        losses = {words: seconds for words, seconds in losses.items() if words in (_BUBBLE, _RANKS)}
    if not _fits(report):
        return []
    words, seconds = max(losses.items(), key=lambda item: item[1])
    share = seconds / whole if whole else 0.0
    return [f"{words} {format_quantity(share, 'ratio', 2)}"] if share >= _WORTH_SAYING else []


def _training_losses(report: Report) -> dict[str, float]:
    """What takes time of the step without computing: exposed traffic by group, idle stages, the optimizer."""
    losses = {
        _BUBBLE: report.get("time.bubble_s", 0.0),
        _UNEVEN: report.get("time.uneven_s", 0.0),
        "the optimizer costs": report.get("time.optimizer_s", 0.0),
    }
    for traffic in report.communication:
        words = f"exposed {traffic.group} traffic costs"
        losses[words] = losses.get(words, 0.0) + traffic.exposed_seconds
    return losses


def _serving_losses(report: Report, token: float) -> dict[str, float]:
    """What takes time of a token beside its own decoding: prompts of other users, exposed traffic, the bubble."""
    step, tokens = report.get("serving.token_step_s", report["time.step_s"]), tokens_per_cycle(report)
    return {
        "prompts of other requests take": token - step,
        "exposed traffic takes": report.get("communication.exposed_seconds", 0.0) / tokens,
        _idle(report): report.get("time.bubble_s", 0.0) / tokens,
    }


def _idle(report: Report) -> str:
    """What idle time of a decode step is: ranks that wait for one another where there is no pipeline."""
    return _BUBBLE if idles_in_pipeline(report) else _RANKS


def _latencies(report: Report, bound: float) -> list[str]:
    """Seconds a token against its bound, the largest loss in it, and what misses its target."""
    seconds, missed = report.get("serving.tpot_s", report["time.step_s"]), _missed_targets(report)
    what, bound = "a token" if "serving.tpot_s" in report else "a step", report.get("serving.tpot_bound_s", bound)
    words = f"{what} takes {format_quantity(seconds, 'seconds')}, {_times(seconds, bound)} its physical bound"
    if "serving.tpot_s" in missed:
        words += f" and over the target of {missed['serving.tpot_s']}"
    clauses = [words, *_largest_loss(report, _serving_losses(report, seconds), seconds)]
    if "serving.ttft_s" in missed and not _is_saturated(report):
        first = format_quantity(report["serving.ttft_s"], "seconds")
        clauses.append(f"the first token takes {first}, over the target of {missed['serving.ttft_s']}")
    return clauses


def _missed_targets(report: Report) -> dict[str, str]:
    """The serving targets that the plan misses, in words, by the result that misses them."""
    if report["kind"] != "serving":
        return {}
    targets = {
        "serving.tpot_s": report.scenario.serving.tpot_target,
        "serving.ttft_s": report.scenario.serving.ttft_target,
    }
    return {key: format_quantity(target, "seconds") for key, target in targets.items() if report.get(key, 0.0) > target}
