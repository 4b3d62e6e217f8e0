"""What a machine reached, as an accelerator that a scenario can name: the part of measuring that needs no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

import yaml

from ..entries import write_entry
from ..scenario import Accelerator, Link, Peak

#: Rows and columns of the square matrices that are multiplied, and bytes of the array that is copied.
MATRIX_SIZES = (512, 1024, 2048)
COPIED_BYTES = 2**28


def matrix_flops(size: int) -> float:
    """FLOPs of one product of square matrices."""
    return 2.0 * size**3


def copy_bytes(size: int) -> float:
    """Bytes that move when an array of a size is copied: read once, written once."""
    return 2.0 * size


@dataclass(frozen=True)
class Reached:
    """Rates of one machine: FLOP/s by number format, B/s of memory, and its size in bytes."""

    name: str
    library: str
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


def accelerator_of(reached: Reached) -> Accelerator:
    """The machine as a catalogue entry whose peaks are the rates it reached, to three digits."""
    rates = {name: _rounded(rate) for name, rate in reached.flops}
    return Accelerator(
        id="measured",
        name=reached.name,
        vendor="",
        generation="other",
        memory=reached.memory,
        memory_bandwidth=_rounded(reached.bandwidth),
        peak=replace(Peak(bf16=_rounded(reached.best)), **rates),
        link=Link("none", 1.25e9, 1),
        power=reached.power,
        source=f"measured with {reached.library}",
        note="Rates as reached, not of a data sheet: set assumptions.e_gemm and assumptions.e_mem to 1.",
    )


def entry_text(reached: Reached) -> str:
    """The entry as YAML, which `cluster.accelerator` of a scenario file takes as it is."""
    facts = write_entry(accelerator_of(reached), "cluster.accelerator")
    facts.pop("id", None)
    return yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=120)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
