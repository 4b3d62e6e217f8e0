"""Tests run without a display; a machine that cannot load Qt is told what it lacks, in one line."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    from triledger.gui.application import missing_display_reason

    reason = missing_display_reason()
    if reason:
        raise pytest.UsageError(reason)


def pytest_sessionfinish() -> None:
    """Empties the clipboard: the display-less platform frees what Python put there after Python is gone."""
    from PySide6.QtGui import QGuiApplication

    if QGuiApplication.instance() is not None:
        QGuiApplication.clipboard().clear()
