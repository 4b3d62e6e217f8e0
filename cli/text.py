"""Columns of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Rows as lines with the cells under each other; `sides` has < or > for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        yield "  " + "  ".join(cells).rstrip()
