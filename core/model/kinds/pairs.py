"""How many pairs of query and key are attended, by the shape of the mask.

`tokens` new tokens of one sequence stand behind `context` cached ones; a query attends to its own position too.
"""

from __future__ import annotations

from ...numeric import Number, floor, maximum, minimum, where
from ...terms import formula


@formula("P", "pairs")
def causal_pairs(tokens: Number, context: Number) -> Number:
    """Pairs where every query attends to all that stands before it."""
    return tokens * context + tokens * (tokens + 1) / 2


@formula("j", "tokens")
def growing_tokens(tokens: Number, context: Number, window: Number) -> Number:
    """New tokens whose window is not full yet."""
    return minimum(tokens, maximum(0, window - context))


@formula("P", "pairs", "sliding window, arXiv 2004.05150")
def window_pairs(tokens: Number, context: Number, window: Number, growing: Number) -> Number:
    """Pairs where a query attends to the last `window` positions; for `growing` of the queries there are fewer."""
    return growing * context + growing * (growing + 1) / 2 + (tokens - growing) * window


@formula("P(s)", "pairs")
def chunk_pairs(positions: Number, chunk: Number) -> Number:
    """Pairs of the first positions of a sequence whose chunks attend only to themselves."""
    return floor(positions / chunk) * chunk * (chunk + 1) / 2 + positions % chunk * (positions % chunk + 1) / 2


@formula("s", "tokens")
def last_position(tokens: Number, context: Number) -> Number:
    """Positions of a sequence up to and with the new tokens."""
    return context + tokens


@formula("P", "pairs")
def later_pairs(all_pairs: Number, before: Number) -> Number:
    """Pairs of the new tokens alone."""
    return all_pairs - before


@formula("P", "pairs")
def cross_pairs(tokens: Number, image_tokens: Number) -> Number:
    """Pairs of text tokens with all image tokens."""
    return tokens * image_tokens


@formula("min(s, 2·w)", "tokens", "counting: of 2·c chunks, two a rank, each needs the window before it")
def passed_in_windows(sequence: Number, window: Number) -> Number:
    """Tokens over which context parallel ranks pass on keys that others reach through a window."""
    return minimum(sequence, 2 * window)


@formula("min(s, 2·w)", "tokens", "counting: nothing where the chunks of attention lie within those of the ranks")
def passed_in_chunks(sequence: Number, chunk: Number, context_parallel: Number) -> Number:
    """The same where attention stays in chunks of its own."""
    return where(sequence / (2 * context_parallel) % chunk == 0, 0.0, minimum(sequence, 2 * chunk))


def windowed(tokens: Number, context: Number, window: Number) -> Number:
    """Pairs of new tokens behind a context under a sliding window."""
    return window_pairs(tokens, context, window, growing_tokens(tokens, context, window))


def chunked(tokens: Number, context: Number, chunk: Number) -> Number:
    """Pairs of new tokens behind a context with attention inside chunks."""
    end = last_position(tokens, context)
    return later_pairs(chunk_pairs(end, chunk), chunk_pairs(context, chunk))
