"""`triledger measure`: what this machine reaches, with numpy, and with torch where it is installed."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from .arguments import InputError

if TYPE_CHECKING:
    from ..core.measured.machine import Reached


#: The facts of an accelerator that options state.
_FIELDS = {"power": "power", "memory": "memory", "peak": "peak.bf16", "bandwidth": "memory_bandwidth"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="ACCELERATOR.yaml", help="writes the entry for cluster.accelerator")
    parser.add_argument("--base", metavar="ID", help="the accelerator of the catalogue whose data sheet stands beside")
    parser.add_argument(
        "--peak", metavar="RATE", help="matrix peak of the data sheet, of the fastest format: 1.5 TFLOP/s"
    )
    parser.add_argument("--bandwidth", metavar="RATE", help="memory bandwidth of the data sheet: 51.2 GB/s")
    parser.add_argument("--memory", metavar="SIZE", help="size of the memory, where the system does not tell: 64 GiB")
    parser.add_argument("--power", metavar="WATTS", help="power of the machine at work; unless stated, an estimate")


def run(options: argparse.Namespace) -> int:
    from ..core.errors import OutputError
    from ..core.files import write_whole
    from ..core.measured.machine import POWER, beside_base, entry_text
    from ..core.units import format_quantity

    power, memory, peak, bandwidth = (_stated(options, name) for name in _FIELDS)
    _check_base(options.base, peak or bandwidth or memory)
    reached = _measured(memory, POWER if power is None else power)
    text = beside_base(reached, options.base) if options.base else entry_text(reached, peak, bandwidth)
    print(text, end="")
    best, streamed = format_quantity(reached.best, "FLOP/s"), format_quantity(reached.bandwidth, "bytes/s")
    print(f"# on the roofline: {best} and {streamed}, which meet at {format_quantity(reached.knee, 'FLOP/B')}")
    if options.output:
        try:
            write_whole(options.output, text.encode())
        except OutputError as error:
            raise InputError(str(error)) from None
    return 0


def _stated(options: argparse.Namespace, name: str) -> float | None:
    """The value of an option, within the range of the field that it becomes; None where it is not given."""
    from ..core.field_values import parse_value
    from ..core.fields import FIELDS
    from ..core.units import QuantityError

    text = getattr(options, name)
    if text is None:
        return None
    try:
        return float(parse_value(FIELDS[f"cluster.accelerator.{_FIELDS[name]}"], text))
    except QuantityError as error:
        raise InputError(f"--{name}: {error}") from None


def _check_base(base: str | None, stated: float | None) -> None:
    """Refuses a base that is not in the catalogue, or that is given with facts of its own data sheet."""
    from ..core.catalogue import catalogue
    from ..core.errors import did_you_mean

    if base and base not in catalogue().accelerators:
        raise InputError(f"--base {base}: is not in the catalogue; {did_you_mean(base, catalogue().accelerators)}")
    if base and stated:
        raise InputError(f"--base {base}: has a data sheet; leave out --peak, --bandwidth and --memory")


def _measured(memory: float | None, power: float) -> Reached:
    from ..core.measured.timing import measuring
    from ..gui.this_machine import this_machine

    machine = this_machine()
    memory = memory or machine.memory
    if memory is None:
        raise InputError("the system does not tell its memory; give --memory, for example --memory 64GiB")
    rates: tuple[tuple[str, float], ...] = ()
    shown = ""
    for progress in measuring(machine.tasks, time.perf_counter):
        if progress.task.name != shown:
            shown = progress.task.name
            print(f"{progress.done:4.0%}  {shown} …", file=sys.stderr, flush=True)
        rates = progress.rates
    return machine.reached(rates, memory, power)
