"""How the experts of a model are laid over the ranks of an engine, and whose tokens share them."""

from __future__ import annotations

from typing import NamedTuple

from ..numeric import Number, is_array, minimum
from ..scenario import Scenario
from ..terms import formula


@formula("t·D", "ranks")
def experts_over(tensor_parallel: Number, attention_dp: Number) -> Number:
    """Ranks of one stage that hold the experts together."""
    return tensor_parallel * attention_dp


@formula("t_e", "ranks")
def expert_split(ranks: Number, expert_parallel: Number) -> Number:
    """Ranks that split each expert."""
    return ranks / expert_parallel


@formula("D", "ranks")
def ranks_with_rows(attention_dp: Number, concurrency: Number) -> Number:
    """Attention data parallel ranks that have a request."""
    return minimum(attention_dp, concurrency)


class ExpertRanks(NamedTuple):
    """Ranks that hold the experts of a stage: groups of them, each of which splits its experts over some ranks."""

    ranks: Number
    groups: Number
    split: Number
    #: Ranks with tokens of their own.
    sharing: Number


def expert_ranks(scenario: Scenario) -> ExpertRanks:
    """The experts' layout of a serving scenario."""
    parallel, attention = scenario.parallelism, scenario.serving.attention_dp
    ranks, sharing = parallel.tp, 1.0
    if is_array(attention) or attention > 1:
        ranks = experts_over(parallel.tp, attention)
        sharing = ranks_with_rows(attention, scenario.serving.concurrency)
    split = expert_split(ranks, parallel.ep) if is_array(parallel.ep) or parallel.ep > 1 else ranks
    return ExpertRanks(ranks, parallel.ep, split, sharing)
