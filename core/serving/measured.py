"""What a person measured of a serving plan against its bound and its prediction."""

from __future__ import annotations

from typing import Any

from ..numeric import Number, is_array
from ..terms import formula
from ..training import days
from . import bounds
from .plan import Plan


@formula("x/x_meas", "ratio")
def predicted_over(predicted: Number, measured: Number) -> Number:
    """A predicted rate over the measured one, which is a measured time over the predicted one."""
    return predicted / measured


def measured_values(plan: Plan, values: dict[str, Any]) -> dict[str, Any]:
    """Utilisation of the measured time, and the time over the bound and over the prediction.

    A time per token or a throughput is compared with the decode step, else a time to first token with the prompt.
    """
    measured = plan.scenario.measured
    if measured.tpot is not None:
        found = _step(plan, values, measured.tpot)
        return found | {"measured.over_prediction": days.over(measured.tpot, plan.steady.tpot)}
    if measured.tokens_per_s is not None:
        seconds = days.step_of_throughput(values["compute.tokens_per_step"], measured.tokens_per_s)
        found = _step(plan, values, seconds)
        return found | {"measured.over_prediction": predicted_over(plan.steady.output, measured.tokens_per_s)}
    if measured.ttft is None:
        return {}
    found = {"measured.over_bound": days.over(measured.ttft, values["serving.ttft_bound_s"])}
    endless = bounds.saturated(plan.scenario.serving.request_rate, plan.steady.requests)
    if not is_array(endless) and endless:
        return found
    return found | {"measured.over_prediction": days.over(measured.ttft, plan.steady.ttft)}


def _step(plan: Plan, values: dict[str, Any], seconds: Number) -> dict[str, Any]:
    cluster, peak = plan.scenario.cluster, values["roofline.peak_flops"]
    model, hardware = values["compute.model_flops_per_step"], values["compute.hardware_flops_per_step"]
    bandwidth = cluster.accelerator.memory_bandwidth
    return {
        "measured.step_s": seconds,
        "measured.mfu": days.utilisation(model, cluster.gpus, peak, seconds),
        "measured.hfu": days.utilisation(hardware, cluster.gpus, peak, seconds),
        "measured.mbu": days.bandwidth_utilisation(values["time.bytes_per_step"], bandwidth, seconds),
        "measured.over_bound": days.over(seconds, values["time.bound_s"]),
    }
