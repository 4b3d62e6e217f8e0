"""What the cache of an engine holds: tokens in whole blocks, and sequences of some length.

Source: paging of the cache, Kwon 2023 (PagedAttention, arXiv 2309.06180).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..model.kinds.mixer import present
from ..numeric import Number, floor, largest, maximum
from ..sums import add_bytes
from ..terms import formula
from .serving_cache import SequenceCache, paged_tokens
from .serving_sharing import Sharing, bytes_beside, own_tokens, shared_bytes


@formula("KV_all", "B")
def cache_bytes(sequences: Number, each: Number) -> Number:
    """Cache of the sequences of an engine on one device, each at full length."""
    return sequences * each


@formula("pool", "tokens", "PagedAttention, arXiv 2309.06180")
def pool_tokens(budget: Number, per_token: Number, block: Number) -> Number:
    """Tokens that the cache of one engine holds, in whole blocks."""
    return floor(maximum(budget, 0.0) / (block * per_token)) * block


@formula("pool", "tokens", "in sequences of full length: windows and states do not grow with each token")
def uneven_pool_tokens(budget: Number, sequence: Number, tokens: Number, block: Number) -> Number:
    """Tokens that the cache of one engine holds where they do not all take the same."""
    return floor(maximum(budget, 0.0) / sequence * tokens / block) * block


@formula("B", "sequences")
def held_tokens(pool: Number, tokens: Number) -> Number:
    """Sequences of some tokens that the cache of one engine holds."""
    return pool / tokens


@formula("B", "sequences")
def held_bytes(budget: Number, each: Number) -> Number:
    """The same where tokens do not all take the same."""
    return maximum(budget, 0.0) / each


@formula("pool", "tokens")
def tokens_of(sequences: Number, tokens: Number) -> Number:
    """Tokens of some sequences."""
    return sequences * tokens


@formula("B_max", "sequences")
def full_sequences(pool: Number, tokens: Number) -> Number:
    """Sequences of full length that the cache of one engine is sure to hold."""
    return floor(pool / tokens)


class Sized(NamedTuple):
    """A sequence with places for drafts: tokens in whole blocks, bytes on the fullest device, and those it keeps alone.

    Windows keep as many of its own tokens as they can, and states are its own.
    """

    tokens: Number
    bytes: Number
    own: Number


@dataclass(frozen=True)
class CachePool:
    """The cache of one engine: what its stages keep of a sequence, and the bytes of a device that it may take."""

    #: The caches of the stages, of which the fullest counts.
    caches: tuple[SequenceCache, ...]
    sharing: Sharing
    block: Number
    budget: Number
    #: Tokens of the longest sequence that is planned.
    context: Number

    @cached_property
    def even(self) -> bool:
        """Whether every token takes the same."""
        return all(cache.even for cache in self.caches)

    @cached_property
    def token(self) -> Number:
        """Bytes of a token on the fullest device."""
        return largest(cache.token() for cache in self.caches)

    @cached_property
    def planned(self) -> Sized:
        """The longest sequence that is planned."""
        return self.sequence(self.context)

    @cached_property
    def tokens(self) -> Number:
        """Tokens that it holds."""
        if self.even:
            return pool_tokens(self.budget, self.sharing.with_draft(self.token), self.block)
        return uneven_pool_tokens(self.budget, self.planned.bytes, self.planned.tokens, self.block)

    def sequence(self, tokens: Number) -> Sized:
        """A sequence of some tokens."""
        length = self.sharing.length(tokens)
        whole = self._bytes(length)
        own = self._bytes(own_tokens(length, self.sharing.shared)) if present(self.sharing.shared) else whole
        return Sized(paged_tokens(length, self.block), whole, own)

    def _bytes(self, length: Number) -> Number:
        return self.sharing.with_draft(largest(cache.sequence(length) for cache in self.caches))

    @cached_property
    def _shared(self) -> Number:
        """Bytes of what sequences share."""
        return shared_bytes(self.sharing.shared, self._bytes(self.sharing.shared))

    def all_of(self, sequences: Number, each: Sized) -> Number:
        """Bytes of some equal sequences on the fullest device, what they share counted once."""
        own = cache_bytes(sequences, each.own)
        return add_bytes(own, self._shared) if present(self.sharing.shared) else own

    def _beside(self) -> Number:
        """Bytes beside the shared ones."""
        return bytes_beside(self.budget, self._shared) if present(self.sharing.shared) else self.budget

    def full(self, each: Sized) -> Number:
        """Sequences that it is sure to hold."""
        if self.even:
            return full_sequences(*self.sharing.beside(self.tokens, each.tokens))
        return full_sequences(maximum(self._beside(), 0.0), each.own)

    def held(self, tokens: Number) -> Number:
        """Sequences of some tokens that it holds, parts of one included."""
        if self.even:
            return held_tokens(*self.sharing.tokens(self.tokens, tokens))
        return held_bytes(self._beside(), self.sequence(tokens).own)

    def room(self, tokens: Number) -> Number:
        """Tokens that it holds in sequences of so many, beside those that they share."""
        pool, own = self.sharing.beside(self.tokens, tokens)
        return pool if self.even else tokens_of(self.held(tokens), own)
