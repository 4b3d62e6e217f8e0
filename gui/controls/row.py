"""A field in a panel: its label and the control that sets it, kept in step with the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ...core.errors import ScenarioError
from ...core.explore.strips import refusal
from ...core.fields import Field
from ...core.scenario import Scenario
from ...core.scenario_file import set_field
from ..fonts import font
from ..store import Store
from ..text import note, shown
from ..theme import Theme
from .choice import Choice, SearchChoice
from .labels import ElidedLabel
from .switch import Switch

HEIGHT = 17


class Row(QWidget):
    """Label left, control right, what is wrong with an entry beneath."""

    def __init__(self, field: Field, store: Store) -> None:
        super().__init__()
        self.setObjectName("row")
        self.field, self.store = field, store
        self.label = ElidedLabel(field.label)
        self.note = ElidedLabel(name="note")
        self.setToolTip(field.help)
        self._error: QLabel | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._last: object = None

    @property
    def value(self) -> Any:
        return self.store.scenario.get(self.field.path)

    @property
    def error(self) -> str:
        """What is wrong with what was entered; empty when nothing is."""
        return self._error.text() if self._error is not None else ""

    def sync(self) -> None:
        """Show the store's scenario. What could not be taken stays, marked, until the field itself changes."""
        state = (self.value, self.store.origin.get(self.field.path), self.store.broken.get(self.field.path, ""))
        if state != self._last:
            self._last = state
            self._clear_error()
            self.show_value(self.value)
            if state[-1]:
                self.refuse(state[-1])
        self.note.setText(note(self.field.path, self.store.scenario))

    def show_value(self, value: Any) -> None:
        raise NotImplementedError

    def set_theme(self, theme: Theme) -> None:
        """Take colours; rows that do not paint themselves have them from the style sheet."""

    def enter(self, text: str) -> None:
        """Take what was typed or chosen, or say what is wrong with it and leave the plan as it is."""
        try:
            scenario = set_field(self.store.scenario, self.field.path, text)
        except ScenarioError as problem:
            self.refuse(problem.message)
            return
        # Another model or part may need other degrees; their rows then say so. A number that does not divide is wrong.
        reason = "" if self.field.unit == "catalogue" else refusal(self.store.scenario, scenario, self.field.path)
        if reason:
            self.refuse(reason)
            return
        self._last = None
        self.store.change(scenario, self.field.path)
        self.sync()

    def refuse(self, reason: str) -> None:
        """Say beneath the row what is wrong."""
        if self._error is None:
            self._error = QLabel()
            self._error.setObjectName("error")
            self._error.setWordWrap(True)
            self._layout.addWidget(self._error)
        self._error.setText(reason)

    def _clear_error(self) -> None:
        if self._error is not None:
            self._layout.removeWidget(self._error)
            self._error.deleteLater()
            self._error = None

    def _line(self, *right: QWidget) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(4)
        line.addWidget(self.label)
        line.addWidget(self.note, 1)
        for widget in right:
            line.addWidget(widget)
        self._layout.addLayout(line)
        return line


class ChoiceRow(Row):
    """One of a few words."""

    def __init__(self, field: Field, store: Store) -> None:
        super().__init__(field, store)
        self.control = Choice()
        self.control.offer([(word, word) for word in field.choices])
        self.control.setAccessibleName(field.label)
        self.control.chosen.connect(self.enter)
        self.label.setBuddy(self.control)
        line = self._line(self.control)
        line.setStretchFactor(self.control, 1)
        self.note.hide()

    def show_value(self, value: Any) -> None:
        self.control.show_choice(str(value), shown(self.field, value))


class FlagRow(Row):
    """On or off."""

    def __init__(self, field: Field, store: Store) -> None:
        super().__init__(field, store)
        self.control = Switch()
        self.control.setAccessibleName(field.label)
        self.control.clicked.connect(lambda on: self.store.set(self.field.path, on))
        self.label.setBuddy(self.control)
        line = self._line(self.control)
        line.insertStretch(1)
        self.note.hide()
        self.setMinimumHeight(22)

    def show_value(self, value: Any) -> None:
        self.control.setChecked(bool(value))

    def set_theme(self, theme: Theme) -> None:
        self.control.set_theme(theme)


class CatalogueRow(Row):
    """An entry of a catalogue, found by typing a part of its name."""

    def __init__(self, field: Field, store: Store, entries: Callable[[], list[tuple[str, str]]]) -> None:
        super().__init__(field, store)
        self.control = SearchChoice(entries)
        self.control.setAccessibleName(field.label)
        self.control.chosen.connect(self.enter)
        self.control.given_up.connect(self._clear_error)
        self.label.setBuddy(self.control)
        line = self._line(self.control)
        line.setStretchFactor(self.control, 1)
        self.note.hide()

    def show_value(self, value: Any) -> None:
        self.control.show_choice(getattr(value, "id", str(value)), shown(self.field, value))

    def refuse(self, reason: str) -> None:
        reason = reason.partition("; known: ")[0]  # the box itself lists them
        super().refuse(reason)
        self.control.refuse(reason)


class DerivedRow(QWidget):
    """A result among the inputs: label, how it comes about, value."""

    def __init__(self, label: str, derive: Callable[[Scenario], tuple[str, str]], store: Store) -> None:
        super().__init__()
        self.setObjectName("row")
        self._store, self._derive = store, derive
        self.note, self.value = ElidedLabel(name="note"), QLabel()
        self.value.setFont(font())
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 6, 0)
        line.setSpacing(6)
        line.addWidget(ElidedLabel(label))
        line.addWidget(self.note, 1)
        line.addWidget(self.value)
        self.sync()

    def sync(self) -> None:
        working, value = self._derive(self._store.scenario)
        self.note.setText(working)
        self.value.setText(value)

    def set_theme(self, theme: Theme) -> None:
        """Coloured by the style sheet."""
