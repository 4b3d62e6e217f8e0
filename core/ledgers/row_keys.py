"""Which result a cell of a ledger shows: the key under which its working is found."""

from __future__ import annotations

from ..report import Report
from .tables import Table

#: Rows of the memory ledger whose key is not made from their words.
_MEMORY = {
    "gathered weights": "memory.gathered_bytes",
    "to spare": "memory.headroom_bytes",
    "short": "memory.headroom_bytes",
}
_COMMUNICATION = {"sent": "bytes_per_gpu", "time": "seconds", "exposed": "exposed_seconds"}
_COMPUTE = {"FLOPs": "flops", "bytes": "bytes", "intensity": "intensity", "time": "seconds"}
_TOTALS = {"sent": "communication.bytes_per_gpu", "exposed": "communication.exposed_seconds"}


def row_key(report: Report, table: Table, row: int, column: int) -> str:
    """The key of the result that a cell shows, "" where it has none; rows count on into the totals."""
    name = table.columns[column].name
    cells = (*table.rows, *table.totals)[row]
    if table.name == "memory":
        key = _MEMORY.get(cells[0], f"memory.{str(cells[0]).lower().replace(' ', '_')}_bytes")
        return key if key in report else ""
    if table.name == "communication":
        cell = _COMMUNICATION.get(name, "exposed_seconds")
        return f"communication.{row}.{cell}" if row < len(table.rows) else _TOTALS.get(name, "")
    found = (place for place, point in enumerate(report.points) if (point.name, point.phase) == cells[:2])
    place = next(found, None)
    return "" if place is None else f"roofline.points.{place}.{_COMPUTE.get(name, 'seconds')}"
