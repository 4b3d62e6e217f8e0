"""Whether a training plan fits: what it needs beside what a device has."""

from __future__ import annotations

from typing import Any

from ..numeric import Number, where
from ..terms import formula


@formula("need", "B", "context and communicators outside the allocator; 339 published runs")
def needed_bytes(allocated: Number, margin: Number, context: Number, communicator: Number, ranks: Number) -> Number:
    """Memory a run needs: the peak with a margin, the device context, and communicators of more than one rank."""
    return margin * allocated + context + where(ranks > 1, communicator, 0.0)


@formula("headroom", "B")
def headroom_bytes(usable: Number, needed: Number) -> Number:
    """What is left of the usable memory."""
    return usable - needed


@formula("fits", "yes or no", "1.02·peak + 0.75 GiB + 1 GiB ≤ usable; right on 337 of 339 published runs")
def fits(needed: Number, usable: Number) -> Number:
    """Whether the plan fits."""
    return needed <= usable


@formula("M·(1+ε)", "B", "errors of the predictions of published runs like the plan")
def band_end(predicted: Number, relative: Number) -> Number:
    """One end of the band of predicted memory."""
    return predicted * (1 + relative)


@formula("verdict", "word", "above 92 % the allocator retries and steps slow down")
def verdict(needed: Number, usable: Number, tight: Number) -> Any:
    """fits, tight or does-not-fit."""
    return where(needed <= tight * usable, "fits", where(needed <= usable, "tight", "does-not-fit"))
