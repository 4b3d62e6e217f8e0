"""Layers that keep a state of constant size for each sequence, and kinds side by side."""

from __future__ import annotations

from functools import cached_property

from ...ledgers.serving_cache import rank_state_bytes
from ...model.kinds.mixer import Matrix
from ...model.kinds.single import SideBySide
from ...numeric import Number
from .. import kernels
from ..operators import Operator, Rank
from .mixing import Mixing


class StateMixing(Mixing):
    """Linear attention, state spaces and convolutions: the state of a sequence is read and written in every pass."""

    @cached_property
    def state(self) -> Number:
        """Bytes of the state of a sequence in one layer on this rank."""
        return rank_state_bytes(self.mixer.state(), self.rank.tensor)

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        flops = self.mixer.decode_core_flops(context)
        return (self._timed("state update", sequences, flops),)

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        flops = self.mixer.executed_core_flops(tokens, kernels.cached_before(keys, tokens))
        return (self._timed("state scan", prompts, flops),)

    def _timed(self, name: str, sequences: Number, each: Number) -> Operator:
        rates = self.rank.rates
        flops = kernels.rank_share(kernels.flops_in_all(sequences, each), self.rank.tensor)
        moved = kernels.state_traffic(sequences, self.state)
        math, memory = kernels.core_seconds(flops, rates.attention), kernels.streaming_seconds(moved, rates.memory)
        seconds = kernels.decode_attention_seconds(moved, rates.memory, math)
        return Operator(name, flops, moved, math, memory, seconds, rates.attention_peak, True)


class Composed(Mixing):
    """Kinds that read the same input."""

    def __init__(self, mixer: SideBySide, rank: Rank, parts: tuple[Mixing, ...]) -> None:
        super().__init__(mixer, rank)
        self.parts = parts

    def matrices(self) -> tuple[Matrix, ...]:
        return tuple(matrix for part in self.parts for matrix in part.matrices())

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        return tuple(each for part in self.parts for each in part.decode(sequences, context))

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        return tuple(each for part in self.parts for each in part.prompt(prompts, tokens, pairs, keys))
