"""The window as a picture, made by a process that has no display."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path


def screenshot(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    command = [sys.executable, "-m", "triledger.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)


def size_of(png: Path) -> tuple[int, int]:
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG")
    return struct.unpack(">II", data[16:24])


def test_size_and_scale_are_those_of_the_picture(tmp_path: Path) -> None:
    file = tmp_path / "window.png"
    size = ("--size", "1200x800", "--scale", "2", "--theme", "dark")
    result = screenshot("70b-bf16-8xa100-serve", "--screenshot", str(file), *size)
    assert result.returncode == 0, result.stderr
    assert size_of(file) == (2400, 1600)


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    result = screenshot("--screenshot", str(tmp_path / "no" / "window.png"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("triledger: ")
    assert result.stderr.count("\n") == 1


def test_without_a_display_the_window_says_what_to_run_instead() -> None:
    result = screenshot("7b-8xa100-train")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("triledger: there is no display")
    assert "--screenshot" in result.stderr
    assert result.stderr.count("\n") == 1
