"""The headline numbers of a plan, each with what belongs to it: the floor, the band and the whiteboard figure."""

from __future__ import annotations

from dataclasses import dataclass

from .report import Report
from .units import digits, format_quantity

_GIB = 2.0**30


@dataclass(frozen=True)
class Headline:
    """One number: `key` is the result it shows, `details` are lines below it, `state` is plain, warn or bad."""

    key: str
    label: str
    number: str
    unit: str
    details: tuple[str, ...] = ()
    state: str = "plain"


def headlines(report: Report) -> tuple[Headline, ...]:
    """The headlines of a training or a serving plan; a number that does not apply is shown as a dash."""
    return _training(report) if report["kind"] == "training" else _serving(report)


def _training(report: Report) -> tuple[Headline, ...]:
    return (_memory(report), _utilisation(report), _throughput(report), _days(report), _cost(report), _exposed(report))


def _serving(report: Report) -> tuple[Headline, ...]:
    return (
        _memory(report),
        _next_token(report),
        _first_token(report),
        _output(report),
        _concurrency(report),
        _output_cost(report),
    )


def _split(value: float | None, unit: str, significant: int = 3) -> tuple[str, str]:
    """A quantity's number and its unit apart; the number alone where the unit is a prefix letter or a sign."""
    number, _, suffix = format_quantity(value, unit, significant).partition(" ")
    return number, suffix


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _lines(*lines: str | None) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _named(name: str, value: float | None, unit: str, significant: int = 3) -> str | None:
    return None if value is None else f"{name} {format_quantity(value, unit, significant)}"


def _at_bound(report: Report, key: str) -> float | None:
    """What a rate would be if the step took no longer than its physical bound."""
    rate, bound = report.get(key), report.get("time.bound_s")
    return rate * report["time.step_s"] / bound if rate is not None and bound else None


def _memory(report: Report) -> Headline:
    total, usable = report["memory.total_bytes"], report["memory.usable_bytes"]
    state = {"fits": "plain", "tight": "warn"}.get(str(report["memory.verdict"]), "bad")
    spare = report["memory.headroom_bytes"]
    words = f"{format_quantity(abs(spare), 'bytes')} {'to spare' if spare >= 0 else 'too much'}"
    where = None
    if "memory.peak_stage" in report:
        staged = report.scenario.parallelism.pp > 1
        stage = f"stage {report['memory.peak_stage']:.0f}" if staged else "peak"
        where = f"{stage}: {report['memory.peak_instant']}"
    unit = f"of {digits(usable / _GIB)} GiB"
    label = "Fullest GPU"
    return Headline("memory.total_bytes", label, digits(total / _GIB), unit, _lines(words, where), state)


def _utilisation(report: Report) -> Headline:
    number, unit = _split(report.get("time.mfu"), "ratio")
    bound = _named("bound", _at_bound(report, "time.mfu"), "ratio", 2)
    hardware = _named("HFU", report.get("time.hfu"), "ratio")
    stated = report.scenario.training.mfu
    whiteboard = None if isinstance(stated, str) else _named("whiteboard", stated, "ratio", 2)
    details = _lines(_joined(bound, hardware), whiteboard)
    return Headline("time.mfu", "Utilisation (MFU)", number, unit, details)


def _throughput(report: Report) -> Headline:
    number, unit = _split(report.get("time.tokens_per_s"), "tokens/s")
    each = report.get("time.tokens_per_s_per_gpu")
    per_gpu = None if each is None else f"{format_quantity(each, 'amount')} a GPU"
    bound = _named("bound", _at_bound(report, "time.tokens_per_s"), "amount")
    whiteboard = _named("whiteboard", report.get("whiteboard.tokens_per_s"), "amount")
    details = _lines(_joined(per_gpu, bound), whiteboard)
    return Headline("time.tokens_per_s", "Throughput", number, unit, details)


def _days(report: Report) -> Headline:
    days, low, high = (report.get(f"training.days{end}") for end in ("", "_low", "_high"))
    band = None if low is None or high is None else f"{digits(low)}–{digits(high)}"
    bound, whiteboard = report.get("training.bound_days"), report.get("whiteboard.days")
    floor = None if bound is None else f"bound {digits(bound)}"
    details = _lines(_joined(band, floor), None if whiteboard is None else f"whiteboard {digits(whiteboard)}")
    return Headline("training.days", "Training", "–" if days is None else digits(days), "days", details)


def _cost(report: Report) -> Headline:
    number, unit = _split(report.get("cost.usd"), "USD")
    hours = report.get("training.gpu_hours")
    time = None if hours is None else f"{format_quantity(hours, 'amount')} GPU-hours"
    energy, carbon = report.get("cost.energy_kwh"), report.get("cost.carbon_kg")
    power = None if energy is None else format_quantity(energy, "kWh")
    co2 = None if carbon is None else f"{format_quantity(carbon, 'kg')} CO₂"
    return Headline("cost.usd", "Cost", number, unit, _lines(time, _joined(power, co2)))


def _exposed(report: Report) -> Headline:
    step = report.get("time.step_s")
    exposed, bubble = report.get("time.exposed_communication_s"), report.get("time.bubble_s")
    share = exposed / step if step and exposed is not None else None
    number, unit = _split(share, "ratio", 2)
    time = None if exposed is None else f"{format_quantity(exposed, 'seconds')} of {format_quantity(step, 'seconds')}"
    idle = _named("bubble", bubble / step, "ratio", 2) if step and bubble is not None else None
    return Headline("time.exposed_communication_s", "Exposed traffic", number, unit, _lines(time, idle))


def _next_token(report: Report) -> Headline:
    bound = _named("bound", report.get("serving.tpot_bound_s", report.get("time.bound_s")), "seconds")
    whiteboard = _named("whiteboard", report.get("whiteboard.step_floor_s"), "seconds")
    target = report.scenario.serving.tpot_target
    moved = _named("MBU", report.get("time.mbu"), "ratio", 2)
    return _latency(report, "serving.tpot_s", "Time per token", target, _lines(_joined(bound, moved), whiteboard))


def _first_token(report: Report) -> Headline:
    bound = _named("bound", report.get("serving.ttft_bound_s"), "seconds")
    tail = _named("99 % within", report.get("serving.p99_ttft_s"), "seconds")
    target = report.scenario.serving.ttft_target
    return _latency(report, "serving.ttft_s", "Time to first token", target, _lines(bound, tail))


def _latency(report: Report, key: str, label: str, target: float, details: tuple[str, ...]) -> Headline:
    """Seconds beside the seconds that are wanted: "16.8 of 50.0 ms", "1.20 s of 500 ms"."""
    seconds = report.get(key)
    number, unit = _split(seconds, "seconds")
    wanted = format_quantity(target, "seconds")
    words = f"of {wanted}" if wanted.endswith(f" {unit}") else f"{unit} of {wanted}"
    state = "bad" if seconds is not None and seconds > target else "plain"
    return Headline(key, label, number, words, details, state)


def _output(report: Report) -> Headline:
    number, unit = _split(report.get("serving.output_tokens_per_s"), "tokens/s")
    requests = report.get("serving.requests_per_s")
    rate = None if requests is None else f"{digits(requests)} requests/s"
    each = report.get("serving.tpot_s")
    speed = f"{digits(1 / each)} tok/s each" if each else None
    return Headline("serving.output_tokens_per_s", "Throughput", number, unit, _lines(rate, speed))


def _concurrency(report: Report) -> Headline:
    asked, most = report.scenario.serving.concurrency, report.get("serving.max_concurrency")
    held = report.get("serving.kv_capacity_tokens")
    unit = "" if most is None else f"of {format_quantity(most, 'count')}"
    state = "bad" if most is not None and asked > most else "plain"
    details = _lines("decoded together", None if held is None else f"cache: {format_quantity(held, 'tokens')} tokens")
    return Headline("serving.max_concurrency", "Requests", format_quantity(asked, "count"), unit, details, state)


def _output_cost(report: Report) -> Headline:
    number, _ = _split(report.get("cost.usd_per_million_output_tokens"), "USD")
    price = report.scenario.economics.gpu_price
    details = _lines("output tokens", f"at {format_quantity(price, 'USD/h')} a GPU")
    return Headline("cost.usd_per_million_output_tokens", "Cost", number, "a million", details)
