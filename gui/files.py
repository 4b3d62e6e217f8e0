"""Opening and saving scenarios: the file dialogs, the recent files, and what is asked before something is lost."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from ..core import load_scenario
from ..core.errors import OutputError, ScenarioError
from ..core.scenario_file import save_scenario, set_field
from .store import Store

_SCENARIOS = "Scenarios (*.yaml *.yml);;Hugging Face configurations (*.json);;All files (*)"
_RECENT = 8


class Dialogs:
    """The questions a window asks; tests answer them in its place."""

    def path_to_open(self, parent: QWidget, folder: str) -> str:
        """A file to open, or nothing."""
        return QFileDialog.getOpenFileName(parent, "Open a scenario", folder, _SCENARIOS)[0]

    def path_to_save(self, parent: QWidget, suggestion: str, kinds: str) -> str:
        """A file to write, or nothing."""
        return QFileDialog.getSaveFileName(parent, "Save", suggestion, kinds)[0]

    def save_first(self, parent: QWidget, name: str) -> str:
        """What to do with unsaved changes: save, discard or cancel."""
        button = QMessageBox.StandardButton
        answer = QMessageBox.question(
            parent,
            "Unsaved changes",
            f"Save the changes to “{name}”?",
            button.Save | button.Discard | button.Cancel,
            button.Save,
        )
        return {button.Save: "save", button.Discard: "discard"}.get(answer, "cancel")


class Files(QObject):
    """Reads and writes the store's scenario. `failed` carries one line when a file could not be used."""

    failed = Signal(str)
    recent_changed = Signal()

    def __init__(self, store: Store, settings: QSettings, dialogs: Dialogs, window: QWidget) -> None:
        super().__init__(window)
        self._store, self._settings, self._dialogs, self._window = store, settings, dialogs, window

    def recent(self) -> list[str]:
        """The files opened or saved last, newest first."""
        kept = self._settings.value("files/recent", [])
        return [str(path) for path in (kept if isinstance(kept, list) else [kept])]

    def ask_and_open(self) -> None:
        if path := self._dialogs.path_to_open(self._window, self._folder()):
            self.open(Path(path))

    def open(self, path: Path) -> None:
        """Take a scenario file, or the model of a Hugging Face config.json, as one undo step."""
        try:
            if path.suffix.lower() == ".json":
                self._store.change(set_field(self._store.scenario, "model", str(path)), "model")
                return
            scenario = load_scenario(str(path))
        except (ScenarioError, OSError) as problem:
            self.failed.emit(f"Not opened: {problem}")
            return
        self._store.apply(scenario, f"Open {path.name}", path)
        self._remember(path)

    def open_preset(self, name: str) -> None:
        """Take a preset as one undo step."""
        scenario = load_scenario(name)
        self._store.apply(scenario, f"Preset {scenario.name}")

    def save(self) -> bool:
        """Write the scenario where it came from; asks where when it came from a preset. False when it was not."""
        return self._write(self._store.path) if self._store.path is not None else self.ask_and_save()

    def ask_and_save(self) -> bool:
        suggestion = str(Path(self._folder()) / (self._store.path.name if self._store.path else "plan.yaml"))
        path = self._dialogs.path_to_save(self._window, suggestion, "Scenarios (*.yaml)")
        if not path:
            return False
        return self._write(Path(path) if Path(path).suffix else Path(path).with_suffix(".yaml"))

    def may_close(self) -> bool:
        """Whether nothing would be lost, or a person agrees to lose it."""
        if self._store.undo_stack.isClean():
            return True
        answer = self._dialogs.save_first(self._window, self._store.scenario.name)
        return self.save() if answer == "save" else answer == "discard"

    def _write(self, path: Path) -> bool:
        try:
            save_scenario(self._store.scenario, path)
        except (OutputError, ScenarioError, OSError) as problem:
            self.failed.emit(f"Not saved: {problem}")
            return False
        self._store.saved(path)
        self._remember(path)
        return True

    def _folder(self) -> str:
        if self._store.path is not None:
            return str(self._store.path.parent)
        recent = self.recent()
        return str(Path(recent[0]).parent) if recent else str(Path.home())

    def _remember(self, path: Path) -> None:
        place = str(path.resolve())
        self._settings.setValue("files/recent", [place, *(p for p in self.recent() if p != place)][:_RECENT])
        self.recent_changed.emit()
