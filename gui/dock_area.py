"""How the docks share the height on the left: each gets what it needs; where that is too much, some share a place."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QMainWindow, QTabWidget

from .panels import TITLE_HEIGHT, WIDTH, Panel

#: Panels that share a place as tabs in a low window, the one in front first.
PAIRS = (("model", "hardware"), ("workload", "assumptions"))
#: Pixels of the tabs.
_TABS = 24
#: The part of what the daily fields need below which pairs share a place; a message below a row is no reason.
_ENOUGH = 0.96

_LEFT = Qt.DockWidgetArea.LeftDockWidgetArea


class DockArea(QObject):
    """Stacks panels on the left of a window and shares the height whenever their needs or the window change.

    Once a person has arranged them (`keep`), heights are shared only when a panel's own needs or its place change, or
    when one is cut though there is room for all.
    """

    def __init__(self, window: QMainWindow, panels: list[Panel]) -> None:
        super().__init__(window)
        self._window, self._panels = window, panels
        self._kept = self._moving = self._needed = False
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.share)
        window.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        window.setTabPosition(_LEFT, QTabWidget.TabPosition.North)
        window.setCorner(Qt.Corner.BottomLeftCorner, _LEFT)
        for panel in panels:
            window.addDockWidget(_LEFT, panel)
            panel.resized.connect(self._share_needs)
            panel.visibilityChanged.connect(self._share_soon)
        window.resizeDocks(panels[:1], [WIDTH], Qt.Orientation.Horizontal)
        window.installEventFilter(self)

    def keep(self) -> None:
        """Leave the heights as they were restored."""
        self._kept = True

    def share(self) -> None:
        """Share the height among the docks that stand on the left; pairs share a place where there is too little."""
        standing = [panel for panel in self._panels if self._stands(panel)]
        moved, needed = self._pair_or_stack(standing), self._needed
        self._needed = False
        if not standing:
            return
        places = self._places(standing)
        wanted = [max(p.wanted_height() for p in place) + (_TABS if len(place) > 1 else 0) for place in places]
        room = self._room() - len(places) + 1
        if self._kept and not moved and not needed and (room < _ENOUGH * sum(wanted) or not _cut(standing)):
            return
        heights = shares(wanted, room)
        self._window.resizeDocks([place[0] for place in places], heights, Qt.Orientation.Vertical)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._share_soon()
        return super().eventFilter(watched, event)

    def _room(self) -> int:
        """Pixels from the top of the middle of the window to its bottom."""
        middle = self._window.centralWidget()
        return middle.height() if middle is not None else self._window.height()

    def _pair_or_stack(self, standing: list[Panel]) -> bool:
        """Change between five places and three, unless a person made other ones; whether that was done."""
        if len(standing) < len(self._panels):
            return False
        paired = {frozenset(p.name for p in place) for place in self._places(standing) if len(place) > 1}
        tight = self._room() < _ENOUGH * sum(panel.daily_height() for panel in standing)
        if tight == bool(paired) or paired not in (set(), {frozenset(pair) for pair in PAIRS}):
            return False
        named = {panel.name: panel for panel in self._panels}
        self._moving = True
        for panel in self._panels:
            self._window.addDockWidget(_LEFT, panel)
        for front, behind in PAIRS if tight else ():
            self._window.tabifyDockWidget(named[front], named[behind])
            named[front].raise_()
        self._moving = False
        return True

    def _places(self, standing: list[Panel]) -> list[list[Panel]]:
        """The panels by the place they stand in, the tabs of one together."""
        places: list[list[Panel]] = []
        for panel in standing:
            if not any(panel in place for place in places):
                tabs = self._window.tabifiedDockWidgets(panel)
                places.append([panel, *(other for other in standing if other in tabs)])
        return places

    def _share_soon(self) -> None:
        if not self._moving:
            self._soon.start()

    def _share_needs(self) -> None:
        self._needed = True
        self._soon.start()

    def _stands(self, panel: Panel) -> bool:
        return not panel.isHidden() and not panel.isFloating() and self._window.dockWidgetArea(panel) == _LEFT


def _cut(standing: list[Panel]) -> bool:
    """Whether a panel that is seen stands lower than what it has to show."""
    return any(p.height() < _ENOUGH * p.wanted_height() for p in standing if not p.visibleRegion().isEmpty())


def shares(wanted: list[int], room: int) -> list[int]:
    """Heights for needs: all met with the rest to the last one, or cut alike above a title and two rows."""
    total = sum(wanted)
    if total <= room:
        return [*wanted[:-1], wanted[-1] + room - total]
    least = [min(need, TITLE_HEIGHT + 64) for need in wanted]
    spare, need = max(0, room - sum(least)), max(1, total - sum(least))
    return [low + (want - low) * spare // need for low, want in zip(least, wanted, strict=True)]
