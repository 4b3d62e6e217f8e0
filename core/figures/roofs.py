"""The roofs of a roofline: that of the data sheet, and below it that which a machine reached."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..report import Report
from ..scenario import Accelerator, Peak
from ..units import digits, format_quantity
from .figure import Label, Line

#: Rates are alike where they differ by no more than their three digits.
_ALIKE = 0.005


@dataclass(frozen=True)
class Roof:
    """A peak in FLOP/s and a bandwidth in bytes/s, and where they come from.

    `label` says what of a second roof was measured, the peak first.
    """

    peak: float
    bandwidth: float
    origin: str
    name: str = "roof"
    label: str = ""

    @property
    def knee(self) -> float:
        """FLOP/byte at which the roof bends."""
        return self.peak / self.bandwidth

    def at(self, intensity: float) -> float:
        """FLOP/s that the roof allows at an intensity in FLOP/byte."""
        return min(self.peak, intensity * self.bandwidth)

    @property
    def said(self) -> str:
        rates = f"{format_quantity(self.peak, 'FLOP/s')} and {format_quantity(self.bandwidth, 'bytes/s')}"
        return f"{self.origin}: {rates}, knee at {digits(self.knee)} FLOP/byte"

    def line(self, low_x: float, high_x: float, low_y: float, style: str = "solid", width: float = 2.0) -> Line:
        """The roof within the axes, from where it enters them."""
        start = max(low_x, low_y / self.bandwidth)
        x, y = (start, self.knee, high_x), (start * self.bandwidth, self.peak, self.peak)
        return Line(self.name, "roof", x, y, style, width, self.label.partition(",")[0], self.said)

    def slope_label(self, line: Line) -> Label:
        """The bandwidth over the slope of its line."""
        halfway = (line.x[0] * self.knee) ** 0.5
        return Label(self.slope, halfway, self.at(halfway), "right", 0.5)

    @property
    def slope(self) -> str:
        return format_quantity(self.bandwidth, "bytes/s")


def roofs(report: Report) -> list[Roof]:
    """The roof of the plan's accelerator, and a second one where it carries rates that were measured beside it."""
    device = report.scenario.cluster.accelerator
    peak, bandwidth = float(report["roofline.peak_flops"]), float(report["roofline.bandwidth"])
    name, rate = _measured_peak(device, peak)
    streamed = device.measured.memory_bandwidth
    if rate is None and streamed is None:
        return [Roof(peak, bandwidth, "data sheet")]
    found = device.measured
    where = f"on {found.machine}" if found.machine else "on the machine"
    how = f" ({found.source.removeprefix('measured with ')})" if found.source else ""
    origin = f"measured {where}{how}"
    second = Roof(float(rate or peak), float(streamed or bandwidth), origin)
    if _alike(second.peak, peak) and _alike(second.bandwidth, bandwidth):
        return [Roof(peak, bandwidth, origin)]
    rates = (format_quantity(rate, "FLOP/s") if rate else "", second.slope if streamed else "")
    label = f"measured{name}: {', '.join(filter(None, rates))}"
    return [Roof(peak, bandwidth, "data sheet"), replace(second, name="measured roof", label=label)]


def _measured_peak(device: Accelerator, peak: float) -> tuple[str, float | None]:
    """The rate measured of the units whose data-sheet peak is the roof; without it the highest one, and its format."""
    names = [field.name for field in fields(Peak)]
    rates = {name: float(rate) for name in names if (rate := getattr(device.measured, name)) is not None}
    own = {name: rate for name, rate in rates.items() if getattr(device.peak, name) == peak}
    if own or not rates:
        return "", max(own.values(), default=None)
    name = max(rates, key=rates.__getitem__)
    return f" {name}", rates[name]


def _alike(one: float, other: float) -> bool:
    return abs(one / other - 1) < _ALIKE
