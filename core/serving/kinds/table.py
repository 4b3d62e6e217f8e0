"""Which class runs which kind of token mixing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...model.kinds.attention import GroupedAttention
from ...model.kinds.cross import CrossAttention
from ...model.kinds.latent import LatentAttention
from ...model.kinds.mixer import Mixer
from ...model.kinds.single import NoMixer, SideBySide, SingleMixer
from ..operators import Rank
from .heads import Across, HeadAttention
from .latent import Latent
from .mixing import Mixing
from .states import Composed, StateMixing


def mixing_of(mixer: Mixer, rank: Rank) -> Mixing:
    """Token mixing of a layer as a rank of an engine runs it."""
    return KINDS.get(type(mixer), StateMixing)(mixer, rank)


def _composed(mixer: SideBySide, rank: Rank) -> Mixing:
    return Composed(mixer, rank, tuple(mixing_of(part, rank) for part in mixer.parts))


#: Kinds that keep no state.
KINDS: dict[type[Mixer], Callable[[Any, Rank], Mixing]] = {
    GroupedAttention: HeadAttention,
    CrossAttention: Across,
    LatentAttention: Latent,
    SideBySide: _composed,
    SingleMixer: Mixing,
    NoMixer: Mixing,
}
