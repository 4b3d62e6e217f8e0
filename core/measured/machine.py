"""What a machine reached, as an accelerator that a scenario can name: the part of measuring that needs no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

import yaml

from ..entries import write_entry
from ..scenario import Accelerator, Link, MeasuredRates, Peak

_NOTE = (
    "Peaks and memory_bandwidth are as measured: set assumptions.e_gemm and assumptions.e_mem to 1, or write those of"
    " the data sheet in their place, and the roofline shows both roofs."
)
#: Watts of a machine at work where nothing tells them: an estimate of a workstation.
POWER = 100.0


@dataclass(frozen=True)
class Reached:
    """Rates of one machine: FLOP/s by number format, B/s of memory, its size in bytes, and its power in watts.

    `how` says when and with what it was measured.
    """

    name: str
    how: str
    flops: tuple[tuple[str, float], ...]
    bandwidth: float
    memory: float
    power: float

    @property
    def best(self) -> float:
        """The highest matrix rate, in FLOP/s."""
        return max(rate for _, rate in self.flops)

    @property
    def knee(self) -> float:
        """FLOPs a byte at which the two rates take equally long."""
        return self.best / self.bandwidth

    @property
    def rates(self) -> MeasuredRates:
        """The rates to three digits, as an accelerator carries them beside its data sheet."""
        rates = {name: _rounded(rate) for name, rate in self.flops}
        how = f"measured with {self.how}"
        return replace(MeasuredRates(memory_bandwidth=_rounded(self.bandwidth), machine=self.name, source=how), **rates)


def accelerator_of(reached: Reached, peak: float | None = None, bandwidth: float | None = None) -> Accelerator:
    """The machine as a catalogue entry. Its peak, of the fastest format, and its bandwidth are those of a data sheet
    (FLOP/s, B/s) where they are given, else the rates it reached."""
    rates = reached.rates
    fastest = max(reached.flops, key=lambda flop: flop[1])[0]
    peaks = {name: getattr(rates, name) for name, _ in reached.flops} | ({fastest: peak} if peak else {})
    return Accelerator(
        id="measured",
        name=reached.name,
        vendor="",
        generation="other",
        memory=reached.memory,
        memory_bandwidth=bandwidth or _rounded(reached.bandwidth),
        peak=replace(Peak(), **peaks),
        link=Link("none", 1.25e9, 1),
        power=reached.power,
        measured=rates,
        source=rates.source if not (peak or bandwidth) else f"as stated; {rates.source}",
        note="" if peak and bandwidth else _NOTE,
    )


def entry_text(reached: Reached, peak: float | None = None, bandwidth: float | None = None) -> str:
    """The entry as YAML, which `cluster.accelerator` of a scenario takes as it is, or by the path of its file."""
    facts = write_entry(accelerator_of(reached, peak, bandwidth), "cluster.accelerator")
    facts.pop("id", None)
    return _yaml(facts)


def beside_base(reached: Reached, base: str) -> str:
    """The entry as YAML: the data sheet of an accelerator of the catalogue with what this one reached beside it."""
    return _yaml({"base": base, "measured": write_entry(reached.rates, "cluster.accelerator.measured")})


def _yaml(facts: dict[str, object]) -> str:
    return yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=120)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
