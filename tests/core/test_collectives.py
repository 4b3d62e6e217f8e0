"""Bytes and seconds of communication: factors of the algorithms, published bandwidths and latencies, ledger rows."""

from __future__ import annotations

import pytest

from tests.core.plans import gpt, plan, seed_7b
from triledger.core import evaluate
from triledger.core.ledgers.compute import linear_flops
from triledger.core.machine.collectives import (
    Fabric,
    Group,
    bytes_sent,
    collective,
    collective_seconds,
    group_bandwidth,
    ring_latency,
)
from triledger.core.report import Report, Traffic
from triledger.core.scenario import Scenario
from triledger.core.training.hiding import hiding_point_gradients, hiding_point_sharded, tensor_parallel_share

GB = 1e9


def row(report: Report, name: str) -> Traffic:
    """The only row of the communication ledger whose name holds some words."""
    (found,) = [traffic for traffic in report.communication if name in traffic.name]
    return found


def fabric(domain: int, link: float, network: float, alpha_net: float = 14e-6) -> Fabric:
    """Links at 0.78 and 0.80 of their rates with the latencies of the NCCL tuning constants."""
    return Fabric(domain, 0.78 * link, 0.80 * network, 8e-6, 1e-6, 3.4e-6, alpha_net, 5e-6)


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize(("passes", "expected"), [(1, 0.75), (2, 1.5)])
def test_bytes_of_a_ring(passes: int, expected: float) -> None:
    # Thakur 2005: each rank sends (n − 1)/n of the buffer a pass
    assert bytes_sent(1.0, 4, passes) == expected


def test_seventy_billion_parameters_over_64_ranks() -> None:
    # 70e9 16-bit gradients: 275.6 GB for an all-reduce, 413.4 GB for ZeRO-3's two gathers and one scatter
    buffer = 140 * GB
    assert bytes_sent(buffer, 64, 2) == pytest.approx(275.6 * GB, abs=0.05 * GB)
    assert bytes_sent(buffer, 64, 3) == pytest.approx(413.4 * GB, abs=0.05 * GB)
    assert bytes_sent(buffer, 64, 3) / bytes_sent(buffer, 64, 2) == pytest.approx(1.5)


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


def test_tied_and_untied_ends_are_reduced_once() -> None:
    for model in ("llama-3.2-1b", "llama-3-8b"):
        report = evaluate(plan(model, cluster__gpus=8, parallelism__zero=0))
        expected = bytes_sent(4 * report["model.parameters"], 8, 2)
        assert row(report, "gradients").bytes_per_gpu == pytest.approx(expected, rel=1e-4)


# ---------------------------------------------------------------- tensor parallel


def tensor_plan(**changes: object) -> Scenario:
    """Llama-3-70B on one server of 8 with one micro-batch of 4096 tokens."""
    usual = {"cluster__gpus": 8, "parallelism__tp": 8, "parallelism__zero": 1, "training__global_batch": 1}
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
    spec = tensor_plan().model
    once = evaluate(tensor_plan().with_("model.parallel_block", True))
    assert row(once, "forward").bytes_per_gpu == pytest.approx(row(evaluate(tensor_plan()), "forward").bytes_per_gpu / 2)
    assert not spec.parallel_block


@pytest.mark.parametrize(
    ("matrices", "sustained", "bandwidth", "share"),
    [
        (12 * 8192**2, 250e12, 234e9, 0.30),  # A100, GPT block
        (12 * 8192**2, 650e12, 351e9, 0.53),  # H100
        (12.75 * 8192**2, 250e12, 234e9, 0.29),  # Llama-3-70B
        (12.75 * 8192**2, 650e12, 351e9, 0.50),
    ],
)
def test_share_of_tensor_parallel_traffic(matrices: float, sustained: float, bandwidth: float, share: float) -> None:
    # derived: two all-reduces of 2·T·h over the products of one block, forward, 8 ranks
    tokens = 4096
    sent = 2 * bytes_sent(2 * tokens * 8192, 8, 2)
    products = linear_flops(matrices) * tokens / 8 / sustained
    assert sent / bandwidth / products == pytest.approx(share, abs=0.006)
    closed = tensor_parallel_share(8, 8192, sustained, matrices, bandwidth, 2)
    assert closed == pytest.approx(sent / bandwidth / products, rel=1e-12)


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
    assert not [t for t in evaluate(plan("llama-3-8b", cluster__gpus=4, parallelism__pp=4)).communication if "tied" in t.name]


def context_plan(scheme: str, **changes: object) -> Scenario:
    """Llama-3-70B, one sequence of 32 768 tokens over 4 context parallel groups of 8."""
    usual = {
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


# ---------------------------------------------------------------- time


def test_a_group_of_one_sends_nothing_and_takes_no_time() -> None:
    links = fabric(8, 300e9, 25e9)
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
        nothing = collective(kind, 1e9, Group.of(1, 1, links), links)
        assert (nothing.sent, nothing.seconds) == (0, 0)
    assert evaluate(plan("llama-3-8b", cluster__gpus=1)).communication == ()


@pytest.mark.parametrize(
    ("link", "published"),
    [(300e9, 235.0), (450e9, 365.6), (900e9, 682.2)],
    ids=["8×A100", "8×H200", "8×B200"],
)
def test_bus_bandwidth_of_one_server(link: float, published: float) -> None:
    # NCCL tests, all-reduce of 16 GiB on one ring ("Machine Learning Engineering", network benchmarks)
    links = fabric(8, link, 50e9)
    found = collective("all-reduce", 16 * 2**30, Group.of(8, 1, links), links)
    assert found.sent / found.seconds / 1e9 == pytest.approx(published, rel=0.05)


@pytest.mark.parametrize(
    ("size", "published", "tolerance"), [(2**34, 381.8, 0.18), (2**30, 362.0, 0.18), (2**28, 229.0, 0.2)]
)
def test_bus_bandwidth_of_four_servers(size: int, published: float, tolerance: float) -> None:
    # same source: 4 × 8 B200 on EFA with 50 GB/s rails; rails reach 0.73–0.95, the model takes 0.80
    links = fabric(8, 900e9, 50e9, alpha_net=30e-6)
    found = collective("all-reduce", size, Group.of(32, 1, links), links)
    assert found.sent / found.seconds / 1e9 == pytest.approx(published, rel=tolerance)


def test_latency_of_32_ranks_in_4_servers() -> None:
    # 2·(28·3.4 + 4·30) µs; the same source's 1 and 32 MiB points imply 376 and 540 µs
    latency = ring_latency(32, 4, 2, 1e-6, 3.4e-6, 30e-6)
    assert latency == pytest.approx(430e-6, abs=1e-6)
    assert 376e-6 < latency < 540e-6


def test_small_all_reduces_of_one_server() -> None:
    # measured 15–25 µs on 8 GPUs
    links = fabric(8, 300e9, 25e9)
    assert 15e-6 < collective("all-reduce", 8192, Group.of(8, 1, links), links).seconds < 25e-6


def test_small_messages_take_a_tree_across_nodes() -> None:
    links = fabric(8, 450e9, 50e9)
    group = Group.of(512, 1, links)
    small, large = (collective("all-reduce", size, group, links) for size in (1e6, 1e8))
    ring = ring_latency(512, 64, 2, 1e-6, 3.4e-6, 14e-6)
    assert small.seconds < ring < large.seconds


def test_every_local_rank_drives_its_own_rail() -> None:
    assert group_bandwidth(8, 4, 234e9, 20e9) == 160e9
    assert group_bandwidth(1, 4, 234e9, 20e9) == 20e9
    assert group_bandwidth(8, 4, 234e9, 50e9) == 234e9
    assert group_bandwidth(8, 1, 234e9, 20e9) == 234e9


def test_each_piece_pays_the_latency() -> None:
    one, ten = (collective_seconds(1e9, 1e11, 8, pieces, 1e-4, 1e-5) for pieces in (1, 10))
    assert ten - one == pytest.approx(9 * 1.1e-4)


@pytest.mark.parametrize(
    ("ranks", "spacing", "inside", "nodes"),
    [(8, 1, 8, 1), (16, 1, 8, 2), (4, 8, 1, 4), (4, 2, 4, 1), (8, 2, 4, 2), (2, 16, 1, 2), (1, 8, 1, 1)],
)
def test_groups_on_servers_of_eight(ranks: int, spacing: int, inside: int, nodes: int) -> None:
    assert Group.of(ranks, spacing, fabric(8, 300e9, 25e9)) == Group(ranks, inside, nodes)


def test_a_rack_domain_keeps_groups_on_the_scale_up_link() -> None:
    # 72 GPUs of a GB200 rack share NVLink; a server of 8 does not reach that far
    rack = plan("llama-3-70b", "gb200-nvl72", cluster__gpus=64, cluster__gpus_per_node=72, parallelism__tp=8)
    servers = plan("llama-3-70b", "b200-sxm-180gb", cluster__gpus=64, parallelism__tp=8)
    assert row(evaluate(rack), "gradients").link == "scale-up"
    assert row(evaluate(servers), "gradients").link == "scale-out"
    assert row(evaluate(servers), "tensor parallel, forward").link == "scale-up"


# ---------------------------------------------------------------- hiding points


@pytest.mark.parametrize(
    ("peak", "fraction", "bandwidth", "tokens"),
    [
        (312e12, 0.5, 160e9, 975),  # A100, eight rails at 0.8 of 25 GB/s
        (312e12, 0.5, 20e9, 7800),  # one rail
        (989e12, 0.4, 320e9 / 2, 1236 * 2),
        (989e12, 0.4, 320e9, 1236),  # H100, eight rails of 50 GB/s
        (989e12, 0.4, 40e9, 9890),
    ],
)
def test_tokens_above_which_gradients_hide(peak: float, fraction: float, bandwidth: float, tokens: float) -> None:
    # derived: independent of the model's size; many ranks
    found = hiding_point_gradients(2.0, peak * fraction, bandwidth, 1e9)
    assert found == pytest.approx(tokens, rel=1e-3)
    assert hiding_point_sharded(2.0, 2.0, peak * fraction, bandwidth, 4) == pytest.approx(tokens, rel=1e-3)
    # 32-bit gradients make the backward pass of ZeRO-3 wait for 1.5 times as much
    assert hiding_point_sharded(2.0, 4.0, peak * fraction, bandwidth, 4) == pytest.approx(1.5 * tokens, rel=1e-3)
