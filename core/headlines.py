"""The headline numbers of a plan, each with what belongs to it: the floor, the band and the whiteboard figure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .report import Report
from .training.stage_names import stage_number
from .units import digits, format_quantity
from .words import SPANS, gib, span, when

_GIB = 2.0**30
#: How many of a unit of time make a second.
_PER_SECOND = {"d": 1 / 86400, "h": 1 / 3600, "s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9}


@dataclass(frozen=True)
class Headline:
    """One number: `key` is the result it shows, `state` is plain, warn or bad.

    `details` are lines below it, most important first: a small card shows two of about 22 letters.
    """

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
    memory, requests = _memory(report), _concurrency(report)
    rates = (_next_token(report), _first_token(report), _output(report), _output_cost(report))
    if not report.holds_a_request:
        rates = tuple(replace(each, number="–", unit="", details=("does not fit",), state="plain") for each in rates)
    return (memory, *rates[:3], requests, *rates[3:])


def _split(value: float | None, unit: str, significant: int = 3) -> tuple[str, str]:
    """A quantity's number and its unit apart; the number alone where the unit is a prefix letter or a sign."""
    number, _, suffix = format_quantity(value, unit, significant).partition(" ")
    return number, suffix


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _lines(*lines: str | None) -> tuple[str, ...]:
    return tuple(line for line in lines if line)


def _banded(report: Report, key: str, bound: str) -> str | None:
    """A time's band and floor in the unit of the time: "80.8–98.4 · bound 14.6"; the floor alone without a band."""
    stem, seconds, floor = key.removesuffix("_s"), report.get(key), report.get(bound)
    low, high = report.get(f"{stem}_low_s"), report.get(f"{stem}_high_s")
    if seconds is None or low is None or high is None:
        return _named("bound", floor, "seconds")
    per = _PER_SECOND[_split(seconds, "seconds")[1]]
    return _joined(f"{digits(low * per)}–{digits(high * per)}", floor and f"bound {digits(floor * per)}")


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
    if spare >= 0:
        words = f"{format_quantity(spare, 'bytes')} to spare"
    else:  # what is kept for driver and slack is part of what is too much
        kept = "reserve" if report["kind"] == "serving" else "slack"
        words = f"+{gib(usable - total - spare)} {kept}: {gib(-spare)} over"
    unit, number = f"of {digits(usable / _GIB)} GiB", digits(total / _GIB)
    details = _lines(words, _memory_band(report), _peak(report))
    return Headline("memory.total_bytes", "Fullest GPU", number, unit, details, state)


def _memory_band(report: Report) -> str | None:
    """The band of a training plan's peak; an engine reserves what it is told to."""
    ends = [report.get(f"memory.{end}_bytes") for end in ("low", "high")]
    return None if None in ends else f"band {'–'.join(digits(end / _GIB) for end in ends)}"


def _peak(report: Report) -> str | None:
    """Where and when memory peaks; the stage where there is more than one."""
    if "memory.peak_stage" not in report:
        return None
    if report.scenario.parallelism.pp > 1:
        stage = stage_number(report.scenario, report["memory.peak_stage"])
        return f"stage {stage}, {report['memory.peak_instant']}"
    return f"peak {when(report['memory.peak_instant'])}"


def _utilisation(report: Report) -> Headline:
    number, unit = _split(report.get("time.mfu"), "ratio")
    floor = _at_bound(report, "time.mfu")
    bound = _named("bound", floor, "ratio", 2) if floor is not None and floor < 0.995 else None
    hardware = _named("HFU", report.get("time.hfu"), "ratio", 2)
    stated = report.scenario.training.mfu
    # a whiteboard that nobody gave an MFU computes with this one, so its agreement says nothing
    whiteboard = "whiteboard uses this" if isinstance(stated, str) else _named("whiteboard", stated, "ratio", 2)
    details = _lines(_joined(_range(report, "time.mfu", "ratio"), bound or hardware), whiteboard, bound and hardware)
    return Headline("time.mfu", "Utilisation (MFU)", number, unit, details)


def _throughput(report: Report) -> Headline:
    number, unit = _split(report.get("time.tokens_per_s"), "tokens/s")
    each = report.get("time.tokens_per_s_per_gpu")
    per_gpu = None if each is None else f"{format_quantity(each, 'amount')} a GPU"
    bound = _named("bound", _at_bound(report, "time.tokens_per_s"), "amount", 2)
    whiteboard = _named("whiteboard", report.get("whiteboard.tokens_per_s"), "amount")
    details = _lines(_joined(_range(report, "time.tokens_per_s", "amount"), bound), whiteboard, per_gpu)
    return Headline("time.tokens_per_s", "Throughput", number, unit, details)


def _range(report: Report, key: str, unit: str) -> str | None:
    """The band of a result: "49.8–61.6k", "$1.04–1.29M"; a scale and a sign that both ends have are written once."""
    ends = [report.get(f"{key}_{end}") for end in ("low", "high")]
    if None in ends:
        return None
    low, high = (format_quantity(end, unit, 2 if unit == "ratio" else 3) for end in ends)
    scale = low.lstrip("$0123456789.")
    return f"{low.removesuffix(scale) if high.endswith(scale) else low}–{high.removeprefix('$')}"


def _days(report: Report) -> Headline:
    """Days, hours where there is not one of them, with the ends of the band and the floor in the same unit."""
    days, deadline = report.get("training.days"), report.scenario.training.deadline
    if not report.progresses:
        return Headline("training.days", "Training", "–", "", ("no progress", "failures outrun restarts"), "bad")
    number, _, unit = ("–", "", "days") if days is None else span(days).partition(" ")
    scale = SPANS[unit.removesuffix("s")]

    def said(key: str) -> str | None:
        value = report.get(key)
        return None if value is None else digits(value * scale)

    low, high, bound = (said(f"training.{end}") for end in ("days_low", "days_high", "bound_days"))
    band = f"{low}–{high}" if low and high else None
    ruled = said("whiteboard.days")
    whiteboard = ruled and f"whiteboard {ruled}"
    wanted = deadline and f"deadline {span(deadline / 86400)}"
    late = report.get("training.over_deadline", 0.0) > 1
    floor = bound and f"bound {bound}"
    details = _lines(wanted, _joined(band, floor), whiteboard) if late else _lines(_joined(band, floor), whiteboard)
    return Headline("training.days", "Training", number, unit, details, "bad" if late else "plain")


def _cost(report: Report) -> Headline:
    if not report.progresses:
        return Headline("cost.usd", "Cost", "–", "", ("no progress",), "bad")
    number, unit = _split(report.get("cost.usd"), "USD")
    hours = report.get("training.gpu_hours")
    time = None if hours is None else f"{format_quantity(hours, 'amount')} GPU-h"
    energy, carbon = report.get("cost.energy_kwh"), report.get("cost.carbon_kg")
    power = None if energy is None else format_quantity(energy, "kWh", 2)
    co2 = None if carbon is None else f"{format_quantity(carbon, 'kg', 2)} CO₂"
    return Headline(
        "cost.usd", "Cost", number, unit, _lines(_range(report, "cost.usd", "USD"), _joined(time, power), co2)
    )


def _exposed(report: Report) -> Headline:
    step = report.get("time.step_s")
    exposed, bubble = report.get("time.exposed_communication_s"), report.get("time.bubble_s")
    share = exposed / step if step and exposed is not None else None
    number, unit = _split(share, "ratio", 2)
    time = None if exposed is None else f"{format_quantity(exposed, 'seconds')} of {format_quantity(step, 'seconds')}"
    idle = _named("bubble", bubble / step, "ratio", 2) if step and bubble is not None else None
    return Headline("time.exposed_communication_s", "Exposed traffic", number, unit, _lines(time, idle))


def _next_token(report: Report) -> Headline:
    """Time per token with the decode step in it: what is more are prompts of other requests."""
    floor = "serving.tpot_bound_s" if "serving.tpot_bound_s" in report else "time.bound_s"
    bound = _banded(report, "serving.tpot_s", floor)
    step = _named("step", report.get("serving.decode_step_s", report.get("time.step_s")), "seconds")
    moved = _named("MBU", report.get("time.mbu"), "ratio", 2)
    whiteboard = _named("whiteboard", report.get("whiteboard.step_floor_s"), "seconds")
    target = report.scenario.serving.tpot_target
    details = _lines(bound, f"{step}, {moved}" if step and moved else step or moved, whiteboard)
    return _latency(report, "serving.tpot_s", "Time per token", target, details)


def _first_token(report: Report) -> Headline:
    bound = _banded(report, "serving.ttft_s", "serving.ttft_bound_s")
    tail = _named("99 % within", report.get("serving.p99_ttft_s"), "seconds")
    target = report.scenario.serving.ttft_target
    first = _latency(report, "serving.ttft_s", "Time to first token", target, _lines(bound, tail))
    if report.get("serving.saturated"):
        floor = _named("bound", report.get("serving.ttft_bound_s"), "seconds")
        return replace(first, number="–", unit="", details=_lines("endless queue", floor), state="bad")
    return first


def _latency(report: Report, key: str, label: str, target: float, details: tuple[str, ...]) -> Headline:
    """Seconds beside the seconds that are wanted: "16.8 of 50.0 ms", "1.20 s of 500 ms"."""
    seconds = report.get(key)
    number, unit = _split(seconds, "seconds")
    wanted = format_quantity(target, "seconds")
    words = f"of {wanted}" if wanted.endswith(f" {unit}") else f"{unit} of {wanted}"
    state = "bad" if seconds is not None and seconds > target else "plain"
    return Headline(key, label, number, words, details, state)


def _output(report: Report) -> Headline:
    """Output tokens a second; the requests that decode at a time, each at its speed, make them up."""
    number, unit = _split(report.get("serving.output_tokens_per_s"), "tokens/s")
    requests = report.get("serving.requests_per_s")
    rate = None if requests is None else f"{digits(requests)} requests/s"
    each, total = report.get("serving.tpot_s"), report.get("serving.output_tokens_per_s")
    speed = f"{digits(each * total)} × {digits(1 / each)} tok/s" if each and total else None
    band = _range(report, "serving.output_tokens_per_s", "amount")
    return Headline("serving.output_tokens_per_s", "Throughput", number, unit, _lines(speed, band, rate))


def _concurrency(report: Report) -> Headline:
    """Requests that are decoded together, of those that the cache holds at full length."""
    asked, most = report.scenario.serving.concurrency, report.get("serving.held_requests")
    held = report.get("serving.kv_capacity_tokens")
    over = most is not None and asked > most
    unit = "" if not most else f"of {format_quantity(most, 'count')} at most"
    cache = None if held is None else f"cache: {format_quantity(held, 'tokens')} tokens"
    ends = _range(report, "serving.kv_capacity_tokens", "amount")
    band = ends and f"band {ends}"
    short = "more than fit at once" if most else "not one fits"
    if over and asked <= report.get("serving.held_own_requests", 0.0):
        short = "at own length all run"
    details = _lines(short if over else None, cache, band)
    number = format_quantity(asked, "count")
    return Headline("serving.held_requests", "Requests", number, unit, details, "bad" if over else "plain")


def _output_cost(report: Report) -> Headline:
    number, _ = _split(report.get("cost.usd_per_million_output_tokens"), "USD")
    price = report.scenario.economics.gpu_price
    details = _lines(
        _range(report, "cost.usd_per_million_output_tokens", "USD"), f"at {format_quantity(price, 'USD/h')} a GPU"
    )
    return Headline("cost.usd_per_million_output_tokens", "Cost", number, "a million output", details)
