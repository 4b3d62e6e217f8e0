"""How the docks share the height on the left: each gets what it needs, and when that is too much, its part."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QMainWindow

from .panels import TITLE_HEIGHT, WIDTH, Panel


class DockArea(QObject):
    """Stacks panels on the left of a window and shares the height whenever their needs or the window change.

    Once a person has arranged them (`keep`), heights are shared only when a panel's own needs change.
    """

    def __init__(self, window: QMainWindow, panels: list[Panel]) -> None:
        super().__init__(window)
        self._window, self._panels = window, panels
        self._kept = False
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.share)
        window.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        for panel in panels:
            window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, panel)
            panel.resized.connect(self._soon.start)
            panel.visibilityChanged.connect(self._share_unless_kept)
        window.resizeDocks(panels[:1], [WIDTH], Qt.Orientation.Horizontal)
        window.installEventFilter(self)

    def keep(self) -> None:
        """Leave the heights as they were restored."""
        self._kept = True

    def share(self) -> None:
        """Share the height among the docks that stand on the left."""
        standing = [panel for panel in self._panels if self._stands(panel)]
        if not standing:
            return
        room = sum(panel.height() for panel in standing)
        self._window.resizeDocks(standing, shares([p.wanted_height() for p in standing], room), Qt.Orientation.Vertical)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._share_unless_kept()
        return super().eventFilter(watched, event)

    def _share_unless_kept(self) -> None:
        if not self._kept:
            self._soon.start()

    def _stands(self, panel: Panel) -> bool:
        where = self._window.dockWidgetArea(panel)
        return panel.isVisible() and not panel.isFloating() and where == Qt.DockWidgetArea.LeftDockWidgetArea


def shares(wanted: list[int], room: int) -> list[int]:
    """Heights for needs: all met with the rest to the last one, or cut alike above a title and two rows."""
    total = sum(wanted)
    if total <= room:
        return [*wanted[:-1], wanted[-1] + room - total]
    least = [min(need, TITLE_HEIGHT + 64) for need in wanted]
    spare, need = max(0, room - sum(least)), max(1, total - sum(least))
    return [low + (want - low) * spare // need for low, want in zip(least, wanted, strict=True)]
