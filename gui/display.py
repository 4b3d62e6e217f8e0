"""Whether Qt could open a window here, asked before it is tried: Qt itself would abort the program."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_PACKAGES = (
    "libegl1 libgl1 libfontconfig1 libglib2.0-0 libdbus-1-3 libxkbcommon-x11-0 libx11-xcb1 libxcb-cursor0 "
    "libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xfixes0 "
    "libxcb-xkb1"
)
_INSTEAD = "without a window: triledger SCENARIO --screenshot FILE.png, triledger eval, triledger chart"


def missing_library_reason() -> str | None:
    """Why Qt cannot be loaded at all, in one sentence; None when it can."""
    try:
        from PySide6 import QtWidgets  # noqa: F401
    except ImportError as problem:
        return f"Qt cannot be loaded ({problem}); {_install()}"
    return None


def missing_display_reason() -> str | None:
    """Why no window can be opened here, in one sentence that says what to install or run instead; None when it can."""
    reason = missing_library_reason()
    chosen = os.environ.get("QT_QPA_PLATFORM", "")
    if reason is not None or not sys.platform.startswith("linux") or chosen not in ("", "xcb"):
        return reason
    x11, wayland = os.environ.get("DISPLAY"), os.environ.get("WAYLAND_DISPLAY")
    if wayland and not chosen and _loads("libqwayland*.so") is None:
        return None
    if not x11:
        return f"there is no display (DISPLAY is not set); {_INSTEAD}"
    if (problem := _loads("libqxcb.so")) is not None:
        return f"Qt cannot open a window ({problem}); {_install()}"
    if not _answers():
        return f"the display {x11} does not answer; {_INSTEAD}"
    return None


def _install() -> str:
    if sys.platform.startswith("linux"):
        return f"on Debian or Ubuntu: apt install {_PACKAGES}"
    return "reinstall it with: pip install --force-reinstall pyside6-essentials"


def _loads(pattern: str) -> str | None:
    """Loads a platform plugin as Qt would; what is wrong with it, or None."""
    from PySide6.QtCore import QLibraryInfo

    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)) / "platforms"
    plugins = sorted(folder.glob(pattern))
    if not plugins:
        return f"{pattern} is not part of this Qt"
    try:
        ctypes.CDLL(str(plugins[0]))
    except OSError as problem:
        return str(problem)
    return None


def _answers() -> bool:
    """Whether the X server that DISPLAY names takes a connection."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    refused = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not refused
