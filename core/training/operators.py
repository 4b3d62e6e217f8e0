"""Operators of a training step on the roofline, and what binds the step."""

from __future__ import annotations

from dataclasses import dataclass

from ..ledgers.compute import FORWARD_PASSES, ONE_PASS, trained_groups
from ..machine.device import NOTHING
from ..model.layers import Model
from ..numeric import Number, is_array
from ..report import Point
from ..roofline import Roof
from ..scenario import Scenario
from ..sums import add_bytes, add_flops, add_seconds, add_times, total_bytes, total_seconds
from ..terms import formula
from .block import BlockTime, Core, Product
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


@formula("bytes", "B")
def core_step_bytes(moved: Number, passes: Number, blocks: Number) -> Number:
    """Bytes a core moves in a step on one GPU."""
    return moved * passes * blocks


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


@dataclass(frozen=True)
class Operator:
    """One kind of kernel in a step on one GPU: its work, its seconds, what binds it, and how many kernels."""

    name: str
    flops: Number
    moved: Number
    seconds: Number
    bound: str
    launches: Number

    def joined(self, other: Operator) -> Operator:
        """The same kernels in blocks of two kinds."""
        return Operator(
            self.name,
            add_flops(self.flops, other.flops),
            add_bytes(self.moved, other.moved),
            add_seconds(self.seconds, other.seconds),
            self.bound,
            add_times(self.launches, other.launches),
        )


@formula("n", "kernels")
def kernels_of_step(forward: Number, backward: Number, blocks: Number) -> Number:
    """Kernels of an operator in a step: forward passes and backward kernels in every block."""
    return (forward + backward) * blocks


def block_operators(scenario: Scenario, model: Model, layout: Layout, step: StepTime) -> list[Operator]:
    """Matrix products, cores and routers of all blocks; those of one name together, products before cores."""
    passes = FORWARD_PASSES.get(scenario.training.recompute, ONE_PASS)
    products: dict[str, Operator] = {}
    others: dict[str, Operator] = {}
    for blocks, block in _blocks(model, layout, step):
        for product in block.products:
            _add(products, _product(product, passes[0], blocks, step.machine.memory_rate))
        for core in block.cores:
            _add(others, _core(core, passes[2], blocks))
        if block.experts:
            _add(others, _router(block, passes[0], blocks, step.machine.memory_rate))
    return [*products.values(), *others.values()]


def _blocks(model: Model, layout: Layout, step: StepTime) -> list[tuple[Number, BlockTime]]:
    """How many blocks of each kind one GPU computes in a step, those of prediction modules among them."""
    return [
        (block_count(layers, layout.pipeline, layout.micro_batches), block)
        for (layers, _), block in zip(trained_groups(model), step.pipeline.blocks, strict=True)
    ]


def _add(found: dict[str, Operator], more: Operator) -> None:
    found[more.name] = found[more.name].joined(more) if more.name in found else more


def _product(product: Product, again: Number, blocks: Number, memory_rate: Number) -> Operator:
    ahead, back, weight = product.forward, product.input_gradient, product.weight_gradient
    back_products = 1.0 if weight is NOTHING else 2.0
    return Operator(
        product.name,
        products_flops(product.rows, product.inputs, product.outputs, back_products + again, blocks),
        sum_of_kernels(ahead.moved, again, back.moved, weight.moved, blocks),
        seconds_of_kernels(ahead.seconds, again, back.seconds, weight.seconds, blocks),
        _bound(ahead.math, ahead.moved, memory_rate),
        kernels_of_step(again, back_products, blocks),
    )


def _core(core: Core, again: Number, blocks: Number) -> Operator:
    return Operator(
        core.name,
        core_step_flops(core.flops, core.flops_back + again, blocks),
        core_step_bytes(core.moved, core.moved_back + again, blocks),
        step_share(core.forward, again, core.backward, blocks),
        core.bound,
        kernels_of_step(again, 3.0, blocks),
    )


def _router(block: BlockTime, again: Number, blocks: Number, memory_rate: Number) -> Operator:
    """Router and rewriting of token copies: small kernels, bound by the bytes they move."""
    seconds = step_share(block.forward.routing, again, block.backward.routing, blocks)
    moved = bytes_of_seconds(seconds, memory_rate)
    return Operator("router", pointwise_flops(moved), moved, seconds, "memory", kernels_of_step(again, 1.0, blocks))


def _share_of(name: str, again: Number, model: Model, layout: Layout, step: StepTime) -> Number:
    """Time of one kind of work, by its name in a pass, in all blocks of a step on one GPU; mean over stages."""
    return total_seconds(
        [
            step_share(getattr(block.forward, name), again, getattr(block.backward, name), blocks)
            for blocks, block in _blocks(model, layout, step)
        ]
    )


def expert_launches(scenario: Scenario, model: Model, layout: Layout, step: StepTime) -> Number:
    """Time the host takes in a step to launch the kernels of experts; mean over stages."""
    again = FORWARD_PASSES.get(scenario.training.recompute, ONE_PASS)[0]
    return _share_of("launches", again, model, layout, step)


def operator_points(
    scenario: Scenario,
    model: Model,
    layout: Layout,
    step: StepTime,
    operators: list[Operator],
    whole: tuple[Number, Number],
) -> list[Point]:
    """Matrices, cores, pointwise kernels, optimizer, and the whole step; `whole` is its model FLOPs and the peak."""
    model_flops, peak = whole
    roof = Roof(peak, scenario.cluster.accelerator.memory_bandwidth)
    norms = FORWARD_PASSES.get(scenario.training.recompute, ONE_PASS)[1]
    seconds = _share_of("pointwise", norms, model, layout, step)
    streamed = bytes_of_seconds(seconds, step.machine.memory_rate)
    points = [
        *(roof.point(each.name, "step", each.flops, each.moved, each.seconds, each.bound) for each in operators),
        roof.point("norms and activation", "step", pointwise_flops(streamed), streamed, seconds, "memory"),
        *_updates(roof, step),
    ]
    flops = flops_per_gpu(model_flops, scenario.cluster.gpus)
    moved = total_bytes([operator.bytes for operator in points])
    return [*points, roof.point("whole step", "step", flops, moved, step.seconds, "")]


def _updates(roof: Roof, step: StepTime) -> list[Point]:
    """The optimizer on the device: the kernels that stream its states, and products where there are some."""
    update, points = step.update, []
    if is_array(update.streamed) or update.streamed > 0:
        moved = bytes_of_seconds(update.streamed, step.machine.memory_rate)
        points.append(roof.point("optimizer", "step", adam_flops(moved), moved, update.streamed, "memory"))
    if update.products:
        flops, moved, seconds = update.products
        bound = _bound(flops / step.machine.kept_rate, moved, step.machine.memory_rate)
        points.append(roof.point("orthogonal updates", "step", flops, moved, seconds, bound))
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
