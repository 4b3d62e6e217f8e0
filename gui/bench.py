"""Measuring this machine: a thread that works through its tasks, and the window that shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, QThread, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from ..core.errors import OutputError
from ..core.figures.roofline import roofline
from ..core.files import write_whole
from ..core.measured.machine import POWER, Reached, entry_text
from ..core.measured.timing import BANDWIDTH, SECONDS, Progress, measuring
from ..core.units import format_quantity
from .chart_card import ChartCard, Choose, choose_file
from .fonts import font, prose
from .store import Store
from .theme import Theme, dialog_style
from .this_machine import ThisMachine, this_machine

#: Steps of the progress bar; as many words at most are sent from the thread.
_STEPS = 200
_FOLDER = "Accelerators (*.yaml)"


class Measurement(QThread):
    """Works through the tasks of a machine beside the window. `requestInterruption` stops it after a repetition."""

    #: How far it is.
    progressed = Signal(object)
    #: What the tasks reached; not sent when it was stopped.
    measured = Signal(object)
    #: Why it could not go on, in one line.
    failed = Signal(str)

    def __init__(
        self, machine: ThisMachine, clock: Callable[[], float], seconds: float, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._machine, self._clock, self._seconds = machine, clock, seconds

    def run(self) -> None:
        step, found = -1, None
        try:
            for found in measuring(self._machine.tasks, self._clock, self._seconds):
                if self.isInterruptionRequested():
                    return
                if int(found.done * _STEPS) > step:
                    step = int(found.done * _STEPS)
                    self.progressed.emit(found)
        except Exception as problem:  # a device may be short of memory, or gone; the window says so
            self.failed.emit(f"This machine could not be measured: {problem}")
            return
        if found is not None:
            self.measured.emit(found)


class Bench(QDialog):
    """Measures this machine and shows its roof in the roofline of the plan, dashed below that of the data sheet.

    What was measured can be kept in the plan, as an undo step, and saved as an accelerator that a plan can name.
    """

    def __init__(
        self,
        store: Store,
        theme: Theme,
        choose: Choose = choose_file,
        machine: ThisMachine | None = None,
        clock: Callable[[], float] = time.perf_counter,
        seconds: float = SECONDS,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._choose = store, choose
        self._machine = machine or this_machine()
        self._clock, self._seconds = clock, seconds
        self._thread: Measurement | None = None
        self.reached: Reached | None = None
        self.setWindowTitle("Measure this machine")
        self.title, self.state = QLabel(self._machine.name), QLabel()
        self.title.setFont(font(15, bold=True))
        self.state.setWordWrap(True)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Progress of the measurement")
        self.bar.setFixedHeight(8)
        self.chart = ChartCard(theme, choose)
        self.chart.failed.connect(self.state.setText)
        self.start_button = self._button("Measure", self.start)
        self.cancel_button = self._button("Cancel", self.cancel)
        self.keep_button = self._button("Show in this plan", self._keep)
        self.keep_button.setToolTip("The measured roof stands in the roofline of this plan and in its file")
        self.save_button = self._button("Save as accelerator…", self._save)
        if self._machine.memory is None:
            self.save_button.setToolTip("This system does not tell its memory: triledger measure --memory 64GiB -o …")
        self._lay_out()
        self.set_theme(theme)
        self.resize(660, 520)
        store.report_changed.connect(self._draw)
        self._say("Large matrix products and a copy of memory are repeated; the best repetition counts.")
        self._sync()
        self._draw()
        self.start_button.setFocus()

    # ------------------------------------------------------------ measuring

    @property
    def measuring(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Begin to measure; what was measured before stays until this is done."""
        if self._thread is not None:
            return
        self._thread = Measurement(self._machine, self._clock, self._seconds, self)
        self._thread.progressed.connect(self._show_progress)
        self._thread.measured.connect(self._take)
        self._thread.failed.connect(self._say)
        self._thread.finished.connect(self._finished)
        self._thread.start()
        self._sync()
        self.cancel_button.setFocus()

    def cancel(self) -> None:
        """Stop after the repetition that is at work."""
        if self._thread is not None:
            self._thread.requestInterruption()
            self._say("Cancelled; nothing was changed.")

    def stop(self) -> None:
        """Cancel and wait for the thread, so that none outlives the window."""
        if self._thread is not None:
            self._thread.requestInterruption()
            self._thread.wait()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.stop()
        super().closeEvent(event)

    def reject(self) -> None:
        self.stop()
        super().reject()

    def _show_progress(self, found: Progress) -> None:
        if self._thread is not None and not self._thread.isInterruptionRequested():
            self.bar.setValue(round(found.done * _STEPS))
            words = [f"{found.task.name} …", *(_rate(name, rate) for name, rate in found.rates)]
            self._say("   ".join(words))

    def _take(self, found: Progress) -> None:
        self.reached = self._machine.reached(found.rates, self._machine.memory or 0.0, POWER)
        words = [_rate(name, rate) for name, rate in found.rates]
        self._say(f"Reached {' and '.join(words)}, knee at {format_quantity(self.reached.knee, 'FLOP/B')}.")
        self._draw()

    def _finished(self) -> None:
        self._thread = None
        self.bar.setValue(0)
        self._sync()
        self.start_button.setText("Measure again" if self.reached else "Measure")
        self.start_button.setFocus()

    # ------------------------------------------------------------ what was measured

    def _draw(self) -> None:
        """The roofline of the plan, with the roof of this machine once it was measured."""
        report = self._store.report
        if report is not None and self.reached is not None:
            beside = report.scenario.with_("cluster.accelerator.measured", self.reached.rates)
            report = replace(report, scenario=beside)
        if report is not None:
            self.chart.set_figure(roofline(report))

    def _keep(self) -> None:
        if self.reached is not None:
            scenario = self._store.scenario.with_("cluster.accelerator.measured", self.reached.rates)
            self._store.change(scenario, "", None, "Measured roof")

    def _save(self) -> None:
        chosen = self._choose(self, "this-machine.yaml", _FOLDER)
        if not chosen or self.reached is None:
            return
        path = Path(chosen) if Path(chosen).suffix.lower() in (".yaml", ".yml") else Path(f"{chosen}.yaml")
        try:
            write_whole(path, entry_text(self.reached).encode())
        except OutputError as problem:
            self._say(f"Not saved: {problem}")
        else:
            self._say(f"Saved. Open {path.name} in the window to plan with this machine.")

    # ------------------------------------------------------------ looks

    def set_theme(self, theme: Theme) -> None:
        self.chart.set_theme(theme)
        self.setStyleSheet(dialog_style(theme))

    def _lay_out(self) -> None:
        progress, buttons, column = QHBoxLayout(), QHBoxLayout(), QVBoxLayout(self)
        progress.addWidget(self.bar, 1)
        progress.addWidget(self.start_button)
        progress.addWidget(self.cancel_button)
        buttons.addStretch(1)
        buttons.addWidget(self.keep_button)
        buttons.addWidget(self.save_button)
        column.setSpacing(8)
        column.addWidget(self.title)
        column.addWidget(self.state)
        column.addLayout(progress)
        column.addWidget(self.chart, 1)
        column.addLayout(buttons)

    def _button(self, text: str, run: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda _checked: run())
        return button

    def _sync(self) -> None:
        """Which buttons do something now."""
        done = self.reached is not None and not self.measuring
        self.start_button.setEnabled(not self.measuring)
        self.cancel_button.setEnabled(self.measuring)
        self.keep_button.setEnabled(done)
        self.save_button.setEnabled(done and self._machine.memory is not None)

    def _say(self, text: str) -> None:
        self.state.setText(prose(text))


def _rate(name: str, rate: float) -> str:
    return format_quantity(rate, "bytes/s") if name == BANDWIDTH else f"{name} {format_quantity(rate, 'FLOP/s')}"
