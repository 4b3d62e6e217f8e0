"""Serving of models with routed experts: which experts a batch meets, their weights and their time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.plans import with_all
from tests.core.serving_plans import memory, passes, prefill, serving
from tests.core.spreadsheet import computed
from triledger.core.cells import cell_text
from triledger.core.engine import evaluate
from triledger.core.legality import violations
from triledger.core.serving.experts import touched_experts

MIXTRAL = "mixtral-8x7b"


@pytest.mark.parametrize(("experts", "each", "rows", "found"), [(128, 4, 16, 50.98), (256, 8, 64, 222.4)])
def test_a_batch_soon_meets_most_experts(experts, each, rows, found):
    assert touched_experts(experts, each, rows) == pytest.approx(found, rel=3e-4)


def test_weights_of_mixtral_in_16_bits_are_all_its_parameters():
    """46.7 billion parameters of the model card at two bytes; with TP 8 only router and norms are whole on each."""
    whole = memory(serving(MIXTRAL)).weights
    assert whole == 2 * 46_702_792_704
    extra = 2 * 7 * (32 * (4096 * 8 + 2 * 4096) + 4096)
    assert 8 * memory(serving(MIXTRAL, tp=8)).weights == pytest.approx(whole + extra, rel=1e-12)


def test_router_and_norms_stay_in_16_bits():
    plain, half = memory(serving(MIXTRAL)).weights, memory(serving(MIXTRAL, weight_format="fp8")).weights
    unquantised = 32 * (4096 * 8 + 2 * 4096) + 4096 + 2 * 32000 * 4096
    assert half == (plain - 2 * unquantised) / 2 + 2 * unquantised


def test_one_row_reads_its_own_experts_and_many_read_all():
    plan = serving(MIXTRAL, "a100-sxm-80gb", tp=8)
    timer, held = passes(plan), memory(plan).pass_weights
    expert = 3 * 4096 * 14336 / 8 * 2
    assert timer.read_weights(held, 1.0) == pytest.approx(held - 32 * 6 * expert)
    assert timer.read_weights(held, 1000.0) == pytest.approx(held)
    one = timer.decode(1.0, 100.0).operator("experts")
    assert one.flops == 2 * 32 * 2 * 3 * 4096 * 14336 / 8
    assert one.bytes == pytest.approx(32 * (2 * expert + 2 * (6 * 4096 + 6 * 14336 / 8)))


@pytest.mark.parametrize(
    ("tp", "number", "published"),
    [(2, "bf16", 96.67), (8, "bf16", 227.82), (2, "int8", 155.03), (4, "int8", 216.87), (8, "int8", 279.35)],
)
def test_decode_of_mixtral_with_gpt_fast(tp, number, published):
    """Table of the gpt-fast README: Mixtral-8x7B on A100, one request, 5 tokens in, 200 out."""
    load = {"prompt_tokens": 5, "output_tokens": 200, "concurrency": 1}
    plan = serving(MIXTRAL, "a100-sxm-80gb", tp, engine="gpt-fast", weight_format=number, **load)
    assert 1 / evaluate(plan)["serving.tpot_s"] == pytest.approx(published, rel=0.08)


@pytest.mark.parametrize("model", [MIXTRAL, "qwen3-30b-a3b"])
@pytest.mark.parametrize("concurrency", [1, 40, 1000])
def test_no_prediction_beats_the_bound(model, concurrency):
    report = evaluate(serving(model, "h200-sxm-141gb", tp=4, concurrency=concurrency))
    assert report["time.bound_s"] <= report["time.step_s"]
    assert report["serving.ttft_bound_s"] <= report["serving.ttft_s"]


def test_arrays_are_the_scalars_side_by_side():
    plan = serving(MIXTRAL, "h100-sxm-80gb", tp=8, weight_format="fp8")
    values = (1.0, 7.0, 300.0)
    many = evaluate(with_all(plan, {"serving.concurrency": np.array(values)})).values
    for index, value in enumerate(values):
        one = evaluate(plan.with_("serving.concurrency", value)).flat()
        for key in ("time.step_s", "time.bound_s", "serving.ttft_s", "serving.tpot_s", "memory.weights_bytes"):
            assert np.broadcast_to(many[key], 3)[index] == pytest.approx(one[key], rel=1e-9), key


def test_every_formula_recomputes_its_value():
    report = evaluate(serving(MIXTRAL, tp=4, weight_format="gptq-g128"), record=True)
    assert "E_touched" in {term.formula.symbol for term in report.terms}
    for term in report.terms:
        found = computed(cell_text(term), dict(term.inputs))
        if not isinstance(term.value, (str, bool)):
            assert float(found) == pytest.approx(float(term.value), rel=1e-9, abs=1e-300), term.formula.name


def test_a_prompt_meets_experts_once_and_costs_more_than_a_step():
    timer = passes(serving(MIXTRAL, tp=8))
    assert (
        prefill(timer, 1.0, 4096.0).operator("experts").seconds > timer.decode(1.0, 4096.0).operator("experts").seconds
    )


def test_kinds_that_are_not_computed_are_refused():
    assert not violations(serving(MIXTRAL))
    for model in ("deepseek-v3", "gpt-oss-120b", "gemma-3-27b"):
        assert [each.field for each in violations(serving(model))][:1] == ["model"], model
