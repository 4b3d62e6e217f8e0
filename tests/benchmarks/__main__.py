"""`python -m uv run python -m tests.benchmarks [engine] [window] [start]` measures; nothing is asserted.

One core is used, so that figures of machines with different numbers of them can be compared.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(parts: list[str]) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from . import engine, start, window
    from .measure import Table

    table = Table()
    runs = {"engine": (engine.run,), "window": (window.run,), "start": (start.run, start.command_line)}
    for name in parts or runs:
        for run in runs[name]:
            run(table)


main(sys.argv[1:])
