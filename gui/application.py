"""The program with its window: starting it, and rendering it to a file. Qt is imported only when one is asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ..core.errors import OutputError
from ..core.files import write_whole
from ..core.scenario import Scenario
from .display import missing_display_reason, missing_library_reason

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication, QWidget

    from .theme import Theme

__all__ = ["missing_display_reason", "run", "screenshot"]


def run(scenario: Scenario, path: Path | None = None) -> int:
    """Open the window on a scenario and stay until it is closed; `path` is the file it came from. The exit status."""
    if (reason := missing_display_reason()) is not None:
        print(f"triledger: {reason}", file=sys.stderr)
        return 2
    import signal

    from PySide6.QtCore import QSettings

    from .clipboard import leave_clipboard
    from .errors import Unexpected
    from .store import Store
    from .window import Window

    application = _application()
    _log_to_file()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, "triledger", "triledger")
    window = Window(Store(scenario, path), settings, _theme(settings, application))
    unexpected = Unexpected()
    unexpected.happened.connect(window.notice.say)
    unexpected.install()
    application.aboutToQuit.connect(leave_clipboard)
    window.show()
    return application.exec()


def screenshot(
    scenario: Scenario,
    file: Path,
    size: tuple[int, int] = (1440, 900),
    theme: str = "light",
    scale: float = 1.0,
) -> int:
    """Render the whole window to a PNG without a display, `scale` pixels of it for each of `size`. The exit status."""
    if (reason := missing_library_reason()) is not None:
        print(f"triledger: {reason}", file=sys.stderr)
        return 2
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_SCALE_FACTOR"] = f"{scale:g}"
    with TemporaryDirectory() as folder:  # what is remembered between runs is neither read nor changed
        picture = _rendered(scenario, size, theme, folder)
    try:
        write_whole(file, picture)
    except OutputError as problem:
        print(f"triledger: {problem}", file=sys.stderr)
        return 2
    return 0


def _rendered(scenario: Scenario, size: tuple[int, int], theme: str, folder: str) -> bytes:
    """The window on a scenario as a PNG; `folder` keeps its settings."""
    from PySide6.QtCore import QSettings

    from .store import Store
    from .theme import THEMES
    from .window import Window

    application = _application()
    settings = QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat)
    window = Window(Store(scenario), settings, THEMES[theme])
    window.resize(*size)
    window.show()
    application.processEvents()
    window.complete()
    for _ in range(3):  # layouts settle, then charts and strips are computed for the sizes they have now
        application.processEvents()
        window.docks.share()
        window.store.flush()
        window.strips.finish()
    return _png(window)


def _application() -> QApplication:
    from PySide6.QtWidgets import QApplication

    from . import fonts

    application = QApplication.instance()
    if not isinstance(application, QApplication):
        application = QApplication(["triledger"])
    application.setApplicationName("Triledger")
    application.setDesktopFileName("triledger")
    fonts.load()
    application.setFont(fonts.font(tabular=False))
    return application


def _log_to_file() -> None:
    """Keep what the window says in one line, with its traceback, where a report of a fault can be taken from."""
    import logging

    from PySide6.QtCore import QStandardPaths

    folder = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.AppLocalDataLocation))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        logging.basicConfig(filename=folder / "triledger.log", format="%(asctime)s %(name)s %(levelname)s %(message)s")
    except OSError:
        logging.basicConfig()


def _theme(settings: QSettings, application: QApplication) -> Theme:
    """The theme chosen last, or what the desktop asks for."""
    from PySide6.QtCore import Qt

    from .theme import DARK, LIGHT, THEMES

    usual = DARK if application.styleHints().colorScheme() == Qt.ColorScheme.Dark else LIGHT
    return THEMES.get(str(settings.value("theme", usual.name)), usual)


def _png(window: QWidget) -> bytes:
    from PySide6.QtCore import QBuffer, QIODevice

    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    window.grab().save(buffer, "PNG")
    return bytes(buffer.data().data())
