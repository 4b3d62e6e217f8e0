"""Hand-made reports for the charts, and the charts of them; invented numbers that are consistent with one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from triledger.core.figures.communication import communication
from triledger.core.figures.figure import Figure
from triledger.core.figures.memory import memory
from triledger.core.figures.roofline import roofline
from triledger.core.figures.serving import concurrency_sweep, serving
from triledger.core.figures.training import gpus_sweep, training_days
from triledger.core.model.spec import ModelSpec
from triledger.core.report import Point, Report, Traffic
from triledger.core.scenario import Accelerator, Cluster, Link, Network, Parallelism, Peak, Scenario, Serving, Training

GIB = 2.0**30
PEAK, BANDWIDTH = 989.4e12, 3.35e12

LLAMA_70B = ModelSpec("llama-3-70b", "Llama-3-70B", 80, 8192, 64, 8, 28672, 128256)
H100 = Accelerator(
    "h100-sxm-80gb",
    "H100 SXM 80 GB",
    "NVIDIA",
    "hopper",
    80 * GIB,
    BANDWIDTH,
    Peak(bf16=PEAK),
    Link("NVLink 4", 450e9, 8),
    700.0,
)
NDR = Network("ib-ndr-400", "InfiniBand NDR", 50e9)
TRAINING = Scenario(
    LLAMA_70B,
    Cluster(H100, NDR, 64, 8),
    "70B on 64×H100",
    parallelism=Parallelism(tp=8, pp=4, zero=1, sp=True),
    training=Training(global_batch=1024),
)
SERVING = replace(
    TRAINING,
    name="70B served on 8×H100",
    kind="serving",
    cluster=Cluster(H100, NDR, 8, 8),
    parallelism=Parallelism(tp=8),
    serving=Serving(concurrency=32),
)


def point(row: tuple[str, str, float, float, float, str]) -> Point:
    """A point from name, phase, FLOP/byte, FLOP/s, seconds and what binds it."""
    name, phase, intensity, rate, seconds, bound = row
    flops = rate * seconds
    return Point(
        name, phase, flops, flops / intensity, intensity, min(PEAK, intensity * BANDWIDTH), rate, seconds, bound
    )


def traffic_row(name: str, collective: str, link: str, sent: float, times: tuple[float, float]) -> Traffic:
    """A row of the communication ledger; times are seconds in all and exposed."""
    return Traffic(name, "activations", collective, "group", 8, link, 256, sent, times[0], "compute", times[1])


def training_report(**values: Any) -> Report:
    """70B on 64 H100 in four stages; keyword arguments replace values (`memory__fits` is `memory.fits`)."""
    stages = {
        "weights": (4.6, 4.4, 4.4, 4.6),
        "gradients": (8.8, 8.8, 8.8, 9.2),
        "master_weights": (4.4, 4.4, 4.4, 4.5),
        "low_precision_weights": (0.0, 0.0, 0.0, 0.0),
        "momentum": (4.4, 4.4, 4.4, 4.6),
        "variance": (4.4, 4.4, 4.4, 4.6),
        "activations": (26.4, 20.1, 13.6, 7.2),
        "logits": (0.0, 0.0, 0.0, 4.2),
        "gathered": (0.0, 0.0, 0.0, 0.0),
        "workspace": (3.4, 3.4, 3.4, 3.4),
    }
    total = max(sum(column) for column in zip(*stages.values(), strict=True))
    table = {
        "memory.total_bytes": total * GIB,
        "memory.usable_bytes": 79.2 * GIB,
        "memory.headroom_bytes": (79.2 - 1.02 * total - 1.75) * GIB,
        "memory.fits": True,
        "memory.verdict": "fits",
        "memory.peak_stage": 0,
        "memory.peak_instant": "backward",
        "roofline.peak_flops": PEAK,
        "roofline.bandwidth": BANDWIDTH,
        "roofline.knee": PEAK / BANDWIDTH,
        "time.step_s": 11.2,
        "time.bottleneck": "compute",
        "training.days": 318.0,
        "training.days_low": 295.0,
        "training.days_high": 346.0,
        "training.bound_days": 144.0,
        "whiteboard.days": 300.0,
    }
    traffic = (
        traffic_row("tensor parallel", "all-gather, reduce-scatter", "scale-up", 118.2e9, (2.41, 0.92)),
        traffic_row("gradients", "reduce-scatter", "scale-out", 8.8e9, (0.31, 0.03)),
        traffic_row("weights", "all-gather", "scale-out", 4.4e9, (0.12, 0.0)),
        traffic_row("pipeline", "send, receive", "scale-out", 2.1e9, (0.05, 0.0)),
    )
    points = (
        ("QKV", "step", 719.0, 552e12, 0.77, "compute"),
        ("attention output", "step", 630.0, 591e12, 0.57, "compute"),
        ("FFN up", "step", 1334.0, 646e12, 3.7, "compute"),
        ("FFN down", "step", 1124.0, 625e12, 1.9, "compute"),
        ("attention", "step", 2124.0, 425e12, 0.47, "compute"),
        ("norms and activation", "step", 0.373, 1.0e12, 0.44, "memory"),
        ("optimizer", "step", 0.353, 0.95e12, 0.02, "memory"),
        ("whole step", "step", 869.0, 487e12, 11.2, ""),
    )
    changed = table | {key.replace("__", "."): value for key, value in values.items()}
    return Report(
        TRAINING, changed, traffic, tuple(map(point, points)), {k: np.array(v) * GIB for k, v in stages.items()}
    )


def too_large_report() -> Report:
    """The same plan with twice the activations: stage 0 and stage 1 do not fit."""
    report = training_report(
        memory__total_bytes=86.4 * GIB,
        memory__headroom_bytes=(79.2 - 89.9) * GIB,
        memory__fits=False,
        memory__verdict="does-not-fit",
    )
    stages = dict(report.stages)
    stages["activations"] = np.array((56.4, 42.3, 27.2, 14.4)) * GIB
    return replace(report, stages=stages)


def deep_report(stages: int = 16) -> Report:
    """The training plan cut into many stages, each of which holds less than the one before."""
    depth = np.arange(stages)
    table = {
        "weights": np.full(stages, 2.2),
        "gradients": np.full(stages, 4.4),
        "master_weights": np.full(stages, 2.2),
        "low_precision_weights": np.zeros(stages),
        "momentum": np.full(stages, 2.2),
        "variance": np.full(stages, 2.2),
        "activations": 1.6 * (stages - depth),
        "logits": np.where(depth == stages - 1, 4.2, 0.0),
        "gathered": np.zeros(stages),
        "workspace": np.full(stages, 2.0),
    }
    total = sum(table.values())[0]
    report = training_report(memory__total_bytes=total * GIB, memory__headroom_bytes=(75.0 - total) * GIB)
    return replace(report, stages={key: value * GIB for key, value in table.items()})


def one_gpu_report() -> Report:
    """A plan on one GPU: nothing is sent, one bar."""
    report = training_report()
    scenario = replace(
        TRAINING,
        name="1B on one H100",
        cluster=Cluster(H100, NDR, 1, 8),
        parallelism=Parallelism(),
        training=Training(),
    )
    return replace(report, scenario=scenario, communication=(), stages={k: v[:1] for k, v in report.stages.items()})


def gpus_curve(report: Report, sweep: Scenario) -> Report:
    """The report of a sweep over GPUs: days fall a little slower than the GPUs grow."""
    gpus = np.asarray(sweep.cluster.gpus, dtype=float)
    scale = (64 / gpus) ** 0.94
    values = {key: report[key] * scale for key in ("training.days", "training.days_low", "training.days_high")}
    values |= {key: report[key] * 64 / gpus for key in ("training.bound_days", "whiteboard.days")}
    cost = 1.8 * 24 * gpus * values["training.days"]
    return Report(sweep, values | {"cost.usd": cost, "memory.fits": gpus >= 64})


def serving_report(concurrency: int = 32) -> Report:
    """70B on 8 H100, decoding some requests together."""
    scenario = SERVING.with_("serving.concurrency", concurrency)
    tpot = decode_seconds(concurrency)
    memory = {"weights": 16.4, "kv_cache": 0.15 * concurrency, "activations": 1.1, "workspace": 2.6}
    values = {f"memory.{key}_bytes": value * GIB for key, value in memory.items()} | {
        "memory.total_bytes": sum(memory.values()) * GIB,
        "memory.usable_bytes": 79.2 * GIB,
        "memory.headroom_bytes": (71.3 - sum(memory.values())) * GIB,
        "memory.fits": True,
        "memory.verdict": "fits",
        "roofline.peak_flops": PEAK,
        "roofline.bandwidth": BANDWIDTH,
        "roofline.knee": PEAK / BANDWIDTH,
        "time.step_s": tpot,
        "time.bottleneck": "memory",
        "serving.tpot_s": tpot,
        "serving.output_tokens_per_s": concurrency / tpot,
        "serving.max_concurrency": 316.0,
        "serving.held_requests": 316.0,
        "serving.kv_capacity_tokens": 1.31e6,
        "memory.kv_budget_bytes": 1.31e6 * 40960.0,
        "serving.kv_bytes_per_token_per_gpu": 40960.0,
    }
    points = (
        ("projections", "decode", 31.0, 88e12, 0.0019, "memory"),
        ("FFN", "decode", 32.0, 93e12, 0.0052, "memory"),
        ("attention", "decode", 7.6, 19e12, 0.0007, "memory"),
        ("head", "decode", 31.5, 85e12, 0.0003, "memory"),
        ("norms", "decode", 0.8, 0.4e12, 0.0004, "launch"),
        ("projections", "prefill", 1180.0, 610e12, 0.031, "compute"),
        ("FFN", "prefill", 1500.0, 640e12, 0.09, "compute"),
        ("attention", "prefill", 640.0, 380e12, 0.012, "compute"),
    )
    traffic = (traffic_row("tensor parallel", "all-reduce", "scale-up", 146.8e6, (0.0031, 0.0031)),)
    return Report(scenario, values, traffic, tuple(map(point, points)))


def decode_seconds(concurrency: Any) -> Any:
    return 0.0079 + 0.000065 * concurrency


def concurrency_curve(report: Report, sweep: Scenario) -> Report:
    """The report of a sweep over concurrency."""
    requests = np.asarray(sweep.serving.concurrency, dtype=float)
    tpot = decode_seconds(requests)
    return Report(sweep, {"serving.tpot_s": tpot, "serving.output_tokens_per_s": requests / tpot})


def training_figure(**values: float) -> Figure:
    """Days against GPUs of the training plan."""
    report = training_report(**values)
    return training_days(report, gpus_curve(report, gpus_sweep(report.scenario)))


def serving_figure(concurrency: int = 32) -> Figure:
    """Throughput against speed of the serving plan."""
    report = serving_report(concurrency)
    return serving(report, concurrency_curve(report, concurrency_sweep(report.scenario)))


def every_figure() -> dict[str, Figure]:
    """Charts of all kinds, by what they show."""
    training, baseline = training_report(), training_report(training__days=400.0)
    return {
        "roofline": roofline(training),
        "roofline with baseline": roofline(training, baseline),
        "roofline of serving": roofline(serving_report()),
        "memory": memory(training),
        "memory with baseline": memory(training, baseline),
        "memory too large": memory(too_large_report()),
        "memory of 16 stages": memory(deep_report()),
        "memory of one GPU": memory(one_gpu_report()),
        "memory of serving": memory(serving_report()),
        "communication": communication(training),
        "communication with baseline": communication(training, baseline),
        "communication of serving": communication(serving_report()),
        "nothing sent": communication(one_gpu_report()),
        "training": training_figure(),
        "serving": serving_figure(),
        "serving beyond capacity": serving_figure(512),
    }
