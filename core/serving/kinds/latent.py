"""Latent attention: absorbed when decoding, with keys and values made from the latent for prompts.

Sources: DeepSeek-V2, arXiv 2405.04434; an index of keys: DeepSeek-V3.2, arXiv 2512.02556.
"""

from __future__ import annotations

from ...ledgers.serving_cache import element_width
from ...model.cache import kept_tokens
from ...model.kinds.latent import (
    LatentAttention,
    absorbed_pair_flops,
    expanded_pair_flops,
    expanding_flops,
    index_pair_flops,
    latent_elements,
)
from ...model.kinds.mixer import Matrix, pairs_flops, present
from ...numeric import Number
from ...sums import add_bytes, add_flops, add_seconds
from .. import kernels
from ..operators import Operator, Rank
from .mixing import DECODE, PROMPT, Mixing


class Latent(Mixing):
    """Latent attention; with an index only the keys it picks are read, and all keys of the index."""

    def __init__(self, mixer: LatentAttention, rank: Rank) -> None:
        super().__init__(mixer, rank)
        self.latent, kv = mixer, rank.settings.kv
        self.heads = mixer.local_heads(rank.tensor)
        self.elements = latent_elements(mixer.kv_rank, mixer.rope_dim)
        self.width = element_width(kv.bytes, kv.head_bytes, mixer.scale_group())
        self.index_width = element_width(kv.index_bytes, kv.index_head_bytes, mixer.index_dim) if mixer.indexes else 0.0
        self.up = kernels.rank_share(mixer.expanding(), rank.tensor)

    @property
    def kernels(self) -> Number:
        return self.rank.settings.engine.mla_kernels

    @property
    def eager(self) -> Number | None:
        return self.rank.settings.engine.t_eager_mla

    def matrices(self) -> tuple[Matrix, ...]:
        return self.latent.absorbed_projections(self.rank.tensor)

    def _picked(self, tokens: Number) -> Number:
        """Keys that a query attends to."""
        topk = self.latent.index_topk
        return kept_tokens(tokens, topk) if present(topk) else tokens

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        mixer, picked = self.latent, self._picked(context)
        pair = absorbed_pair_flops(self.heads, mixer.kv_rank, mixer.rope_dim)
        moved = kernels.element_bytes(sequences, picked, self.elements, self.width)
        core = self._absorbed(pairs_flops(pair, kernels.step_pairs(sequences, picked)), moved)
        return (self._with_index(core, sequences, context) if mixer.indexes else core,)

    def _with_index(self, core: Operator, sequences: Number, context: Number) -> Operator:
        mixer = self.latent
        pair = index_pair_flops(mixer.index_heads, mixer.index_dim)
        moved = kernels.element_bytes(sequences, context, mixer.index_dim, self.index_width)
        index = self._absorbed(pairs_flops(pair, kernels.step_pairs(sequences, context)), moved)
        return Operator(
            DECODE,
            add_flops(core.flops, index.flops),
            add_bytes(core.bytes, index.bytes),
            add_seconds(core.math, index.math),
            add_seconds(core.memory, index.memory),
            add_seconds(core.seconds, index.seconds),
            core.peak,
            True,
        )

    def _absorbed(self, flops: Number, moved: Number) -> Operator:
        """A core on matrix units that reads the cache once."""
        rates = self.rank.rates
        math = kernels.core_seconds(flops, rates.latent)
        memory = kernels.streaming_seconds(moved, rates.kv)
        seconds = kernels.decode_attention_seconds(moved, rates.kv, math)
        return Operator(DECODE, flops, moved, math, memory, seconds, rates.attention_peak, True)

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        mixer, rates, device = self.latent, self.rank.rates, self.rank.settings.device
        before = kernels.cached_before(keys, tokens)
        seen = mixer.pairs(tokens, before) if present(mixer.index_topk) else pairs
        pair = expanded_pair_flops(self.heads, mixer.nope_dim, mixer.rope_dim, mixer.value_dim)
        flops = pairs_flops(pair, kernels.all_pairs(prompts, seen))
        if mixer.indexes:
            each = index_pair_flops(mixer.index_heads, mixer.index_dim)
            flops = add_flops(flops, pairs_flops(each, kernels.all_pairs(prompts, pairs)))
        width = latent_elements(mixer.nope_dim, mixer.rope_dim)
        math = kernels.prefill_attention_seconds(flops, keys, width, rates.attention, device.s_half, device.small_head)
        moved = kernels.element_bytes(prompts, keys, self.elements, self.width)
        core = Operator(PROMPT, flops, moved, math, 0.0, math, rates.attention_peak, True)
        return core, self._expanding(prompts, before)

    def _expanding(self, prompts: Number, before: Number) -> Operator:
        """Keys and values of heads made again from the latents of earlier chunks."""
        mixer, rates = self.latent, self.rank.rates
        flops = kernels.flops_in_all(prompts, expanding_flops(before, self.up))
        made = latent_elements(mixer.nope_dim, mixer.value_dim)
        moved = kernels.expanded_bytes(prompts, before, self.elements, self.width, self.heads, made)
        math, memory = kernels.core_seconds(flops, rates.blocks.rate), kernels.streaming_seconds(moved, rates.memory)
        seconds = kernels.soft_maximum(math, memory)
        return Operator("latent expansion", flops, moved, math, memory, seconds, rates.blocks.peak)
