"""The plan in one sentence, and the headline numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gui.reports import GIB, serving_report, training_report
from triledger.core.headlines import Headline, headlines
from triledger.core.report import Edit, Finding, Report
from triledger.core.verdict import helpful_edits, verdict


def edit(name: str) -> Edit:
    return Edit(name, ((f"parallelism.{name}", 2),))


def finding(severity: str, *names: str) -> Finding:
    return Finding(severity, severity, "", edits=tuple(edit(name) for name in names))


def too_large() -> Report:
    return training_report(memory__fits=False, memory__verdict="does-not-fit", memory__headroom_bytes=-12 * GIB)


def headline(report: Report, label: str) -> Headline:
    return next(each for each in headlines(report) if each.label == label)


def test_a_plan_that_fits_is_told_its_bottleneck_distance_and_largest_loss() -> None:
    said = verdict(training_report())
    assert said.severity == "good"
    assert said.text == (
        "Fits with 22.8 GiB to spare. Compute bound: the step takes 2.2× its physical bound; "
        "exposed tensor parallel traffic costs 7.9 %."
    )
    assert [text for text, emphasised in said.spans if emphasised] == ["Compute bound"]


def test_a_plan_that_does_not_fit_is_told_by_how_much_and_where() -> None:
    said = verdict(too_large())
    assert said.severity == "bad"
    assert said.text.startswith("Does not fit: 12.0 GiB too much on stage 0, start of backward.")
    assert said.spans[0][1], "what does not fit is emphasised"


def test_a_tight_plan_is_a_warning() -> None:
    said = verdict(training_report(memory__verdict="tight", memory__headroom_bytes=GIB))
    assert said.severity == "warn"
    assert "tight: 1.00 GiB to spare" in said.text


def test_the_largest_loss_is_named_only_when_it_is_worth_it() -> None:
    quiet = replace(training_report(time__bubble_s=9.0), communication=())
    assert "the pipeline bubble costs 14 %" in verdict(quiet).text
    assert "costs" not in verdict(replace(training_report(time__bubble_s=0.1), communication=())).text


def test_exposed_traffic_counts_by_group() -> None:
    report = training_report()
    halves = tuple(replace(report.communication[0], name=name, exposed_seconds=3.17) for name in ("there", "back"))
    assert "exposed tensor parallel traffic costs 10 %" in verdict(replace(report, communication=halves)).text


def test_serving_tells_its_room_and_the_targets_it_misses() -> None:
    said = verdict(serving_report())
    assert said.text == (
        "Fits with 7.90 GiB to spare, room for 327 requests. "
        "Memory bound: a token takes 16.8 ms, 2.1× its physical bound."
    )
    slow = verdict(serving_report(serving__tpot_s=0.06, serving__ttft_s=2.5))
    assert slow.severity == "warn"
    assert "a token takes 60.0 ms, 7.6× its physical bound and over the target of 50.0 ms; " in slow.text
    assert "the first token takes 2.50 s, over the target of 500 ms" in slow.text


def test_edits_come_by_severity_and_each_once() -> None:
    findings = (finding("hint", "pp", "tp"), finding("warning", "tp"), finding("warning", "cp", "ep"))
    report = replace(training_report(), findings=findings)
    assert [each.label for each in helpful_edits(report, 3)] == ["tp", "cp", "ep"]
    assert verdict(report).severity == "warn"


def test_while_nothing_fits_only_what_makes_it_fit_is_offered() -> None:
    report = replace(too_large(), findings=(finding("hint", "pp"), finding("error", "zero")))
    assert [each.label for each in verdict(report).edits] == ["zero"]


def test_days_stand_with_their_band_floor_and_whiteboard_figure() -> None:
    days = headline(training_report(), "Training")
    assert (days.number, days.unit) == ("350", "days")
    assert days.details == ("325–381 · bound 158", "whiteboard 298")


def test_memory_is_counted_in_gib_whatever_its_size() -> None:
    small = headline(training_report(memory__total_bytes=0.5 * GIB), "Fullest GPU")
    assert (small.number, small.unit) == ("0.500", "of 79.2 GiB")


@pytest.mark.parametrize(("verdict_word", "state"), [("fits", "plain"), ("tight", "warn"), ("does-not-fit", "bad")])
def test_memory_stands_out_when_it_should(verdict_word: str, state: str) -> None:
    assert headline(training_report(memory__verdict=verdict_word), "Fullest GPU").state == state


def test_latencies_stand_beside_their_targets() -> None:
    token = headline(serving_report(), "Time per token")
    assert (token.number, token.unit, token.state) == ("16.8", "of 50.0 ms", "plain")
    first = headline(serving_report(serving__ttft_s=1.2), "Time to first token")
    assert (first.number, first.unit, first.state) == ("1.20", "s of 500 ms", "bad")


def test_more_requests_than_the_cache_holds_stand_out() -> None:
    requests = headline(serving_report(serving__max_concurrency=8.0), "Requests")
    assert (requests.number, requests.unit, requests.state) == ("32", "of 8", "bad")


@pytest.mark.parametrize("report", [training_report(), serving_report()])
def test_a_number_that_does_not_apply_is_a_dash(report: Report) -> None:
    kept = {key: value for key, value in report.values.items() if key.startswith(("memory.", "kind"))}
    for each in headlines(replace(report, values=kept))[1:]:
        assert each.number in ("–", "32"), each.label
