"""`triledger measure`: what this machine reaches, with numpy, and with torch where it is installed."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .arguments import InputError

if TYPE_CHECKING:
    from ..core.measured.machine import Reached

#: Seconds that each product and the copy are repeated for; the best repetition counts.
_SECONDS = 0.4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="ACCELERATOR.yaml", help="writes the entry for cluster.accelerator")
    parser.add_argument("--memory", metavar="SIZE", help="size of the memory, where the system does not tell: 64 GiB")
    parser.add_argument("--power", metavar="WATTS", default="100 W", help="power of the machine at work (100 W)")


def run(options: argparse.Namespace) -> int:
    from ..core.errors import OutputError
    from ..core.files import write_whole
    from ..core.measured.machine import entry_text
    from ..core.units import QuantityError, format_quantity, parse_quantity

    try:
        power = parse_quantity(options.power, "watts")
        memory = parse_quantity(options.memory, "bytes") if options.memory else _memory()
    except QuantityError as error:
        raise InputError(str(error)) from None
    reached = _measured(memory, power)
    text = entry_text(reached)
    print(text, end="")
    best, bandwidth = format_quantity(reached.best, "FLOP/s"), format_quantity(reached.bandwidth, "bytes/s")
    print(f"# on the roofline: {best} and {bandwidth}, which meet at {format_quantity(reached.knee, 'FLOP/B')}")
    if options.output:
        try:
            write_whole(options.output, text.encode())
        except OutputError as error:
            raise InputError(str(error)) from None
    return 0


def _measured(memory: float, power: float) -> Reached:
    from ..core.measured.machine import Reached

    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        if torch.cuda.is_available():
            device = torch.cuda.get_device_properties(0)
            flops, bandwidth = _with_torch(torch, "cuda")
            return Reached(device.name, f"torch {torch.__version__}", flops, bandwidth, device.total_memory, power)
    import numpy

    flops, bandwidth = _with_numpy(numpy)
    name = platform.processor() or platform.machine() or "this machine"
    return Reached(f"{name}, {os.cpu_count()} threads", f"numpy {numpy.__version__}", flops, bandwidth, memory, power)


def _with_numpy(numpy: Any) -> tuple[tuple[tuple[str, float], ...], float]:
    from ..core.measured.machine import COPIED_BYTES, MATRIX_SIZES, copy_bytes, matrix_flops

    rates = []
    for size in MATRIX_SIZES:
        left = numpy.ones((size, size), dtype=numpy.float32)
        right, out = numpy.ones_like(left), numpy.empty_like(left)
        seconds = _best(lambda a=left, b=right, c=out: numpy.matmul(a, b, out=c), f"fp32 product of {size} x {size}")
        rates.append(matrix_flops(size) / seconds)
    source = numpy.ones(COPIED_BYTES // 8)
    target = numpy.empty_like(source)
    seconds = _best(lambda: numpy.copyto(target, source), "copy")
    return (("fp32", max(rates)),), copy_bytes(source.nbytes) / seconds


def _with_torch(torch: Any, device: str) -> tuple[tuple[tuple[str, float], ...], float]:
    from ..core.measured.machine import COPIED_BYTES, copy_bytes, matrix_flops

    size = 8192
    flops = []
    for name, kind in (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)):
        left = torch.ones((size, size), dtype=kind, device=device)
        out = torch.empty_like(left)

        def product(a: Any = left, c: Any = out) -> None:
            torch.matmul(a, a, out=c)
            torch.cuda.synchronize()

        flops.append((name, matrix_flops(size) / _best(product, f"{name} product of {size} x {size}")))
    source = torch.ones(COPIED_BYTES * 4, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        torch.cuda.synchronize()

    return tuple(flops), copy_bytes(COPIED_BYTES * 4) / _best(copy, "copy")


def _best(work: Callable[[], object], what: str) -> float:
    """Seconds of the fastest repetition within the time that each piece of work has."""
    print(f"{what} …", file=sys.stderr, flush=True)
    return min(_repetitions(work))


def _repetitions(work: Callable[[], object]) -> Iterator[float]:
    work()  # the first one warms caches and threads up
    end = time.perf_counter() + _SECONDS
    while True:
        start = time.perf_counter()
        work()
        now = time.perf_counter()
        yield now - start
        if now > end:
            return


def _memory() -> float:
    """Bytes of memory as the system tells them."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        raise InputError("the system does not tell its memory; give --memory, for example --memory 64GiB")
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
