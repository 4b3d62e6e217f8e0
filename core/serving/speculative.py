"""Speculative decoding: a draft proposes tokens, one pass of the model checks them all and keeps the first right ones.

A pass with several tokens of each sequence reads the weights and each sequence's cache once, so it costs little more
than a decode step until its rows fill the matrix units.
Sources: Leviathan 2023 (arXiv 2211.17192, theorem 3.8), with a check that is not free; prediction heads: DeepSeek-V3,
arXiv 2412.19437.
"""

from __future__ import annotations

from ..numeric import Number, where
from ..terms import formula

_INDEPENDENT = "each token is accepted with the same probability, whatever came before"


@formula("γ + 1", "tokens")
def checked_tokens(drafts: Number) -> Number:
    """Tokens of a sequence in one pass: the drafts, and the one after them."""
    return drafts + 1


@formula("E", "tokens", "Leviathan 2023, arXiv 2211.17192", _INDEPENDENT)
def tokens_per_cycle(acceptance: Number, drafts: Number) -> Number:
    """Tokens that a cycle gives in the mean: the accepted drafts, and one of the model itself."""
    return where(
        acceptance < 1, (1 - acceptance ** (drafts + 1)) / where(acceptance < 1, 1 - acceptance, 1.0), drafts + 1
    )


@formula("v", "ratio")
def check_ratio(check: Number, step: Number) -> Number:
    """Time of the pass that checks drafts over that of a decode step."""
    return check / step


@formula("c", "ratio", "a prediction head is one layer and the output head", "its projection of two hidden vectors")
def head_cost(step: Number, head: Number, layers: Number) -> Number:
    """Time of one layer and the output head over that of a decode step."""
    return ((step - head) / layers + head) / step


@formula("E/(γ·c + v)", "factor", "Leviathan 2023, arXiv 2211.17192: there v = 1")
def speedup(tokens: Number, drafts: Number, cost: Number, check: Number) -> Number:
    """How many times faster tokens come than without drafts; below 1 they come slower."""
    return tokens / (drafts * cost + check)


@formula("t_step/S", "s", leaves_out="the prompt of a draft model")
def token_seconds(step: Number, speedup: Number) -> Number:
    """Time per token of a request, from a decode step without drafts."""
    return step / speedup


@formula("T_lower/E", "s")
def token_floor(bound: Number, tokens: Number) -> Number:
    """Floor of the time per token where a cycle gives several for the bytes of one step."""
    return bound / tokens


@formula("B_×", "sequences", "found between powers of two, on a straight line")
def crossover_batch(sequences: Number) -> Number:
    """Sequences that one engine decodes together from which drafts gain nothing."""
    return sequences
