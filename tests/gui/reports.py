"""Hand-made reports of the kind the engine answers: a 70B training plan on 64 H100 and a serving plan on 8 H100.

The figures are invented but consistent: rows sum to their totals, times to the step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from triledger.core.model.spec import ModelSpec
from triledger.core.report import Edit, Finding, Point, Report, Traffic
from triledger.core.scenario import Accelerator, Cluster, Link, Network, Parallelism, Peak, Scenario, Training
from triledger.gui.store import Store

GIB = 2.0**30

LLAMA_70B = ModelSpec("llama-3-70b", "Llama-3-70B", 80, 8192, 64, 8, 28672, 128256)
H100 = Accelerator(
    "h100-sxm-80gb",
    "H100 SXM 80 GB",
    "NVIDIA",
    "hopper",
    80 * GIB,
    3.35e12,
    Peak(bf16=989.4e12, fp8=1978.9e12),
    Link("NVLink", 450e9, 8),
    700.0,
)
NDR = Network("ib-ndr-400", "InfiniBand NDR", 50e9)
TRAINING = Scenario(
    model=LLAMA_70B,
    cluster=Cluster(H100, NDR, 64, 8),
    name="70B on 64×H100",
    parallelism=Parallelism(tp=8, pp=4, zero=1, sp=True),
    training=Training(global_batch=1024, recompute="selective"),
)
SERVING = replace(TRAINING, name="70B on 8×H100, served", kind="serving", parallelism=Parallelism(tp=8))

#: GiB by pipeline stage.
STAGES = {
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
_TRAFFIC = (
    ("tensor", "activations", "all-gather", "tensor parallel", 8, "scale-up", 5120, 118.2e9, 12.4, "backward", 4.98),
    ("gradients", "gradients", "reduce-scatter", "data parallel", 2, "scale-out", 1, 8.8e9, 0.31, "backward", 0.32),
    ("parameters", "weights", "all-gather", "data parallel", 2, "scale-out", 1, 4.4e9, 0.12, "forward", 0.0),
    ("pipeline", "activations", "send, receive", "pipeline", 4, "scale-out", 256, 2.1e9, 0.05, "compute", 0.0),
)  # fmt: skip
_POINTS = (
    ("QKV and output", "step", 8.1e15, 11.9e12, 14.5, "compute"),
    ("attention", "step", 2.7e15, 7.6e12, 8.2, "compute"),
    ("FFN", "step", 17.8e15, 10.8e12, 27.0, "compute"),
    ("head", "step", 0.8e15, 0.27e12, 1.33, "compute"),
    ("norms", "step", 6.5e12, 6.0e12, 2.2, "memory"),
    ("optimizer", "step", 1.3e11, 2.7e10, 0.01, "memory"),
    ("whole step", "step", 29.4e15, 36.6e12, 63.4, ""),
)

_SERVING_POINTS = (
    ("linears", "decode", 5.6e11, 16.6e9, 6.1e-3, "memory"),
    ("attention", "decode", 2.1e10, 1.2e9, 0.6e-3, "memory"),
    ("decode", "decode", 5.8e11, 17.8e9, 16.8e-3, ""),
    ("linears", "prefill", 3.6e13, 17.9e9, 0.06, "compute"),
    ("attention", "prefill", 1.4e12, 0.3e9, 0.006, "compute"),
)


def _traffic() -> tuple[Traffic, ...]:
    return tuple(Traffic(*row) for row in _TRAFFIC)


def _points() -> tuple[Point, ...]:
    return tuple(
        Point(name, phase, flops, size, flops / size, min(989.4e12, flops / size * 3.35e12), flops / time, time, bound)
        for name, phase, flops, size, time, bound in _POINTS
    )


def _stage_totals() -> np.ndarray:
    return sum(np.array(stages) for stages in STAGES.values()) * GIB


def training_report(**changes: object) -> Report:
    """The training plan; keyword arguments with __ for the dot replace values, None removes them."""
    memory = {name: stages[0] * GIB for name, stages in STAGES.items()}
    total = sum(memory.values())
    values = {f"memory.{name}_bytes": value for name, value in memory.items()} | {
        "name": "70B on 64×H100",
        "kind": "training",
        "model.parameters": 70_553_706_496.0,
        "model.active_parameters": 70_553_706_496.0,
        "whiteboard.parameters": 70e9,
        "whiteboard.days": 298.0,
        "whiteboard.tokens_per_s": 77_700.0,
        "compute.forward_flops_per_token": 1.44e11,
        "compute.training_flops_per_token": 4.33e11,
        "compute.rule_flops_per_token": 4.2e11,
        "compute.model_flops_per_step": 1.816e18,
        "compute.hardware_flops_per_step": 1.88e18,
        "memory.optimizer_bytes": sum(memory[name] for name in ("master_weights", "momentum", "variance")),
        "memory.total_bytes": total,
        "memory.usable_bytes": 79.2 * GIB,
        "memory.headroom_bytes": 79.2 * GIB - total,
        "memory.fits": True,
        "memory.verdict": "fits",
        "memory.peak_stage": 0,
        "memory.peak_instant": "start of backward",
        "communication.bytes_per_gpu": sum(row[7] for row in _TRAFFIC),
        "communication.exposed_seconds": 5.3,
        "roofline.peak_flops": 989.4e12,
        "roofline.bandwidth": 3.35e12,
        "roofline.knee": 295.3,
        "time.bound_s": 28.7,
        "time.step_s": 63.4,
        "time.bubble_s": 2.6,
        "time.exposed_communication_s": 5.3,
        "time.optimizer_s": 0.1,
        "time.mfu": 0.452,
        "time.hfu": 0.468,
        "time.tokens_per_s": 66_100.0,
        "time.tokens_per_s_per_gpu": 1033.0,
        "time.low_s": 58.8,
        "time.high_s": 69.0,
        "time.bottleneck": "compute",
        "training.steps": 476_837.0,
        "training.days": 350.0,
        "training.days_low": 325.0,
        "training.days_high": 381.0,
        "training.bound_days": 158.0,
        "training.gpu_hours": 537_600.0,
        "training.effective_ratio": 0.99,
        "cost.usd": 1_290_000.0,
        "cost.energy_kwh": 452_000.0,
        "cost.carbon_kg": 180_800.0,
    }
    finding = Finding(
        "deeper-interleaving",
        "hint",
        "Interleaving the pipeline five times would shrink the bubble to 0.8 %.",
        "parallelism.vpp",
        (Edit("Interleave ×5: −2.9 %", (("parallelism.vpp", 5), ("parallelism.schedule", "interleaved"))),),
    )
    report = Report(
        TRAINING,
        values,
        _traffic(),
        _points(),
        {name: np.array(stages) * GIB for name, stages in STAGES.items()} | {"total": _stage_totals()},
        (finding,),
        {"memory": ("NCCL buffers above 1 GiB",), "compute": ("softmax, norms",), "communication": ("data loading",)},
    )
    return with_values(report, changes)


def with_values(report: Report, changes: dict[str, object]) -> Report:
    """The report with values replaced: `time__mfu=0.5`; None removes one."""
    values = dict(report.values)
    for name, value in changes.items():
        key = name.replace("__", ".")
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return replace(report, values=values)


def serving_report(**changes: object) -> Report:
    """The serving plan of the same model."""
    memory = {"weights": 16.4, "kv_cache": 51.2, "activations": 1.1, "workspace": 2.6}
    total = sum(memory.values())
    values = {f"memory.{name}_bytes": value * GIB for name, value in memory.items()} | {
        "name": SERVING.name,
        "kind": "serving",
        "model.parameters": 70_553_706_496.0,
        "model.active_parameters": 70_553_706_496.0,
        "whiteboard.parameters": 70e9,
        "whiteboard.step_floor_s": 0.00522,
        "memory.total_bytes": total * GIB,
        "memory.usable_bytes": 79.2 * GIB,
        "memory.headroom_bytes": (79.2 - total) * GIB,
        "memory.fits": True,
        "memory.verdict": "fits",
        "communication.bytes_per_gpu": 73e6,
        "communication.exposed_seconds": 0.0031,
        "roofline.peak_flops": 989.4e12,
        "roofline.bandwidth": 3.35e12,
        "roofline.knee": 295.3,
        "time.bound_s": 0.0079,
        "time.step_s": 0.0168,
        "time.mbu": 0.47,
        "time.bottleneck": "memory",
        "serving.ttft_s": 0.22,
        "serving.tpot_s": 0.0168,
        "serving.tpot_bound_s": 0.0079,
        "serving.output_tokens_per_s": 1905.0,
        "serving.requests_per_s": 3.7,
        "serving.max_concurrency": 327.0,
        "serving.held_requests": 327.0,
        "serving.kv_bytes_per_token": 327_680.0,
        "serving.kv_capacity_tokens": 1_340_000.0,
        "serving.p99_ttft_s": 0.61,
        "cost.usd_per_million_output_tokens": 2.10,
    }
    traffic = (
        Traffic(
            "tensor parallel", "activations", "all-reduce", "tensor parallel", 8, "scale-up", 160, 73e6, 4e-3, "", 4e-3
        ),
    )
    points = tuple(
        Point(name, phase, flops, size, flops / size, min(989.4e12, flops / size * 3.35e12), flops / time, time, bound)
        for name, phase, flops, size, time, bound in _SERVING_POINTS
    )
    report = Report(SERVING, values, traffic, points, not_counted={"memory": ("CUDA context",)})
    return with_values(report, changes)


class Plans:
    """A store whose reports are given."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.store = Store(report.scenario, evaluate=lambda scenario: self.report)
        self.store.flush()

    def show(self, report: Report) -> None:
        self.report = report
        self.store.set("training.tokens", self.store.scenario.training.tokens + 1)
        self.store.flush()
