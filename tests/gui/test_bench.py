"""Measuring this machine in the window: progress, cancel, the second roof, and the file of the machine."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from triledger.core.measured.timing import BANDWIDTH, Task
from triledger.gui.bench import Bench
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT
from triledger.gui.this_machine import ThisMachine
from triledger.gui.window import Window

from .conftest import Answers

LEFT = Qt.MouseButton.LeftButton


def machine(work: Callable[[], object] = lambda: None, memory: float | None = 2.0**35) -> ThisMachine:
    tasks = (Task("fp32 product", "fp32", 5e12, lambda: work), Task("copy", BANDWIDTH, 1e11, lambda: work))
    return ThisMachine("a machine, 4 threads", "numpy 2", memory, tasks)


def ticking() -> Callable[[], float]:
    """A clock that is a second later each time it is asked; no one waits."""
    return itertools.count().__next__


@pytest.fixture
def open_bench(qtbot: QtBot, store: Store, answers: Answers) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(found: ThisMachine, seconds: float = 20.0) -> Bench:
        bench = Bench(store, LIGHT, answers.path_to_save, found, ticking(), seconds)
        qtbot.addWidget(bench)
        bench.show()
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.stop()


def test_progress_is_shown_while_the_window_lives_on(qtbot: QtBot, open_bench: Callable[..., Bench]) -> None:
    gate = threading.Semaphore(0)
    bench = open_bench(machine(lambda: gate.acquire(timeout=5)))
    assert not bench.keep_button.isEnabled()
    qtbot.mouseClick(bench.start_button, LEFT)
    assert (bench.start_button.isEnabled(), bench.cancel_button.isEnabled()) == (False, True)
    qtbot.waitUntil(lambda: "product" in bench.state.text())
    gate.release(4)
    qtbot.waitUntil(lambda: 0 < bench.bar.value() < bench.bar.maximum() / 2)
    assert "5.00\u00a0TFLOP/s" in bench.state.text()
    gate.release(1000)
    qtbot.waitUntil(lambda: not bench.measuring)
    assert bench.reached is not None
    assert (bench.reached.best, bench.reached.bandwidth) == (5e12, 1e11)
    assert "knee at 50.0\u00a0FLOP/B" in bench.state.text()
    assert bench.start_button.text() == "Measure again"


def test_a_measurement_is_cancelled_between_repetitions(qtbot: QtBot, open_bench: Callable[..., Bench]) -> None:
    gate = threading.Semaphore(3)
    bench = open_bench(machine(lambda: gate.acquire(timeout=5)))
    qtbot.mouseClick(bench.start_button, LEFT)
    qtbot.waitUntil(lambda: bench.bar.value() > 0)
    qtbot.mouseClick(bench.cancel_button, LEFT)
    gate.release()
    qtbot.waitUntil(lambda: not bench.measuring)
    assert bench.reached is None
    assert bench.bar.value() == 0
    assert "Cancelled" in bench.state.text()
    assert (bench.start_button.isEnabled(), bench.keep_button.isEnabled()) == (True, False)


def test_closing_ends_the_measurement(qtbot: QtBot, open_bench: Callable[..., Bench]) -> None:
    bench = open_bench(machine(), seconds=1e12)
    qtbot.mouseClick(bench.start_button, LEFT)
    qtbot.keyClick(bench, Qt.Key.Key_Escape)
    assert not bench.isVisible()
    qtbot.waitUntil(lambda: not bench.measuring)
    assert bench.reached is None


def measured(qtbot: QtBot, bench: Bench) -> Bench:
    qtbot.mouseClick(bench.start_button, LEFT)
    qtbot.waitUntil(lambda: bench.reached is not None and not bench.measuring)
    return bench


def test_the_measured_roof_stands_beside_that_of_the_plan_and_can_be_kept_in_it(
    qtbot: QtBot, open_bench: Callable[..., Bench], store: Store
) -> None:
    bench = open_bench(machine())
    assert "measured roof" not in {line.name for line in bench.chart.figure.lines}
    measured(qtbot, bench)
    roof = next(line for line in bench.chart.figure.lines if line.name == "measured roof")
    assert (roof.style, roof.y[-1]) == ("dashed", 5e12)
    assert "a machine, 4 threads" in roof.hover
    qtbot.mouseClick(bench.keep_button, LEFT)
    assert store.scenario.cluster.accelerator.measured.fp32 == 5e12
    assert store.undo_stack.undoText() == "Measured roof"
    store.undo_stack.undo()
    assert store.scenario.cluster.accelerator.measured.fp32 is None


def test_the_machine_is_saved_as_an_accelerator_that_the_window_opens(
    qtbot: QtBot, window: Window, answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triledger.gui.bench.this_machine", machine)
    assert window.ledgers is not None
    window.ledgers.show_page(window.evidence)
    buttons = {button.text(): button for button in window.evidence.findChildren(QToolButton)}
    qtbot.mouseClick(buttons["Measure this machine…"], LEFT)
    bench = window.bench
    assert bench is not None
    assert bench.isVisible()
    bench._clock = ticking()
    measured(qtbot, bench)
    answers.save = str(tmp_path / "me")
    qtbot.mouseClick(bench.save_button, LEFT)
    assert "Saved" in bench.state.text()
    window.files.open(tmp_path / "me.yaml")
    device = window.store.scenario.cluster.accelerator
    assert (device.name, device.peak.fp32, device.memory) == ("a machine, 4 threads", 5e12, 2.0**35)
    assert window.store.undo_stack.undoText() == "Open me.yaml"
    answers.save = str(tmp_path / "no" / "folder.yaml")
    qtbot.mouseClick(bench.save_button, LEFT)
    assert "Not saved" in bench.state.text()
    window.set_theme(DARK)
    assert bench.chart.theme is DARK


def test_what_cannot_be_done_is_said(qtbot: QtBot, open_bench: Callable[..., Bench]) -> None:
    def fail() -> None:
        raise MemoryError("no room for the matrices")

    bench = open_bench(machine(fail))
    qtbot.mouseClick(bench.start_button, LEFT)
    qtbot.waitUntil(lambda: not bench.measuring)
    assert "no room for the matrices" in bench.state.text()
    nameless = measured(qtbot, open_bench(machine(memory=None)))
    assert not nameless.save_button.isEnabled()
    assert "--memory" in nameless.save_button.toolTip()
