"""The question every kind of layer is asked: what it keeps under a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

from ...model.kinds.feed_forward import FeedForwardKind
from ...model.kinds.mixer import Mixer
from ...numeric import Number
from ...scenario import Training
from ...terms import formula
from ..adapters import Adapters

TENSORS = "tensors saved for backward, counted; Korthikanti 2022, arXiv 2205.05198"


class Kept(NamedTuple):
    """Bytes a token that one part of a block keeps on one rank, beside the input of its norm."""

    #: Held from the forward pass to the backward pass.
    tensors: Number = 0.0
    #: Beside them, of the scores: what softmax gave, or the log-sum-exp of a flash kernel.
    scores: Number = 0.0
    #: Alive only during the backward pass of the block.
    backward: Number = 0.0
    #: Kept where recomputation is by operator.
    selected: Number = 0.0
    #: Elements of keys and values that a context parallel rank passes on.
    passed_on: Number = 0.0
    #: What is kept more, or less, where products keep their inputs as they were cast.
    cast: Number = 0.0


@formula("n·(w_q − w)", "B/token", "Transformer Engine public code: a product keeps its input as it was cast")
def cast_input(elements: Number, low: Number, kept: Number) -> Number:
    """What a cast copy of the input of a product takes more than what it stands in place of."""
    return elements * (low - kept)


@dataclass(frozen=True)
class Keeping:
    """How a plan keeps tensors: what it computes again, and the shares and widths of a rank."""

    training: Training
    #: Habits of the training stack, from the table of frameworks.
    framework: Mapping[str, Any]
    tensor: Number
    #: Share of the sequence that norms and residuals see: 1/t under sequence parallelism, else 1.
    share: Number
    sequence: Number
    #: Bytes of an element.
    element: Number
    expert_tensor: Number = 1.0
    #: Most tokens that a rank's experts get, over the mean.
    imbalance: Number = 1.0
    #: Bytes of an element of the input of a product that is kept as it was cast; 0: in 16 bits, for whoever reads it.
    cast_input: Number = 0.0
    #: Bytes of an element that an activation function reads; 0: in 16 bits.
    activation_input: Number = 0.0
    #: Whether context parallel ranks pass on latents.
    latent: bool = False
    #: Adapters beside frozen matrices; None where the model itself is trained.
    adapters: Adapters | None = None

    @property
    def trained(self) -> bool:
        """Whether the matrices and norms of the model are trained."""
        return self.adapters is None

    @property
    def widened(self) -> float:
        """Bytes of an element of the residual stream, and of what is made from it, over those of a 16-bit one."""
        return 2.0 if self.training.residual_precision == "fp32" or self.element == 4 else 1.0

    def keeps_input(self, *names: str) -> bool:
        """Whether the input of one of these matrices is kept: all are where they are trained."""
        return self.adapters is None or self.adapters.reads(*names)

    def cast(self, elements: Number, kept: Number) -> Number:
        """What an input of products changes by its cast copy, where `kept` bytes an element were for them alone."""
        return cast_input(elements, self.cast_input, kept) if self.cast_input else 0.0

    @property
    def keeps_expert_outputs(self) -> bool:
        """Whether a router learns its weights from outputs of experts; else from the inner activation it multiplies."""
        return not self.framework.get("weights_inside", False)

    @property
    def flash(self) -> bool:
        return self.training.attention == "flash"

    @property
    def selective(self) -> bool:
        return self.training.recompute in ("selective", "selective-up")

    @property
    def expanded_again(self) -> bool:
        """What is expanded from a latent is computed again from it."""
        return self.training.recompute in ("latent-up", "selective-up")

    @property
    def cheap_again(self) -> bool:
        """With nothing quadratic to drop, norms and activations are computed again instead."""
        return self.flash and self.selective

    @property
    def by_operator(self) -> bool:
        return self.training.recompute == "op-level"


@singledispatch
def mixer_kept(mixer: Mixer, keeping: Keeping) -> Kept:
    """What a kind of token mixing keeps."""
    raise TypeError(f"what {type(mixer).__name__} keeps is not known")


@singledispatch
def ffn_kept(ffn: FeedForwardKind, keeping: Keeping) -> Kept:
    """What a kind of feed-forward part keeps."""
    raise TypeError(f"what {type(ffn).__name__} keeps is not known")
