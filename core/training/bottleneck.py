"""What binds a training step: the largest of five shares of its time."""

from __future__ import annotations

from typing import Any

from ..ledgers.compute import FORWARD_PASSES, ONE_PASS
from ..numeric import Number, largest, maximum, minimum, where
from ..scenario import Scenario
from ..sums import add_seconds, times_seconds, total_seconds
from ..terms import formula
from .layout import Layout
from .operators import block_count, step_share
from .step import StepTime


@formula("t_math ≥ t_bytes", "s")
def bound_by_math(math: Number, moved: Number, memory_rate: Number) -> Number:
    """Seconds of a kernel that its mathematics binds; 0 where its bytes do."""
    return math if math >= moved / memory_rate else 0.0


@formula("t_bytes > t_math", "s")
def bound_by_bytes(math: Number, moved: Number, memory_rate: Number) -> Number:
    """Seconds of a kernel that its bytes bind; 0 where its mathematics does."""
    return 0.0 if math >= moved / memory_rate else moved / memory_rate


@formula("idle", "s")
def pipeline_idle(bubble: Number, micro_batches: Number, slowest: Number, mean: Number) -> Number:
    """Fill, drain, and waiting for the slowest stage."""
    return bubble + maximum(0.0, micro_batches * (slowest - mean))


@formula("first", "s")
def longest(compute: Number, memory: Number, communication: Number, launch: Number, pipeline: Number) -> Number:
    """The largest of five shares."""
    return largest((compute, memory, communication, launch, pipeline))


@formula("second", "s", "the largest of the smaller ones of all pairs")
def second_longest(compute: Number, memory: Number, communication: Number, launch: Number, pipeline: Number) -> Number:
    """The second largest of five shares."""
    return largest(
        (
            minimum(compute, memory),
            minimum(compute, communication),
            minimum(compute, launch),
            minimum(compute, pipeline),
            minimum(memory, communication),
            minimum(memory, launch),
            minimum(memory, pipeline),
            minimum(communication, launch),
            minimum(communication, pipeline),
            minimum(launch, pipeline),
        )
    )


@formula("bottleneck", "word", "largest share of the step; balanced when the second is 0.9 of it")
def binding(
    first: Number, second: Number, compute: Number, memory: Number, communication: Number, launch: Number
) -> Any:
    """What binds a step."""
    return where(
        second >= 0.9 * first,
        "balanced",
        where(
            compute == first,
            "compute",
            where(
                memory == first,
                "memory",
                where(communication == first, "communication", where(launch == first, "launch", "pipeline")),
            ),
        ),
    )


def bottleneck(scenario: Scenario, layout: Layout, step: StepTime, values: dict[str, Any]) -> Any:
    """The word for what binds a step of one scenario."""
    block, rate = step.pipeline.block, step.machine.memory_rate
    products, norms, core = FORWARD_PASSES.get(scenario.training.recompute, ONE_PASS)
    blocks = block_count(layout.layers, layout.pipeline, layout.micro_batches)
    math, moved, launches = [], [], 0.0
    for kernels in block.operators.values():
        for kernel, passes in zip(kernels, (products, 1.0, 1.0), strict=True):
            math.append(times_seconds(passes, bound_by_math(kernel.math, kernel.moved, rate)))
            moved.append(times_seconds(passes, bound_by_bytes(kernel.math, kernel.moved, rate)))
            launches = launches + passes
    attention = step_share(block.forward.attention, core, block.backward.attention, blocks)
    pointwise = step_share(block.forward.pointwise, norms, block.backward.pointwise, blocks)
    compute, memory = (
        times_seconds(blocks, total_seconds(math)),
        add_seconds(times_seconds(blocks, total_seconds(moved)), pointwise),
    )
    if scenario.training.attention == "flash":
        compute = add_seconds(compute, attention)
    else:
        memory = add_seconds(memory, attention)
    launch = times_seconds(blocks, times_seconds(launches, step.machine.rates.t_k))
    pipe = step.pipeline
    idle = pipeline_idle(pipe.bubble, layout.micro_batches, pipe.slowest_stage, pipe.mean_stage)
    exposed = values["communication.exposed_seconds"]
    shares = (compute, add_seconds(memory, step.optimizer), exposed, launch, idle)
    return binding(longest(*shares), second_longest(*shares), *shares[:4])
