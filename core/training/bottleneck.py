"""What binds a training step: the largest of five shares of its time."""

from __future__ import annotations

from typing import Any

from ..numeric import Number, largest, maximum, minimum, where
from ..report import Point
from ..sums import times_seconds, total_seconds
from ..terms import formula
from .layout import Layout
from .operators import Operator
from .step import StepTime


@formula("t − n·t_k", "s")
def without_launches(seconds: Number, launches: Number, launch: Number) -> Number:
    """Time of an operator beside the fixed cost of its kernels."""
    return maximum(0.0, seconds - launches * launch)


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


def bottleneck(
    layout: Layout, step: StepTime, points: list[Point], operators: list[Operator], values: dict[str, Any]
) -> Any:
    """The word for what binds a step of one scenario, from its operators on the roofline."""
    counts = {each.name: each.launches for each in operators}
    launch = step.machine.rates.t_k
    bound: dict[str, list[Number]] = {"compute": [0.0], "memory": [0.0], "launch": [0.0]}
    for point in points:
        count = counts.get(point.name, 0.0)
        bound.setdefault(point.bound, []).append(without_launches(point.seconds, count, launch))
        bound["launch"].append(times_seconds(count, launch))
    bound["launch"].append(values.get("time.expert_launches_s", 0.0))
    pipe = step.pipeline
    idle = pipeline_idle(pipe.bubble, layout.micro_batches, pipe.slowest_stage, pipe.mean_stage)
    compute, memory, launches = (total_seconds(bound[word]) for word in ("compute", "memory", "launch"))
    shares = (compute, memory, values["communication.exposed_seconds"], launches, idle)
    return binding(longest(*shares), second_longest(*shares), *shares[:4])
