"""Where a step's time goes, from the products at the peak to what interruptions cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numeric import Number, is_array, maximum
from ..terms import formula
from .days import compute_floor


@formula("t_σ", "s")
def straggler_seconds(step: Number, straggler: Number) -> Number:
    """Time of a step that all replicas wait for the slowest one."""
    return step - step / straggler


@formula("m·(t_max − t_mean)", "s")
def uneven_seconds(steady: Number, slowest: Number, mean: Number) -> Number:
    """Time that the mean stage of a pipeline waits for the slowest one, over the micro-batches of a step."""
    return maximum(0.0, steady - steady * mean / slowest)


@formula("t_id", "s", leaves_out="nothing: kernels below the peak, recomputation and fixed costs are in it")
def ideal_seconds(
    step: Number, straggler: Number, bubble: Number, uneven: Number, exposed: Number, optimizer: Number
) -> Number:
    """Time of a step in which nothing waits: the kernels of the micro-batches one after the other."""
    return step - straggler - bubble - uneven - exposed - optimizer


@formula("t_int", "s", "Young 1974; Daly 2006")
def interruption_seconds(step: Number, effective_ratio: Number) -> Number:
    """Time that checkpoints, lost work and restarts add to each step."""
    return step / effective_ratio - step


@formula("T_eff", "s")
def effective_seconds(step: Number, interruptions: Number) -> Number:
    """Wall time of the training for each step it gets done."""
    return step + interruptions


def losses(values: dict[str, Any], gpus: Number, peak: Number) -> dict[str, Any]:
    """The parts of a step's wall time, by result key; they add up to `time.effective_s` where a training gets on."""
    step = values["time.step_s"]
    straggler = straggler_seconds(step, values["time.straggler_factor"])
    uneven = uneven_seconds(values["time.steady_s"], values["time.stage_s"], values["time.mean_stage_s"])
    bubble, exposed, optimizer = (values[f"time.{name}_s"] for name in ("bubble", "exposed_communication", "optimizer"))
    found = {
        "time.compute_floor_s": compute_floor(values["compute.model_flops_per_step"], gpus, peak),
        "time.ideal_s": ideal_seconds(step, straggler, bubble, uneven, exposed, optimizer),
        "time.uneven_s": uneven,
        "time.straggler_s": straggler,
    }
    ratio = values["training.effective_ratio"]
    if not is_array(ratio) and ratio <= 0:
        return found
    with np.errstate(divide="ignore"):
        interruptions = interruption_seconds(step, ratio)
    return found | {
        "time.interruptions_s": interruptions,
        "time.effective_s": effective_seconds(step, interruptions),
    }
