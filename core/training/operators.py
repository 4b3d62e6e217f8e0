"""Operators of a training step on the roofline, and what binds the step."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine import kernels
from ..model.layers import Model
from ..numeric import Number
from ..report import Point
from ..roofline import point
from ..scenario import Scenario
from ..terms import formula
from .layout import Layout
from .step import StepTime


@formula("F", "FLOP")
def products_flops(tokens: Number, inputs: Number, outputs: Number, products: Number, blocks: Number) -> Number:
    """FLOPs of some products of one matrix over the blocks and micro-batches of a step."""
    return 2 * tokens * inputs * outputs * products * blocks


@formula("Σ", "B")
def sum_of_kernels(
    forward: Number, again: Number, input_gradient: Number, weight_gradient: Number, blocks: Number
) -> Number:
    """Bytes or seconds of the products of one matrix over the blocks and micro-batches of a step."""
    return (forward * again + input_gradient + weight_gradient) * blocks


@formula("F", "FLOP")
def core_step_flops(flops: Number, passes: Number, blocks: Number) -> Number:
    """FLOPs the attention core executes in a step on one GPU."""
    return flops * passes * blocks


@formula("bytes", "B", "FlashAttention, arXiv 2205.14135: q, k, v, o read and written once a pass")
def flash_bytes(
    tokens: Number, heads: Number, kv_heads: Number, head_dim: Number, passes: Number, blocks: Number
) -> Number:
    """Bytes a flash kernel moves in a step on one GPU."""
    return 4 * tokens * (heads + kv_heads) * head_dim * passes * blocks


@formula("bytes", "B", "32-bit softmax and dropout over the score matrix, two products")
def unfused_bytes(tokens: Number, heads: Number, sequence: Number, passes: Number, blocks: Number) -> Number:
    """Bytes unfused attention moves over its scores in a step on one GPU."""
    return 8 * tokens * heads * sequence * passes * blocks


@formula("n", "times")
def block_count(layers: Number, pipeline: Number, micro_batches: Number) -> Number:
    """Blocks that one GPU computes in a step; mean over stages."""
    return layers / pipeline * micro_batches


@formula("n·t", "s")
def step_share(forward: Number, again: Number, backward: Number, blocks: Number) -> Number:
    """Seconds of one kind of work in a step on one GPU."""
    return (forward * again + backward) * blocks


@formula("bytes", "B")
def bytes_of_seconds(seconds: Number, rate: Number) -> Number:
    """Bytes that streaming kernels move in a time."""
    return seconds * rate


@formula("F/n", "FLOP")
def flops_per_gpu(flops: Number, gpus: Number) -> Number:
    """FLOPs of one GPU."""
    return flops / gpus


@formula("bytes", "B")
def add_all(matrices: Number, attention: Number, pointwise: Number, optimizer: Number) -> Number:
    """Bytes of a whole step on one GPU."""
    return matrices + attention + pointwise + optimizer


@dataclass(frozen=True)
class Shares:
    """Seconds of a step by what binds them."""

    compute: Number
    memory: Number
    launch: Number
    communication: Number
    pipeline: Number


def operator_points(
    scenario: Scenario, model: Model, layout: Layout, step: StepTime, model_flops: Number, peak: Number
) -> list[Point]:
    """Matrices, attention, pointwise kernels, optimizer, and the whole step."""
    device, machine, block = scenario.cluster.accelerator, step.machine, step.pipeline.block
    bandwidth = device.memory_bandwidth
    blocks = block_count(layout.layers, layout.pipeline, layout.micro_batches)
    again = 2.0 if scenario.training.recompute == "full" else 1.0
    points: list[Point] = []
    for matrix in model.block.projections(layout.tensor):
        ahead, back, weight = block.operators[matrix.name]
        flops = products_flops(layout.tokens, matrix.inputs, matrix.outputs, 2.0 + again, blocks)
        moved = sum_of_kernels(ahead.moved, again, back.moved, weight.moved, blocks)
        seconds = sum_of_kernels(ahead.seconds, again, back.seconds, weight.seconds, blocks)
        points.append(
            point(
                matrix.name,
                "step",
                flops,
                moved,
                seconds,
                peak,
                bandwidth,
                _bound(ahead.math, ahead.moved, machine.memory_rate),
            )
        )
    points.append(_attention_point(scenario, model, layout, step, blocks, again, peak))
    seconds = step_share(block.forward.pointwise, again, block.backward.pointwise, blocks)
    streamed = bytes_of_seconds(seconds, machine.memory_rate)
    vector = pointwise_flops(streamed)
    points.append(point("norms and activation", "step", vector, streamed, seconds, peak, bandwidth, "memory"))
    matrices = sum_of(points[:-2])
    optimizer = bytes_of_seconds(step.optimizer, machine.memory_rate)
    points.append(
        point("optimizer", "step", adam_flops(optimizer), optimizer, step.optimizer, peak, bandwidth, "memory")
    )
    whole = add_all(matrices, points[len(points) - 3].bytes, streamed, optimizer)
    flops = flops_per_gpu(model_flops, scenario.cluster.gpus)
    points.append(point("whole step", "step", flops, whole, step.seconds, peak, bandwidth, ""))
    return points


@formula("F_pw", "FLOP", "a norm's two FLOPs for each 16-bit element read and written")
def pointwise_flops(moved: Number) -> Number:
    """Vector operations of pointwise kernels, from the bytes they move: half a FLOP a byte."""
    return 0.5 * moved


@formula("F_opt", "FLOP", "about 12 operations for each 32-bit state of 28 bytes")
def adam_flops(moved: Number) -> Number:
    """Vector operations of an AdamW step, from the bytes it moves."""
    return 12 / 34 * moved


@formula("Σ", "B")
def add_bytes(first: Number, second: Number) -> Number:
    """Two sets of bytes together."""
    return first + second


def sum_of(points: list[Point]) -> Number:
    """Bytes of some operators together."""
    result = points[0].bytes
    for more in points[1:]:
        result = add_bytes(result, more.bytes)
    return result


def _bound(math: Number, moved: Number, memory_rate: Number) -> str:
    return "compute" if math >= moved / memory_rate else "memory"


def _attention_point(
    scenario: Scenario, model: Model, layout: Layout, step: StepTime, blocks: Number, again: Number, peak: Number
) -> Point:
    attention, block = model.block.attention, step.pipeline.block
    heads, kv_heads = attention.local_heads(layout.tensor), attention.local_kv_heads(layout.tensor)
    pairs = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
    one = kernels.attention_flops(heads, attention.head_dim, pairs)
    flash = scenario.training.attention == "flash"
    flops = core_step_flops(one, (2.5 if flash else 2.0) + again, blocks)
    if flash:
        moved = flash_bytes(layout.tokens, heads, kv_heads, attention.head_dim, 2.0 + again, blocks)
    else:
        moved = unfused_bytes(layout.tokens, heads, layout.sequence, 2.0 + again, blocks)
    seconds = step_share(block.forward.attention, again, block.backward.attention, blocks)
    bandwidth = scenario.cluster.accelerator.memory_bandwidth
    return point("attention", "step", flops, moved, seconds, peak, bandwidth, "compute" if flash else "memory")
