"""Start of the program in a process of its own: to the first picture, to all of it, and what it then occupies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from .measure import Table

_PROGRAM = """
import json, sys, time
from pathlib import Path

marks = {"started": time.time()}

def mark(name):
    marks.setdefault(name, time.time())

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from triledger.cli import main
from triledger.gui import window

class Watched(window.Window):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.centralWidget().painted.connect(lambda: mark("first picture"))
        self.completed.connect(lambda: QTimer.singleShot(0, self.finish))

    def finish(self):
        QApplication.processEvents()
        mark("usable")
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(json.dumps(marks | {"resident": pages * 4096}))
        QApplication.instance().exit()

window.Window = Watched
sys.exit(main(["7b-8xa100-train"]))
"""


def run(table: Table, repeats: int = 5) -> None:
    starts = [_start() for _ in range(repeats)]
    for name in ("first picture", "usable"):
        table.times(f"start of the program to {name}", [start[name] - start["spawned"] for start in starts])
    table.amount("resident memory, window open", starts[-1]["resident"] / 2**20, "MiB")


def _start() -> dict[str, float]:
    spawned = time.time()
    result = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, encoding="utf-8", check=True)
    return json.loads(result.stdout) | {"spawned": spawned}


def command_line(table: Table) -> None:
    """The commands that open no window."""
    triledger = str(Path(sys.executable).with_name("triledger"))
    for arguments in (["--help"], ["list", "presets"], ["eval", "7b-8xa100-train", "--format", "json"]):
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([triledger, *arguments], capture_output=True, check=True)
            seconds.append(time.perf_counter() - start)
        table.times(f"triledger {' '.join(arguments)}", seconds)
