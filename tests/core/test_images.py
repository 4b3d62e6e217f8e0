"""Image tokens that text attends to across: FLOPs, what is kept and sent, cache and time, in training and serving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.huggingface_files import published
from tests.core.plans import plan
from tests.core.serving_plans import memory, passes, prefill, serving
from triledger.core import evaluate
from triledger.core.fields import fields_of
from triledger.core.report import Report
from triledger.core.scenario import Scenario
from triledger.core.traits import traits

#: 80 layers that attend to text and 20 that attend to images; 64 heads and 8 KV heads of 128, 8192 wide.
SPEC = published("meta-llama/Llama-3.2-90B-Vision-Instruct").spec
#: An image of four tiles.
IMAGE = 4 * 1601


def training(images: float, **changes: Any) -> Scenario:
    usual = {"cluster__gpus": 64, "parallelism__tp": 8, "parallelism__sp": True, "parallelism__zero": 1}
    return plan(SPEC, "h100-sxm-80gb", **(usual | changes), training__image_tokens=images)


def more(name: str, images: float = IMAGE, **changes: Any) -> float:
    """What images add to a result of a training plan."""
    return evaluate(training(images, **changes))[name] - evaluate(training(0, **changes))[name]


def row(report: Report, name: str) -> Any:
    return next(row for row in report.communication if row.name == name)


# ---------------------------------------------------------------- training


def test_image_tokens_pass_keys_and_values_once_a_sequence() -> None:
    # 2 · h · 2 · 8 heads · 128 FLOP an image token and layer, shared by the 4096 tokens of the text
    assert more("compute.linear_flops_per_token") == pytest.approx(20 * 2 * 8192 * 2 * 8 * 128 * IMAGE / 4096)


def test_every_text_token_attends_to_every_image_token() -> None:
    pairs = 20 * 4 * 64 * 128 * IMAGE
    assert more("compute.attention_flops_per_token") == pytest.approx(pairs)
    # nothing is masked: the full mask has no more of them
    full = more("compute.full_mask_flops_per_token")
    assert full == pytest.approx(more("compute.training_flops_per_token"))
    # a flash kernel executes 3.5 passes of the core, and 3 of the matrices
    tokens = evaluate(training(0))["compute.tokens_per_step"]
    linear = more("compute.linear_flops_per_token")
    assert more("compute.hardware_flops_per_step") == pytest.approx(tokens * (3.5 * pairs + 3 * linear))


def test_text_alone_meets_neither_keys_nor_values_of_images() -> None:
    text = evaluate(training(0))["compute.linear_flops_per_token"]
    layer = 8192 * 2 * 64 * 128 + 3 * 8192 * 28672
    assert text == pytest.approx(2 * (100 * layer + 80 * 8192 * 2 * 8 * 128))


def test_keys_and_values_of_images_are_kept() -> None:
    # 16-bit keys and values of one KV head a rank, and the keys before their norm, in 20 layers
    kept = 20 * 2 * (256 + 128) * IMAGE
    assert more("memory.activations_bytes", training__micro_batch=1) >= kept
    unfused = {"training__attention": "unfused", "training__sequence_length": 1024, "parallelism__sp": True}
    # and 16-bit scores of 8 heads
    scores = 20 * 2 * 8 * 1024 * IMAGE
    assert more("memory.activations_bytes", **unfused) >= kept + scores


def test_images_take_time() -> None:
    few, many = (evaluate(training(images))["time.step_s"] for images in (1601, IMAGE))
    none = evaluate(training(0))["time.step_s"]
    assert none < few < many
    # the arithmetic of the rest at the rate of the plan
    share = more("compute.hardware_flops_per_step") / evaluate(training(0))["compute.hardware_flops_per_step"]
    assert many / none - 1 == pytest.approx(share, rel=0.5)


@pytest.mark.parametrize("scheme", ["ring", "all-gather"])
def test_keys_and_values_of_images_go_around(scheme: str) -> None:
    changes = {"parallelism__cp": 2, "parallelism__context_scheme": scheme}
    none, some = (evaluate(training(images, **changes)) for images in (0, IMAGE))
    name = "context parallel keys and values"
    # half of the keys and values of one head in 16 bits, forward and twice backward, 20 layers, 64 micro-batches
    sent = row(some, name).bytes_per_gpu - row(none, name).bytes_per_gpu
    assert sent == pytest.approx(0.5 * IMAGE * 256 * 2 * 3 * 20 * 64)


def test_images_change_places_with_ulysses() -> None:
    changes = {"parallelism__cp": 2, "parallelism__context_scheme": "ulysses"}
    none, some = (evaluate(training(images, **changes)) for images in (0, IMAGE))
    name = "context parallel keys and values"
    # half of queries and output of 8 heads, and of keys and values of 2 (one for each rank)
    local = 2 * 8 * 128 * 2048 + 2 * 2 * 128 * IMAGE / 2
    sent = row(some, name).bytes_per_gpu - row(none, name).bytes_per_gpu
    assert sent == pytest.approx(0.5 * local * 2 * 2 * 20 * 64)


def test_many_numbers_of_image_tokens_at_once() -> None:
    images = np.array([0.0, 1601.0, IMAGE])
    for changes in ({}, {"parallelism__cp": 2}, {"training__attention": "unfused"}):
        together = evaluate(training(images, **changes))
        for index, each in enumerate(images):
            alone = evaluate(training(float(each), **changes))
            for key in ("time.step_s", "memory.total_bytes", "compute.hardware_flops_per_step"):
                value = np.broadcast_to(together[key], images.shape)[index]
                assert value == pytest.approx(alone[key], rel=1e-9), (key, each)


# ---------------------------------------------------------------- serving


def test_images_are_cached_once_a_request() -> None:
    none, some = (memory(serving(SPEC, tp=8, image_tokens=images)) for images in (0, IMAGE))
    assert none.kv_per_token == some.kv_per_token == 327_680
    assert some.kv_per_image_token == 81_920
    # whole pages of 16 tokens
    assert some.kv_per_sequence - none.kv_per_sequence == 81_920 * 6416
    assert some.kv_cache - none.kv_cache == 32 * 81_920 / 8 * 6416
    assert some.full_sequences < none.full_sequences


def test_the_cache_of_an_image_token_is_told_where_there_are_such_layers() -> None:
    report = evaluate(serving(SPEC, tp=8))
    assert report["serving.kv_bytes_per_image_token"] == 81_920
    assert "serving.kv_bytes_per_image_token" not in evaluate(serving("llama-3-8b"))


def test_a_decode_step_reads_the_images_of_every_sequence() -> None:
    none, some = (passes(serving(SPEC, tp=8, image_tokens=images)).decode(32.0, 4096.0) for images in (0, IMAGE))
    read = some.operator("attention core").bytes - none.operator("attention core").bytes
    assert read == pytest.approx(20 * 32 * IMAGE * 2 * 128 * 2)
    flops = some.operator("attention core").flops - none.operator("attention core").flops
    assert flops == pytest.approx(20 * 32 * 4 * 8 * 128 * IMAGE)
    assert some.seconds > none.seconds


def test_a_prompt_makes_keys_and_values_of_its_images() -> None:
    timers = [passes(serving(SPEC, tp=8, image_tokens=images)) for images in (0, IMAGE)]
    none, some = (prefill(timer, 1.0, 2048.0) for timer in timers)
    assert some.operator("image keys and values").flops == pytest.approx(20 * 2 * IMAGE * 8192 * 256)
    core = some.operator("attention").flops - none.operator("attention").flops
    assert core == pytest.approx(20 * 4 * 8 * 128 * 2048 * IMAGE)
    # a chunk of a quarter of the prompt makes a quarter of them
    quarter = prefill(timers[1], 1.0, 512.0).operator("image keys and values").flops
    assert quarter == pytest.approx(some.operator("image keys and values").flops / 4)
    assert (
        evaluate(serving(SPEC, tp=8, image_tokens=IMAGE))["serving.ttft_s"]
        > evaluate(serving(SPEC, tp=8))["serving.ttft_s"]
    )


@pytest.mark.parametrize("kind", ["training", "serving"])
def test_the_field_is_shown_where_layers_attend_to_images(kind: str) -> None:
    def shown(scenario: Scenario) -> bool:
        return f"{kind}.image_tokens" in {f.path for f in fields_of("workload", kind, traits=traits(scenario))}

    assert shown(training(0))
    assert not shown(plan("llama-3-8b"))
