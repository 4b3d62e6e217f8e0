"""Measuring a machine: large matrix products and a copy, repeated under a clock that is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

#: Rows and columns of the square matrices that are multiplied with numpy, and on a device.
MATRIX_SIZES, DEVICE_SIZE = (512, 1024, 2048), 8192
#: Bytes of the array that is copied in the memory of the host, and of a device.
COPIED_BYTES, DEVICE_BYTES = 2**28, 2**30
#: Seconds that each task is repeated for; the best repetition counts.
SECONDS = 0.4
#: What a copy measures, beside the number formats of products.
BANDWIDTH = "memory_bandwidth"

Work = Callable[[], object]


@dataclass(frozen=True)
class Task:
    """Work that tells a rate: a number format's (`amount` FLOPs a repetition) or the memory's (bytes)."""

    name: str
    rate: str
    amount: float
    #: Makes what is needed and answers one repetition of the work.
    prepare: Callable[[], Work]


@dataclass(frozen=True)
class Progress:
    """How far a measurement is: the task at work, the share that is done, and the best rates until now."""

    task: Task
    done: float
    rates: tuple[tuple[str, float], ...]


def measuring(tasks: Sequence[Task], clock: Callable[[], float], seconds: float = SECONDS) -> Iterator[Progress]:
    """Repeats each task for some seconds; answers before each task and after each repetition, and at last all rates.

    The first repetition of a task warms caches and threads up and does not count. Whoever stops asking stops it.
    """
    rates: dict[str, float] = {}
    for place, task in enumerate(tasks):
        yield Progress(task, place / len(tasks), tuple(rates.items()))
        work = task.prepare()
        work()
        begun = now = clock()
        while now - begun <= seconds:
            start = clock()
            work()
            now = clock()
            rates[task.rate] = max(rates.get(task.rate, 0.0), task.amount / max(now - start, 1e-9))
            share = min(1.0, (now - begun) / seconds) if seconds else 1.0
            yield Progress(task, (place + share) / len(tasks), tuple(rates.items()))


def matrix_flops(size: int) -> float:
    """FLOPs of one product of square matrices."""
    return 2.0 * size**3


def copy_bytes(size: int) -> float:
    """Bytes that move when an array of a size is copied: read once, written once."""
    return 2.0 * size


def host_tasks(sizes: Sequence[int] = MATRIX_SIZES, copied: int = COPIED_BYTES) -> list[Task]:
    """Products and a copy with numpy."""
    products = [
        Task(f"fp32 product of {size} × {size}", "fp32", matrix_flops(size), lambda size=size: _host_product(size))
        for size in sizes
    ]
    return [*products, Task("copy", BANDWIDTH, copy_bytes(copied), lambda: _host_copy(copied))]


def _host_product(size: int) -> Work:
    left = numpy.ones((size, size), dtype=numpy.float32)
    right, out = numpy.ones_like(left), numpy.empty_like(left)
    return lambda: numpy.matmul(left, right, out=out)


def _host_copy(size: int) -> Work:
    source = numpy.ones(size // 8)
    target = numpy.empty_like(source)
    return lambda: numpy.copyto(target, source)


def device_tasks(torch: Any) -> list[Task]:
    """Products in three formats and a copy on the first device of torch."""
    size = DEVICE_SIZE
    kinds = (("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16))
    products = [
        Task(f"{name} product of {size} × {size}", name, matrix_flops(size), lambda kind=kind: _product(torch, kind))
        for name, kind in kinds
    ]
    return [*products, Task("copy", BANDWIDTH, copy_bytes(DEVICE_BYTES), lambda: _copy(torch))]


def _product(torch: Any, kind: Any) -> Work:
    left = torch.ones((DEVICE_SIZE, DEVICE_SIZE), dtype=kind, device="cuda")
    out = torch.empty_like(left)
    return lambda: (torch.matmul(left, left, out=out), torch.cuda.synchronize())


def _copy(torch: Any) -> Work:
    source = torch.ones(DEVICE_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: (target.copy_(source), torch.cuda.synchronize())
