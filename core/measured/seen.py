"""What a person saw beside what is predicted of it, as text."""

from __future__ import annotations

from ..report import Report
from ..units import format_quantity

#: What was seen: its name, its field, what is predicted of it, and the unit of both; by kind of plan.
_SEEN = {
    "training": (
        ("step time", "step_time", "time.step_s", "seconds"),
        ("throughput", "tokens_per_s", "time.tokens_per_s", "tokens/s"),
    ),
    "serving": (
        ("time to first token", "ttft", "serving.ttft_s", "seconds"),
        ("time per token", "tpot", "serving.tpot_s", "seconds"),
        ("output", "tokens_per_s", "serving.output_tokens_per_s", "tokens/s"),
    ),
}


def seen(report: Report) -> list[tuple[str, str, str, str]]:
    """(name, measured, predicted, predicted over measured less one) of everything that was measured and is predicted.

    Utilisation follows where a time was measured.
    """
    stated = report.scenario.measured
    rows = []
    for name, attribute, key, unit in _SEEN[report["kind"]]:
        value = getattr(stated, attribute)
        if value is not None and key in report:
            rows.append(_row(name, value, report[key], unit))
    if "measured.mfu" in report and "time.mfu" in report:
        rows.append(_row("MFU", report["measured.mfu"], report["time.mfu"], "ratio"))
    return rows


def _row(name: str, measured: float, predicted: float, unit: str) -> tuple[str, str, str, str]:
    error = f"{(predicted / measured - 1) * 100:+.1f} %".replace("-", "−")
    return name, format_quantity(measured, unit), format_quantity(predicted, unit), error
