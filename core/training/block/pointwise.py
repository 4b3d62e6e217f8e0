"""Kernels of a block that only move bytes: norms, residuals, activations, rotary embedding."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.kinds.mixer import Stream
from ...numeric import Number
from ...sums import times_seconds, total_seconds
from ..overlap import elements, pointwise_bytes, tensor_share
from ..projections import added_gradients
from .work import Work


@dataclass(frozen=True)
class Pointwise:
    """Seconds forward, backward, and of the forward part that selective recomputation repeats."""

    forward: Number
    backward: Number
    cheap: Number


def pointwise(work: Work) -> Pointwise:
    """All pointwise kernels of a block that every token passes."""
    layout, machine, block = work.layout, work.machine, work.block
    mask = int(work.training.dropout)
    norms = _steps(work, times_seconds(block.norms, machine.stream(pointwise_bytes(4.0, work.residual))))
    residuals = times_seconds(block.joins, machine.stream(pointwise_bytes(6.0 + mask, work.residual)))
    ahead, back = (
        [norms, residuals],
        [
            _steps(work, times_seconds(block.norms, machine.stream(pointwise_bytes(10.0, work.residual), 2))),
            residuals,
            times_seconds(block.joins, machine.stream(pointwise_bytes(6.0, work.residual))),
        ],
    )
    if block.mixer.heads_on(layout.tensor):
        local = elements(layout.tokens, block.hidden, tensor_share(layout.tensor))
        relayout = work.seen(machine.stream(pointwise_bytes(4.0, local)))
        ahead.append(relayout)
        back.append(relayout)
    cheap = norms
    for stream in block.ffn.pointwise(layout.tensor):
        forward, backward = _stream(work, stream)
        ahead += forward
        back += backward
        if stream.steps:
            cheap = total_seconds([cheap, *forward])
    back += _separate(work)
    for stream in block.mixer.pointwise(layout.tensor):
        forward, backward = _stream(work, stream)
        ahead += forward
        back += backward
    return Pointwise(total_seconds(ahead), total_seconds(back), cheap)


def _steps(work: Work, fused: Number) -> Number:
    """Seconds of norms or activation from those of one fused pass; an eager framework runs them step by step."""
    return times_seconds(work.machine.rates.eager_passes, fused) if work.training.pointwise == "eager" else fused


def _stream(work: Work, stream: Stream) -> tuple[list[Number], list[Number]]:
    """Seconds of the kernels over one tensor, forward and backward; none where no bytes are moved."""
    size = elements(work.layout.tokens, stream.width, 1.0)
    passes = ((stream.forward, stream.launches), (stream.backward, stream.launches_back))
    seconds = [
        [work.machine.stream(pointwise_bytes(per_element, size), launches)] if per_element else []
        for per_element, launches in passes
    ]
    if stream.steps:
        seconds = [[_steps(work, each) for each in one] for one in seconds]
    return seconds[0], seconds[1]


def _separate(work: Work) -> list[Number]:
    """The input gradients of matrices that read the same input are added up."""
    if work.training.projections != "separate":
        return []
    added = work.machine.stream(pointwise_bytes(6.0, elements(work.layout.tokens, work.block.hidden, 1.0)))
    return [times_seconds(added_gradients(work.block), added)]
