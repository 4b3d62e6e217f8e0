"""The plan in one sentence: does it fit, what binds it, by how much, what it loses, and what would help next."""

from __future__ import annotations

from dataclasses import dataclass

from .figures.words import plural
from .report import Edit, Report
from .units import digits, format_quantity

#: A loss below this share of the step is not worth a clause.
_WORTH_SAYING = 0.02
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
    spans = ((_fit(report) + " ", not _fits(report)), *_binding(report))
    return Verdict(_severity(report), spans, helpful_edits(report, most))


def helpful_edits(report: Report, most: int) -> tuple[Edit, ...]:
    """The edits of the findings, most severe first, each change once.

    While the plan does not fit, only what makes it fit is worth a button.
    """
    findings = sorted(report.findings, key=lambda finding: _SEVERITIES.index(finding.severity))
    if not _fits(report) and any(f.severity == "error" and f.edits for f in findings):
        findings = [f for f in findings if f.severity == "error"]
    edits = {edit.changes: edit for finding in findings for edit in finding.edits}
    return tuple(edits.values())[:most]


def _fits(report: Report) -> bool:
    return bool(report["memory.fits"])


def _severity(report: Report) -> str:
    if not _fits(report) or any(finding.severity == "error" for finding in report.findings):
        return "bad"
    warned = any(finding.severity == "warning" for finding in report.findings)
    return "warn" if warned or report["memory.verdict"] == "tight" or _missed_targets(report) else "good"


def _fit(report: Report) -> str:
    headroom = report["memory.headroom_bytes"]
    spare = format_quantity(abs(headroom), "bytes")
    if not _fits(report):
        return f"Does not fit: {spare} too much{_where(report)}."
    if report["memory.verdict"] == "tight":
        return f"Fits, but tight: {spare} to spare{_where(report)}."
    most = report.get("serving.max_concurrency")
    room = f", room for {plural(most, 'request')}" if most is not None else ""
    return f"Fits with {spare} to spare{room}."


def _where(report: Report) -> str:
    if "memory.peak_stage" not in report:
        return ""
    return f" on stage {report['memory.peak_stage']:.0f}, {report['memory.peak_instant']}"


def _binding(report: Report) -> tuple[tuple[str, bool], ...]:
    """The bottleneck and the distance to the physical bound, then the largest loss or the missed targets."""
    bound = report.get("time.bound_s")
    if not bound or "time.bottleneck" not in report:
        return ()
    if report["kind"] == "training":
        step = f"the step takes {_times(report['time.step_s'], bound)} its physical bound"
        clauses = [step, *_largest_loss(report)]
    else:
        clauses = _latencies(report, bound)
    words = _BOUND.get(str(report["time.bottleneck"]), "Balanced")
    return ((words, True), (f": {'; '.join(clauses)}.", False))


def _times(value: float, reference: float) -> str:
    return f"{digits(value / reference, 2)}×"


def _largest_loss(report: Report) -> list[str]:
    """What takes the largest share of the step without computing: exposed traffic, the bubble or the optimizer."""
    step = report["time.step_s"]
    losses = {
        "the pipeline bubble": report.get("time.bubble_s", 0.0),
        "the optimizer": report.get("time.optimizer_s", 0.0),
    }
    for traffic in report.communication:
        words = f"exposed {traffic.group} traffic"
        losses[words] = losses.get(words, 0.0) + traffic.exposed_seconds
    words, seconds = max(losses.items(), key=lambda item: item[1])
    share = seconds / step if step else 0.0
    return [f"{words} costs {format_quantity(share, 'ratio', 2)}"] if share >= _WORTH_SAYING else []


def _latencies(report: Report, bound: float) -> list[str]:
    """Seconds a token against its bound, and what misses its target."""
    seconds = report.get("serving.tpot_s", report["time.step_s"])
    words = f"a token takes {format_quantity(seconds, 'seconds')}, {_times(seconds, bound)} its physical bound"
    missed = _missed_targets(report)
    if "serving.tpot_s" in missed:
        words += f" and over the target of {missed['serving.tpot_s']}"
    first = report.get("serving.ttft_s")
    if "serving.ttft_s" in missed:
        late = (
            f"the first token takes {format_quantity(first, 'seconds')}, over the target of {missed['serving.ttft_s']}"
        )
        return [words, late]
    return [words]


def _missed_targets(report: Report) -> dict[str, str]:
    """The serving targets that the plan misses, in words, by the result that misses them."""
    if report["kind"] != "serving":
        return {}
    targets = {
        "serving.tpot_s": report.scenario.serving.tpot_target,
        "serving.ttft_s": report.scenario.serving.ttft_target,
    }
    return {key: format_quantity(target, "seconds") for key, target in targets.items() if report.get(key, 0.0) > target}
