"""Routed experts in a training block: bytes and seconds of their exchange, launches, grouped products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.plans import kind_time, plan
from triledger.core.scenario import Scenario
from triledger.core.training.block import BlockTime, ExpertTraffic


def deepseek(accelerator: str = "h100-sxm-80gb", ranks: int = 64, **changes: Any) -> Scenario:
    """DeepSeek-V3 with its 256 experts over some ranks, one sequence of 4096 tokens a rank."""
    usual: dict[str, Any] = {
        "cluster__gpus": ranks,
        "parallelism__ep": ranks,
        "training__global_batch": ranks,
        "training__sequence_length": 4096,
    }
    return plan("deepseek-v3", accelerator, "ib-ndr-400", **(usual | changes))


def routed(scenario: Scenario) -> tuple[BlockTime, ExpertTraffic]:
    """The block with routed experts and what it exchanges in a pass."""
    block = kind_time(scenario, -1)
    assert block.experts
    return block, block.experts


# ---------------------------------------------------------------- exchange of tokens


def test_bytes_of_dispatch_and_combine_of_deepseek_v3() -> None:
    # 8 copies of 4096 tokens of 7168 numbers, 8 bits there and 16 back, 63 of 64 leave: 693.6 MB
    scenario = deepseek(moe__dispatch_precision="fp8")
    _, exchanged = routed(scenario)
    assert exchanged.dispatch.sent + exchanged.combine.sent == pytest.approx(693.6e6, abs=5e4)
    assert exchanged.combine.sent == 2 * exchanged.dispatch.sent


def test_a_rack_domain_and_nodes_with_one_copy_each() -> None:
    # 0.56 of 900 GB/s inside a rack: 0.93 ms; four nodes, of which a token reaches 3.60: 3.53 ms and four hops
    rack = deepseek("gb200-nvl72", parallelism__expert_dispatch="rack-domain", cluster__gpus_per_node=72)
    assert routed(rack)[1].dispatch.seconds == pytest.approx(0.93e-3, abs=5e-6)
    nodes = deepseek(ranks=32, parallelism__expert_dispatch="deepep")
    assert routed(nodes)[1].dispatch.seconds == pytest.approx(3.59e-3, abs=5e-6)
    across = routed(nodes)[1].dispatch
    assert across.outside * across.sent == pytest.approx(3.60 * 3 / 4 * 4096 * 7168 * 2, rel=1e-3)


def test_a_library_sends_every_copy_across() -> None:
    library, once = (
        routed(deepseek(parallelism__expert_dispatch=word))[1].dispatch for word in ("all-to-all", "deepep")
    )
    assert library.outside * library.sent == pytest.approx(8 * 4096 * 7168 * 2 * (1 - 8 / 64))
    assert library.seconds > 1.3 * once.seconds


def test_a_routing_limit_saves_bytes_across_nodes() -> None:
    # arXiv 2412.19437, section 2.1.2: at most four nodes a token
    free, limited = (
        routed(deepseek(parallelism__expert_dispatch="deepep", moe__route_groups=limit))[1].dispatch
        for limit in (None, 4)
    )
    assert limited.outside * limited.sent == pytest.approx(4 * 7 / 8 * 4096 * 7168 * 2)
    assert limited.seconds < 0.8 * free.seconds


def test_published_rates_of_kernels_that_send_a_token_once() -> None:
    # DeepEP's table, H800 with 160 GB/s NVLink and 50 GB/s adapters: 43 to 58 GB/s across nodes of 8
    exchanged = routed(deepseek(parallelism__expert_dispatch="deepep", ranks=16))[1].dispatch
    assert 43e9 < exchanged.sent * exchanged.outside / exchanged.seconds < 58e9
    for ranks in (32, 64):
        wide = routed(deepseek("h800-sxm-80gb", ranks, parallelism__expert_dispatch="deepep"))[1].dispatch
        assert 43e9 < wide.sent * wide.outside / wide.seconds < 58e9
    # and 153 to 158 GB/s of NVLink inside one node, of which 2 % is missed
    near = routed(deepseek("h800-sxm-80gb", 8, parallelism__expert_dispatch="deepep"))[1].dispatch
    assert near.outside == 0
    assert near.sent / near.seconds == pytest.approx(153e9, rel=0.025)


def test_gathering_all_tokens_pays_where_a_token_meets_every_rank() -> None:
    few, many = (
        {word: routed(deepseek(ranks=ranks, parallelism__expert_dispatch=word))[1].dispatch.sent for word in WORDS}
        for ranks in (8, 64)
    )
    assert few["all-gather"] == few["all-to-all"]  # 8 experts a token, 8 ranks
    assert many["all-gather"] > 7 * many["all-to-all"]


WORDS = ("all-to-all", "all-gather")


def test_one_rank_with_all_experts_exchanges_nothing() -> None:
    block, exchanged = routed(deepseek(parallelism__ep=1, cluster__gpus=1, training__global_batch=1))
    assert (exchanged.dispatch.sent, exchanged.dispatch.seconds, block.forward.expert) == (0, 0, 0)


def test_exchange_hides_behind_another_micro_batch() -> None:
    open_, hidden = (routed(deepseek(moe__overlap=flag))[0].forward for flag in (False, True))
    assert open_.expert == open_.expert_traffic == hidden.expert_traffic
    window = 0.8 * (hidden.seconds - hidden.expert)
    assert hidden.expert == pytest.approx(max(0.0, open_.expert - window) + 0.25 * min(open_.expert, window))


def test_split_experts_gather_the_rows_of_their_group() -> None:
    # rows of two ranks come together: 2·R·h bytes gathered and as many summed back, half of them from the other rank
    _, exchanged = routed(deepseek(parallelism__ep=32, parallelism__etp=2))
    assert exchanged.split.sent == 2 * 0.5 * 2 * (8 * 4096 * 2) * 7168


# ---------------------------------------------------------------- compute of the experts


def test_launches_of_expert_kernels_rule_small_layers() -> None:
    # Qwen3-30B-A3B with 16 experts a B200, 16 kernels each at 18 µs: 4.6 ms of a layer of 8 ms; measured 9.2 ms
    scenario = plan(
        "qwen3-30b-a3b",
        "b200-sxm-180gb",
        "ib-ndr-400",
        cluster__gpus=8,
        parallelism__ep=8,
        training__precision="mxfp8",
        training__global_batch=8,
    )
    block, _ = routed(scenario)
    assert block.forward.launches + block.backward.launches == pytest.approx(4.6e-3, abs=1e-5)
    assert block.forward_seconds + block.backward_seconds == pytest.approx(8.1e-3, rel=0.05)
    captured, _ = routed(scenario.with_("moe.capture", "full"))
    assert captured.forward.launches == pytest.approx(block.forward.launches / 18)


def test_one_expert_a_rank_is_one_product() -> None:
    block, _ = routed(deepseek(ranks=256))
    up = next(product for product in block.products if product.name == "experts")
    assert up.rows == 8 * 4096  # as many as the tokens of one rank send, spread evenly
    assert block.forward.launches == 0


def test_few_rows_an_expert_are_bound_by_its_weights() -> None:
    block, _ = routed(deepseek(ranks=8, training__sequence_length=64))
    up = next(product for product in block.products if product.name == "experts")
    assert up.forward.moved > 2 * 32 * 7168 * 2 * 2048
    assert up.forward.moved / (0.8 * 3.35e12) > 3 * up.forward.math


def test_imbalance_and_capacity_make_more_rows() -> None:
    def rows(**changes: Any) -> float:
        block, exchanged = routed(deepseek(**changes))
        (first, _) = (product.rows for product in block.products if product.name == "experts")
        return first * exchanged.dispatch.sent

    assert rows(moe__imbalance=1.5) == pytest.approx(1.5**2 * rows())
    assert rows(moe__capacity=1.25) == pytest.approx(1.25**2 * rows())


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize("word", ["all-to-all", "all-gather", "deepep", "rack-domain"])
def test_arrays_hold_what_numbers_hold(word: str) -> None:
    experts, split, limit = np.array([1, 8, 64, 32, 256]), np.array([1, 1, 1, 2, 1]), np.array([4, 4, 2, 8, 32])
    changes = {"parallelism__expert_dispatch": word, "moe__overlap": True}
    together, _ = routed(
        deepseek(ranks=256, **changes, parallelism__ep=experts, parallelism__etp=split, moe__route_groups=limit)
    )
    for index, (ep, etp, groups) in enumerate(zip(experts, split, limit, strict=True)):
        degrees = {"parallelism__ep": int(ep), "parallelism__etp": int(etp), "moe__route_groups": int(groups)}
        alone, _ = routed(deepseek(ranks=256, **changes, **degrees))
        assert together.forward_seconds[index] == pytest.approx(alone.forward_seconds, rel=1e-12)
        assert together.backward_seconds[index] == pytest.approx(alone.backward_seconds, rel=1e-12)
