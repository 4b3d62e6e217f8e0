"""Matrix products of a block, their casts to low precision and the accumulation of weight gradients."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.device import Machine
from ...numeric import Number
from ...sums import add_seconds, total_seconds
from ..overlap import elements, per_micro_batch, pointwise_bytes
from ..projections import projections
from .passes import Product
from .work import Work


@dataclass(frozen=True)
class Matrices:
    """Seconds of the matrix products of a block and of what belongs to them."""

    products: tuple[Product, ...]
    forward: Number
    backward: Number
    weight_gradients: Number
    accumulation: Number
    cast_forward: Number
    cast_backward: Number


def matrices(work: Work) -> Matrices:
    """Every matrix that all tokens pass: forward, input gradient and weight gradient."""
    machine, layout, training = work.machine, work.layout, work.training
    fused = training.fused_gradient_accumulation
    products: list[Product] = []
    accumulate: list[Number] = []
    ahead: list[Number] = []
    back: list[Number] = []
    for matrix, first in projections(work.block, layout.tensor, training.projections == "separate"):
        inputs, outputs = matrix.inputs, matrix.outputs
        tokens = elements(layout.tokens, layout.sequence_share, 1.0) if matrix.whole else layout.tokens
        products.append(
            Product(
                matrix.name,
                tokens,
                inputs,
                outputs,
                machine.matrix(tokens, outputs, inputs),
                machine.matrix(tokens, inputs, outputs),
                work.weight_gradient(machine, inputs, outputs, tokens),
                matrix.expands,
            )
        )
        if not (fused or work.frozen):
            moved = pointwise_bytes(2 + 2 * machine.gradient_bytes, elements(inputs, outputs, 1.0))
            accumulate.append(machine.stream(moved))
        if machine.cast_bytes:
            ahead.append(_cast(work, tokens, inputs, outputs, first))
            back.append(machine.stream(pointwise_bytes(machine.cast_bytes, elements(tokens, outputs, 1.0))))
    weights = total_seconds([each.weight_gradient.seconds for each in products])
    return Matrices(
        tuple(products),
        total_seconds([each.forward.seconds for each in products]),
        add_seconds(total_seconds([each.input_gradient.seconds for each in products]), weights),
        weights,
        total_seconds(accumulate),
        total_seconds(ahead),
        total_seconds(back),
    )


def _cast(work: Work, tokens: Number, inputs: Number, outputs: Number, first: bool) -> Number:
    """Casts to 8 bits: of an input that no other matrix has read, and of the weight once a step or micro-batch."""
    machine = work.machine
    weight = weight_cast(work, machine, elements(inputs, outputs, 1.0))
    if not first:
        return weight
    activation = machine.stream(pointwise_bytes(machine.cast_bytes, elements(tokens, inputs, 1.0)))
    return add_seconds(activation, weight)


def weight_cast(work: Work, machine: Machine, weights: Number) -> Number:
    """Cast of some weights, once a step where their low-precision copy is kept."""
    times = work.layout.micro_batches if work.scenario.fp8.cache_weights else 1.0
    return per_micro_batch(machine.stream(pointwise_bytes(4.0, weights)), times)
