"""From a slider's tick to painted pixels, in a window of four charts at 1440×900 without a display."""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, QObject, QSettings
from PySide6.QtWidgets import QApplication

from triledger.core import load_scenario
from triledger.gui import fonts
from triledger.gui.store import Store
from triledger.gui.theme import LIGHT
from triledger.gui.window import Window

from .measure import Table


class Painted(QObject):
    """Notes when a window has painted what was waiting."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self.times: list[float] = []
        self._window = window

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self._window or event.type() != QEvent.Type.UpdateRequest:
            return False
        self._window.event(event)
        self.times.append(time.perf_counter())
        return True


def run(table: Table) -> None:
    application = QApplication.instance() or QApplication(["benchmarks"])
    assert isinstance(application, QApplication)
    fonts.load()
    application.setFont(fonts.font())
    cases = (
        ("7b-8xa100-train", "economics.gpu_price", (1.0, 2.0)),
        ("70b-64xh100-train", "training.sequence_length", (8192, 4096)),
        ("70b-bf16-8xa100-serve", "serving.concurrency", (16, 32)),
        ("deepseek-v3-2048xh800-train", "training.sequence_length", (2048, 4096)),
        ("deepseek-v3-h200-serve", "serving.concurrency", (128, 256)),
    )
    for preset, path, values in cases:
        window = Window(Store(load_scenario(preset)), QSettings("", QSettings.Format.IniFormat), LIGHT)
        window.resize(1440, 900)
        window.show()
        window.complete()
        _settle(application)
        ticks = [_tick(application, window, path, values[turn % 2]) for turn in range(60)][10:]
        report, curve = zip(*ticks, strict=True)
        table.times(f"tick to pixels, {preset}, {path}", list(report))
        table.times("  and of the chart along its curve", list(curve))
        window.hide()
        window.deleteLater()
        _settle(application)


def _settle(application: QApplication, seconds: float = 0.15) -> None:
    """Lets everything that waits for idle time run."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        application.processEvents()


def _tick(application: QApplication, window: Window, path: str, value: float) -> tuple[float, float]:
    """Seconds from a change of a field until the window has painted its report, and the curve that follows."""
    _settle(application)
    painted, store = Painted(window), window.store
    changed: dict[str, float] = {}
    signals = {"report": store.report_changed, "curve": store.curve_changed}
    notes = [
        signal.connect(lambda name=name: changed.setdefault(name, time.perf_counter()))
        for name, signal in signals.items()
    ]
    window.installEventFilter(painted)
    start = time.perf_counter()
    store.set(path, value)
    while len(changed) < len(signals) or not painted.times or painted.times[-1] < changed["curve"]:
        application.processEvents()
        if time.perf_counter() > start + 5:
            raise RuntimeError(f"{path} = {value} was not painted")
    for signal, note in zip(signals.values(), notes, strict=True):
        signal.disconnect(note)
    window.removeEventFilter(painted)
    report, curve = (next(t for t in painted.times if t > changed[name]) - start for name in signals)
    return report, curve
