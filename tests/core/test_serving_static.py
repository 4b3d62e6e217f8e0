"""Static batches against the published latencies of FasterTransformer, and weights of a vision tower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.plans import gpt
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.model.layers import build
from triledger.core.scenario import Cluster, Scenario
from triledger.core.serving.iteration import Pass
from triledger.core.serving.settings import settings_of
from triledger.core.serving.static import piped_seconds, prompt_seconds, static_batch, step_seconds


def passes(tp: int, pp: int = 1) -> Pass:
    """GPT-20B in 16 bits on A100s with FasterTransformer."""
    known = catalogue()
    cluster = Cluster(known.accelerators["a100-sxm-80gb"], known.networks["ib-hdr-200"], gpus=tp * pp)
    scenario = Scenario(gpt(44, 6144, 48), cluster, kind="serving")
    changes = {"parallelism.tp": tp, "parallelism.pp": pp, "serving.engine": "fastertransformer"}
    for path, value in (changes | {"serving.weight_format": "fp16"}).items():
        scenario = scenario.with_(path, value)
    return Pass(scenario, build(scenario.model), settings_of(scenario))


def test_a_batch_is_its_prompts_its_steps_and_the_request() -> None:
    # published: 312 ms for 16 requests of 128 tokens in and 20 out on 8 A100
    eight = passes(8)
    prompts, step = prompt_seconds(eight, 16, 128), step_seconds(eight, 16, 128, 20)
    whole = static_batch(eight, 16, 128, 20)
    assert prompts == pytest.approx(0.1032, rel=0.01)
    assert step == pytest.approx(0.01124, rel=0.01)
    assert whole == pytest.approx(prompts + 19 * step + 0.010)
    assert whole == pytest.approx(0.312, rel=0.06)


def test_micro_batches_fill_a_pipeline() -> None:
    assert piped_seconds(1.0, 4, 1) == 1.0
    assert piped_seconds(1.0, 4, 4) == pytest.approx(7 / 4)


def test_a_pipeline_cuts_a_batch_where_that_is_faster() -> None:
    piped = passes(1, 4)
    whole = prompt_seconds(piped, 64, 512) + 7 * step_seconds(piped, 64, 512, 8) + 0.010
    assert static_batch(piped, 64, 512, 8) < 0.7 * whole
    assert static_batch(piped, 1, 8, 8) == pytest.approx(
        prompt_seconds(piped, 1, 8) + 7 * step_seconds(piped, 1, 8, 8) + 0.010
    )


def test_a_vision_tower_takes_memory_and_its_share_of_ranks() -> None:
    known = catalogue()
    model = known.models["llama-3-8b"]
    seen = replace(model, vision_parameters=4e8)
    cluster = Cluster(known.accelerators["h100-sxm-80gb"], known.networks["none"], gpus=2)
    plans = [Scenario(m, cluster, kind="serving").with_("parallelism.tp", 2) for m in (model, seen)]
    plain, tower = (evaluate(each)["memory.weights_bytes"] for each in plans)
    assert tower - plain == pytest.approx(4e8)
