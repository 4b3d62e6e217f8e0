"""FLOPs against published closed forms and utilisations, with the exact causal count beside the rules of thumb."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import gpt, plan
from triledger.core import evaluate
from triledger.core.catalogue import catalogue
from triledger.core.ledgers import compute
from triledger.core.model.layers import build
from triledger.core.model.spec import ModelSpec
from triledger.core.report import Report
from triledger.core.training.days import utilisation


def ledger(model: str | ModelSpec, sequence: int) -> compute.ComputeLedger:
    return compute.forward_ledger(build(catalogue().models[model] if isinstance(model, str) else model), sequence)


def report(model: str | ModelSpec, sequence: int, **changes: Any) -> Report:
    return evaluate(plan(model, training__sequence_length=sequence, **changes))


@pytest.mark.parametrize(
    ("model", "sequence", "causal", "full"),
    [
        ("llama-2-7b", 4096, 1.0602, 1.1399),
        ("llama-3-70b", 4096, 1.0231, 1.0612),
        ("llama-3-70b", 8192, 1.0612, 1.1373),
        ("llama-3-70b", 131072, 2.2026, 3.4201),
        ("llama-3.1-405b", 8192, 1.0365, 1.0781),
    ],
)
def test_exact_count_over_the_rule(model: str, sequence: int, causal: float, full: float) -> None:
    # derived: matrices, causal or full-mask attention core and head, over 2N and 6N
    values = report(model, sequence)
    parameters = values["model.parameters"]
    assert values["compute.forward_flops_per_token"] / (2 * parameters) == pytest.approx(causal, abs=5e-5)
    assert values["compute.full_mask_flops_per_token"] / (6 * parameters) == pytest.approx(full, abs=5e-5)


def test_parts_of_a_forward_pass() -> None:
    # Llama-3-70B, s = 4096: 80 layers of 2·855 638 016 matrix parameters; 4·64·128·(s + 1)/2; 2·8192·128 256
    values = report("llama-3-70b", 4096)
    assert values["compute.linear_flops_per_token"] == 2 * 80 * 855_638_016 == pytest.approx(1.369021e11, rel=5e-7)
    assert values["compute.attention_flops_per_token"] == 80 * 4 * 64 * 128 * 4097 / 2
    assert values["compute.attention_flops_per_token"] == pytest.approx(5.370020e9, rel=5e-7)
    assert values["compute.head_flops_per_token"] == pytest.approx(2.101346e9, rel=5e-7)
    share = values["compute.attention_flops_per_token"] / values["compute.forward_flops_per_token"]
    assert share == pytest.approx(0.0372, abs=5e-5)


def test_attention_is_more_than_half_of_a_long_context() -> None:
    values = report("llama-3-70b", 131072)
    assert values["compute.attention_flops_per_token"] > 0.5 * values["compute.forward_flops_per_token"]


def test_llama_405b_for_a_trained_token() -> None:
    # arXiv 2407.21783: 6·N·15.6e12 = 3.8e25 FLOP
    values = report("llama-3.1-405b", 8192)
    assert values["compute.rule_flops_per_token"] == pytest.approx(2.4351e12, rel=2e-5)
    assert values["compute.training_flops_per_token"] == pytest.approx(2.5240e12, rel=2e-5)
    assert values["compute.full_mask_flops_per_token"] == pytest.approx(2.6254e12, rel=2e-5)
    assert values["compute.rule_flops_per_token"] * 15.6e12 == pytest.approx(3.799e25, rel=2e-4)


GPT_175B = gpt(96, 12288, 96)
TOKENS_OF_64 = 64 * 2048


def test_175b_reproduces_the_published_utilisation() -> None:
    # arXiv 2205.05198, appendix A and table 5: 13.75 s for 64 sequences on 64 A100, MFU 51.4 %, HFU 52.8 %
    values = report(GPT_175B, 2048)
    model = values["compute.full_mask_flops_per_token"] * TOKENS_OF_64
    assert model == pytest.approx(1.41092e17, rel=5e-6)
    assert utilisation(model, 64, 312e12, 13.75) == pytest.approx(0.5139, abs=5e-5)
    # the paper's hardware count 72·B·L·s·h²·(1 + s/3h + V/12hL): six forward passes of the core
    parts = ledger(GPT_175B, 2048)
    printed = compute.executed_flops(parts.linear, parts.full_mask_core, parts.head, 3, 6) * TOKENS_OF_64
    assert printed == pytest.approx(1.44891e17, rel=5e-6)
    assert utilisation(printed, 64, 312e12, 13.75) == pytest.approx(0.5277, abs=5e-5)
    # selective recomputation runs the core once more, which makes four
    executed = compute.executed_flops(
        parts.linear, parts.full_mask_core, parts.head, *compute.EXECUTED_PASSES["selective", "unfused"]
    )
    assert executed * TOKENS_OF_64 == pytest.approx(1.42358e17, rel=5e-6)
    assert utilisation(executed * TOKENS_OF_64, 64, 312e12, 13.75) == pytest.approx(0.5185, abs=5e-5)


@pytest.mark.parametrize(
    ("layers", "hidden", "heads"), [(24, 2304, 24), (48, 8192, 64), (96, 12288, 96), (128, 25600, 160)]
)
def test_full_recompute_executes_the_published_closed_form(layers: int, hidden: int, heads: int) -> None:
    # arXiv 2104.04473, equation 3
    parts = ledger(gpt(layers, hidden, heads), 2048)
    executed = compute.executed_flops(
        parts.linear, parts.full_mask_core, parts.head, *compute.EXECUTED_PASSES["full", "unfused"]
    )
    closed = 96 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
    assert executed == pytest.approx(closed, rel=1e-14)


def test_days_of_gpt_3() -> None:
    # arXiv 2104.04473, equation 4: 8·T·P/(n·X), 34 days on 1024 A100 at 140 TFLOP/s
    assert 300e9 * compute.rule_flops(8, 175e9) / (1024 * 140e12) / 86400 == pytest.approx(34, abs=0.2)
    # table 2 of the same paper with its equation 3: 174.6B on 384 A100 at 153 TFLOP/s, 84 days
    parts = ledger(GPT_175B, 2048)
    executed = compute.executed_flops(parts.linear, parts.full_mask_core, parts.head, 4, 4)
    assert 300e9 * executed / (384 * 153e12) / 86400 == pytest.approx(84.7, abs=0.1)


def test_palm_540b_utilisation() -> None:
    # arXiv 2204.02311, appendix B: 6N + 12·L·H·Q·T a token; 238.3e3 tokens/s on 6144 chips of 275e12 is 46.2 %
    core = compute.layers_flops(118, compute.full_mask_core_flops(4 * 48 * 256, 2048))
    token = compute.rule_flops(6, 540.35e9) + compute.training_flops(core)
    assert token == 6 * 540.35e9 + 12 * 118 * 48 * 256 * 2048
    assert utilisation(token * 238.3e3, 6144, 275e12, 1.0) == pytest.approx(0.462, abs=5e-4)


@pytest.mark.parametrize(
    ("recompute", "attention", "linear", "core"),
    [
        ("none", "flash", 3, 3.5),  # flash kernels recompute the scores: 2.5 passes backward
        ("none", "unfused", 3, 3),
        ("selective", "flash", 3, 3.5),  # nothing quadratic to recompute
        ("selective", "unfused", 3, 4),
        ("full", "flash", 4, 4.5),
        ("full", "unfused", 4, 4),
    ],
)
def test_executed_passes(recompute: str, attention: str, linear: float, core: float) -> None:
    values = report("llama-2-7b", 4096, training__recompute=recompute, training__attention=attention)
    token = (
        linear * values["compute.linear_flops_per_token"]
        + core * values["compute.attention_flops_per_token"]
        + 3 * values["compute.head_flops_per_token"]
    )
    assert values["compute.hardware_flops_per_step"] == pytest.approx(token * 256 * 4096, rel=1e-14)


def test_rule_of_full_recompute_ignores_the_head() -> None:
    values = report("llama-3-8b", 4096, training__recompute="full")
    assert values["compute.rule_flops_per_token"] == 8 * values["model.parameters"]
    assert values["compute.training_flops_per_token"] == 3 * values["compute.forward_flops_per_token"]


def test_flops_of_a_step() -> None:
    values = report("llama-3-70b", 4096, whiteboard__parameters=70e9)
    assert values["compute.tokens_per_step"] == 1_048_576
    assert values["compute.model_flops_per_step"] == values["compute.training_flops_per_token"] * 1_048_576


def test_batch_tokens_of_a_2t_run_with_exact_flops() -> None:
    # 8.4e23 by the rule with the label 70e9, 8.66e23 counted with causal attention
    values = report("llama-3-70b", 4096)
    assert values["compute.training_flops_per_token"] * 2e12 == pytest.approx(8.66e23, rel=1e-3)
    assert compute.rule_flops(6, 70e9) * 2e12 == pytest.approx(8.4e23, rel=1e-12)


def test_a_matrix_product_of_4096_cubed() -> None:
    # 2·M·K·N: one of 4096³ is 137.44 GFLOP
    assert compute.linear_flops(4096 * 4096) * 4096 == pytest.approx(137.439e9, rel=5e-6)


def test_prediction_modules_are_trained_and_count() -> None:
    cluster = {"cluster__gpus": 64, "parallelism__pp": 8, "parallelism__ep": 8}
    without, one, two = (evaluate(plan("deepseek-v3", **cluster, model__mtp_modules=n)) for n in (0, 1, 2))
    model = build(catalogue().models["deepseek-v3"])
    block = model.groups[model.last_group][1]
    core = block.mixer.pair_flops() * (4096 + 1) / 2
    module = 2 * block.matrix_parameters() + core + 2 * (2 * 7168**2 + 7168 * 129280)
    key = "compute.forward_flops_per_token"
    assert one[key] - without[key] == pytest.approx(module, rel=1e-9)
    assert two[key] - one[key] == pytest.approx(module, rel=1e-9)
    for key in ("compute.model_flops_per_step", "compute.hardware_flops_per_step"):
        assert two[key] > one[key] > without[key]
    experts = [next(p.flops for p in each.points if "expert" in p.name) for each in (without, one)]
    assert experts[1] / experts[0] == pytest.approx(59 / 58)
    launches = [each["time.expert_launches_s"] for each in (without, one)]
    assert launches[1] / launches[0] == pytest.approx(59 / 58)
    norms = [next(p.seconds for p in each.points if p.name.startswith("norms")) for each in (without, one, two)]
    assert norms[2] - norms[1] == pytest.approx(norms[1] - norms[0])
    assert norms[1] > norms[0] * (1 + 0.9 / 61)
