"""Routed experts of a layer on one rank."""

from __future__ import annotations

from ...model.kinds.feed_forward import Experts, ffn_width
from ...numeric import Number, is_array, where
from ...sums import add_bytes
from .. import experts as routed
from .. import kernels
from ..operators import Operator, Rank
from ..settings import tuned_sizes


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
        """Routed experts, on the line between the tuned batch sizes around the rows.

        Less than one row is a mean over ranks of which some have none.
        """
        below, above = tuned_sizes(rows)
        at_below, at_above = self._at(below), self._at(above)
        own = self._at(rows)
        math, seconds = (
            where(rows < 1, exact, kernels.between_sizes(rows, below, above, *ends))
            for exact, *ends in zip(*((each.math, each.seconds) for each in (own, at_below, at_above)), strict=True)
        )
        return own._replace(math=math, seconds=seconds)

    def _at(self, rows: Number) -> Operator:
        """Routed experts with exactly these rows of each rank that shares them."""
        experts, size, rates = self.experts, self.size, self.rank.rates
        number, engine, device = self.rank.experts, self.rank.settings.engine, self.rank.settings.device
        touched, sent = self._met(rows), routed.routed_rows(self._all_rows(rows), experts.per_token)
        uneven, fullest = 1.0, touched
        if self._spread:
            groups = self.rank.expert_groups
            sent = routed.group_share(sent, groups)
            fullest = routed.fullest_group(touched, experts.experts, groups)
            uneven = routed.imbalance(sent, groups, engine.moe_skew)
        weights = routed.touched_bytes(fullest, experts.matrix_count, experts.width, size, number.bits)
        moved = routed.routed_bytes(sent, engine.moe_bytes, experts.width, size)
        k_half = routed.half_rate_inner(device.k_half, number.peak, rates.attention_peak)
        inputs = 1 + experts.gated
        math = routed.expert_math_seconds(touched, sent, inputs, experts.width, size, k_half, number.rate, uneven)
        memory = routed.expert_memory_seconds(weights, number.streaming, engine.moe_memory, moved, rates.memory)
        flops = routed.expert_flops(sent, experts.matrix_count, experts.width, size)
        seconds = kernels.soft_maximum(math, memory)
        return Operator("experts", flops, add_bytes(weights, moved), math, memory, seconds, number.peak)

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
