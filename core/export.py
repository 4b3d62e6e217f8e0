"""Charts as files: SVG, PNG and PDF of the paper renderer, CSV of the data behind; whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from .errors import OutputError
from .figures.figure import Figure
from .files import write_whole
from .paper import render
from .terms import plain

SUFFIXES = (".svg", ".png", ".pdf", ".csv")


def write_figure(figure: Figure, path: str | Path, theme: str = "print", scale: float = 2.0) -> None:
    """Writes a figure in the format that the suffix names.

    theme: print, light or dark. scale: pixels of a PNG for each 1/96 inch. Raises OutputError; the file then is as
    it was before.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path}: a chart is written as {', '.join(SUFFIXES)}")
    content = csv_bytes(figure) if suffix == ".csv" else render(figure, suffix[1:], theme, scale)
    write_whole(path, content)


def csv_bytes(figure: Figure) -> bytes:
    """The figure's data in SI units, the unit of each column in its head."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows([plain(cell) for cell in row] for row in figure.rows)
    return text.getvalue().encode("utf-8")
