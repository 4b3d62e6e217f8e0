"""Laws that hold for any model, layout, format and load of a serving plan."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.plans import with_all
from tests.core.serving_plans import serving
from triledger.core.catalogue import catalogue
from triledger.core.engine import evaluate
from triledger.core.legality import violations
from triledger.core.scenario import Scenario

MODELS = (
    "deepseek-v2",
    "deepseek-v3",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "llama-4-maverick",
    "qwen3-235b-a22b",
    "gemma-3-27b",
)
DEGREES = st.sampled_from([1.0, 2.0, 4.0, 8.0])


@st.composite
def plans(draw: st.DrawFn) -> Scenario:
    """Any legal plan of a model with experts, latent attention or windows."""
    model = catalogue().models[draw(st.sampled_from(MODELS))]
    tp, pp, own, groups = (draw(DEGREES) for _ in range(4))
    if not model.experts:
        own = groups = 1.0
    engine = draw(st.sampled_from(["vllm-v1", "sglang-0.5", "trtllm-1.2-serve", "trtllm-1.0"]))
    number = draw(st.sampled_from(["bf16", "fp8-block", "mxfp4-experts", "nvfp4", "int4-g128", "gptq-g64"]))
    plan = serving(model, draw(st.sampled_from(["h200-sxm-141gb", "b200-sxm-180gb"])), tp, pp, engine=engine)
    changes = {
        "cluster.gpus": tp * pp * own * draw(st.sampled_from([1.0, 2.0])),
        "parallelism.ep": min(groups, tp * own),
        "serving.attention_dp": own,
        "serving.weight_format": number,
        "serving.kv_format": draw(st.sampled_from(["bf16", "fp8", "int4"])),
        "serving.concurrency": float(draw(st.integers(1, 2000))),
        "serving.prompt_tokens": float(draw(st.integers(1, 60_000))),
        "serving.output_tokens": float(draw(st.integers(2, 4000))),
        "serving.request_rate": draw(st.sampled_from([0.0, 0.5, 20.0])),
    }
    return with_all(plan, changes)


@settings(deadline=None)
@given(plans())
def test_no_prediction_beats_the_bound(plan: Scenario) -> None:
    assert not violations(plan)
    report = evaluate(plan)
    assert all(math.isfinite(value) for value in report.flat().values() if isinstance(value, float))
    assert 0 < report["time.bound_s"] <= report["time.step_s"] * (1 + 1e-12)
    assert 0 < report["serving.ttft_bound_s"] <= report.get("serving.ttft_s", math.inf) * (1 + 1e-12)
    assert 0 <= report["time.mfu"] <= 1 + 1e-12
    assert 0 <= report["time.mbu"] <= 1 + 1e-12
    parts = ("compute_s", "memory_s", "launch_s", "exposed_communication_s", "bubble_s")
    shares = [report[f"time.{part}"] for part in parts]
    assert min(shares) >= -1e-12
    assert math.isclose(sum(shares), report["time.step_s"], rel_tol=1e-9)
    items = ("weights", "kv_cache", "activations", "workspace")
    assert math.isclose(sum(report[f"memory.{item}_bytes"] for item in items), report["memory.total_bytes"])


@settings(deadline=None)
@given(plans(), st.floats(1.1, 3.0))
def test_more_bandwidth_never_takes_longer(plan: Scenario, times: float) -> None:
    path = "cluster.accelerator.memory_bandwidth"
    faster = plan.with_("serving.request_rate", 0.0)
    slow, fast = (evaluate(faster.with_(path, plan.get(path) * factor)) for factor in (1.0, times))
    assert fast["time.step_s"] <= slow["time.step_s"] * (1 + 1e-12)
    assert fast["serving.kv_capacity_tokens"] == slow["serving.kv_capacity_tokens"]
