"""Operators of a training step on the roofline, and what binds the step."""

from __future__ import annotations

from ..ledgers.compute import FORWARD_PASSES, ONE_PASS
from ..machine import kernels
from ..model.kinds.mixer import Matrix
from ..model.layers import Model
from ..numeric import Number
from ..report import Point
from ..roofline import Roof
from ..scenario import Scenario
from ..sums import total_bytes
from ..terms import formula
from .layout import Layout
from .projections import projections
from .step import StepTime


@formula("F", "FLOP")
def products_flops(tokens: Number, inputs: Number, outputs: Number, products: Number, blocks: Number) -> Number:
    """FLOPs of some products of one matrix over the blocks and micro-batches of a step."""
    return 2 * tokens * inputs * outputs * products * blocks


@formula("Σ", "B")
def sum_of_kernels(
    forward: Number, again: Number, input_gradient: Number, weight_gradient: Number, blocks: Number
) -> Number:
    """Bytes of the products of one matrix over the blocks and micro-batches of a step."""
    return (forward * again + input_gradient + weight_gradient) * blocks


@formula("Σ", "s")
def seconds_of_kernels(
    forward: Number, again: Number, input_gradient: Number, weight_gradient: Number, blocks: Number
) -> Number:
    """Time of the products of one matrix over the blocks and micro-batches of a step."""
    return (forward * again + input_gradient + weight_gradient) * blocks


@formula("F", "FLOP")
def core_step_flops(flops: Number, passes: Number, blocks: Number) -> Number:
    """FLOPs the attention core executes in a step on one GPU."""
    return flops * passes * blocks


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


def operator_points(
    scenario: Scenario, model: Model, layout: Layout, step: StepTime, model_flops: Number, peak: Number
) -> list[Point]:
    """Matrices, attention, pointwise kernels, optimizer, and the whole step."""
    block, memory_rate = step.pipeline.block, step.machine.memory_rate
    roof = Roof(peak, scenario.cluster.accelerator.memory_bandwidth)
    blocks = block_count(layout.layers, layout.pipeline, layout.micro_batches)
    products, norms, core = FORWARD_PASSES.get(scenario.training.recompute, ONE_PASS)
    separate = scenario.training.projections == "separate"
    seconds = step_share(block.forward.pointwise, norms, block.backward.pointwise, blocks)
    streamed = bytes_of_seconds(seconds, memory_rate)
    optimizer = bytes_of_seconds(step.optimizer, memory_rate)
    points = [
        *_matrix_points(projections(model.block, layout.tensor, separate), layout, step, blocks, products, roof),
        _attention_point(scenario, model, layout, step, blocks, core, roof),
        roof.point("norms and activation", "step", pointwise_flops(streamed), streamed, seconds, "memory"),
        roof.point("optimizer", "step", adam_flops(optimizer), optimizer, step.optimizer, "memory"),
    ]
    flops = flops_per_gpu(model_flops, scenario.cluster.gpus)
    moved = total_bytes([operator.bytes for operator in points])
    return [*points, roof.point("whole step", "step", flops, moved, step.seconds, "")]


def _matrix_points(
    matrices: list[tuple[Matrix, bool]], layout: Layout, step: StepTime, blocks: Number, again: Number, roof: Roof
) -> list[Point]:
    points: list[Point] = []
    for matrix, _ in matrices:
        ahead, back, weight = step.pipeline.block.operators[matrix.name]
        flops = products_flops(layout.tokens, matrix.inputs, matrix.outputs, 2.0 + again, blocks)
        moved = sum_of_kernels(ahead.moved, again, back.moved, weight.moved, blocks)
        seconds = seconds_of_kernels(ahead.seconds, again, back.seconds, weight.seconds, blocks)
        bound = _bound(ahead.math, ahead.moved, step.machine.memory_rate)
        points.append(roof.point(matrix.name, "step", flops, moved, seconds, bound))
    return points


@formula("F_pw", "FLOP", "a norm's two FLOPs for each 16-bit element read and written")
def pointwise_flops(moved: Number) -> Number:
    """Vector operations of pointwise kernels, from the bytes they move: half a FLOP a byte."""
    return 0.5 * moved


@formula("F_opt", "FLOP", "about 12 operations for each 32-bit state of 28 bytes")
def adam_flops(moved: Number) -> Number:
    """Vector operations of an AdamW step, from the bytes it moves."""
    return 12 / 34 * moved


def _bound(math: Number, moved: Number, memory_rate: Number) -> str:
    return "compute" if math >= moved / memory_rate else "memory"


def _attention_point(
    scenario: Scenario, model: Model, layout: Layout, step: StepTime, blocks: Number, again: Number, roof: Roof
) -> Point:
    attention, block = model.block.attention, step.pipeline.block
    heads, kv_heads = attention.local_heads(layout.tensor), attention.local_kv_heads(layout.tensor)
    pairs = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
    one = kernels.attention_flops(heads, attention.head_dim, pairs)
    flash = scenario.training.attention == "flash"
    flops = core_step_flops(one, (2.5 if flash else 2.0) + again, blocks)
    if flash:
        moved = kernels.flash_bytes(layout.tokens, heads, kv_heads, attention.head_dim, 2.0 + again, blocks)
    else:
        moved = unfused_bytes(layout.tokens, heads, layout.sequence, 2.0 + again, blocks)
    seconds = step_share(block.forward.attention, again, block.backward.attention, blocks)
    return roof.point("attention", "step", flops, moved, seconds, "compute" if flash else "memory")
