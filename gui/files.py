"""Opening and saving scenarios: the file dialogs, the recent files, and what is asked before something is lost."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QSettings, Signal
from PySide6.QtWidgets import QWidget

from ..core import load_scenario
from ..core.errors import OutputError, ScenarioError
from ..core.fields import label_of
from ..core.huggingface import import_file
from ..core.legality import violations
from ..core.scenario_file import part_in, save_scenario, with_part
from .dialogs import Dialogs
from .store import Store

_RECENT = 8
_SUFFIXES = (".yaml", ".yml")
#: Formats of weights that do not ask for a change of the plan's own.
_UNQUANTISED = ("bf16", "fp16")


class Files(QObject):
    """Reads and writes the store's scenario.

    `failed` carries one line when a file could not be used, `done` when one was: what is to know of it, or nothing.
    """

    failed = Signal(str)
    done = Signal(str)
    recent_changed = Signal()

    def __init__(self, store: Store, settings: QSettings, dialogs: Dialogs, window: QWidget) -> None:
        super().__init__(window)
        self._store, self._settings, self._dialogs, self._window = store, settings, dialogs, window
        #: The state of a file when it was last read or written here.
        self._known: dict[Path, tuple[int, int] | None] = {}

    def recent(self) -> list[str]:
        """The files opened or saved last, newest first."""
        kept = self._settings.value("files/recent", [])
        return [str(path) for path in (kept if isinstance(kept, list) else [kept])]

    def ask_and_open(self) -> None:
        if path := self._dialogs.path_to_open(self._window, self._folder()):
            self.open(Path(path))

    def open(self, path: Path) -> None:
        """Take a scenario file, a file of its model, accelerator or assumptions, or a config.json, as one undo step."""
        state = _state(path)
        try:
            if path.suffix.lower() == ".json":
                self._take_model(path)
                return
            if part := part_in(path):
                self._store.change(with_part(self._store.scenario, part, path), part, name=f"Open {path.name}")
                self.done.emit("")
                return
            scenario = load_scenario(str(path))
        except (ScenarioError, OSError) as problem:
            self.failed.emit(f"Not opened: {problem}")
            return
        self._known[path] = state
        self._store.apply(scenario, f"Open {path.name}", path)
        self._remember(path)
        self.done.emit("")

    def open_preset(self, name: str) -> None:
        """Take a preset as one undo step."""
        scenario = load_scenario(name)
        self._store.apply(scenario, f"Preset {scenario.name}")
        self.done.emit("")

    def open_run(self, name: str) -> None:
        """Take a published run as one undo step."""
        self._store.apply(load_scenario(f"run:{name}"), f"Run {name}")
        self.done.emit("")

    def rename(self) -> None:
        """Ask for another name of the plan, which is one undo step."""
        if name := self._dialogs.name(self._window, self._store.scenario.name):
            self._store.set("name", name)

    def save(self) -> bool:
        """Write the scenario where it came from; asks where when it came from a preset. False when it was not."""
        path = self._store.path
        if path is None:
            return self.ask_and_save()
        agreed = _state(path) in (None, self._known.get(path)) or self._dialogs.replace(self._window, path)
        return agreed and self._write(path)

    def ask_and_save(self) -> bool:
        suggestion = str(Path(self._folder()) / (self._store.path.name if self._store.path else "plan.yaml"))
        chosen = self._dialogs.path_to_save(self._window, suggestion, "Scenarios (*.yaml)")
        if not chosen:
            return False
        # Only a name that was chosen as it stands was asked about by the dialog itself.
        path = Path(chosen) if Path(chosen).suffix.lower() in _SUFFIXES else Path(f"{chosen}.yaml")
        agreed = str(path) == chosen or not path.exists() or self._dialogs.replace(self._window, path)
        return agreed and self._write(path)

    def may_close(self) -> bool:
        """Whether nothing would be lost, or a person agrees to lose it."""
        if self._store.undo_stack.isClean():
            return True
        answer = self._dialogs.save_first(self._window, self._store.scenario.name)
        return self.save() if answer == "save" else answer == "discard"

    def _take_model(self, path: Path) -> None:
        read = import_file(path, str(path))
        scenario = self._store.scenario.with_("model", read.spec)
        if read.weight_format not in _UNQUANTISED:
            scenario = scenario.with_("serving.weight_format", read.weight_format)
        self._store.change(scenario, "model")
        self.done.emit(_said([finding.message for finding in read.findings], read.spec.name))

    def _write(self, path: Path) -> bool:
        scenario = self._store.scenario
        broken = [f"{label_of(rule.field)}: {rule.message}" for rule in violations(scenario)]
        if broken and not self._dialogs.save_illegal(self._window, broken[0]):
            return False
        if self._store.path is None and self._store.title != scenario.name:
            # A preset that was changed is no longer what its name says; it is called as the person calls its file.
            scenario = scenario.with_("name", path.stem)
        try:
            save_scenario(scenario, path)
        except (OutputError, ScenarioError, OSError) as problem:
            self.failed.emit(f"Not saved: {problem}")
            return False
        self._known[path] = _state(path)
        self._store.change(scenario, "name")
        self._store.saved(path)
        self._remember(path)
        self.done.emit("")
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


def _state(path: Path) -> tuple[int, int] | None:
    """What tells whether a file was written by another program meanwhile; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _said(messages: list[str], model: str) -> str:
    """What to know of a model that was taken; empty where all of it was in the file."""
    return f"{model}: {'; '.join(messages)}" if messages else ""
