"""Charts and tables for the clipboard, in the forms that slides, documents and spreadsheets take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from PySide6.QtCore import QMimeData
from PySide6.QtGui import QGuiApplication, QImage

from ..core.figures.figure import Figure


def chart_data(figure: Figure) -> QMimeData:
    """A chart as a picture of twice the screen's resolution and as SVG. Raises OutputError."""
    from ..core.paper import render

    data = QMimeData()
    data.setImageData(QImage.fromData(render(figure, "png")))
    data.setData("image/svg+xml", render(figure, "svg"))
    return data


def table_data(columns: Sequence[str], values: Iterable[Sequence[object]], texts: Iterable[Sequence[str]]) -> QMimeData:
    """A table: `values` as tab-separated text for spreadsheets, `texts` as HTML for documents."""
    data = QMimeData()
    lines = (columns, *values)
    data.setText("\n".join("\t".join(_plain(cell) for cell in line) for line in lines))
    data.setHtml(_html(columns, texts))
    return data


def figure_table(figure: Figure) -> QMimeData:
    """The data behind a chart in SI units."""
    texts = [[_plain(cell) for cell in row] for row in figure.rows]
    return table_data(figure.columns, figure.rows, texts)


def leave_clipboard() -> None:
    """Take back what was copied where no other program could have it: Python would be gone when Qt frees it."""
    if QGuiApplication.platformName() in ("offscreen", "minimal"):
        QGuiApplication.clipboard().clear()


def _plain(cell: object) -> str:
    if cell is None:
        return ""
    return repr(float(cell)).removesuffix(".0") if isinstance(cell, float) else str(cell)


def _html(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
