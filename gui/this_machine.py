"""What this machine is, and the tasks that measure it; without Qt, as the command line asks for it too."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ..core.measured.machine import Reached
from ..core.measured.timing import BANDWIDTH, Task, device_tasks, host_tasks


@dataclass(frozen=True)
class ThisMachine:
    """A machine to be measured: its name, the library that does the work, its memory in bytes, and the tasks.

    The memory is None where the system does not tell it.
    """

    name: str
    library: str
    memory: float | None
    tasks: tuple[Task, ...]

    def reached(self, rates: tuple[tuple[str, float], ...], memory: float, power: float) -> Reached:
        """What was measured today, from the rates by name."""
        flops = tuple((name, rate) for name, rate in rates if name != BANDWIDTH)
        how = f"{self.library}, {date.today().isoformat()}"
        return Reached(self.name, how, flops, dict(rates)[BANDWIDTH], memory, power)


def this_machine() -> ThisMachine:
    """The first device of torch where it is installed and has one, else the processor with numpy."""
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        if torch.cuda.is_available():
            device = torch.cuda.get_device_properties(0)
            return ThisMachine(
                device.name, f"torch {torch.__version__}", device.total_memory, tuple(device_tasks(torch))
            )
    threads = os.cpu_count() or 1
    name = f"{_processor()}, {threads} thread{'s' * (threads > 1)}"
    return ThisMachine(name, f"numpy {importlib.metadata.version('numpy')}", _memory(), tuple(host_tasks()))


def _processor() -> str:
    """The processor as the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "this machine"


def _memory() -> float | None:
    """Bytes of memory where the system tells them."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
