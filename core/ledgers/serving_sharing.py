"""Cache that is kept once for all sequences, and memory that drafts take beside the model.

Sources: blocks of common prefixes, Kwon 2023 (PagedAttention, arXiv 2309.06180); drafts, Leviathan 2023 (arXiv
2211.17192).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.kinds.mixer import present
from ..numeric import Number, floor, maximum, minimum, where
from ..scenario import Scenario
from ..serving.settings import Settings
from ..terms import formula

_DRAFT = "a draft's weights and cache are taken as the share that its time is of the model's"


@formula("n_shared", "tokens", "whole blocks, and one token of a prompt at least is its own")
def shared_tokens(prefix: Number, prompt: Number, block: Number) -> Number:
    """Tokens at the start of all prompts that are computed and kept once."""
    return floor(minimum(prefix, maximum(0.0, prompt - 1)) / block) * block


@formula("n − n_shared", "tokens")
def own_tokens(tokens: Number, shared: Number) -> Number:
    """Tokens of a sequence that it keeps for itself."""
    return maximum(1.0, tokens - shared)


@formula("n + γ + 1", "tokens")
def with_slots(tokens: Number, slots: Number) -> Number:
    """Tokens of a sequence with places for those that a draft proposes."""
    return tokens + slots


@formula("pool − n_shared", "tokens")
def pool_beside(pool: Number, shared: Number) -> Number:
    """Tokens of cache that are left beside the shared ones."""
    return maximum(0.0, pool - shared)


@formula("KV − KV_shared", "B")
def bytes_beside(total: Number, shared: Number) -> Number:
    """Bytes of cache beside the shared ones."""
    return maximum(0.0, total - shared)


@formula("KV_shared", "B")
def shared_bytes(shared: Number, sequence: Number) -> Number:
    """Cache of the shared tokens, kept as that of a sequence of them; none where none are shared."""
    return where(shared > 0, sequence, 0.0)


@formula("γ + 1", "tokens")
def draft_slots(drafts: Number) -> Number:
    """Places of cache that a sequence keeps for the tokens of a cycle; none without drafts."""
    return where(drafts > 0, drafts + 1, 0.0)


@formula("w_draft", "share", _DRAFT)
def draft_share(drafts: Number, share: Number) -> Number:
    """Memory of a draft over that of the model; none without drafts."""
    return where(drafts > 0, share, 0.0)


@formula("1/L", "share", leaves_out="the projection of two hidden vectors; the output head is shared")
def head_share(layers: Number) -> Number:
    """Weights and cache of a prediction head of one layer over those of the model."""
    return 1 / layers


@formula("x·(1 + w_draft)", "B")
def with_draft(size: Number, share: Number) -> Number:
    """Bytes of the model with those of its draft."""
    return size * (1 + share)


@dataclass(frozen=True)
class Sharing:
    """What sequences have in common, and what a draft takes; 0 and None where there is nothing of it."""

    shared: Number
    slots: Number
    draft: Number | None

    @staticmethod
    def of(scenario: Scenario, settings: Settings) -> Sharing:
        """The sharing of a scenario."""
        serving, own = scenario.serving, scenario.serving.speculative
        shared, slots, draft = 0.0, 0.0, None
        if present(serving.prefix_shared):
            shared = shared_tokens(serving.prefix_shared, serving.prompt_tokens, settings.engine.block)
        if present(own.draft_tokens):
            share = head_share(scenario.model.layers) if own.drafter == "head" else own.draft_cost
            slots, draft = draft_slots(own.draft_tokens), draft_share(own.draft_tokens, share)
        return Sharing(shared, slots, draft)

    def length(self, tokens: Number) -> Number:
        """Tokens of a sequence with places for a cycle of drafts."""
        return with_slots(tokens, self.slots) if present(self.slots) else tokens

    def with_draft(self, size: Number) -> Number:
        """Bytes of the model with those of its draft."""
        return size if self.draft is None else with_draft(size, self.draft)

    def beside(self, pool: Number, tokens: Number) -> tuple[Number, Number]:
        """Tokens of cache and of a sequence beside the shared ones."""
        if not present(self.shared):
            return pool, tokens
        return pool_beside(pool, self.shared), own_tokens(tokens, self.shared)

    def tokens(self, pool: Number, tokens: Number) -> tuple[Number, Number]:
        """The same for a sequence that has no places for drafts yet."""
        return self.beside(pool, self.length(tokens))
