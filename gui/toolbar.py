"""The bar on top: presets, files, undo, the kind of plan, panels, charts as files, the theme."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QSizePolicy, QToolBar, QToolButton, QWidget

from . import SMALLEST
from .icons import icon
from .store import Store
from .theme import Theme

KINDS = ("training", "serving")
#: Pixels of the plan's name in the smallest window, and at most.
_NAME, _NAME_MOST = 190, 330


class Toolbar(QToolBar):
    """Buttons and menus. What they do is given by the window; the bar itself only knows the store."""

    def __init__(self, store: Store) -> None:
        super().__init__("Toolbar")
        self.setObjectName("toolbar")
        self.setMovable(False)
        self.setIconSize(QSize(16, 16))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self._store = store
        brand = QLabel("Triledger")
        brand.setObjectName("brand")
        self.addWidget(brand)
        self.presets = self.menu("", "Presets")
        self.addWidget(self.presets)
        store.scenario_changed.connect(self.sync)

    def button(self, text: str, run: Callable[[], object], keys: str = "") -> QToolButton:
        """A button with a shortcut, which works from the whole window."""
        action = QAction(text, self)
        action.triggered.connect(lambda _checked: run())
        if keys:
            action.setShortcut(QKeySequence(keys))
            action.setToolTip(f"{text} ({action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)})")
        return _button_of(action)

    def menu(self, text: str, title: str, fill: Callable[[QMenu], None] | None = None) -> QToolButton:
        """A button that opens a menu, which `fill` makes anew each time it is opened."""
        button = QToolButton()
        button.setText(text)
        button.setAccessibleName(title)
        button.setToolTip(title)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setProperty("glyph", "down")
        menu = QMenu(button)
        if fill is not None:
            menu.aboutToShow.connect(lambda: (menu.clear(), fill(menu)))
        button.setMenu(menu)
        return button

    def add_undo(self) -> None:
        """Undo and redo, which name the step they take."""
        stack, standard = self._store.undo_stack, QKeySequence.StandardKey
        for name, key, also, make in (
            ("undo", standard.Undo, [], stack.createUndoAction),
            ("redo", standard.Redo, ["Ctrl+Y", "Ctrl+Shift+Z"], stack.createRedoAction),
        ):
            action = make(self)
            texts = [*(sequence.toString() for sequence in QKeySequence.keyBindings(key)), *also]
            action.setShortcuts([QKeySequence(text) for text in dict.fromkeys(texts)])
            action.setProperty("glyph", name)
            button = _button_of(action)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
            button.setObjectName("square")
            self.addWidget(button)

    def add_kinds(self) -> None:
        """Training or serving."""
        self.kinds = QActionGroup(self)
        for kind in KINDS:
            action = QAction(kind.capitalize(), self.kinds, checkable=True)
            action.setData(kind)
            action.triggered.connect(lambda _checked, kind=kind: self._store.set("kind", kind))
        self.add_joined([_button_of(action) for action in self.kinds.actions()])

    def add_joined(self, buttons: list[QToolButton]) -> None:
        """Put buttons side by side as one."""
        group = QWidget()
        line = QHBoxLayout(group)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        for place, button in zip(("left", *["middle"] * (len(buttons) - 2), "right"), buttons, strict=True):
            button.setProperty("place", place)
            line.addWidget(button)
        self.addWidget(group)

    def add_space(self) -> None:
        space = QWidget()
        space.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(space)

    def add_theme(self, run: Callable[[], object]) -> None:
        """The button that changes between light and dark."""
        button = self.button("Light or dark", run, "Ctrl+T")
        self.addWidget(button)
        button.setObjectName("square")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.theme_button = button

    def sync(self) -> None:
        """Show the store's scenario."""
        room = min(_NAME_MOST, _NAME + max(0, self.width() - SMALLEST[0]) // 2)
        self.presets.setText(self.fontMetrics().elidedText(self._store.title, Qt.TextElideMode.ElideRight, room))
        self.presets.setToolTip(f"{self._store.title}; click to rename it or for the presets")
        for action in self.kinds.actions():
            action.setChecked(action.data() == self._store.kind)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.sync()

    def set_theme(self, theme: Theme) -> None:
        for item in (*self.findChildren(QAction), *self.findChildren(QToolButton)):
            if isinstance(name := item.property("glyph"), str):
                item.setIcon(icon(name, theme.text))
        self.theme_button.defaultAction().setIcon(icon("light" if theme.dark else "dark", theme.text))


def _button_of(action: QAction) -> QToolButton:
    button = QToolButton()
    button.setDefaultAction(action)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
