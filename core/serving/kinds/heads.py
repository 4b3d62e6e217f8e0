"""Attention over keys and values of heads, whole, in windows or in chunks."""

from __future__ import annotations

from ...ledgers.serving_cache import element_width
from ...model.cache import kept_tokens
from ...model.kinds.attention import GroupedAttention
from ...model.kinds.cross import CrossAttention
from ...model.kinds.mixer import Matrix, present
from ...numeric import Number
from ...sums import add_bytes, add_seconds
from .. import kernels
from ..operators import Operator, Rank
from .mixing import DECODE, PROMPT, Mixing


class HeadAttention(Mixing):
    """Attention of heads; a window or a chunk limits what is read and attended to."""

    def __init__(self, mixer: GroupedAttention, rank: Rank) -> None:
        super().__init__(mixer, rank)
        self.attention, kv = mixer, rank.settings.kv
        self.heads, self.kv_heads = mixer.local_heads(rank.tensor), mixer.local_kv_heads(rank.tensor)
        self.group = kernels.heads_a_group(mixer.heads, mixer.kv_heads)
        self.width = element_width(kv.bytes, kv.head_bytes, mixer.scale_group())

    def _kept(self, tokens: Number) -> Number:
        limit = self.attention.kv_limit
        return tokens if limit is None else kept_tokens(tokens, limit)

    def _cached(self, sequences: Number, tokens: Number) -> Number:
        mixer = self.attention
        return kernels.cache_bytes(sequences, tokens, self.kv_heads, mixer.head_dim, mixer.value_dim, self.width)

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        mixer, context = self.attention, self._kept(context)
        flops = kernels.decode_flops(sequences, context, self.heads, mixer.head_dim, mixer.value_dim)
        return (self._reading(flops, self._cached(sequences, context)),)

    def _reading(self, flops: Number, moved: Number) -> Operator:
        """Attention of a decode step, which reads so many bytes of cache."""
        rates = self.rank.rates
        vector = kernels.vector_seconds(flops, self.group, rates.vector, self.rank.settings.engine.tensor_groups)
        memory = kernels.streaming_seconds(moved, rates.kv)
        seconds = kernels.decode_attention_seconds(moved, rates.kv, vector)
        return Operator(DECODE, flops, moved, vector, memory, seconds, rates.attention_peak, True)

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        mixer, rates, engine = self.attention, self.rank.rates, self.rank.settings.engine
        if mixer.limited:
            pairs = mixer.pairs(tokens, kernels.cached_before(keys, tokens))
        flops = kernels.prefill_flops(prompts, pairs, self.heads, mixer.head_dim, mixer.value_dim)
        math = self._attending(flops, self._kept(keys))
        scores = kernels.score_traffic(prompts, self.heads, tokens, keys, engine.score_bytes)
        moved, memory = self._cached(prompts, keys), kernels.streaming_seconds(scores, rates.memory)
        seconds = add_seconds(math, memory)
        return (Operator(PROMPT, flops, add_bytes(moved, scores), math, memory, seconds, rates.attention_peak, True),)

    def _attending(self, flops: Number, keys: Number) -> Number:
        """Seconds of the attention of a prompt whose last token sees so many keys."""
        device, rate = self.rank.settings.device, self.rank.rates.attention
        return kernels.prefill_attention_seconds(
            flops, keys, self.attention.head_dim, rate, device.s_half, device.small_head
        )


class Across(HeadAttention):
    """Attention to image tokens: their keys and values are made with the prompt, and all of them are attended to.

    Text alone meets none: it has queries, and nothing to attend to.
    """

    def __init__(self, mixer: CrossAttention, rank: Rank) -> None:
        super().__init__(mixer, rank)
        self.across = mixer

    def matrices(self) -> tuple[Matrix, ...]:
        return self.across.text_projections(self.rank.tensor)

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        mixer = self.across
        if not present(mixer.images):
            return ()
        flops = kernels.prefill_flops(sequences, mixer.pairs(1.0, 0.0), self.heads, mixer.head_dim, mixer.value_dim)
        return (self._reading(flops, self._cached(sequences, mixer.images)),)

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        mixer = self.across
        if not present(mixer.images):
            return ()
        flops = kernels.prefill_flops(prompts, mixer.pairs(tokens, 0.0), self.heads, mixer.head_dim, mixer.value_dim)
        math, moved = self._attending(flops, mixer.keys_of(tokens)), self._cached(prompts, mixer.images)
        core = Operator(PROMPT, flops, moved, math, 0.0, math, self.rank.rates.attention_peak, True)
        rows = kernels.image_rows(prompts, tokens, mixer.images, self.rank.prompt)
        return core, *(self._made(matrix, rows) for matrix in mixer.image_projections(self.rank.tensor))

    def _made(self, matrix: Matrix, rows: Number) -> Operator:
        """Keys and values of image tokens."""
        left = self.across.part in self.rank.settings.weights.leaves
        number = self.rank.plain if left else self.rank.rates.blocks
        weights = kernels.weight_bytes(matrix.inputs, matrix.outputs, number.bits)
        return self.rank.matrix(matrix, number, weights, rows)
