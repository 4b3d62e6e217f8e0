"""A row of a table of training runs as a plan, and its metric as the time of a step.

Columns give the model's sizes, the layout, batch and format; the table of sources gives what they cannot say. Metrics
that count FLOPs are turned into seconds with the count of their convention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..catalogue import catalogue
from ..engine import evaluate
from ..errors import ScenarioError
from ..model.spec import ModelSpec
from ..numeric import Number
from ..report import Report
from ..scenario import Scenario
from .comparison import Case, NotExpressibleError
from .plans import plan_of
from .reported import FLOPS_EACH, SECONDS, SEQUENCES, SHARE, TOKENS, TOKENS_EACH, Quantity
from .rows import Row
from .sources import Settings, settings_of

_SIZES = {"layers": "layers", "hidden_size": "hidden", "heads": "heads", "vocabulary": "vocab"}
_WORK = {"sequence_length": "seq_len", "micro_batch": "micro_batch", "global_batch": "global_batch"}
#: Columns of a model that is not in the catalogue, and columns that every row must fill.
SIZES, NEEDED = tuple(_SIZES.values()), ("num_gpus", *_WORK.values())
_DEGREES = ("tp", "pp", "cp", "vpp", "ep", "etp")


def training_plan(settings: Settings) -> Scenario:
    """The training plan of a row whose settings are known."""
    if absent := missing(settings):
        raise NotExpressibleError(f"{', '.join(absent)} {'are' if len(absent) > 1 else 'is'} not stated")
    return plan_of(settings, "training", _model, lambda row: _layout(row) | _work(row))


def missing(settings: Settings) -> list[str]:
    """The columns that a row must state and does not; sizes, where its model is not in the catalogue."""
    row = settings.row
    known = "model" in settings.values or row["model"] in catalogue().models
    return [column for column in (*(() if known else SIZES), *NEEDED) if not row[column]]


def _needed(row: Row, column: str) -> float:
    if not row[column]:
        raise NotExpressibleError(f"{column} is not stated")
    try:
        row.number(column)
    except ScenarioError:
        raise NotExpressibleError(f"{column} is {row[column]!r}, not one number") from None
    return row.positive(column)


def _model(row: Row) -> ModelSpec:
    sizes: dict[str, Any] = {name: _needed(row, column) for name, column in _SIZES.items()}
    hidden, heads = sizes["hidden_size"], sizes["heads"]
    return ModelSpec(
        id=row.id,
        name=row["model"] or row.id,
        kv_heads=_needed(row, "kv_heads") if row["kv_heads"] else heads,
        ffn_size=_needed(row, "ffn") if row["ffn"] else 4 * hidden,
        source=row["source"],
        **sizes,
    )


def _layout(row: Row) -> dict[str, Any]:
    gpus = _needed(row, "num_gpus")
    degrees = {name: row.positive(name) if row[name] else 1.0 for name in _DEGREES}
    ranks = degrees["tp"] * degrees["pp"] * degrees["cp"]
    data = row.positive("dp") if row["dp"] else gpus / ranks
    if not row["dp"] and not row["tp"]:
        raise NotExpressibleError("the layout (dp, tp, pp) is not stated")
    if data * ranks != gpus:
        raise NotExpressibleError(f"dp·tp·pp·cp = {data * ranks:g} is not the number of GPUs, {gpus:g}")
    return {
        "cluster.gpus": gpus,
        **{f"parallelism.{name}": value for name, value in degrees.items()},
        "parallelism.hsdp_replicas": row.positive("replicas") if row["replicas"] else 1.0,
        "parallelism.schedule": "interleaved" if degrees["vpp"] > 1 else "1f1b",
    }


def _work(row: Row) -> dict[str, Any]:
    return {f"training.{name}": _needed(row, column) for name, column in _WORK.items()}


# ---------------------------------------------------------------- metrics

Seconds = Callable[[float, Report], float]


def _tokens(report: Report) -> float:
    return float(report["compute.tokens_per_step"])


def _full_mask_flops(report: Report) -> float:
    """Model FLOPs of a step with a full attention mask, layers and head: the usual count of published figures."""
    return _tokens(report) * float(report["compute.full_mask_flops_per_token"])


def _executed_flops(report: Report) -> float:
    """FLOPs of a step with recomputation, full mask: arXiv 2104.04473, equation 3, where all layers are recomputed."""
    head = float(report["compute.head_flops_per_token"])
    layers = float(report["compute.full_mask_flops_per_token"]) / 3 - head
    passes = 4 if report.scenario.training.recompute == "full" else 3
    return _tokens(report) * (passes * layers + 3 * head)


def _of_rate(flops: Callable[[Report], float]) -> Seconds:
    return lambda value, report: flops(report) / (value * float(report.scenario.cluster.gpus))


def _of_mfu(value: float, report: Report) -> float:
    peak = float(report.scenario.cluster.gpus) * float(report["roofline.peak_flops"])
    return _full_mask_flops(report) / (value * peak)


#: What a metric is, and the seconds of a step from its value in SI.
STEP_SECONDS: Mapping[str, tuple[Quantity, Seconds]] = {
    "step_time": (SECONDS, lambda value, report: value),
    "tokens_per_s_per_gpu": (
        TOKENS_EACH,
        lambda value, report: _tokens(report) / (value * float(report.scenario.cluster.gpus)),
    ),
    "tokens_per_s_total": (TOKENS, lambda value, report: _tokens(report) / value),
    "samples_per_s_total": (
        SEQUENCES,
        lambda value, report: float(report.scenario.training.global_batch) / value,
    ),
    "mfu": (SHARE, _of_mfu),
    "model_tflops_per_gpu": (FLOPS_EACH, _of_rate(_full_mask_flops)),
    "hardware_tflops_per_gpu": (FLOPS_EACH, _of_rate(_executed_flops)),
}

#: Why a metric is not compared.
NOT_STEP_TIMES: Mapping[str, str] = {
    "tflops_per_gpu": "the source does not say which FLOPs it counts",
    "gpu_hours_total": "GPU-hours of a whole run, restarts and annealing included",
    "layer_fwd_time": "time of one layer, not of a step",
    "layer_bwd_time": "time of one layer, not of a step",
    "layer_combined_time": "time of one layer, not of a step",
}


def training_case(row: Row) -> Case:
    """A training run and the time of its step. Raises NotExpressibleError with the reason where there is none.

    ScenarioError where a cell is not what its column holds.
    """
    metric = row["reported_metric"]
    if row["reported_value"] == "OOM":
        raise NotExpressibleError("ran out of memory: nothing was timed")
    if metric not in STEP_SECONDS:
        unknown = f"no step time follows from {metric!r}, but from {', '.join(STEP_SECONDS)}"
        raise NotExpressibleError(NOT_STEP_TIMES.get(metric, unknown))
    settings = settings_of("training", row)
    scenario = training_plan(settings)
    quantity, seconds = STEP_SECONDS[metric]
    measured = seconds(quantity.read(row, "reported_value"), evaluate(scenario))
    return Case(scenario, step_of, settings.source, "step time", "s", measured)


def step_of(scenario: Scenario) -> Number:
    """Predicted seconds of a step."""
    return evaluate(scenario)["time.step_s"]
