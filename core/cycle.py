"""What a decode step's seconds are a token: a pass that checks drafts gives several, so each has a part of it."""

from __future__ import annotations

from .report import Report


def tokens_per_cycle(report: Report) -> float:
    """Tokens of a sequence that a decode step and its drafts give; 1 without drafts."""
    drafts = report.scenario.serving.speculative.draft_tokens
    asked = drafts and "serving.tpot_s" in report
    return float(report.get("serving.speculative_tokens_per_cycle", 1.0)) if asked else 1.0


def idles_in_pipeline(report: Report) -> bool:
    """Whether idle time of a decode step is a pipeline's; without one it is that of ranks waiting for one another."""
    return report.scenario.parallelism.pp > 1
