"""What ranks that share a sequence pass on: keys and values of heads, latents, and no more than windows reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.core.plans import plan
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.model.layers import build
from triledger.core.report import Report
from triledger.core.scenario import Scenario

NAME = "context parallel keys and values"


def shared(model: str, cp: float = 4, length: float = 32768, **changes: Any) -> Scenario:
    """One micro-batch of one sequence on 8 x cp GPUs of one stage."""
    usual: dict[str, Any] = {"cluster__gpus": 8 * cp, "parallelism__tp": 8, "parallelism__sp": True}
    usual |= {"parallelism__cp": cp, "parallelism__zero": 1, "training__global_batch": 1}
    return plan(model, "h100-sxm-80gb", **(usual | changes), training__sequence_length=length)


def sent(report: Report, layers: float) -> float:
    """Bytes of one layer, forward and twice as many backward."""
    return next(row for row in report.communication if row.name == NAME).bytes_per_gpu / layers


def test_keys_and_values_of_heads_or_latents() -> None:
    # 32 768 tokens over 4 ranks at t = 8: 256 elements of Llama-3-70B; 5120 expanded of DeepSeek-V3, 576 of its latent
    assert sent(evaluate(shared("llama-3-70b")), 80) == pytest.approx((12.6e6 + 25.2e6), rel=2e-3)
    # the layer of the prediction module is left out of the row
    heads, latent = (
        evaluate(shared("deepseek-v3", parallelism__context_latent=passes, model__mtp_modules=0))
        for passes in (False, True)
    )
    assert sent(heads, 61) == pytest.approx(3 * 251.7e6, rel=1e-3)
    assert sent(latent, 61) == pytest.approx(3 * 28.3e6, rel=1e-3)
    # two chunks of 8192 tokens in the ring
    spared = heads.stages["workspace"] - latent.stages["workspace"]
    assert spared == pytest.approx(2 * 8192 * 2 * (5120 - 576))


def test_received_latents_are_made_keys_and_values_again() -> None:
    usual = {"model__mtp_modules": 0, "training__recompute": "none"}
    heads, latent = (
        evaluate(shared("deepseek-v3", parallelism__context_latent=passes, **usual)) for passes in (False, True)
    )
    # 2 · 512 · 128 · 256 FLOP a token on each of the three other ranks: forward, again backward, and two gradients
    more = latent["compute.hardware_flops_per_step"] - heads["compute.hardware_flops_per_step"]
    assert more == pytest.approx(4 * 3 * 2 * 512 * 128 * 256 * 61 * 32768)
    assert latent["compute.model_flops_per_step"] == heads["compute.model_flops_per_step"]
    # of one rank: 16 heads, three of four tokens received, forward and two gradients
    (made,) = [point for point in latent.points if "received latent" in point.name]
    assert made.flops == pytest.approx(3 * 2 * 512 * 16 * 256 * 32768 * 3 / 4 * 61)
    assert not [point for point in heads.points if "received latent" in point.name]


def test_latents_are_passed_on_only_where_sequences_are_shared_and_heads_stay() -> None:
    for changes in ({"parallelism__cp": 1}, {"parallelism__context_scheme": "ulysses"}):
        heads, latent = (
            evaluate(shared("deepseek-v3", parallelism__context_latent=passes, **changes)) for passes in (False, True)
        )
        assert latent["time.step_s"] == heads["time.step_s"]
        assert latent["compute.hardware_flops_per_step"] == heads["compute.hardware_flops_per_step"]


def test_a_window_limits_what_a_ring_passes_on() -> None:
    # gemma-3-27b: 52 layers with a window of 1024 and 10 without, 16 KV heads of 128 over 8 ranks
    width, length = 2 * 2 * 128, 32768
    ring, gathered = (
        sent(evaluate(shared("gemma-3-27b", parallelism__context_scheme=scheme)), 1)
        for scheme in ("ring", "all-gather")
    )
    # each rank holds two chunks of 4096, of which each needs the window before it: 2 · 1024 tokens, a quarter less
    assert ring == pytest.approx(3 * 0.75 * 2 * width * (10 * length + 52 * 2 * 1024))
    # a gathering has no other ranks to leave out
    assert gathered == pytest.approx(3 * 0.75 * 2 * width * 62 * length)


def test_a_window_longer_than_the_sequence_limits_nothing() -> None:
    short = sent(evaluate(shared("gemma-3-27b", length=2048)), 1)
    assert short == pytest.approx(3 * 0.75 * 2 * 2 * 2 * 128 * 62 * 2048)


@pytest.mark.parametrize(("chunk", "reached"), [(1024, 0), (4096, 0), (3072, 6144), (16384, 32768)])
def test_chunks_within_those_of_the_ranks_need_no_keys_of_others(chunk: int, reached: int) -> None:
    # each rank holds two chunks of 4096 tokens
    scout = build(catalogue().models["llama-4-scout"])
    mixer = next(block.mixer for _, block in scout.groups if block.mixer.kv_limit is not None)
    assert replace(mixer, window=chunk).passed_tokens(32768, 4) == reached  # pyright: ignore[reportCallIssue]


def test_many_layouts_at_once_pass_on_what_each_does() -> None:
    cp = np.array([1.0, 2.0, 4.0])
    for model, changes in (("deepseek-v3", {"parallelism__context_latent": True}), ("gemma-3-27b", {})):
        usual: dict[str, Any] = {"cluster__gpus": 32, "training__global_batch": 4, **changes}
        together = evaluate(shared(model, **usual).with_("parallelism.cp", cp))
        for index, each in enumerate(cp):
            alone = evaluate(shared(model, **usual).with_("parallelism.cp", float(each)))
            for key in ("time.step_s", "communication.bytes_per_gpu", "memory.total_bytes"):
                assert np.broadcast_to(together[key], 3)[index] == pytest.approx(alone[key], rel=1e-9), (model, key)
