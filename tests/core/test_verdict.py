"""The plan in one sentence, and the headline numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.gui.reports import GIB, serving_report, training_report
from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.figures.by_name import figure
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
    # 79.2 usable and 12 short: the peak of 56.4 GiB with what is kept besides
    assert said.text == (
        "Does not fit: needs 91.2 of 79.2 GiB with driver and slack, 12.0 GiB too much on stage 0. "
        "Compute bound: the step takes 2.2× its physical bound."
    )
    assert said.spans[0][1], "what does not fit is emphasised"


def test_what_is_short_and_what_is_there_add_up_on_the_card() -> None:
    card = headline(too_large(), "Fullest GPU")
    assert (card.number, card.unit, card.details[0]) == ("56.4", "of 79.2 GiB", "+34.8 slack: 12.0 over")


def test_an_impossible_layout_is_said_first_and_alone() -> None:
    broken = Finding("illegal-layout", "error", "8 does not divide 71 attention heads (1 or 71 do)", "parallelism.tp")
    said = verdict(replace(training_report(), findings=(broken,)))
    assert said.severity == "bad"
    assert said.spans == (("Not possible: Tensor (TP): 8 does not divide 71 attention heads (1 or 71 do).", True),)


def late() -> Report:
    report = training_report(training__over_deadline=350 / 90)
    return replace(report, scenario=report.scenario.with_("training.deadline", 90 * 86400.0))


def test_a_missed_deadline_is_said_and_its_card_is_red() -> None:
    assert ("Too late: 350 days, the deadline is 90 days. ", True) in verdict(late()).spans
    card = headline(late(), "Training")
    assert (card.state, card.details[0]) == ("bad", "deadline 90 days")
    met = late().scenario.with_("training.deadline", 400 * 86400.0)
    in_time = replace(training_report(training__over_deadline=350 / 400), scenario=met)
    assert "late" not in verdict(in_time).text
    assert headline(in_time, "Training").state == "plain"


def test_a_pipeline_bound_plan_is_told_its_largest_wait() -> None:
    assert "Pipeline bound: " in verdict(training_report(time__bottleneck="pipeline")).text
    step = training_report()["time.step_s"]
    waiting = training_report(time__bottleneck="pipeline", time__bubble_s=0.14 * step)
    assert verdict(waiting).text.endswith("the pipeline's bubble costs 14 %.")
    uneven = training_report(time__bottleneck="pipeline", time__bubble_s=0.14 * step, time__uneven_s=0.3 * step)
    assert verdict(uneven).text.endswith("uneven stages cost 30 %.")


def test_a_saturated_plan_says_so_and_not_how_long_the_first_token_takes() -> None:
    said = verdict(serving_report(serving__saturated=True, serving__ttft_s=2.5))
    assert said.severity == "bad"
    assert ("Saturated: the queue grows without end. ", True) in said.spans
    assert "first token" not in said.text


def test_prompts_of_other_requests_are_a_loss_of_a_token() -> None:
    shared = verdict(serving_report(serving__tpot_s=0.0336))
    assert shared.text.endswith("4.3× its physical bound; prompts of other requests take 50 %.")


def test_a_tight_plan_is_a_warning() -> None:
    said = verdict(training_report(memory__verdict="tight", memory__headroom_bytes=GIB))
    assert said.severity == "warn"
    assert "tight: 1.00 GiB to spare" in said.text


def test_the_largest_loss_is_named_only_when_it_is_worth_it() -> None:
    quiet = replace(training_report(time__bubble_s=9.0), communication=())
    assert "the pipeline's bubble costs 14 %" in verdict(quiet).text
    assert "costs" not in verdict(replace(training_report(time__bubble_s=0.1), communication=())).text


def test_exposed_traffic_counts_by_group() -> None:
    report = training_report()
    halves = tuple(replace(report.communication[0], name=name, exposed_seconds=3.17) for name in ("there", "back"))
    assert "exposed tensor parallel traffic costs 10 %" in verdict(replace(report, communication=halves)).text


def test_serving_tells_its_room_and_the_targets_it_misses() -> None:
    said = verdict(serving_report())
    assert said.text == (
        "Fits with 7.90 GiB to spare; 32 of at most 327 requests. "
        "Memory bound: a token takes 16.8 ms, 2.1× its physical bound; exposed traffic takes 18 %."
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


def test_a_short_training_is_told_in_hours() -> None:
    ends = {"training__days_low": 0.0625, "training__days_high": 0.09, "training__bound_days": 0.03}
    days = headline(training_report(training__days=0.0733, whiteboard__days=0.07, **ends), "Training")
    assert (days.number, days.unit) == ("1.76", "hours")
    assert days.details == ("1.50–2.16 · bound 0.720", "whiteboard 1.68")


def test_a_whiteboard_without_an_mfu_of_its_own_says_whose_it_uses() -> None:
    report = training_report()
    assert headline(report, "Utilisation (MFU)").details[1] == "whiteboard uses this"
    stated = replace(report, scenario=report.scenario.with_("training.mfu", 0.5))
    assert headline(stated, "Utilisation (MFU)").details[1] == "whiteboard 50 %"


@pytest.mark.parametrize("name", list(catalogue().presets))
def test_lines_of_a_small_card_are_short(name: str) -> None:
    for each in headlines(evaluate(load_scenario(name))):
        assert all(len(line) <= 23 for line in each.details[:2]), each.details


def test_the_decode_step_stands_beside_the_time_per_token_that_other_prompts_lengthen() -> None:
    token = headline(serving_report(serving__tpot_s=0.0357, serving__decode_step_s=0.0212), "Time per token")
    assert token.details == ("bound 7.90 ms", "step 21.2 ms, MBU 47 %", "whiteboard 5.22 ms")


def test_a_time_has_its_band_and_floor_in_its_own_unit() -> None:
    ends = {"serving__tpot_low_s": 0.0151, "serving__tpot_high_s": 0.0201}
    assert headline(serving_report(**ends), "Time per token").details[0] == "15.1–20.1 · bound 7.90"
    rates = {"serving__output_tokens_per_s_low": 1600.0, "serving__output_tokens_per_s_high": 2100.0}
    assert headline(serving_report(**rates), "Throughput").details[1] == "1.60–2.10k"


def test_what_follows_from_the_step_has_its_band_too() -> None:
    shown = {each.label: each for each in headlines(evaluate(load_scenario("70b-64xh100-train")))}
    assert re.match(r"\d+–\d+ %", shown["Utilisation (MFU)"].details[0])
    assert re.match(r"[\d.]+–[\d.]+k · bound", shown["Throughput"].details[0])
    assert re.match(r"\$[\d.]+–[\d.]+M", shown["Cost"].details[0])


def test_requests_times_their_speed_are_the_throughput() -> None:
    # 1905 tokens a second at 16.8 ms a token are 32 requests
    assert headline(serving_report(), "Throughput").details[0] == "32.0 × 59.5 tok/s"


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
    requests = headline(serving_report(serving__held_requests=8.0), "Requests")
    assert (requests.number, requests.unit, requests.state) == ("32", "of 8 at most", "bad")
    assert requests.details[0] == "more than fit at once"


@pytest.mark.parametrize("report", [training_report(), serving_report()])
def test_a_number_that_does_not_apply_is_a_dash(report: Report) -> None:
    kept = {key: value for key, value in report.values.items() if key.startswith(("memory.", "kind"))}
    for each in headlines(replace(report, values=kept))[1:]:
        assert each.number in ("–", "32"), each.label


def test_losses_of_a_cycle_with_drafts_are_told_of_its_tokens() -> None:
    plan = load_scenario("70b-bf16-8xa100-serve").with_("serving.concurrency", 1)
    report = evaluate(plan.with_("serving.speculative.draft_tokens", 4))
    cycle = report["serving.tpot_s"] * report["serving.speculative_tokens_per_cycle"]
    assert report["communication.exposed_seconds"] / cycle == pytest.approx(0.135, abs=0.005)
    assert "exposed traffic takes 14 %" in verdict(report).text


def test_requests_longer_than_the_context_are_counted_at_their_own_length() -> None:
    plan = load_scenario("deepseek-v3-h200-serve")
    long = evaluate(plan.with_("serving.prompt_tokens", 32768))
    assert (long["serving.held_requests"], long["serving.max_concurrency"]) == (96, 776)
    assert verdict(long).text.startswith("Does not fit: needs ")
    assert "256 sequences of 33 280 tokens" in long.findings[0].message.replace("\u202f", " ")
    assert headline(long, "Requests").unit == "of 96 at most"
    assert "holds 96 such requests" in next(f.message for f in long.findings if f.code == "longer-than-context")
    short = evaluate(plan)
    assert short["serving.held_requests"] == short["serving.max_concurrency"]


def test_requests_that_run_at_their_own_length_are_told_where_longer_ones_would_not_fit() -> None:
    plan = load_scenario("70b-int4-1xh100-serve")
    both = evaluate(plan.with_("serving.concurrency", 32))
    assert (both["serving.held_requests"], both["serving.held_own_requests"]) == (23, 37)
    assert not both["memory.fits"]
    assert "At their own 2 560 tokens all 32 run." in verdict(both).text.replace("\u202f", " ")
    assert "tokens that these requests have, all run; rates are of these." in both.findings[0].message
    assert headline(both, "Requests").details[0] == "at own length all run"
    many = evaluate(plan.with_("serving.concurrency", 64))
    assert "all 64 run" not in verdict(many).text
    assert "there is room for 37 and others wait" in many.findings[0].message
    assert headline(many, "Requests").details[0] == "more than fit at once"
    assert "their own" not in verdict(evaluate(plan)).text


def test_a_plan_without_room_for_a_request_has_no_rates() -> None:
    report = evaluate(load_scenario("deepseek-v3-h200-serve").with_("serving.weight_format", "bf16"))
    for label in ("Time per token", "Time to first token", "Throughput", "Cost"):
        assert (headline(report, label).number, headline(report, label).details) == ("–", ("does not fit",))
    assert headline(report, "Requests").details[0] == "not one fits"
    assert verdict(report).text.endswith("Not one request fits, so there are no rates.")
    assert not any("target" in finding.code for finding in report.findings)


def test_the_load_chart_holds_as_many_requests_as_the_card_says() -> None:
    scenario = load_scenario("deepseek-v3-h200-serve").with_("serving.prompt_tokens", 32768)
    chart = figure("serving", scenario, evaluate(scenario))
    assert chart.title.endswith("the KV cache holds 96")
    assert "96 fill the KV cache" in [mark.label for mark in chart.marks]
