"""What a plan is told: each finding appears where it should, is silent where it should be, and its edit helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.plans import plan, seed_7b, with_all
from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.report import Edit, Finding, Report
from triledger.core.scenario import Scenario
from triledger.core.units import format_quantity


def found(scenario: Scenario, code: str) -> Finding | None:
    """The finding of a code, or None."""
    matches = [finding for finding in evaluate(scenario).findings if finding.code == code]
    assert len(matches) <= 1
    return matches[0] if matches else None


def the(scenario: Scenario, code: str) -> Finding:
    finding = found(scenario, code)
    assert finding is not None, code
    return finding


def after(scenario: Scenario, edit: Edit) -> Report:
    return evaluate(with_all(scenario, dict(edit.changes)))


def seventy(gpus: int = 64, **changes: Any) -> Scenario:
    """Llama-3-70B on H100 with TP 8, which fits without findings."""
    usual: dict[str, Any] = {
        "cluster__gpus": gpus,
        "parallelism__tp": 8,
        "parallelism__sp": True,
        "parallelism__zero": 1,
        "training__recompute": "full",
        "training__global_batch": 1024,
        "training__gradient_precision": "bf16",
    }
    return plan("llama-3-70b", "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))


def test_a_good_plan_has_no_findings() -> None:
    report = evaluate(seventy())
    assert report["memory.verdict"] == "fits"
    assert report.findings == ()


def test_errors_come_first() -> None:
    scenario = seventy(parallelism__tp=16, training__recompute="none", training__micro_batch=16)
    severities = [finding.severity for finding in evaluate(scenario).findings]
    assert severities[0] == "error"
    assert severities == sorted(severities, key=("error", "warning", "hint").index)


# ---------------------------------------------------------------- a slip in a measured number


def measured(seconds: float) -> Scenario:
    """64 A100, 256 sequences of 4096 tokens, the label 70e9: a step that somebody timed."""
    return plan(
        "llama-3-70b",
        cluster__gpus=64,
        parallelism__tp=8,
        parallelism__pp=4,
        training__global_batch=256,
        whiteboard__parameters=70e9,
        measured__step_time=seconds,
    )


def test_a_step_faster_than_the_peak_is_refused() -> None:
    # 6·70e9·1 048 576 = 4.404e17 FLOP; 64·312e12·4.2 s = 8.387e16: 525 %, not 52.5 %
    values = evaluate(measured(4.2))
    assert values["measured.mfu_rule"] == pytest.approx(5.25, abs=0.005)
    finding = the(measured(4.2), "measured-mfu-over-100")
    assert finding.severity == "error"
    assert finding.field == "measured.step_time"
    assert "MFU 525 %" in finding.message
    assert "at least 22.06 s" in finding.message
    assert "42 s would be 52.5 %" in finding.message
    (edit,) = finding.edits
    helped = after(measured(4.2), edit)
    assert helped.scenario.measured.step_time == pytest.approx(42)
    assert helped["measured.mfu_rule"] == pytest.approx(0.525, abs=5e-4)
    assert "measured-mfu-over-100" not in {finding.code for finding in helped.findings}


def test_the_exact_time_of_the_whiteboard_mfu() -> None:
    values = evaluate(measured(41.99))
    assert values["measured.mfu_rule"] == pytest.approx(0.5252, abs=1e-4)
    # the exact causal count is 3 % more than 6N of the label
    assert values["measured.mfu"] > values["measured.mfu_rule"]


@pytest.mark.parametrize(("seconds", "guess"), [(0.7, "42 s would be"), (0.042, "42 s would be"), (1e-5, "")])
def test_the_guess_takes_the_smallest_slip_that_is_plausible(seconds: float, guess: str) -> None:
    finding = the(measured(seconds), "measured-mfu-over-100")
    assert guess in finding.message
    assert bool(finding.edits) == bool(guess)


def test_the_least_possible_time_is_that_of_the_convention_that_counts_fewest_flops() -> None:
    # with a label twice the model's size the exact count is the smaller one
    scenario = measured(4.2).with_("whiteboard.parameters", 140e9)
    values = evaluate(scenario)
    assert values["measured.mfu"] < values["measured.mfu_rule"]
    least = 4.2 * values["measured.mfu"]
    assert f"at least {least:.4g} s" in the(scenario, "measured-mfu-over-100").message


def test_a_measurement_in_the_wrong_unit_is_warned_about() -> None:
    finding = the(measured(42_000), "measured-mfu-low")
    assert finding.severity == "warning"
    assert found(measured(42), "measured-mfu-low") is None


# ---------------------------------------------------------------- memory


def test_a_tight_plan_is_a_warning_and_not_an_error() -> None:
    base = seventy()
    needed = evaluate(base)["memory.needed_bytes"]
    tight = base.with_("cluster.accelerator.memory", needed / 0.95 / 0.989)
    finding = the(tight, "memory-tight")
    assert finding.severity == "warning"
    assert found(tight, "does-not-fit") is None
    assert found(base, "memory-tight") is None


def test_the_seed_plan_of_four_sequences() -> None:
    finding = the(seed_7b(training__micro_batch=4), "does-not-fit")
    labels = [edit.label for edit in finding.edits]
    assert labels[:2] == ["Selective recompute", "Micro-batch 2"]  # the cheapest in time first
    assert "needs 96.7 of 79.1 GiB with driver and slack at the loss, 17.6 GiB too much" in finding.message
    assert found(seed_7b(training__micro_batch=1), "does-not-fit") is None


def short_of_memory() -> dict[str, Scenario]:
    """Plans that do not fit, by what it takes."""
    eight = load_scenario("7b-8xa100-train")
    return {
        "one change": eight.with_("training.micro_batch", 4),
        "several changes and more GPUs": eight.with_("model", catalogue().models["llama-3-70b"]),
        "a pipeline": load_scenario("70b-64xh100-train").with_("training.micro_batch", 16),
        "one GPU": eight.with_("cluster.gpus", 1),
        "long sequences": load_scenario("70b-64xh100-train").with_("training.sequence_length", 131072),
    }


@pytest.mark.parametrize("what", list(short_of_memory()))
def test_what_is_offered_makes_the_plan_fit(what: str) -> None:
    scenario = short_of_memory()[what]
    finding = the(scenario, "does-not-fit")
    assert finding.edits
    for edit in finding.edits:
        helped = after(scenario, edit)
        assert helped["memory.fits"], edit.label
        assert "illegal-layout" not in {other.code for other in helped.findings}


def test_changes_are_combined_where_one_alone_is_not_enough() -> None:
    (edit,) = the(short_of_memory()["several changes and more GPUs"], "does-not-fit").edits
    assert edit.label.endswith("16 GPUs")
    assert len(edit.changes) > 2


def test_a_change_that_only_helps_says_how_much() -> None:
    # one sequence of two million tokens: no layout of this batch fits
    scenario = seed_7b(training__global_batch=8, training__sequence_length=2**21)
    finding = the(scenario, "does-not-fit")
    assert finding.edits
    for edit in finding.edits:
        helped = after(scenario, edit)
        assert not helped["memory.fits"]
        saved = evaluate(scenario)["memory.needed_bytes"] - helped["memory.needed_bytes"]
        assert edit.label.endswith(f": −{format_quantity(saved, 'bytes')}")


def test_one_gpu_is_not_offered_to_shard_over_others() -> None:
    labels = " ".join(edit.label for edit in the(short_of_memory()["one GPU"], "does-not-fit").edits)
    assert "ZeRO" not in labels
    assert "TP" not in labels


def test_a_tight_plan_is_offered_what_leaves_room() -> None:
    scenario = seed_7b(training__micro_batch=4, training__recompute="selective")
    finding = the(scenario, "memory-tight")
    assert finding.edits
    for edit in finding.edits:
        assert after(scenario, edit)["memory.verdict"] == "fits"


# ---------------------------------------------------------------- the deadline


def test_a_missed_deadline_is_an_error_and_its_edits_meet_it() -> None:
    scenario = load_scenario("70b-128xa100-2t-train")
    assert scenario.training.deadline == 90 * 86400
    finding = the(scenario, "deadline-missed")
    assert finding.severity == "error"
    assert "5.2 times the deadline of 90 days" in finding.message
    gpus, tokens = finding.edits
    assert (gpus.label, tokens.label) == ("1\u202f024 GPUs", "380B tokens")
    for edit in finding.edits:
        helped = after(scenario, edit)
        assert helped["training.over_deadline"] <= 1
        assert helped["memory.fits"]
        assert "illegal-layout" not in {other.code for other in helped.findings}
    assert found(scenario.with_("cluster.gpus", 1024), "deadline-missed") is None
    # half as many GPUs, the next legal number below, are too few
    assert evaluate(scenario.with_("cluster.gpus", 512))["training.over_deadline"] > 1


def test_a_deadline_below_the_physical_bound_says_so() -> None:
    scenario = seed_7b(training__deadline=86400.0)
    assert "physical bound of these GPUs alone" in the(scenario, "deadline-missed").message


# ---------------------------------------------------------------- communication


def test_tensor_parallel_groups_beyond_a_node() -> None:
    finding = the(seventy(parallelism__tp=16), "tp-leaves-node")
    (edit,) = finding.edits
    helped = after(seventy(parallelism__tp=16), edit)
    assert helped.scenario.parallelism.tp == 8
    assert helped["time.step_s"] < evaluate(seventy(parallelism__tp=16))["time.step_s"]
    assert found(seventy(), "tp-leaves-node") is None


def test_a_rack_takes_larger_tensor_parallel_groups() -> None:
    rack = plan("llama-3-70b", "gb200-nvl72", cluster__gpus=64, cluster__gpus_per_node=72, parallelism__tp=16)
    assert found(rack, "tp-leaves-node") is None


def slow_network(zero: int, rate: float = 3e9, **changes: Any) -> Scenario:
    """Llama-3-8B on 64 H100 with one sequence of 4096 tokens a micro-batch and a network of some bytes/s."""
    usual: dict[str, Any] = {
        "cluster__gpus": 64,
        "cluster__gpus_per_node": 1,
        "parallelism__zero": zero,
        "training__micro_batch": 1,
        "training__global_batch": 64,
        "training__recompute": "full",
        "training__gradient_precision": "bf16",
    }
    return plan("llama-3-8b", "h100-sxm-80gb", **(usual | changes)).with_("cluster.network.bandwidth", rate)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_too_few_tokens_to_hide_the_data_parallel_traffic(zero: int) -> None:
    finding = the(slow_network(zero), "below-hiding-point")
    assert finding.severity == "warning"
    assert found(slow_network(zero, 400e9), "below-hiding-point") is None
    exposed = evaluate(slow_network(zero))["time.exposed_communication_s"]
    assert exposed > 2 * evaluate(slow_network(zero, 400e9))["time.exposed_communication_s"]


def test_zero_2_reduces_for_every_micro_batch() -> None:
    scenario = slow_network(2, 9e9, training__global_batch=1024)
    finding = the(scenario, "below-hiding-point")
    (edit,) = finding.edits
    helped = after(scenario, edit)
    assert helped.scenario.parallelism.zero == 1
    assert helped["time.step_s"] < evaluate(scenario)["time.step_s"]


@pytest.mark.parametrize(("degree", "value"), [("tp", 4), ("pp", 4), ("cp", 4)])
def test_the_hiding_point_of_gradients_does_not_move_with_the_layout(degree: str, value: int) -> None:
    # a rank of a layout has fewer parameters to reduce and as much less to compute: what counts is tokens a replica
    base = slow_network(2, cluster__gpus=64 * value, training__global_batch=64)
    base = base.with_(f"parallelism.{degree}", value).with_(
        "training.sequence_length", 4096 * (value if degree == "cp" else 1)
    )
    if degree == "cp":
        base = base.with_("cluster.gpus_per_node", 1)
    point = evaluate(base)["hiding.gradients_tokens_per_gpu"]
    rate = base.cluster.network.bandwidth
    # the point falls as the network gets faster: just below and just above it
    near = rate * point / 4096
    assert found(base.with_("cluster.network.bandwidth", 0.9 * near), "below-hiding-point") is not None
    assert found(base.with_("cluster.network.bandwidth", 1.1 * near), "below-hiding-point") is None


# ---------------------------------------------------------------- pipeline


def piped(**changes: Any) -> Scenario:
    return seventy(parallelism__pp=8, training__global_batch=8, **changes)


def test_a_badly_filled_pipeline() -> None:
    finding = the(piped(), "few-micro-batches")
    labels = [edit.label for edit in finding.edits]
    assert labels == ["Interleave ×2", "Double the global batch"]
    before = evaluate(piped())
    assert "8 micro-batches fill 8 stages badly" in finding.message
    for edit in finding.edits:
        helped = after(piped(), edit)
        assert helped["time.bubble_s"] / helped["time.step_s"] < before["time.bubble_s"] / before["time.step_s"]
        assert "illegal-layout" not in {other.code for other in helped.findings}
    assert found(piped().with_("training.global_batch", 1024), "few-micro-batches") is None


def test_no_pipeline_has_no_bubble_to_warn_of() -> None:
    assert found(seventy(training__global_batch=8), "few-micro-batches") is None


# ---------------------------------------------------------------- the rest


def test_more_ranks_than_key_value_heads() -> None:
    spec = replace(catalogue().models["llama-3-70b"], kv_heads=4)
    finding = the(seventy().with_("model", spec), "kv-heads-replicated")
    assert finding.severity == "hint"
    assert "4 KV heads on 8" in finding.message
    assert found(seventy(), "kv-heads-replicated") is None


def test_gpus_that_do_not_fill_servers() -> None:
    base = seventy(gpus=72, parallelism__tp=4, training__global_batch=18)
    assert found(base, "partial-node") is None
    finding = the(base.with_("cluster.gpus", 76).with_("training.global_batch", 19), "partial-node")
    assert "80 would" in finding.message


def test_fp8_on_a_part_without_fp8_units() -> None:
    finding = the(seed_7b(training__precision="fp8"), "no-fp8")
    (edit,) = finding.edits
    assert after(seed_7b(training__precision="fp8"), edit).scenario.training.precision == "bf16"
    assert found(seventy(training__precision="fp8"), "no-fp8") is None


def test_failures_that_eat_the_time() -> None:
    finding = the(seventy(gpus=65536, training__global_batch=8192), "low-effective-ratio")
    assert finding.severity == "warning"
    assert found(seventy(), "low-effective-ratio") is None


def test_a_layout_that_does_not_divide_is_a_result_and_not_an_exception() -> None:
    report = evaluate(seventy(training__global_batch=1021))
    finding = next(f for f in report.findings if f.code == "illegal-layout")
    assert finding.severity == "error"
    assert finding.field == "training.global_batch"
    assert [edit.label for edit in finding.edits] == ["Global batch 1\u202f016", "Global batch 1\u202f024"]
    assert report["time.step_s"] > 0


def test_no_edit_makes_or_keeps_an_illegal_plan() -> None:
    falcon = load_scenario("70b-64xh100-train").with_("model", catalogue().models["falcon-7b"])
    findings = evaluate(falcon).findings
    assert findings[0].code == "illegal-layout"
    assert [edit.label for edit in findings[0].edits] == ["Tensor (TP) 1"]
    edits = [edit for finding in findings for edit in finding.edits]
    assert all("illegal-layout" not in {f.code for f in after(falcon, edit).findings} for edit in edits)


def test_every_edit_can_be_made() -> None:
    scenarios = (
        seventy(parallelism__tp=16),
        seed_7b(training__micro_batch=4),
        piped(),
        slow_network(2),
        measured(4.2),
    )
    for scenario in scenarios:
        for finding in evaluate(scenario).findings:
            assert finding.message.endswith(".")
            for edit in finding.edits:
                assert after(scenario, edit).scenario != scenario, edit.label


def test_routed_experts_that_do_not_fit_are_dealt_over_more_ranks() -> None:
    usual: dict[str, Any] = {"training__gradient_precision": "bf16", "training__recompute": "full"}
    scenario = plan("qwen3-30b-a3b", "h100-sxm-80gb", parallelism__zero=1, parallelism__ep=2, **usual)
    wider = the(scenario, "does-not-fit").edits[0]
    assert wider.changes == (("parallelism.ep", 8),)
    assert after(scenario, wider)["memory.fits"]


def test_many_small_experts_are_launched_one_by_one() -> None:
    scenario = plan("qwen3-30b-a3b", "b200-sxm-180gb", parallelism__zero=1, parallelism__ep=8)
    finding = the(scenario, "expert-launches")
    share = evaluate(scenario)["time.expert_launches_s"] / evaluate(scenario)["time.step_s"]
    assert format_quantity(share, "ratio", 2) in finding.message
    for edit in finding.edits:
        assert after(scenario, edit)["time.step_s"] < 0.85 * evaluate(scenario)["time.step_s"]
    assert found(scenario.with_("moe.capture", "full"), "expert-launches") is None
    assert found(seventy(), "expert-launches") is None


# ---------------------------------------------------------------- routing limit


def deepseek(**changes: Any) -> Scenario:
    """DeepSeek-V3 as published: experts over 64 ranks of 8 nodes, at most 4 nodes a token."""
    scenario = load_scenario("deepseek-v3-2048xh800-train")
    return with_all(scenario, {name.replace("__", "."): value for name, value in changes.items()})


def test_a_routing_limit_that_bars_nothing_is_told() -> None:
    assert found(deepseek(), "routing-limit-idle") is None
    assert found(deepseek(parallelism__ep=16, moe__route_groups=None), "routing-limit-idle") is None
    hint = the(deepseek(parallelism__ep=16), "routing-limit-idle")
    assert (hint.severity, hint.field) == ("hint", "moe.route_groups")
    assert hint.message == "A routing limit of 4 bars nothing: the 16 ranks of the experts span 2 scale-up domains."
    one = the(deepseek(parallelism__ep=8), "routing-limit-idle").message
    assert one.endswith("the 8 ranks of the experts span 1 scale-up domain.")


def test_a_routing_limit_that_bars_nothing_changes_nothing() -> None:
    limited, free = (evaluate(deepseek(parallelism__ep=16, moe__route_groups=limit)) for limit in (2, None))
    assert limited["time.step_s"] == free["time.step_s"]


def test_a_routing_limit_needs_kernels_that_send_once_a_domain() -> None:
    hint = the(deepseek(parallelism__expert_dispatch="all-to-all"), "routing-limit-idle")
    assert hint.message.startswith("A routing limit spares all-to-all dispatch nothing")
    assert found(deepseek(parallelism__expert_dispatch=hint.edits[0].changes[0][1]), "routing-limit-idle") is None


def test_a_model_beyond_the_gpus_there_are_is_offered_the_fewest_nodes_that_hold_it() -> None:
    alone = {"parallelism.tp": 1, "parallelism.pp": 1, "parallelism.sp": False, "cluster.gpus": 1}
    scenario = with_all(load_scenario("70b-64xh100-train"), alone)
    (edit,) = next(each for each in evaluate(scenario).findings if each.code == "does-not-fit").edits
    after = edit.applied(scenario)
    assert evaluate(after)["memory.fits"]
    half = {"parallelism.pp": after.parallelism.pp / 2, "cluster.gpus": after.cluster.gpus / 2}
    assert not evaluate(with_all(after, half))["memory.fits"]
