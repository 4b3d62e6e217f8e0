"""Which layouts are possible, and what is said of those that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triledger.core.catalogue import catalogue
from triledger.core.legality import allowed, legal, refusal, violations
from triledger.core.scenario import Scenario
from triledger.core.scenario_file import load_scenario, set_field


def plan(**changes: str) -> Scenario:
    """70B on 512 GPUs: tp 8, pp 4, dp 16, five chunks a stage; with fields changed (two underscores for a dot)."""
    scenario = load_scenario("70b-512xh100-2t-train")
    for path, text in changes.items():
        scenario = set_field(scenario, path.replace("__", "."), text)
    return scenario


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        (
            {"parallelism__tp": "6"},
            "parallelism.tp",
            "6 does not divide 64 attention heads (1, 2, 4, 8, 16, 32 or 64 do)",
        ),
        (
            {"model__heads": "60", "model__kv_heads": "6", "model__head_dim": "128", "parallelism__tp": "4"},
            "parallelism.tp",
            "4 neither divides 6 KV heads nor is a multiple of them (1, 2, 3, 6, 12, 30 or 60 do)",
        ),
        (
            {"model__kv_heads": "5"},
            "model.kv_heads",
            "5 does not divide 64 attention heads (1, 2, 4, 8, 16, 32 or 64 do)",
        ),
        (
            {"model__heads": "72"},
            "model.heads",
            "72 does not divide hidden size 8192 (another number of heads, or model.head_dim, would do)",
        ),
        ({"parallelism__pp": "128"}, "parallelism.pp", "128 stages are more than 80 layers (80 or less does)"),
        (
            {"cluster__gpus": "500"},
            "cluster.gpus",
            "500 is not a multiple of tp·pp·cp = 8·4·1 = 32 (480 or 512 do)",
        ),
        (
            {"parallelism__pp": "1"},
            "parallelism.vpp",
            "5 chunks a stage need a pipeline (vpp 1, or pp of 2 or more, does)",
        ),
        (
            {"parallelism__schedule": "gpipe"},
            "parallelism.vpp",
            "gpipe has its own chunks (vpp 1, or schedule interleaved, does)",
        ),
        (
            {"parallelism__vpp": "21"},
            "parallelism.vpp",
            "4 stages of 21 chunks are more than 80 layers (vpp of 20 or less does)",
        ),
        (
            {"parallelism__schedule": "dualpipe", "parallelism__vpp": "1", "parallelism__pp": "1"},
            "parallelism.schedule",
            "dualpipe needs an even number of stages, not 1 (an even pp does)",
        ),
        (
            {
                "parallelism__schedule": "zero-bubble-v",
                "parallelism__vpp": "1",
                "parallelism__pp": "4",
                "model__layers": "7",
            },
            "parallelism.schedule",
            "zero-bubble-v has two chunks a stage: 8 are more than 7 layers (pp of 3 or less does)",
        ),
        (
            {"parallelism__stage_balance": "20, 20, 20"},
            "parallelism.stage_balance",
            "3 numbers with sum 60 do not share 80 layers among 4 stages (4 numbers with sum 80 would)",
        ),
        (
            {"training__global_batch": "1000"},
            "training.global_batch",
            "1000 is not a multiple of micro_batch·dp = 1·16 = 16 (992 or 1008 do)",
        ),
        (
            {"training__global_batch": "8"},
            "training.global_batch",
            "8 is not a multiple of micro_batch·dp = 1·16 = 16 (16 does)",
        ),
        (
            {"training__global_batch": "1040"},
            "parallelism.vpp",
            "interleaving needs pp = 4 to divide 65 micro-batches (global batches of 1024 or 1088 do)",
        ),
        (
            {"training__sequence_length": "4098", "parallelism__cp": "4"},
            "parallelism.cp",
            "4 does not divide 4098 tokens of a sequence (1, 2, 3, 6, 683, 1366, 2049 or 4098 do)",
        ),
        (
            {"parallelism__context_scheme": "ulysses", "parallelism__cp": "16"},
            "parallelism.cp",
            "ulysses splits heads: cp·tp = 128 does not divide 64 attention heads (1, 2, 4, 8, 16, 32 or 64 do)",
        ),
        (
            {"parallelism__hsdp_replicas": "5"},
            "parallelism.hsdp_replicas",
            "5 does not divide 16 data parallel ranks (1, 2, 4, 8 or 16 do)",
        ),
    ],
)
def test_what_is_wrong_and_what_would_do(changes: dict[str, str], field: str, message: str) -> None:
    broken = violations(plan(**changes))
    assert (broken[0].field, broken[0].message) == (field, message)


def test_a_plan_with_too_few_gpus_for_a_replica_is_refused_once() -> None:
    assert [v.field for v in violations(plan(cluster__gpus="16"))] == ["cluster.gpus"]


@pytest.mark.parametrize("tp", ["1", "2", "4", "8", "16", "32"])
def test_kv_heads_may_be_split_or_kept_on_several_ranks(tp: str) -> None:
    assert violations(plan(parallelism__tp=tp)) == []


def test_serving_asks_nothing_of_the_training_batch_or_of_context_parallelism() -> None:
    scenario = set_field(load_scenario("70b-bf16-8xa100-serve"), "training.global_batch", "7")
    scenario = set_field(scenario, "parallelism.cp", "3")
    assert violations(scenario) == []


def test_nodes_need_not_be_full() -> None:
    assert violations(plan(cluster__gpus_per_node="7")) == []


def test_allowed_values_are_those_that_break_no_rule() -> None:
    assert allowed(plan(), "parallelism.tp") == (1, 2, 4, 8, 16, 32, 64)
    assert allowed(plan(), "parallelism.pp") == (2, 4, 8, 16), "five chunks a stage, and 80 layers"
    assert allowed(plan(parallelism__vpp="1"), "parallelism.pp")[:3] == (1, 2, 4)
    assert allowed(plan(), "parallelism.vpp") == tuple(range(1, 21))
    assert allowed(plan(), "training.micro_batch") == (1, 2, 4, 8, 16)
    assert allowed(plan(), "training.global_batch")[:2] == (64, 128)
    assert allowed(plan(), "cluster.gpus")[:4] == (32, 64, 128, 256)


def test_a_refusal_is_the_reason_and_empty_where_there_is_none() -> None:
    assert refusal(plan(), "parallelism.tp", 6).startswith("6 does not divide 64 attention heads")
    assert refusal(plan(), "parallelism.tp", 4) == ""


DEGREES = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 71])


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[DEGREES] * 5, st.integers(1, 256), st.integers(1, 600)), min_size=1, max_size=20),
    st.sampled_from(["llama-3-70b", "gpt2", "falcon-7b", "yi-34b"]),
    st.sampled_from(["1f1b", "interleaved", "gpipe", "dualpipe"]),
    st.sampled_from(["ring", "ulysses"]),
    st.sampled_from(["training", "serving"]),
)
def test_arrays_of_layouts_get_the_answers_of_their_layouts(
    layouts: list[tuple[int, ...]], model: str, schedule: str, scheme: str, kind: str
) -> None:
    paths = [f"parallelism.{name}" for name in ("tp", "pp", "cp", "vpp", "hsdp_replicas")]
    paths += ["training.global_batch", "cluster.gpus"]
    start = replace(plan(), model=catalogue().models[model], kind=kind)
    start = start.with_("parallelism.schedule", schedule).with_("parallelism.context_scheme", scheme)
    many = start
    for path, values in zip(paths, np.array(layouts).T, strict=True):
        many = many.with_(path, values)
    singly = []
    for layout in layouts:
        one = start
        for path, value in zip(paths, layout, strict=True):
            one = one.with_(path, value)
        singly.append(legal(one))
        assert singly[-1] == (violations(one) == [])
    assert legal(many).tolist() == singly
