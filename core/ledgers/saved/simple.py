"""One matrix, nothing at all, and kinds side by side."""

from __future__ import annotations

from functools import reduce

from ...model.kinds.single import NoFeedForward, NoMixer, SideBySide, SingleFeedForward, SingleMixer
from ...sums import add_token_bytes
from .keeping import Keeping, Kept, ffn_kept, mixer_kept


@mixer_kept.register(NoMixer)
@mixer_kept.register(SingleMixer)
def _(mixer: NoMixer | SingleMixer, keeping: Keeping) -> Kept:
    """A matrix needs its input alone, which is the norm's output."""
    return Kept()


@ffn_kept.register(NoFeedForward)
@ffn_kept.register(SingleFeedForward)
def _(ffn: NoFeedForward | SingleFeedForward, keeping: Keeping) -> Kept:
    return Kept()


@mixer_kept.register
def _(mixer: SideBySide, keeping: Keeping) -> Kept:
    parts = [mixer_kept(part, keeping) for part in mixer.parts]
    return Kept(*(reduce(add_token_bytes, each) for each in zip(*parts, strict=True)))
