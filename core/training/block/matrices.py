"""Matrix products of a block, their casts to low precision and the accumulation of weight gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ledgers.compute import passes_latents
from ...machine.device import Machine
from ...model.kinds.mixer import Matrix
from ...numeric import Number
from ...sums import add_seconds, total_seconds
from ..overlap import elements, per_micro_batch, pointwise_bytes, received_tokens, where_there
from ..projections import projections
from .exchange import passed_tokens
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
        tokens = _tokens(work, matrix)
        products.append(_product(work, matrix, tokens))
        if not (fused or work.frozen):
            moved = pointwise_bytes(2 + 2 * machine.gradient_bytes, elements(inputs, outputs, 1.0))
            accumulate.append(_some(matrix, tokens, machine.stream(moved)))
        if machine.cast_bytes:
            ahead.append(_some(matrix, tokens, _cast(work, tokens, inputs, outputs, first)))
            cast = machine.stream(pointwise_bytes(machine.cast_bytes, elements(tokens, outputs, 1.0)))
            back.append(_some(matrix, tokens, cast))
    received = _received(work)
    products += received
    weights = total_seconds([each.weight_gradient.seconds for each in products])
    back_again = [each.input_gradient.seconds for each in products] + [each.forward.seconds for each in received]
    return Matrices(
        tuple(products),
        total_seconds([each.forward.seconds for each in products]),
        add_seconds(total_seconds(back_again), weights),
        weights,
        total_seconds(accumulate),
        total_seconds(ahead),
        total_seconds(back),
    )


def _product(work: Work, matrix: Matrix, rows: Number) -> Product:
    machine, inputs, outputs = work.machine, matrix.inputs, matrix.outputs
    forward, back, gradient = (
        replace(each, seconds=_some(matrix, rows, each.seconds)) if matrix.of_images or matrix.received else each
        for each in (
            machine.matrix(rows, outputs, inputs),
            machine.matrix(rows, inputs, outputs),
            work.weight_gradient(machine, inputs, outputs, rows),
        )
    )
    return Product(matrix.name, rows, inputs, outputs, forward, back, gradient, matrix.expands)


def _some(matrix: Matrix, rows: Number, seconds: Number) -> Number:
    """Seconds of a kernel; none in those of many plans that have no such rows."""
    return where_there(rows, seconds) if matrix.of_images or matrix.received else seconds


def _received(work: Work) -> list[Product]:
    """Keys and values of heads from the latents of other ranks of a sequence; made again in the backward pass."""
    layout = work.layout
    if not passes_latents(work.scenario):
        return []
    made = []
    for mixer in work.block.mixer.cores():
        if matrix := mixer.received_through(layout.tensor):
            rows = received_tokens(layout.micro_batch, passed_tokens(work, mixer), layout.context)
            made.append(_product(work, matrix, rows))
    return made


def _tokens(work: Work, matrix: Matrix) -> Number:
    """Tokens of one micro-batch that a matrix multiplies on one rank."""
    layout = work.layout
    if matrix.of_images:
        return work.image_tokens
    return elements(layout.tokens, layout.sequence_share, 1.0) if matrix.whole else layout.tokens


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
