"""The one mutable object: the scenario with its undo stack, and the reports that follow it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from ..core import evaluate
from ..core.explore.strips import refusal
from ..core.figures.serving import concurrency_sweep
from ..core.figures.training import gpus_sweep
from ..core.legality import violations
from ..core.report import Edit, Report
from ..core.scenario import Scenario
from .text import name_of_change

log = logging.getLogger(__name__)

#: The curve of a kind of plan: its days on other numbers of GPUs, or its speed at other concurrencies.
_SWEEPS = {"training": gpus_sweep, "serving": concurrency_sweep}
#: Milliseconds between two evaluations while something is dragged: one frame.
FRAME = 16


@dataclass(frozen=True)
class Document:
    """What undo brings back whole: the scenario, the one it started from, and the file it is saved in."""

    scenario: Scenario
    origin: Scenario
    path: Path | None = None


class Store(QObject):
    """Holds the scenario; views listen and are functions of `report`.

    `scenario_changed` comes at once, `report_changed` at most once a frame, `curve_changed` when the machine is idle.
    `failed` carries one line when an evaluation raised, and the last good report then stays, or when a suggestion
    could not be taken.
    """

    scenario_changed = Signal()
    report_changed = Signal()
    curve_changed = Signal()
    failed = Signal(str)

    def __init__(
        self,
        scenario: Scenario,
        path: Path | None = None,
        evaluate: Callable[[Scenario], Report] = evaluate,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.undo_stack = QUndoStack(self)
        #: What does not divide in the present layout, by field.
        self.broken: dict[str, str]
        self.report: Report | None = None
        self.curve: Report | None = None
        self.evaluate = evaluate
        self._document = Document(scenario, scenario, path)
        self.broken = _broken(scenario)
        self._gestures = itertools.count(1)
        self._since = QElapsedTimer()
        self._tick = _single_shot(self, self._evaluate)
        self._idle = _single_shot(self, self._follow)
        self._schedule()

    @property
    def scenario(self) -> Scenario:
        return self._document.scenario

    @property
    def origin(self) -> Scenario:
        """The scenario as it was opened: what a double click on a control goes back to."""
        return self._document.origin

    @property
    def title(self) -> str:
        """The name of the plan; one that is no longer what was opened under that name says so until it is saved."""
        scenario, origin = self.scenario, self.origin
        saved = self.path is not None and self.undo_stack.isClean()
        same = saved or scenario == origin or scenario.name != origin.name
        return scenario.name if same else f"{scenario.name} (changed)"

    @property
    def path(self) -> Path | None:
        """The file the scenario is saved in; None for a preset that was not saved yet."""
        return self._document.path

    @property
    def kind(self) -> str:
        """training or serving."""
        return self.scenario.kind

    def gesture(self) -> int:
        """The number of a new gesture: changes of one path that carry it are one undo step."""
        return next(self._gestures)

    def set(self, path: str, value: Any, gesture: int | None = None, name: str | None = None) -> None:
        """Change one field to a value (SI, or a dataclass of the catalogue)."""
        self.change(self.scenario.with_(path, value), path, gesture, name)

    def change(self, scenario: Scenario, path: str, gesture: int | None = None, name: str | None = None) -> None:
        """Take a scenario in which the field at `path` was changed, as one undo step or part of a gesture."""
        if scenario != self.scenario:
            self._push(replace(self._document, scenario=scenario), path, gesture, name)

    def apply(self, scenario: Scenario, name: str, path: Path | None = None) -> None:
        """Take another scenario whole (a preset, a file) as one undo step; nothing is unsaved after it."""
        self._push(Document(scenario, scenario, path), "", None, name)
        self.undo_stack.setClean()

    def apply_edit(self, edit: Edit) -> None:
        """Take the suggestion of a finding as one undo step; one that breaks a rule of the layout fails instead."""
        scenario = edit.applied(self.scenario)
        if reason := refusal(self.scenario, scenario, edit.changes[0][0]):
            self.failed.emit(f"{edit.label} is not possible in this plan: {reason}")
            return
        self.change(scenario, "", None, edit.label)

    def saved(self, path: Path) -> None:
        """The scenario was written to a file."""
        self._document = replace(self._document, path=path)
        self.undo_stack.setClean()
        self.scenario_changed.emit()

    def flush(self) -> None:
        """Evaluate now what is waiting, the curve too."""
        if self._tick.isActive():
            self._tick.stop()
            self._evaluate()
        if self._idle.isActive():
            self._idle.stop()
            self._follow()

    def show(self, document: Document, whole: bool) -> None:
        """Make a document the present one; undo and redo come here. Unless `whole`, origin and file stay."""
        self._document = document if whole else replace(self._document, scenario=document.scenario)
        self.broken = _broken(self.scenario)
        self.scenario_changed.emit()
        self._schedule()

    def _push(self, document: Document, path: str, gesture: int | None, name: str | None) -> None:
        self.undo_stack.push(_Change(self, self._document, document, path, gesture, name))

    def _schedule(self) -> None:
        # A throttle, not a debounce: the first change is evaluated at the next turn of the event loop.
        if not self._tick.isActive():
            waited = self._since.elapsed() if self._since.isValid() else FRAME
            self._tick.start(max(0, FRAME - waited))

    def _evaluate(self) -> None:
        self._since.start()
        try:
            self.report = self.evaluate(self.scenario)
        except Exception as problem:  # whatever the engine raises, the last good plan stays on the screen
            log.exception("evaluation failed")
            self.failed.emit(f"This plan could not be evaluated: {problem}")
            return
        self.report_changed.emit()
        self._idle.start(0)

    def _follow(self) -> None:
        if self._tick.isActive():
            return  # another report is on its way, and the curve follows that one
        try:
            self.curve = self.evaluate(_SWEEPS[self.kind](self.scenario))
        except Exception:  # the plan itself was evaluated; without its curve one chart says so
            log.exception("curve failed")
            self.curve = None
        self.curve_changed.emit()


class _Change(QUndoCommand):
    """One undo step between two whole documents."""

    def __init__(
        self, store: Store, before: Document, after: Document, path: str, gesture: int | None, name: str | None
    ) -> None:
        super().__init__()
        self._store = store
        self._before, self._after = before, after
        self._path, self._gesture, self._name = path, gesture, name
        # A field's undo must not forget that the scenario was saved in the meantime; a file's undo must.
        self._whole = before.origin is not after.origin
        self._say()

    def id(self) -> int:
        return -1 if self._gesture is None else 1

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _Change) or (other._path, other._gesture) != (self._path, self._gesture):
            return False
        self._after, self._name = other._after, other._name
        self.setObsolete(self._after == self._before)
        self._say()
        return True

    def redo(self) -> None:
        self._store.show(self._after, self._whole)

    def undo(self) -> None:
        self._store.show(self._before, self._whole)

    def _say(self) -> None:
        self.setText(self._name or name_of_change(self._path, self._before.scenario, self._after.scenario))


def _broken(scenario: Scenario) -> dict[str, str]:
    return {violation.field: violation.message for violation in reversed(violations(scenario))}


def _single_shot(parent: QObject, slot: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.timeout.connect(slot)
    return timer
