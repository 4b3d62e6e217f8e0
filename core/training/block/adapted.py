"""Kernels of adapters beside frozen matrices, and of quantised matrices that are made 16-bit for every product.

Sources: LoRA (arXiv 2106.09685), QLoRA (arXiv 2305.14314). Left out: dropout of their inputs.
"""

from __future__ import annotations

from dataclasses import replace

from ...ledgers.adapters import Adapters, Linear
from ...ledgers.frozen_states import frozen_width
from ...model import parameters as count
from ...numeric import Number
from ...sums import add_parameters, total_seconds
from ...terms import formula
from ..overlap import pointwise_bytes
from .pointwise import Pointwise
from .work import Work

#: Kernels of an adapter, forward and backward: both its narrow products, and the addition of its result.
KERNELS, KERNELS_BACK = 3, 6


@formula("k·T·t_e/t", "rows")
def adapter_rows(tokens: Number, used: Number, split: Number, tensor: Number) -> Number:
    """Rows that the adapters of a matrix multiply on one rank."""
    return tokens * used * split / tensor


@formula("T·(2·K + 6·N)", "B", "input of the adapter, its result added to that of the frozen matrix")
def adapter_moved(rows: Number, inputs: Number, outputs: Number) -> Number:
    """Bytes that the kernels of an adapter move forward, its products too narrow to count; twice as many backward."""
    return rows * (2 * inputs + 6 * outputs)


@formula("d/t", "elements")
def split_width(width: Number, ranks: Number) -> Number:
    """Width of a matrix on one of the ranks that split it."""
    return width / ranks


@formula("w_q + 2", "B", "read quantised, written in 16 bits")
def dequantising_bytes(width: Number) -> Number:
    """Bytes moved for a quantised parameter that is made 16-bit."""
    return width + 2


def with_adapter_kernels(work: Work, found: Pointwise) -> Pointwise:
    """The pointwise kernels of a block with those of its adapters and of its quantised matrices."""
    adapters = work.adapters
    if adapters is None:
        return found
    ahead, back = [found.forward], [found.backward]
    for linear in _beside(work, adapters):
        moved = adapter_moved(_rows(work, linear), *_widths(work, linear))
        ahead.append(work.machine.stream(moved, KERNELS))
        back.append(work.machine.stream(pointwise_bytes(2.0, moved), KERNELS_BACK))
    if work.training.finetune == "qlora":
        again = _dequantising(work)
        ahead.append(again)
        back.append(again)
    return replace(found, forward=total_seconds(ahead), backward=total_seconds(back))


def _beside(work: Work, adapters: Adapters) -> list[Linear]:
    return [*adapters.beside(work.block.mixer), *adapters.beside(work.block.ffn)]


def _rows(work: Work, linear: Linear) -> Number:
    layout = work.layout
    if not linear.routed:
        return layout.tokens
    return adapter_rows(layout.tokens, linear.used, layout.expert_tensor, layout.tensor)


def _widths(work: Work, linear: Linear) -> tuple[Number, Number]:
    """Inputs and outputs of a matrix on one rank."""
    ranks = work.layout.expert_tensor if linear.routed else work.layout.tensor
    if linear.row:
        return split_width(linear.inputs, ranks), linear.outputs
    return linear.inputs, split_width(linear.outputs, ranks)


def _dequantising(work: Work) -> Number:
    """Time of making the matrices of a block 16-bit once."""
    layout, block = work.layout, work.block
    matrices = count.block_share(block.mixer.share(layout.tensor), block.ffn.common_share(layout.tensor), 0.0)
    if block.experts:
        matrices = add_parameters(matrices, block.ffn.routed_share(layout.expert, layout.expert_tensor))
    width = dequantising_bytes(frozen_width(work.training))
    return work.machine.stream(pointwise_bytes(width, matrices))
