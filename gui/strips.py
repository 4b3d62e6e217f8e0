"""Keeps the strips under the sliders up to date while nothing else is to be done."""

from __future__ import annotations

import logging
from collections.abc import Collection

from PySide6.QtCore import QObject, QTimer

from .controls.quantity_row import QuantityRow
from .panels import Panel
from .store import Store

log = logging.getLogger(__name__)

#: Milliseconds of rest before strips are computed, so that a drag never waits for them.
_REST = 60


class StripFeed(QObject):
    """Computes one strip a turn of the event loop, those that can be seen, after the report has been at rest."""

    def __init__(self, store: Store, panels: Collection[Panel], parent: QObject) -> None:
        super().__init__(parent)
        self._panels = panels
        self._queue: list[QuantityRow] = []
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._next)
        store.report_changed.connect(self.restart)
        for panel in panels:
            panel.resized.connect(self.restart)
            panel.visibilityChanged.connect(self.restart)

    def restart(self, *_: object) -> None:
        """All strips are out of date."""
        rows = (row for panel in self._panels for row in panel.rows)
        self._queue = [row for row in rows if isinstance(row, QuantityRow) and row.slider is not None]
        self._timer.start(_REST)

    def finish(self) -> None:
        """Compute now what is waiting."""
        self._timer.stop()
        while self._queue:
            self._refresh(self._queue.pop(0))

    def _next(self) -> None:
        while self._queue:
            row = self._queue.pop(0)
            if row.isVisible():
                self._refresh(row)
                break
        if self._queue:
            self._timer.start(0)

    def _refresh(self, row: QuantityRow) -> None:
        try:
            row.refresh_strip()
        except Exception:  # a strip is a service: without it the slider still works
            log.exception("no strip for %s", row.field.path)
            row.clear_strip()
