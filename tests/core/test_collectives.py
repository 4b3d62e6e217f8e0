"""Collectives: bytes of the algorithms, published bandwidths and latencies, groups on servers, hiding points."""

from __future__ import annotations

import pytest

from tests.core.plans import plan
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
from triledger.core.training.hiding import hiding_point_gradients, hiding_point_sharded, tensor_parallel_share

GB = 1e9


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
