"""Routed experts of a layer on one rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...model.kinds.feed_forward import Experts, ffn_width
from ...numeric import Number, is_array, where
from ...sums import add_bytes
from .. import experts as routed
from .. import kernels
from ..operators import Operator, Rank
from ..settings import tuned_sizes


class _Load(NamedTuple):
    """Experts that some row is sent to, rows of one rank, their unevenness, and bytes of weights and of rows."""

    touched: Number
    sent: Number
    uneven: Number
    weights: Number
    moved: Number


class Routed:
    """The experts that a batch meets are read, and its rows are shared out to them.

    With expert parallelism a rank holds some of the experts, and rows of all ranks that share them.
    """

    def __init__(self, experts: Experts, rank: Rank) -> None:
        self.experts, self.rank = experts, rank
        self.size = ffn_width(experts.size, rank.expert_split, 1)

    @property
    def _spread(self) -> bool:
        """Whether experts are laid over several groups of ranks."""
        return is_array(self.rank.expert_groups) or self.rank.expert_groups > 1

    def operator(self, rows: Number) -> Operator:
        """Routed experts, on the line between the tuned batch sizes around the rows."""
        experts, own = self.experts, self._load(rows)
        math, seconds = self._between(rows, own)
        return Operator(
            "experts",
            routed.expert_flops(own.sent, experts.matrix_count, experts.width, self.size),
            add_bytes(own.weights, own.moved),
            math,
            routed.expert_memory_seconds(*self._streams(own)),
            seconds,
            self.rank.experts.peak,
        )

    def _between(self, rows: Number, own: _Load) -> tuple[Number, Number]:
        """Seconds of the mathematics and of the kernels, on the line between the tuned batch sizes around the rows.

        Less than one row is a mean over ranks of which some have none.
        """
        below, above = tuned_sizes(rows)
        at_below = self._timed(self._load(below))
        at_above = self._timed(self._load(above)) if is_array(rows) or below != above else at_below
        math, seconds = (
            kernels.between_sizes(rows, below, above, *ends) for ends in zip(at_below, at_above, strict=True)
        )
        if not np.any(rows < 1):
            return math, seconds
        exact = self._timed(own)
        return where(rows < 1, exact[0], math), where(rows < 1, exact[1], seconds)

    def _load(self, rows: Number) -> _Load:
        """What a rank has to do for exactly these rows of each rank that shares its experts."""
        experts, size, number, engine = self.experts, self.size, self.rank.experts, self.rank.settings.engine
        touched, sent = self._met(rows), routed.routed_rows(self._all_rows(rows), experts.per_token)
        uneven, fullest = 1.0, touched
        if self._spread:
            groups = self.rank.expert_groups
            sent = routed.group_share(sent, groups)
            fullest = routed.fullest_group(touched, experts.experts, groups)
            uneven = routed.imbalance(sent, groups, engine.moe_skew)
        weights = routed.touched_bytes(fullest, experts.matrix_count, experts.width, size, number.bits)
        return _Load(touched, sent, uneven, weights, routed.routed_bytes(sent, engine.moe_bytes, experts.width, size))

    def _streams(self, load: _Load) -> tuple[Number, ...]:
        number, rates = self.rank.experts, self.rank.rates
        return load.weights, number.streaming, self.rank.settings.engine.moe_memory, load.moved, rates.memory

    def _timed(self, load: _Load) -> tuple[Number, Number]:
        """Seconds of the mathematics, and of the kernels."""
        experts, rates, number = self.experts, self.rank.rates, self.rank.experts
        k_half = routed.half_rate_inner(self.rank.settings.device.k_half, number.peak, rates.attention_peak)
        shape = 1 + experts.gated, experts.width, self.size, k_half, number.rate
        math = routed.expert_math_seconds(load.touched, load.sent, *shape, load.uneven)
        memory = routed.expert_memory_seconds(*self._streams(load))
        return math, kernels.soft_maximum(math, memory)

    def _all_rows(self, rows: Number) -> Number:
        """Rows of all ranks that share the experts."""
        sharing = self.rank.sharing
        return routed.shared_rows(rows, sharing) if is_array(sharing) or sharing > 1 else rows

    def _met(self, rows: Number) -> Number:
        """Experts on this rank that some row is sent to."""
        experts = self.experts
        touched = routed.touched_experts(experts.experts, experts.per_token, self._all_rows(rows))
        return routed.group_share(touched, self.rank.expert_groups) if self._spread else touched

    def unread(self, layers: Number, rows: Number) -> Number:
        """Bytes of the experts on this rank that none of some rows is sent to, in some layers."""
        experts, bits = self.experts, self.rank.experts.bits
        size = routed.padded_size(experts.size, self.rank.settings.weights.pad)
        each = routed.touched_bytes(
            1.0, experts.matrix_count, experts.width, ffn_width(size, self.rank.expert_split, 1), bits
        )
        held = routed.group_share(experts.experts, self.rank.expert_groups) if self._spread else experts.experts
        return routed.unread_bytes(layers, held, self._met(rows), each)
