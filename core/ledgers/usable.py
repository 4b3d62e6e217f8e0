"""Memory that a framework sees of a device."""

from __future__ import annotations

from ..numeric import Number, minimum, where
from ..scenario import Accelerator
from ..terms import formula


@formula("usable", "B", "totals that runtimes report: 79.1 GiB of an 80 GB A100 or H100")
def usable_bytes(printed: Number, reported: Number) -> Number:
    """0.989 of the printed capacity, at most 0.994 of the vendor tool's total, which alone may exceed the print."""
    return where(reported > printed, 0.994 * reported, minimum(0.989 * printed, 0.994 * reported))


def usable_memory(device: Accelerator) -> Number:
    """Usable bytes of an accelerator; a part whose vendor's tool is unknown is taken by its printed capacity."""
    return usable_bytes(device.memory, device.memory if device.memory_reported is None else device.memory_reported)
