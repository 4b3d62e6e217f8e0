"""The communication ledger: who sends how many bytes of what in a step, over which link, and what hides it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.plans import gpt, plan, seed_7b
from triledger.core import evaluate, load_scenario
from triledger.core.machine.collectives import bytes_sent
from triledger.core.report import Report, Traffic
from triledger.core.scenario import Scenario

GB = 1e9


def row(report: Report, name: str) -> Traffic:
    """The only row of the communication ledger whose name holds some words."""
    (found,) = [traffic for traffic in report.communication if name in traffic.name]
    return found


# ---------------------------------------------------------------- data parallel


@pytest.mark.parametrize(
    ("zero", "micro_batches", "passes"),
    [
        (0, 1, 2),
        (0, 4, 2),
        (1, 1, 2),
        (1, 4, 2),
        (2, 1, 2),  # arXiv 1910.02054, section 7: no more than data parallelism
        (2, 4, 5),  # reduced for every micro-batch: (m + 1)·M
        (3, 1, 3),  # 1.5 times
        (3, 4, 12),
    ],
)
def test_bytes_of_data_parallelism(zero: int, micro_batches: int, passes: int) -> None:
    report = evaluate(seed_7b(parallelism__zero=zero, training__global_batch=8 * micro_batches))
    buffer = 2 * report["model.parameters"]
    sent = sum(traffic.bytes_per_gpu for traffic in report.communication)
    assert sent == pytest.approx(passes * 7 / 8 * buffer, rel=1e-5)
    assert report["communication.bytes_per_gpu"] == pytest.approx(sent, rel=1e-12)


def test_32_bit_gradients_are_twice_the_bytes() -> None:
    half, full = (
        row(evaluate(seed_7b(parallelism__zero=1, training__gradient_precision=word)), "gradients")
        for word in ("bf16", "fp32")
    )
    assert full.bytes_per_gpu == 2 * half.bytes_per_gpu


def test_llama_2_7b_over_one_server() -> None:
    # 13.48 GB of 16-bit gradients: 23.584 GB sent by each of 8 ranks, 100.8 ms at 0.78 × 300 GB/s, latency aside
    traffic = row(evaluate(seed_7b(parallelism__zero=0)), "gradients")
    assert traffic.collective == "all-reduce"
    assert traffic.link == "scale-up"
    assert traffic.bytes_per_gpu == pytest.approx(23.584 * GB, abs=1e6)
    assert bytes_sent(2 * 6_738_415_616, 8, 2) / (0.78 * 300e9) == pytest.approx(0.1008, abs=5e-5)
    assert 0.1008 < traffic.seconds < 0.103
    assert traffic.hides_behind == "backward"
    assert 0 < traffic.exposed_seconds < traffic.seconds


@pytest.mark.parametrize(("zero", "passes"), [(2, 2), (3, 2 * 4 + 1)])
def test_gradients_kept_whole_are_reduced_once(zero: int, passes: int) -> None:
    # PyTorch FSDP with no_sync: 4 micro-batches gather the weights, the last one reduces (32-bit shards, bf16 traffic)
    report = evaluate(seed_7b(parallelism__zero=zero, training__global_batch=32, training__framework="torchtitan"))
    sent = report["communication.bytes_per_gpu"]
    assert sent == pytest.approx(passes * 7 / 8 * 2 * report["model.parameters"], rel=1e-5)
    assert row(report, "gradients").times_per_step == 1


def test_a_pipeline_reduces_once_a_step() -> None:
    # MegaScale (arXiv 2402.15627) runs ZeRO-2 in a pipeline at the speed of one reduction a step
    reductions = [
        row(evaluate(plan("llama-3-8b", cluster__gpus=8, parallelism__pp=4, parallelism__zero=zero)), "gradients")
        for zero in (1, 2)
    ]
    assert reductions[0].bytes_per_gpu == reductions[1].bytes_per_gpu
    assert reductions[1].times_per_step == 1


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_traffic_that_is_not_hidden_is_waited_for(zero: int) -> None:
    hidden, waited = (evaluate(seed_7b(parallelism__zero=zero, overlap__dp=word)) for word in (True, False))
    for traffic in waited.communication:
        assert traffic.exposed_seconds == pytest.approx(traffic.seconds)
        assert traffic.hides_behind == ""
    assert hidden["time.step_s"] < waited["time.step_s"]


def test_tied_and_untied_ends_are_reduced_once() -> None:
    for model in ("llama-3.2-1b", "llama-3-8b"):
        report = evaluate(plan(model, cluster__gpus=8, parallelism__zero=0))
        expected = bytes_sent(4 * report["model.parameters"], 8, 2)
        assert row(report, "gradients").bytes_per_gpu == pytest.approx(expected, rel=1e-4)


# ---------------------------------------------------------------- tensor parallel


def tensor_plan(**changes: Any) -> Scenario:
    """Llama-3-70B on one server of 8 with one micro-batch of 4096 tokens."""
    usual: dict[str, Any] = {
        "cluster__gpus": 8,
        "parallelism__tp": 8,
        "parallelism__zero": 1,
        "training__global_batch": 1,
    }
    return plan("llama-3-70b", **(usual | changes))


@pytest.mark.parametrize(
    ("sp", "recompute", "expected"),
    [
        # 16, 24 with full recomputation, 20 and 28 with sequence parallelism, times (t − 1)/t·T·h
        (False, "none", 469.8e6),
        (False, "full", 704.6e6),
        (True, "none", 587.2e6),
        (True, "full", 822.1e6),
    ],
)
def test_bytes_of_a_layer(sp: bool, recompute: str, expected: float) -> None:
    # arXiv 1909.08053, section 3; arXiv 2205.05198, section 4.2
    report = evaluate(tensor_plan(parallelism__sp=sp, training__recompute=recompute))
    layer = sum(row(report, f"tensor parallel, {name}").bytes_per_gpu for name in ("forward", "backward")) / 80
    assert layer == pytest.approx(expected, abs=1e5)


def test_bytes_of_a_micro_batch() -> None:
    report = evaluate(tensor_plan())
    layers = sum(row(report, f"tensor parallel, {name}").bytes_per_gpu for name in ("forward", "backward"))
    assert layers == pytest.approx(37.6 * GB, abs=0.05 * GB)
    ends = row(report, "embedding and head")
    assert ends.bytes_per_gpu == pytest.approx(2 * bytes_sent(2 * 4096 * 8192, 8, 2), rel=1e-12)


def test_tensor_parallel_bytes_grow_with_micro_batches_and_shrink_with_stages() -> None:
    def layers(report: Report) -> float:
        return row(report, "tensor parallel, forward").bytes_per_gpu

    one = layers(evaluate(tensor_plan()))
    assert layers(evaluate(tensor_plan(training__global_batch=4))) == pytest.approx(4 * one)
    assert layers(evaluate(tensor_plan(cluster__gpus=32, parallelism__pp=4))) == pytest.approx(one / 4)


def test_a_parallel_block_halves_the_traffic() -> None:
    side_by_side, stacked = (evaluate(tensor_plan().with_("model.parallel_block", word)) for word in (True, False))
    assert row(side_by_side, "forward").bytes_per_gpu == row(stacked, "forward").bytes_per_gpu / 2


# ---------------------------------------------------------------- pipeline and context


def test_bytes_of_a_pipeline() -> None:
    # arXiv 2104.04473, section 4.1: 2·T·h/t a boundary, forward and backward, v of each for a stage in the middle
    report = evaluate(
        plan(
            "llama-3-70b",
            cluster__gpus=32,
            parallelism__tp=4,
            parallelism__pp=4,
            parallelism__vpp=5,
            parallelism__schedule="interleaved",
            parallelism__zero=1,
            training__global_batch=16,
        )
    )
    boundary = 2 * 4096 * 8192 / 4
    assert row(report, "pipeline").bytes_per_gpu == 2 * 5 * 8 * boundary


def test_a_tied_embedding_is_summed_over_the_two_ends() -> None:
    spec = gpt(24, 2304, 24)
    report = evaluate(plan(spec, cluster__gpus=4, parallelism__pp=4, parallelism__zero=0))
    # 32-bit gradients of one matrix over two ranks: 2·(n − 1)/n·S
    assert row(report, "tied").bytes_per_gpu == 4 * 51200 * 2304
    untied = evaluate(plan("llama-3-8b", cluster__gpus=4, parallelism__pp=4))
    assert not [traffic for traffic in untied.communication if "tied" in traffic.name]


@pytest.mark.parametrize(("stages", "data", "link"), [(2, 4, "scale-up"), (4, 2, "scale-up"), (4, 4, "scale-out")])
def test_stages_of_one_server_do_not_use_the_network(stages: int, data: int, link: str) -> None:
    report = evaluate(plan(gpt(24, 2304, 24), cluster__gpus=stages * data, parallelism__pp=stages))
    assert row(report, "tied").link == link
    assert row(report, "pipeline").link == link


def context_plan(scheme: str, **changes: Any) -> Scenario:
    """Llama-3-70B, one sequence of 32 768 tokens over 4 context parallel groups of 8."""
    usual: dict[str, Any] = {
        "cluster__gpus": 32,
        "parallelism__tp": 8,
        "parallelism__cp": 4,
        "parallelism__zero": 1,
        "parallelism__context_scheme": scheme,
        "training__sequence_length": 32768,
        "training__global_batch": 1,
    }
    return plan("llama-3-70b", "h100-sxm-80gb", "ib-ndr-400", **(usual | changes))


@pytest.mark.parametrize("scheme", ["ring", "all-gather"])
def test_bytes_of_context_parallelism(scheme: str) -> None:
    # one KV head a rank, n_kv = 256: 12.6 MB a layer forward and 25.2 MB backward (K, V, dK, dV)
    report = evaluate(context_plan(scheme))
    assert row(report, "context").bytes_per_gpu / 80 == pytest.approx(12.6e6 + 25.2e6, abs=1e5)
    # full recomputation sends keys and values forward once more
    again = evaluate(context_plan(scheme, training__recompute="full"))
    assert row(again, "context").bytes_per_gpu / 80 == pytest.approx(2 * 12.6e6 + 25.2e6, abs=1e5)


def test_ulysses_exchanges_q_k_v_and_output() -> None:
    # arXiv 2309.14509: four all-to-alls each way; one KV head a rank is repeated for the 4 that exchange it
    report = evaluate(context_plan("ulysses"))
    tokens, queries, keys = 32768 / 4, 8 * 128, 4 * 128
    forward = 3 / 4 * 2 * tokens * (2 * queries + 2 * keys)
    assert row(report, "context").bytes_per_gpu / 80 == pytest.approx(2 * forward, rel=1e-12)


def test_ring_hides_behind_attention_and_all_gather_does_not() -> None:
    ring, gather = (row(evaluate(context_plan(s)), "context") for s in ("ring", "all-gather"))
    assert gather.exposed_seconds == gather.seconds
    assert ring.exposed_seconds < gather.exposed_seconds


# ---------------------------------------------------------------- links


def test_a_group_over_servers_leaves_each_on_all_rails() -> None:
    # 16 ranks in 2 servers: the ring of each of 8 local ranks passes its own adapter, 1/8 of what a rank sends
    report = evaluate(plan("llama-2-7b", cluster__gpus=16, parallelism__zero=1))
    assert report["communication.adapter_bytes_per_gpu"] == pytest.approx(report["communication.bytes_per_gpu"] / 8)
    # so 200 Gb/s adapters carry 38 GB in 0.19 s, and the bound of the step is its mathematics
    flops = report["compute.model_flops_per_step"] / (16 * 312e12)
    assert report["time.bound_s"] == pytest.approx(flops, rel=1e-12)


def test_copies_made_where_a_token_arrives_stay_inside_the_node() -> None:
    # 8 experts a token on 8 nodes of 8, at most 4 of them: 8·7/8 copies are spread inside, 4·7/8 cross the network
    report = evaluate(load_scenario("deepseek-v3-2048xh800-train"))
    sent = {traffic.name: traffic.bytes_per_gpu for traffic in report.communication}
    exchanged = sent["expert parallel dispatch"] + sent["expert parallel combine"]
    reduced = sent["data parallel gradients"] + sent["data parallel updated weights"]
    inside = exchanged * 2 / 3 + reduced * 7 / 8
    assert report["communication.scale_up_bytes_per_gpu"] == pytest.approx(inside)
    crossing = report["communication.bytes_per_gpu"] - inside
    assert report["communication.adapter_bytes_per_gpu"] == pytest.approx(crossing)


def test_a_rack_domain_keeps_groups_on_the_scale_up_link() -> None:
    # 72 GPUs of a GB200 rack share NVLink; a server of 8 does not reach that far
    rack = plan("llama-3-70b", "gb200-nvl72", cluster__gpus=64, cluster__gpus_per_node=72, parallelism__tp=8)
    servers = plan("llama-3-70b", "b200-sxm-180gb", cluster__gpus=64, parallelism__tp=8)
    assert row(evaluate(rack), "gradients").link == "scale-up"
    assert row(evaluate(servers), "gradients").link == "scale-out"
    assert row(evaluate(servers), "tensor parallel, forward").link == "scale-up"
