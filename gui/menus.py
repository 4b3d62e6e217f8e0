"""What the menus of the bar on top hold: presets, files, panels and charts, charts as files and on the clipboard."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu

from ..core.catalogue import catalogue

if TYPE_CHECKING:
    from .chart_card import ChartCard
    from .window import Window

CHARTS = {
    "roofline": "Roofline",
    "memory": "Memory",
    "communication": "Communication",
    "training": "Days or serving",
    "waterfall": "Where the time goes",
}


class Menus:
    """Fills each menu anew when it is opened."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def fill_presets(self, menu: QMenu) -> None:
        files = self._window.files
        menu.clear()
        menu.addAction("Rename this plan…\tF2", files.rename)
        menu.addSeparator()
        for preset in catalogue().presets.values():
            menu.addAction(preset.name, lambda name=preset.id: files.open_preset(name))

    def fill_files(self, menu: QMenu) -> None:
        files = self._window.files
        menu.addAction("Save as…\tCtrl+Shift+S", files.ask_and_save)
        menu.addAction("Rename…\tF2", files.rename)
        menu.addSeparator()
        for place in files.recent():
            menu.addAction(place, lambda place=place: files.open(Path(place)))
        if not files.recent():
            menu.addAction("No recent files").setEnabled(False)

    def fill_view(self, menu: QMenu) -> None:
        window = self._window
        for panel in window.panels.values():
            menu.addAction(panel.toggleViewAction())
        menu.addSeparator()
        for number, (name, title) in enumerate(CHARTS.items(), start=1):
            menu.addAction(f"Go to {title}\tCtrl+{number}", lambda name=name: window.focus_chart(name))
        menu.addAction("Reset charts\tCtrl+0", window.reset_views)
        menu.addSeparator()
        menu.addAction("About the numbers", window.show_evidence)
        menu.addAction("Measure this machine…", window.show_bench)

    def fill_export(self, menu: QMenu) -> None:
        from ..core.export import SUFFIXES

        for name, title in CHARTS.items():
            below = menu.addMenu(title)
            for suffix in SUFFIXES:
                below.addAction(f"{suffix[1:].upper()}…", partial(self._export, name, suffix))

    def fill_copy(self, menu: QMenu) -> None:
        for name, title in CHARTS.items():
            menu.addAction(title, lambda name=name: self._card(name).copy_chart())
        menu.addSeparator()
        for name, title in CHARTS.items():
            menu.addAction(f"{title}, data", lambda name=name: self._card(name).copy_table())

    def _export(self, name: str, suffix: str) -> None:
        self._card(name).export(suffix)

    def _card(self, name: str) -> ChartCard:
        self._window.complete()
        assert self._window.charts is not None
        return self._window.charts.chart(name)
