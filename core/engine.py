"""`evaluate`: a scenario in, a report out. Composition only; it never raises on a plan that cannot be."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from . import economics
from .findings import findings
from .ledgers.compute import rule_flops, step_flops
from .machine.rates import peak_flops
from .model.layers import Model
from .numeric import is_array
from .report import Deferred, Report
from .scenario import Scenario
from .scenario_model import model_of
from .serving.sheet import evaluate_serving
from .terms import Datum, recording, traced, with_origins
from .training import days
from .training.interruptions import interruptions
from .training.layout import data_parallel, shard_ranks
from .training.losses import losses
from .training.sheet import evaluate_training
from .widths import gradient_bytes


def evaluate(scenario: Scenario, record: bool = False) -> Report:
    """Everything that can be said of a scenario.

    Any number of the scenario may be an array; the results then are arrays and there are no findings. With
    `record` every number of the report carries the Term that computed it.
    """
    with recording() if record else nullcontext() as recorder:
        subject = with_origins(scenario, "") if record else scenario
        model = model_of(subject)
        sheet = evaluate_training(subject, model) if subject.kind == "training" else evaluate_serving(subject, model)
        values: dict[str, Any] = {
            "name": traced(scenario.name, Datum("name")) if record else scenario.name,
            "kind": traced(scenario.kind, Datum("kind")) if record else scenario.kind,
            "model.parameters": model.parameters,
            "model.active_parameters": model.active_parameters,
        } | sheet.values
        if subject.kind == "training":
            values |= _training_totals(subject, model, values)
    many = is_array(*values.values())
    return Report(
        scenario=scenario,
        values=Deferred(values, sheet.later) if sheet.later else values,
        communication=tuple(sheet.communication),
        points=tuple(sheet.points),
        stages=sheet.stages,
        findings=() if many else tuple(findings(scenario, values, sheet, evaluate)),
        not_counted=sheet.not_counted,
        withheld=sheet.withheld,
        terms=tuple(recorder.terms) if recorder else (),
    )


def _training_totals(scenario: Scenario, model: Model, values: dict[str, Any]) -> dict[str, Any]:
    """Steps, days, money, reliability, whiteboard and what was measured."""
    cluster, training = scenario.cluster, scenario.training
    peak = peak_flops(cluster.accelerator, training.precision)
    steps = days.step_count(training.tokens, values["compute.tokens_per_step"])
    failures = interruptions(scenario, model)
    return {
        "training.steps": steps,
        **_until_done(scenario, values, steps, failures["training.effective_ratio"]),
        "training.bound_days": days.training_days(steps, values["time.bound_s"], 1.0),
        **failures,
        **losses(values | failures, cluster.gpus, peak),
        **_whiteboard(scenario, model, values, peak),
        **_measured(scenario, values, peak),
    }


def _until_done(scenario: Scenario, values: dict[str, Any], steps: Any, ratio: Any) -> dict[str, Any]:
    """Days, money and energy of a training that ends; none where failures outrun restarts, infinite among many."""
    if not is_array(ratio) and ratio <= 0:
        return {}
    cluster, money = scenario.cluster, scenario.economics
    with np.errstate(divide="ignore", invalid="ignore"):
        training_days, low, high = (
            days.training_days(steps, values[f"time.{end}_s"], ratio) for end in ("step", "low", "high")
        )
        hours, low_hours, high_hours = (
            economics.gpu_hours(cluster.gpus, days.seconds_of_days(end)) for end in (training_days, low, high)
        )
        power = economics.mean_power(cluster.accelerator.power, economics.IDLE_SHARE, economics.TRAINING_LOAD)
        energy = economics.energy_kwh(hours, power, money.power_usage_effectiveness)
        return {
            "training.days": training_days,
            "training.days_low": low,
            "training.days_high": high,
            **_deadline(scenario, training_days),
            "training.gpu_hours": hours,
            "cost.usd": economics.rental_cost(hours, money.gpu_price),
            "cost.usd_low": economics.rental_cost(low_hours, money.gpu_price),
            "cost.usd_high": economics.rental_cost(high_hours, money.gpu_price),
            "cost.energy_kwh": energy,
            "cost.carbon_kg": economics.carbon_kg(energy, money.grid_intensity),
        }


def _deadline(scenario: Scenario, training_days: Any) -> dict[str, Any]:
    deadline = scenario.training.deadline
    return {} if deadline is None else {"training.over_deadline": days.over_deadline(training_days, deadline)}


def _whiteboard(scenario: Scenario, model: Model, values: dict[str, Any], peak: Any) -> dict[str, Any]:
    training, parallel = scenario.training, scenario.parallelism
    stated_label = scenario.whiteboard.parameters
    label = model.parameters if stated_label is None else stated_label
    met = model.met_parameters if stated_label is None else stated_label  # a token computes with those it meets
    stated = values["time.mfu"] if isinstance(training.mfu, str) else training.mfu
    gradient = gradient_bytes(training)
    gpus = scenario.cluster.gpus
    shards = shard_ranks(
        data_parallel(gpus, parallel.tp, parallel.pp, parallel.cp), parallel.cp, parallel.hsdp_replicas
    )
    table = {
        "whiteboard.parameters": label,
        "whiteboard.replica_bytes": days.whiteboard_replica(label, gradient),
        "whiteboard.static_bytes": days.whiteboard_static(
            label, parallel.tp, parallel.pp, gradient, shards, parallel.zero
        ),
        "whiteboard.mfu": stated,
        "whiteboard.tokens_per_s": days.whiteboard_throughput(rule_flops(6, met), gpus, peak, stated),
        "whiteboard.tokens_per_s_exact": days.whiteboard_throughput(
            values["compute.training_flops_per_token"], gpus, peak, stated
        ),
        "whiteboard.days": days.whiteboard_days(met, training.tokens, gpus, peak, stated),
    }
    table["whiteboard.done_in_30_days"] = days.whiteboard_progress(table["whiteboard.days"])
    if training.deadline is not None:
        over = days.over_deadline(table["whiteboard.days"], training.deadline)
        table["whiteboard.over_deadline"] = over
        table["whiteboard.gpus_for_deadline"] = days.gpus_for_deadline(gpus, over)
    return table


def _measured(scenario: Scenario, values: dict[str, Any], peak: Any) -> dict[str, Any]:
    """Utilisation of a step a person measured, and its distance to the bound and to the prediction."""
    measured, gpus = scenario.measured, scenario.cluster.gpus
    if measured.step_time is None and measured.tokens_per_s is None:
        return {}
    seconds = (
        measured.step_time
        if measured.step_time is not None
        else days.step_of_throughput(values["compute.tokens_per_step"], measured.tokens_per_s)
    )
    return {
        "measured.step_s": seconds,
        "measured.mfu": days.utilisation(values["compute.model_flops_per_step"], gpus, peak, seconds),
        "measured.mfu_rule": days.utilisation(_whiteboard_flops(scenario, values), gpus, peak, seconds),
        "measured.hfu": days.utilisation(values["compute.hardware_flops_per_step"], gpus, peak, seconds),
        "measured.mbu": days.bandwidth_utilisation(
            values["time.unavoidable_bytes"], scenario.cluster.accelerator.memory_bandwidth, seconds
        ),
        "measured.over_bound": days.over(seconds, values["time.bound_s"]),
        "measured.over_prediction": days.over(seconds, values["time.step_s"]),
    }


def _whiteboard_flops(scenario: Scenario, values: dict[str, Any]) -> Any:
    label = scenario.whiteboard.parameters
    parameters = values["model.active_parameters"] if label is None else label
    return step_flops(rule_flops(6, parameters), values["compute.tokens_per_step"])
