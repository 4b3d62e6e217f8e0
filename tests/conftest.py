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
