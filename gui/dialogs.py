"""The questions a window asks; tests answer them in its place."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox, QWidget

_SCENARIOS = "Scenarios (*.yaml *.yml);;Hugging Face configurations (*.json);;All files (*)"


class Dialogs:
    """Asks a person, one question a method."""

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

    def save_illegal(self, parent: QWidget, reason: str) -> bool:
        """Whether to save a plan that cannot be opened again."""
        return _agrees(parent, "Not a possible plan", f"This file will not open again: {reason}.\nSave it anyway?")

    def replace(self, parent: QWidget, path: Path) -> bool:
        """Whether to write over a file that the person did not name, or not in this state."""
        return _agrees(parent, "Replace the file", f"{path.name} is there already, or has changed since.\nReplace it?")

    def name(self, parent: QWidget, present: str) -> str:
        """Another name for the plan, or nothing."""
        text, agreed = QInputDialog.getText(parent, "Rename", "Name of the plan:", text=present)
        return text.strip() if agreed else ""


def _agrees(parent: QWidget, title: str, question: str) -> bool:
    button = QMessageBox.StandardButton
    return QMessageBox.question(parent, title, question, button.Yes | button.No, button.No) == button.Yes
