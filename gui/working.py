"""The working of a number: formula, values put in, and inputs that lead to their own working or to their control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ..core import evaluate
from ..core.report import Report
from ..core.scenario import Scenario
from ..core.working import Explanation, UnknownKeyError, explain_input, result_keys
from .fonts import font, typeset
from .formula import FormulaView
from .inputs import InputTable
from .results import ResultList
from .store import Store
from .theme import Theme

#: Milliseconds between two recorded evaluations while a plan changes.
PAUSE = 250


@dataclass(frozen=True)
class Step:
    """One step of a trail: a result's key, and which input of an input of it; `name` is what the trail calls it."""

    key: str
    places: tuple[int, ...] = ()
    name: str = ""


class WorkingPage(QWidget):
    """All results on the left; formula, values and source of one of them in the middle, its inputs on the right."""

    #: A field that an input comes from was followed.
    field_requested = Signal(str)

    def __init__(
        self,
        store: Store,
        theme: Theme,
        record: Callable[[Scenario], Report] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._theme = store, theme
        self._record = record or partial(evaluate, record=True)
        self._report: Report | None = None
        #: Trails that were walked, the present one last.
        self._trails: list[tuple[Step, ...]] = []
        self._explanation: Explanation | None = None
        self._soon = QTimer(self, singleShot=True, interval=PAUSE)
        self._soon.timeout.connect(self._refresh)
        self.results = ResultList()
        self.back = QToolButton()
        self.trail = QLabel()
        self.text = QFrame()
        self.meaning, self.number, self.facts = QLabel(), QLabel(), QLabel()
        self.formula, self.values = FormulaView(theme), FormulaView(theme)
        self.inputs = InputTable()
        self.copy_button = QToolButton()
        self._arrange()
        self._connect()
        self.set_theme(theme)

    # ------------------------------------------------------------ making

    def _arrange(self) -> None:
        right = QVBoxLayout()
        right.setSpacing(4)
        right.addLayout(self._head())
        body = QHBoxLayout()
        body.setSpacing(16)
        body.addWidget(self._middle(), 5)
        body.addWidget(self.inputs, 6)
        right.addLayout(body, 1)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(12, 8, 12, 8)
        whole.setSpacing(14)
        whole.addWidget(self.results, 2)
        whole.addLayout(right, 9)

    def _head(self) -> QHBoxLayout:
        self.back.setText("← Back")
        self.back.setToolTip("Back to the working before (Backspace)")
        self.trail.setTextFormat(Qt.TextFormat.RichText)
        self.trail.setMinimumWidth(60)
        self.copy_button.setText("Copy working")
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self.back)
        head.addWidget(self.trail, 1)
        head.addWidget(self.copy_button)
        return head

    def _middle(self) -> QScrollArea:
        self.number.setFont(font(20, bold=True))
        self.meaning.setFont(font(13))
        for label in (self.meaning, self.facts):
            label.setWordWrap(True)
        self.facts.setTextFormat(Qt.TextFormat.RichText)
        for label in (self.number, self.meaning):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        column = QVBoxLayout(self.text)
        column.setContentsMargins(0, 2, 6, 0)
        column.setSpacing(4)
        for widget in (self.number, self.meaning, self.formula, self.values, self.facts):
            column.addWidget(widget)
        column.addStretch(1)
        area = QScrollArea()
        area.setWidget(self.text)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setMinimumWidth(240)
        return area

    def _connect(self) -> None:
        self._store.report_changed.connect(self._refresh_soon)
        self.results.opened.connect(self.open)
        self.inputs.followed.connect(self.follow)
        self.trail.linkActivated.connect(lambda place: self._walk(self.steps[: int(place) + 1]))
        self.facts.linkActivated.connect(self.field_requested)
        self.back.clicked.connect(self.go_back)
        self.copy_button.clicked.connect(self.copy)
        for keys in ("Backspace", "Alt+Left"):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self.go_back)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.setStyleSheet(
            f"""
            QLabel {{ color: {theme.text}; background: transparent; }}
            QFrame, QScrollArea, QScrollArea > QWidget > QWidget {{ background: {theme.surface}; }}
            QToolButton {{ background: transparent; border: 1px solid {theme.border}; color: {theme.muted};
                padding: 3px 10px; }}
            QToolButton:hover, QToolButton:focus {{ color: {theme.accent}; border-color: {theme.accent}; }}
            QToolButton:disabled {{ color: {theme.border}; }}
            """
        )
        for view in (self.results, self.inputs, self.formula, self.values):
            view.set_theme(theme)
        self._show()

    # ------------------------------------------------------------ doing

    @property
    def steps(self) -> tuple[Step, ...]:
        """The trail from the result that was opened to what is shown."""
        return self._trails[-1] if self._trails else ()

    def open(self, key: str) -> None:
        """Show the working of a result."""
        if (Step(key, (), key),) != self.steps:
            self._walk((Step(key, (), key),))

    def follow(self, place: int) -> None:
        """Go to where an input comes from: its own working, or the control of its field."""
        if self._explanation is None or place >= len(self._explanation.inputs):
            return
        entry, here = self._explanation.inputs[place], self.steps[-1]
        if entry.key:
            self._walk((*self.steps, Step(entry.key, (), entry.key)))
        elif entry.working is not None:
            self._walk((*self.steps, Step(here.key, (*here.places, place), entry.name)))
        elif entry.path:
            self.field_requested.emit(entry.path)

    def go_back(self) -> None:
        """The working before this one."""
        if len(self._trails) > 1:
            self._trails.pop()
            self._show()

    def copy(self) -> None:
        """The working as lines of text to the clipboard."""
        if self._explanation is not None:
            QGuiApplication.clipboard().setText("\n".join(self._explanation.lines()))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _walk(self, steps: tuple[Step, ...]) -> None:
        self._trails.append(steps)
        self._show()

    # ------------------------------------------------------------ showing

    def _refresh_soon(self) -> None:
        if self.isVisible() and not self._soon.isActive():
            self._soon.start()

    def _refresh(self) -> None:
        """Evaluate the plan again, this time with its terms, unless that was done or nobody looks."""
        plain = self._store.report
        if not self.isVisible() or plain is None:
            return
        if self._report is None or self._report.scenario != plain.scenario:
            self._report = self._record(plain.scenario)
            self.results.set_keys(result_keys(self._report))
        if not self._trails:
            self._trails.append((Step("time.step_s", (), "time.step_s"),))
        self._show()

    def _show(self) -> None:
        if self._report is None or not self.steps:
            return
        here = self.steps[-1]
        try:
            explanation = explain_input(self._report, here.key, here.places, depth=2)
        except UnknownKeyError:
            missing = f"No result of this {self._report['kind']} plan has this name."
            why = self._report.why_withheld if here.key in self._report.withheld else missing
            explanation = Explanation(here.key, why, "–", None)
        self._explanation = explanation
        self._show_trail()
        self.number.setText(typeset(explanation.text))
        meaning = explanation.meaning or explanation.origin
        self.meaning.setText(typeset(meaning))
        self.meaning.setVisible(bool(meaning))
        for view, text in ((self.formula, explanation.formula), (self.values, explanation.substituted)):
            view.set_text(text)
            view.setVisible(bool(text))
        self.facts.setText(self._facts(explanation))
        self.facts.setVisible(bool(self.facts.text()))
        self.inputs.set_inputs(explanation.inputs)
        self.inputs.setVisible(bool(explanation.inputs))
        self.text.setAccessibleName(f"{explanation.key} = {explanation.text}. {meaning}")

    def _show_trail(self) -> None:
        self.back.setEnabled(len(self._trails) > 1)
        names = [typeset(escape(step.name)) for step in self.steps]
        style = f"color: {self._theme.accent}; text-decoration: none"
        links = [f'<a style="{style}" href="{place}">{name}</a>' for place, name in enumerate(names[:-1])]
        self.trail.setText(f'<span style="color: {self._theme.muted}"> › </span>'.join([*links, names[-1]]))
        self.results.mark("" if self.steps[-1].places else self.steps[-1].key)

    def _facts(self, explanation: Explanation) -> str:
        source = explanation.source or (explanation.origin if explanation.meaning else "")
        rows = (("Source", source), ("Not counted", explanation.leaves_out))
        muted, accent = self._theme.muted, self._theme.accent
        lines = [
            f'<span style="color: {muted}">{label}</span>&nbsp; {typeset(escape(text))}' for label, text in rows if text
        ]
        if explanation.path:
            style = f"color: {accent}; text-decoration: none"
            lines.append(f'<a style="{style}" href="{explanation.path}">Go to its control →</a>')
        return "<br>".join(lines)
