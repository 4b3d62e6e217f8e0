"""What an engine asks of token mixing: its matrices on one rank, and its core when decoding and for prompts."""

from __future__ import annotations

from ...model.kinds.mixer import Matrix, Mixer
from ...numeric import Number
from ..operators import Operator, Rank

#: Names of the core of a decode step, and of that of prompts.
DECODE, PROMPT = "attention core", "attention"


class Mixing:
    """Token mixing of one layer on one rank. This one has no core: every token for itself."""

    def __init__(self, mixer: Mixer, rank: Rank) -> None:
        self.mixer, self.rank = mixer, rank

    @property
    def kernels(self) -> Number:
        """Kernels beside those of any layer."""
        return 0.0

    @property
    def eager(self) -> Number | None:
        """Host time of an iteration that is not captured, in seconds; None: that of the feed-forward part."""
        return None

    def matrices(self) -> tuple[Matrix, ...]:
        """The matrices that every token passes."""
        return self.mixer.projections(self.rank.tensor)

    def decode(self, sequences: Number, context: Number) -> tuple[Operator, ...]:
        """The core of a decode step of sequences with a mean context."""
        return ()

    def prompt(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> tuple[Operator, ...]:
        """The core of prompt chunks: new tokens of each, causal pairs of them, keys of the last one."""
        return ()
