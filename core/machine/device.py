"""One device as kernels see it: sustained rates, units, constants and element sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..catalogue import table
from ..numeric import Number
from ..scenario import Scenario
from ..widths import gradient_bytes
from . import kernels
from .rates import Rates, peak_flops


@dataclass(frozen=True)
class Kernel:
    """One kernel: its seconds, the seconds of its mathematics alone, and the bytes it moves."""

    seconds: Number
    math: Number
    moved: Number


#: A kernel that there is no need of.
NOTHING = Kernel(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Machine:
    """What kernels need of the device: sustained rates, units, constants and element sizes."""

    rate: Number
    #: Rate of the products that an 8-bit recipe keeps in 16 bits.
    kept_rate: Number
    attention_peak: Number
    memory_rate: Number
    units: Number
    rates: Rates
    input_bytes: Number
    gradient_bytes: Number
    cast_bytes: Number

    @property
    def kept(self) -> Machine:
        """The device for what an 8-bit recipe keeps in 16 bits: attention and output head."""
        return replace(self, rate=self.kept_rate, input_bytes=2.0, cast_bytes=0.0) if self.cast_bytes else self

    def grouped(self, count: Number) -> Machine:
        """The device for products of several experts in one launch."""
        return replace(self, rate=kernels.grouped_rate(self.rate, count, self.rates.grouped))

    def matrix(
        self,
        rows: Number,
        columns: Number,
        inner: Number,
        batch: Number = 1,
        output: Number = 2.0,
        aligned: Number | None = None,
    ) -> Kernel:
        """A matrix product [rows, inner] x [inner, columns], `batch` times in one launch."""
        rates = self.rates
        math = kernels.matrix_math_seconds(
            rows, columns, inner, batch, self.units, self.rate, rates.k_half, rates.tiles
        )
        if rates.alignment:
            match = aligned if aligned is not None else self.alignment(columns, inner)
            math = kernels.aligned_seconds(math, match)
        moved = kernels.matrix_bytes(rows, columns, inner, batch, self.input_bytes, output)
        return Kernel(kernels.kernel_seconds(math, moved, self.memory_rate, rates.t_k), math, moved)

    def alignment(self, columns: Number, inner: Number) -> Number:
        return kernels.alignment_rate(columns, inner, *(rate for _, rate in self.rates.alignment))

    def stream(self, moved: Number, launches: Number = 1) -> Number:
        """Time of kernels that only move bytes."""
        return kernels.streaming_seconds(moved, self.memory_rate, launches, self.rates.t_k)


def machine_of(scenario: Scenario, rates: Rates) -> Machine:
    """The device of a training scenario at its number format."""
    device, training = scenario.cluster.accelerator, scenario.training
    rate = kernels.sustained_rate(peak_flops(device, training.precision), rates.e_gemm)
    recipe = table("precisions")[training.precision]
    cast = recipe["cast"] > 0
    kept_peak = peak_flops(device, "bf16" if cast else training.precision)
    return Machine(
        rate=rate,
        kept_rate=kernels.sustained_rate(kept_peak, rates.e_gemm_16) if cast else rate,
        attention_peak=kept_peak,
        memory_rate=kernels.sustained_bandwidth(device.memory_bandwidth, rates.e_mem),
        units=device.units,
        rates=rates,
        input_bytes=float(recipe["element"]),
        gradient_bytes=gradient_bytes(training),
        cast_bytes=float(recipe["cast"]),
    )
