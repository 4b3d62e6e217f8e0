"""What went wrong, said in the window: a one-line bar for a person, the traceback for the log."""

from __future__ import annotations

import logging
import sys
from types import TracebackType

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton

from .controls.labels import ElidedLabel
from .icons import icon
from .theme import LIGHT, Theme

log = logging.getLogger(__name__)


class Notice(QFrame):
    """A bar with one line that stays until it is dismissed, by its button or Escape, or what it is about is over."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notice")
        self._theme = LIGHT
        self._about = ""
        self.label = ElidedLabel()
        self.dismiss = QToolButton()
        self.dismiss.setIconSize(QSize(12, 12))
        self.dismiss.setToolTip("Dismiss")
        self.dismiss.setAccessibleName("Dismiss")
        self.dismiss.clicked.connect(self.hide)
        line = QHBoxLayout(self)
        line.setContentsMargins(14, 5, 8, 5)
        line.addWidget(self.label, 1)
        line.addWidget(self.dismiss)
        self.hide()

    def say(self, text: str, about: str = "", bad: bool = True) -> None:
        """Show one line; the whole of a long one is in the tooltip. It goes with `clear` of what it is about."""
        self._about = about
        self._color(bad)
        self.label.setText(" ".join(text.split()))
        self.label.setToolTip(text)
        self.label.setAccessibleName(text)
        self.show()

    def clear(self, about: str) -> None:
        """What a line may have spoken of is over."""
        if about == self._about:
            self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._color(bool(self.property("bad")))

    def _color(self, bad: bool) -> None:
        """Red for what went wrong, blue for what is good to know."""
        self.dismiss.setIcon(icon("close", self._theme.bad if bad else self._theme.accent))
        if self.property("bad") != bad:
            self.setProperty("bad", bad)
            for widget in (self, self.label):
                widget.style().unpolish(widget)
                widget.style().polish(widget)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)


class Unexpected(QObject):
    """Takes uncaught exceptions of any thread to the log, and one line of each to the window's thread."""

    happened = Signal(str)

    def install(self) -> None:
        """Become `sys.excepthook`."""
        sys.excepthook = self.take

    def take(self, kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
        """Handle one exception; an interrupt from the keyboard ends the program as usual."""
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, problem, trace)
            return
        log.critical("unexpected error", exc_info=(kind, problem, trace))
        self.happened.emit(f"Something went wrong, the plan is as it was: {problem or kind.__name__}")
