"""One engine: an array of serving plans answers as each plan alone, and every number can be explained."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.serving_plans import serving
from tests.core.spreadsheet import computed
from triledger.core.cells import cell_text
from triledger.core.engine import evaluate

LLAMA_70B = "llama-3-70b"


def random_plans(seed: int, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tp, pp = 2.0 ** rng.integers(0, 5, count), rng.choice([1.0, 1.0, 2.0, 5.0], count)
    return {
        "parallelism.tp": tp,
        "parallelism.pp": pp,
        "cluster.gpus": tp * pp * rng.choice([1.0, 2.0, 3.0], count),
        "cluster.gpus_per_node": rng.choice([4.0, 8.0], count),
        "cluster.accelerator.memory_bandwidth": 3.35e12 * rng.uniform(0.3, 3, count),
        "cluster.accelerator.link.bandwidth": 450e9 * rng.uniform(0.3, 3, count),
        "cluster.network.bandwidth": 50e9 * rng.uniform(0.3, 3, count),
        "serving.prompt_tokens": rng.choice([1.0, 17.0, 2048.0, 9000.0, 131072.0], count),
        "serving.output_tokens": rng.choice([1.0, 2.0, 100.0, 3000.0], count),
        "serving.concurrency": rng.integers(1, 700, count).astype(float),
        "serving.max_context": rng.choice([256.0, 4096.0, 131072.0], count),
        "serving.memory_utilization": rng.uniform(0.5, 1, count),
        "serving.max_batched_tokens": rng.choice([512.0, 8192.0], count),
        "economics.gpu_price": rng.uniform(0.5, 5, count),
    }


@pytest.mark.parametrize("seed", range(8))
def test_arrays_of_plans_answer_as_each_plan_alone(seed):
    engine = ["vllm-v1", "vllm-v0", "sglang-0.5", "trtllm-0.10", "trtllm-1.0", "gpt-fast", "llama-cpp", "exllamav2"]
    number = ["bf16", "fp8", "int8-g128", "int4-g128", "nvfp4", "gguf-q4_k_m", "gptq-g64", "mxfp4"]
    model = ["llama-3-70b", "gpt-3-175b", "falcon-7b", "qwen3-0.6b", "llama-3-8b", "opt-66b", "phi-4-mini", "gemma-7b"]
    plan = serving(model[seed], engine=engine[seed], weight_format=number[seed])
    drawn, count = random_plans(seed, 25), 25
    together, single = plan, [plan] * count
    for path, values in drawn.items():
        together = together.with_(path, values)
        single = [one.with_(path, float(value)) for one, value in zip(single, values, strict=True)]
    many = evaluate(together)
    assert not many.findings
    for index, one in enumerate(single):
        for key, value in evaluate(one).values.items():
            array = np.broadcast_to(np.asarray(many[key]), count)[index]
            if isinstance(value, (str, bool)):
                assert array == value, key
            else:
                assert isinstance(value, (int, float)), key
                # a share is a small difference of two times
                least = 1e-12 if key.endswith("_share") else 1e-18
                assert array == pytest.approx(value, rel=1e-12, abs=least), key


def test_request_rates_of_an_array_mix_open_and_closed_loops():
    plan = serving("llama-3-8b", concurrency=64, prompt_tokens=1000, output_tokens=300)
    rates = [0.0, 0.5, 4.0, 1000.0]
    many = evaluate(plan.with_("serving.request_rate", np.array(rates)))
    for index, rate in enumerate(rates):
        one = evaluate(plan.with_("serving.request_rate", rate))
        for key in ("serving.tpot_s", "serving.ttft_s", "serving.requests_per_s", "serving.running"):
            assert many[key][index] == pytest.approx(one.get(key, np.inf), rel=1e-9), key


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tp": 4, "pp": 2, "prompt_tokens": 20000, "concurrency": 33, "weight_format": "int4-g128"},
        {"tp": 8, "request_rate": 3.0, "engine": "trtllm-0.10", "weight_format": "gptq-g128", "kv_format": "int4"},
        {"tp": 16, "engine": "fastertransformer", "measured__tpot": 0.1, "concurrency": 2000},
    ],
)
def test_every_number_is_explained_by_formulas_that_recompute_it(changes):
    report = evaluate(serving(LLAMA_70B, "b200-sxm-180gb", **changes), record=True)
    for key in report.values:
        # engines with a fixed workspace set nothing else aside
        if key not in ("name", "kind") and report[key] != 0.0:
            assert report.explain(key) is not None, key
    for term in report.terms:
        found = computed(cell_text(term), dict(term.inputs))
        if isinstance(term.value, (str, bool)):
            assert found == term.value, term.formula.name
        else:
            assert float(found) == pytest.approx(float(term.value), rel=1e-9, abs=1e-300), term.formula.name


def test_recording_changes_no_number():
    plan = serving(LLAMA_70B, tp=8, concurrency=40)
    plain, recorded = evaluate(plan).flat(), evaluate(plan, record=True).flat()
    assert plain == recorded
