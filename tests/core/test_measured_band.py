"""The band around a prediction: whose errors it is made of, and that it holds for rows it was not made from."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.plans import plan, with_all
from triledger.core import evaluate, load_scenario
from triledger.core.measured.band import band_of, coverage, quantiles
from triledger.core.measured.errors import errors_text, shipped_errors
from triledger.core.measured.likeness import quantities
from triledger.core.measured.validation import Validation
from triledger.core.working import explain


def test_the_shipped_errors_are_those_of_validate(shipped: Validation) -> None:
    """Where this fails: `triledger validate --write presets/measured/errors.csv`."""
    fresh = {(row.id, row.metric): row.predicted for row in shipped.comparisons if not row.flagged}
    kept = {(row.id, row.metric): row.predicted for row in shipped_errors()}
    assert fresh.keys() == kept.keys()
    moved = {key for key in kept if abs(fresh[key] / kept[key] - 1) > 1e-3}
    assert not moved


def test_the_table_is_written_with_the_plan_of_each_row(shipped: Validation) -> None:
    lines = errors_text(row for row in shipped.comparisons if row.id == "kor-t5-22B-full").splitlines()
    cells = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert (cells["id"], cells["measured"], cells["cluster.gpus"]) == ("kor-t5-22B-full", "1.42", "8")
    assert cells["serving.engine"] == ""


def test_quantiles_of_equal_and_of_unequal_weights() -> None:
    values = np.arange(1.0, 12.0)
    low, high = quantiles(values, np.ones(11))
    assert (low, high) == (pytest.approx(1.6), pytest.approx(10.4))
    heavy = np.where(values == 11.0, 100.0, 1.0)
    assert quantiles(values, heavy)[0] > 10


def test_rows_of_the_band_share_what_it_says() -> None:
    band = band_of(load_scenario("7b-8xa100-train"), "step")
    assert band.low <= -0.03 < 0.03 <= band.high
    assert "device generation ampere" in band.held
    assert f"{band.rows} published runs of {band.sources} sources" in band.words
    assert 0 < band.alike <= band.rows
    assert (band.alike == band.rows) == (not band.open)


def test_criteria_are_left_open_one_by_one_until_there_are_rows_enough() -> None:
    band = band_of(plan("llama-2-7b", accelerator="mi300x"), "step")
    asked = quantities()["step"]
    assert "device generation" in band.open
    assert band.alike == 0
    assert band.rows >= asked.rows
    assert band.sources >= asked.sources
    assert "no published run is like this plan" in band.words


def test_a_plan_whose_like_was_never_published_says_so() -> None:
    def codes(device: str) -> list[str]:
        return [finding.code for finding in evaluate(plan("llama-2-7b", accelerator=device)).findings]

    assert "nothing-like-it-measured" in codes("mi300x")
    assert "nothing-like-it-measured" not in codes("a100-sxm-80gb")


def test_arrays_of_plans_have_the_bands_of_their_plans() -> None:
    degrees = [(1, 1), (2, 1), (1, 2), (2, 2)]
    pipeline, context = (np.array(column, dtype=float) for column in zip(*degrees, strict=True))
    usual = plan("llama-2-7b", cluster__gpus=64)
    together = band_of(with_all(usual, {"parallelism.pp": pipeline, "parallelism.cp": context}), "step")
    for place, (pp, cp) in enumerate(degrees):
        alone = band_of(with_all(usual, {"parallelism.pp": pp, "parallelism.cp": cp}), "step")
        assert (together.low[place], together.high[place]) == (alone.low, alone.high)
        assert (together.rows[place], together.sources[place]) == (alone.rows, alone.sources)


def test_the_ends_reach_the_results_and_their_working_names_the_rows() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"), record=True)
    band = band_of(report.scenario, "step")
    assert report["time.low_s"] == pytest.approx(max(report["time.bound_s"], report["time.step_s"] * (1 + band.low)))
    assert report["time.high_s"] == pytest.approx(report["time.step_s"] * (1 + band.high))
    assert report["time.band_rows"] == band.rows
    assert any("published runs" in line for line in explain(report, "time.high_s").lines())


@pytest.mark.parametrize(
    ("preset", "quantity", "keys"),
    [
        ("70b-64xh100-train", "peak", ("memory.total_bytes", "memory.low_bytes", "memory.high_bytes")),
        (
            "70b-bf16-8xa100-serve",
            "cache",
            ("serving.kv_capacity_tokens", "serving.kv_capacity_tokens_low", "serving.kv_capacity_tokens_high"),
        ),
    ],
)
def test_memory_has_a_band_of_its_own(preset: str, quantity: str, keys: tuple[str, str, str]) -> None:
    report = evaluate(load_scenario(preset), record=True)
    band = band_of(report.scenario, quantity)
    predicted, low, high = (report[key] for key in keys)
    assert low == pytest.approx(predicted * (1 + band.low))
    assert high == pytest.approx(predicted * (1 + band.high))
    assert band.low <= -0.01 < 0.01 <= band.high
    assert any("published runs" in line for line in explain(report, keys[2]).lines())


def test_a_band_of_ones_own_stands_before_the_published_one() -> None:
    report = evaluate(load_scenario("70b-64xh100-train").with_("assumptions.band_high", 0.5))
    assert report["time.high_s"] == pytest.approx(1.5 * report["time.step_s"])


@pytest.mark.parametrize("preset", ["70b-bf16-8xa100-serve", "70b-int4-1xh100-serve"])
def test_what_a_request_sees_has_a_band(preset: str) -> None:
    report = evaluate(load_scenario(preset))
    for name in ("serving.ttft", "serving.tpot", "time"):
        value = report[f"{name}_s"] if name != "time" else report["time.step_s"]
        ends = (f"{name}.low_s", f"{name}.high_s") if name == "time" else (f"{name}_low_s", f"{name}_high_s")
        assert report[ends[0]] <= value <= report[ends[1]]
    for key in ("serving.output_tokens_per_s", "cost.usd_per_million_output_tokens"):
        ends = [report[f"{key}{end}"] for end in ("_low", "", "_high")]
        assert ends == sorted(ends)


def test_what_follows_from_the_step_has_the_band_of_the_step() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"))
    slow, fast = report["time.high_s"] / report["time.step_s"], report["time.low_s"] / report["time.step_s"]
    for key in ("time.mfu", "time.tokens_per_s"):
        ends = report[f"{key}_low"] * slow, report[f"{key}_high"] * fast
        assert ends == (pytest.approx(report[key]), pytest.approx(report[key]))
    ends = report["cost.usd_low"] / fast, report["cost.usd_high"] / slow
    assert ends == (pytest.approx(report["cost.usd"]), pytest.approx(report["cost.usd"]))


def test_bands_hold_for_sources_that_they_were_not_made_from() -> None:
    assert coverage("step") >= 0.65
    assert coverage("pace") >= 0.6
    assert coverage("peak") >= 0.6
