"""What a change would bring is what the engine says of the changed plan."""

from __future__ import annotations

import numpy as np
import pytest

from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.ledgers.tables import Table
from triledger.core.legality import legal
from triledger.core.measured.rows import shipped_tables
from triledger.core.measured.sources import settings_of
from triledger.core.measured.training_rows import training_plan
from triledger.core.scenario import Scenario
from triledger.core.what_if import answers, fp8_limit, table


def asked(scenario: Scenario) -> Table:
    report = evaluate(scenario)
    return table(report, answers(scenario, evaluate), evaluate)


def cells(found: Table, row: str) -> dict[str, object]:
    names = [column.name for column in found.columns]
    return next(dict(zip(names, cells, strict=True)) for cells in found.rows if cells[0] == row)


@pytest.mark.parametrize("name", list(catalogue().presets))
def test_every_change_is_legal_and_changes_something(name: str) -> None:
    scenario = load_scenario(name)
    found = answers(scenario, evaluate)
    assert len(found) >= 5
    for each in found:
        after = each.edit.applied(scenario)
        assert after != scenario
        assert legal(after)
        assert each.report.scenario == after
    labels = [each.edit.label for each in found]
    assert len(labels) == len(set(labels))


def test_a_row_is_the_report_of_the_changed_plan() -> None:
    scenario = load_scenario("70b-64xh100-train")
    found, now = asked(scenario), evaluate(scenario)
    assert cells(found, "this plan")["step"] == now["time.step_s"]
    after = evaluate(scenario.with_("training.recompute", "full"))
    row = cells(found, "full recompute")
    assert row["step"] == after["time.step_s"]
    assert row["fullest GPU"] == after["memory.total_bytes"]
    assert row["memory"] == "fits"
    longer = asked(scenario.with_("training.sequence_length", 65_536))
    assert cells(longer, "this plan")["memory"] == "does not fit"
    assert row["faster"] == now["training.days"] / after["training.days"]


def test_a_served_plan_is_asked_about_formats_and_requests() -> None:
    found = asked(load_scenario("70b-bf16-8xa100-serve"))
    names = [row[0] for row in found.rows]
    assert {"fp8 KV cache", "4-bit weights", "twice the requests", "memory twice as fast"} <= set(names)
    before, after = cells(found, "this plan"), cells(found, "fp8 KV cache")
    assert after["most requests"] == pytest.approx(2 * before["most requests"], rel=0.01)  # type: ignore[operator]


def test_a_change_of_a_served_plan_that_does_not_fit_says_so() -> None:
    found = asked(load_scenario("70b-int4-1xh100-serve"))
    assert cells(found, "this plan")["memory"] == "fits"
    assert cells(found, "twice the requests")["memory"] == "does not fit"
    assert cells(found, "half of the requests")["memory"] == "fits"


def test_fp8_is_not_asked_of_a_part_without_units_for_it() -> None:
    names = [row[0] for row in asked(load_scenario("7b-8xa100-train")).rows]
    assert "fp8 products" not in names


@pytest.mark.parametrize(
    ("slow", "fast", "measured"),
    [("mpt-044", "mpt-072", 1.15), ("mpt-052", "mpt-075", 1.05), ("mpt-042", "mpt-071", 1.00)],
)
def test_the_gain_of_fp8_vanishes_where_attention_dominates(slow: str, fast: str, measured: float) -> None:
    # llm-foundry on H100: 3B at 8192 tokens, 1B at 32 768, 3B at 32 768 with full recomputation
    rows = {row.id: row for each in shipped_tables() for row in each.rows}
    plans = [training_plan(settings_of("training", rows[name])) for name in (slow, fast)]
    steps = [evaluate(each)["time.step_s"] for each in plans]
    published = [rows[name].number("reported_value") for name in (slow, fast)]
    assert published[1] / published[0] == pytest.approx(measured, abs=0.006)
    assert steps[0] / steps[1] == pytest.approx(measured, abs=0.07)


def test_fp8_gains_no_more_than_amdahl_and_its_limit_is_where_the_curve_falls() -> None:
    scenario = load_scenario("70b-64xh100-train")
    notes = asked(scenario).notes
    assert notes[0].startswith(
        "fp8: products that take 61 % of the step are 1.76× as fast; alone they would bring 1.36×"
    )
    assert notes[1] == "low-precision weights +3.98 GiB, activations −1.41 GiB"
    assert fp8_limit(scenario, evaluate).endswith("below 5 % from 524\u202f288 on")
    for length, worth in ((262_144, True), (524_288, False)):
        longer = scenario.with_("training.sequence_length", length)
        fast = evaluate(longer.with_("training.precision", "fp8"))
        assert (evaluate(longer)["time.step_s"] / fast["time.step_s"] >= 1.05) is worth


def test_the_optimizer_keeps_its_bytes_under_fp8() -> None:
    # products in 8 bits leave master weights and moments as they are
    scenario = load_scenario("70b-64xh100-train")
    before, after = (evaluate(scenario.with_("training.precision", word)) for word in ("bf16", "fp8"))
    assert after["memory.optimizer_bytes"] == before["memory.optimizer_bytes"]
    assert after["compute.model_flops_per_step"] == before["compute.model_flops_per_step"]
    assert np.isclose(after["roofline.knee"], 2 * before["roofline.knee"], rtol=1e-3)


def test_drafts_gain_little_where_many_decode_together() -> None:
    # a batch of one reads all weights for a token: checking five costs hardly more
    alone = load_scenario("70b-int8-1xh100-step")
    busy = load_scenario("70b-bf16-8xa100-serve")
    roomy = alone.with_("cluster.accelerator.memory", 2 * alone.cluster.accelerator.memory)
    gains = [cells(asked(each), "drafts of 4 tokens")["faster"] for each in (roomy, busy)]
    assert gains == pytest.approx([2.08, 1.06], abs=0.05)
    # the draft model beside the weights leaves no room for a request
    short = cells(asked(alone), "drafts of 4 tokens")
    assert (short["faster"], short["most requests"]) == (None, 0)
    note = asked(busy).notes[0]
    assert note.startswith("drafts of 4: 3.36 tokens a cycle at 80 % accepted")
    end = evaluate(busy.with_("serving.speculative.draft_tokens", 4))["serving.speculative_crossover_batch"]
    assert note.endswith(f"nothing from {round(end)} on")
