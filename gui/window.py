"""The main window: bar on top, panels on the left, verdict, cards, charts and ledgers beside them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSettings, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QPaintEvent, QShortcut
from PySide6.QtWidgets import QApplication, QMainWindow, QVBoxLayout, QWidget

from ..core.catalogue import catalogue
from ..core.fields import FIELDS, PANELS
from . import SMALLEST
from . import theme as themes
from .cards import Cards, Verdict
from .dialogs import Dialogs
from .dock_area import DockArea
from .errors import Notice
from .files import Files
from .menus import CHARTS, Menus
from .panels import Panel
from .split import ChartsOverLedgers
from .store import Store
from .strips import StripFeed
from .theme import THEMES, Theme
from .toolbar import Toolbar

if TYPE_CHECKING:
    from .bench import Bench
    from .charts import ChartGrid
    from .ledgers import LedgerTabs

#: Raised when the docks change, so that a state of another layout is not restored.
LAYOUT_VERSION = 1
_DROPPED = (".yaml", ".yml", ".json")


class Stage(QWidget):
    """The middle of the window. Says when it was painted first: what is slow to import comes after that."""

    painted = Signal()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self.painted.emit()


class Window(QMainWindow):
    """Shows a store. `settings` keeps what is remembered between runs, `dialogs` ask for files."""

    #: All parts of the window are there.
    completed = Signal()

    def __init__(self, store: Store, settings: QSettings, theme: Theme, dialogs: Dialogs | None = None) -> None:
        super().__init__()
        self.store, self.theme = store, theme
        self._settings, self._dialogs = settings, dialogs or Dialogs()
        self.charts: ChartGrid | None = None
        self.ledgers: LedgerTabs | None = None
        self.bench: Bench | None = None
        self.setMinimumSize(*SMALLEST)
        self.setAcceptDrops(True)
        self.files = Files(store, settings, self._dialogs, self)
        self.notice = Notice()
        self.verdict, self.cards = Verdict(store, theme), Cards(store, theme)
        self.panels = {name: Panel(name, store, theme, self._entries) for name in PANELS}
        self.toolbar = self._make_toolbar()
        self._make_stage()
        self.docks = DockArea(self, list(self.panels.values()))
        self.strips = StripFeed(store, self.panels.values(), self)
        self._connect()
        self._restore()
        self.set_theme(theme)
        self._sync_title()

    # ------------------------------------------------------------ making

    def _make_toolbar(self) -> Toolbar:
        bar = Toolbar(self.store)
        menus = Menus(self)
        bar.presets.menu().aboutToShow.connect(lambda: menus.fill_presets(bar.presets.menu()))
        files = bar.menu("", "Recent files, save as", menus.fill_files)
        files.setObjectName("square")
        opening = bar.button("Open", self.files.ask_and_open, "Ctrl+O")
        bar.add_joined([opening, bar.button("Save", self.files.save, "Ctrl+S"), files])
        self._shortcut("Ctrl+Shift+S", self.files.ask_and_save)
        self._shortcut("F2", self.files.rename)
        bar.add_undo()
        bar.add_kinds()
        bar.add_space()
        bar.addWidget(bar.menu("View", "Panels and charts", menus.fill_view))
        bar.addWidget(bar.menu("Export", "A chart as a file", menus.fill_export))
        bar.addWidget(bar.menu("Copy", "A chart or its data to the clipboard", menus.fill_copy))
        bar.add_theme(self.change_theme)
        bar.sync()
        self.addToolBar(bar)
        return bar

    def _make_stage(self) -> None:
        stage = Stage()
        column = QVBoxLayout(stage)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.notice)
        self._column = QVBoxLayout()
        self._column.setContentsMargins(10, 8, 10, 8)
        self._column.setSpacing(8)
        self._column.addWidget(self.verdict)
        self._column.addWidget(self.cards)
        self._split = ChartsOverLedgers()
        self._column.addWidget(self._split, 1)
        column.addLayout(self._column, 1)
        stage.painted.connect(self._complete_soon, Qt.ConnectionType.SingleShotConnection)
        stage.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setCentralWidget(stage)
        stage.setFocus()

    def _connect(self) -> None:
        self.store.scenario_changed.connect(self._sync_title)
        self.cards.explained.connect(self.explain)
        self.store.undo_stack.cleanChanged.connect(self._show_clean)
        self.store.failed.connect(partial(self.notice.say, about="plan"))
        self.store.report_changed.connect(partial(self.notice.clear, "plan"))
        self.files.failed.connect(self._say_of_file)
        self.files.done.connect(self._file_done)
        for number, name in enumerate(CHARTS, start=1):
            self._shortcut(f"Ctrl+{number}", lambda name=name: self.focus_chart(name))
        self._shortcut("Ctrl+0", self.reset_views)

    def _shortcut(self, keys: str, run: Callable[[], object]) -> None:
        QShortcut(QKeySequence(keys), self).activated.connect(run)

    def _complete_soon(self) -> None:
        QTimer.singleShot(0, self.complete)

    def complete(self) -> None:
        """Add the charts and ledgers, whose imports are too slow to wait for before the first picture."""
        if self.charts is not None:
            return
        from .charts import ChartGrid
        from .evidence import EvidencePage
        from .ledgers import LedgerTabs

        self.charts = ChartGrid(self.store, self.theme, self._dialogs.path_to_save)
        self.ledgers = LedgerTabs(self.store, self.theme)
        self.evidence = EvidencePage(self.store, self.theme, self._dialogs.path_to_save)
        self.evidence.chart.failed.connect(self._say_of_file)
        self.evidence.run_requested.connect(self.files.open_run)
        self.evidence.bench_requested.connect(self.show_bench)
        self.ledgers.addTab(self.evidence, "Measured")
        self.charts.failed.connect(self._say_of_file)
        self.charts.done.connect(self._file_done)
        self.charts.explained.connect(self.explain)
        self.ledgers.field_requested.connect(self.focus_field)
        self._split.fill(self.charts, self.ledgers)
        self.completed.emit()

    def _entries(self, name: str) -> list[tuple[str, str]]:
        """The entries of a catalogue as (id, name)."""
        return [(key, entry.name) for key, entry in getattr(catalogue(), name).items()]

    # ------------------------------------------------------------ doing

    def focus_chart(self, name: str) -> None:
        """Give the keyboard to a chart."""
        if self.charts is not None:
            self.charts.focus(name)

    def explain(self, key: str) -> None:
        """Show the working of a result."""
        self.complete()
        assert self.ledgers is not None
        self.ledgers.explain(key)

    def show_evidence(self) -> None:
        """Show how far the numbers can be trusted."""
        self.complete()
        assert self.ledgers is not None
        self.ledgers.show_page(self.evidence)
        self.evidence.show_all()

    def show_bench(self) -> None:
        """Offer to measure this machine."""
        if self.bench is None:
            from .bench import Bench

            self.bench = Bench(self.store, self.theme, self._dialogs.path_to_save, parent=self)
        self.bench.show()
        self.bench.raise_()

    def focus_field(self, path: str) -> None:
        """Give the keyboard to the control of a field, wherever its panel stands."""
        panel = self.panels[FIELDS[path].panel]
        panel.show()
        panel.raise_()
        panel.reveal(path)

    def reset_views(self) -> None:
        """All charts whole again."""
        if self.charts is not None:
            self.charts.reset_views()

    def change_theme(self) -> None:
        """From light to dark or back; it is remembered."""
        self.set_theme(THEMES["light" if self.theme.dark else "dark"])
        self._settings.setValue("theme", self.theme.name)

    def set_theme(self, theme: Theme) -> None:
        """Put a theme on the application and on every view."""
        self.theme = theme
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        themes.apply(application, theme)
        for view in (self.toolbar, self.notice, self.verdict, self.cards, *self.panels.values()):
            view.set_theme(theme)
        for view in (self.charts, self.ledgers, self.bench):
            if view is not None:
                view.set_theme(theme)

    def sizeHint(self) -> QSize:
        return QSize(1440, 900)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.files.may_close():
            event.ignore()
            return
        if self.bench is not None:
            self.bench.close()
        self._settings.setValue("window/geometry", self.saveGeometry())
        self._settings.setValue("window/state", self.saveState(LAYOUT_VERSION))
        self._settings.setValue("window/split", self._split.saveState())
        event.accept()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if (path := _dropped_file(event)) is not None:
            event.acceptProposedAction()
            self.files.open(path)

    def _restore(self) -> None:
        geometry = self._settings.value("window/geometry")
        state = self._settings.value("window/state")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        split = self._settings.value("window/split")
        if isinstance(split, QByteArray):
            self._split.remember(split)
        if isinstance(state, QByteArray) and self.restoreState(state, LAYOUT_VERSION):
            self.docks.keep()

    def _say_of_file(self, text: str) -> None:
        self.notice.say(text, about="file")

    def _file_done(self, text: str = "") -> None:
        """A file was read or written: what was said of another is over; there may be something to know of this one."""
        self.notice.clear("file")
        if text:
            self.notice.say(text, about="file", bad=False)

    def _sync_title(self) -> None:
        self._show_clean(self.store.undo_stack.isClean())
        self.setWindowFilePath(str(self.store.path or ""))

    def _show_clean(self, clean: bool) -> None:
        self.setWindowModified(not clean)
        self.setWindowTitle(f"{self.store.title}[*] – Triledger")


def _dropped_file(event: QDragEnterEvent | QDropEvent) -> Path | None:
    urls = event.mimeData().urls()
    path = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return path if path is not None and path.suffix.lower() in _DROPPED else None
