"""One decoder block: token mixing, a feed-forward part and their norms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..numeric import Number
from . import parameters as count
from .kinds.attention import GroupedAttention
from .kinds.cross import CrossAttention
from .kinds.feed_forward import Experts, FeedForward, FeedForwardKind
from .kinds.mixer import Matrix, Mixer
from .kinds.single import NoFeedForward, NoMixer


@dataclass(frozen=True)
class Block:
    """One decoder block of any kind."""

    mixer: Mixer
    ffn: FeedForwardKind
    #: Norms in the block: 2, 4 before and after each part, 1 where both parts stand side by side or one is missing.
    norms: int
    #: Vectors of one norm: 1 gain, 2 gain and bias, 0 none.
    norm_vectors: int
    #: Mixing and feed-forward part side by side, reading the same input.
    parallel: bool = False

    def seeing(self, images: Number) -> Block:
        """The block where a sequence has some image tokens; the same for all but attention across to them."""
        if not isinstance(self.mixer, CrossAttention):
            return self
        return replace(self, mixer=replace(self.mixer, images=images))

    @property
    def attention(self) -> GroupedAttention:
        """The mixing, where it is attention with keys and values of heads; TypeError where it is another kind."""
        if isinstance(self.mixer, GroupedAttention):
            return self.mixer
        raise TypeError(f"{type(self.mixer).__name__} has no keys and values of heads")

    @property
    def feed_forward(self) -> FeedForward:
        """The feed-forward part, where it is dense; TypeError where it is another kind."""
        if isinstance(self.ffn, FeedForward):
            return self.ffn
        raise TypeError(f"{type(self.ffn).__name__} is not dense")

    @property
    def experts(self) -> Experts | None:
        """The routed experts, or None where there are none."""
        return self.ffn if isinstance(self.ffn, Experts) else None

    @property
    def has_ffn(self) -> bool:
        """Whether something follows the mixing."""
        return not isinstance(self.ffn, NoFeedForward)

    @property
    def input_norms(self) -> int:
        """Norms whose output the parts of the block read; further ones stand behind the parts."""
        return self.norms // 2 if self.norms > self.parts else self.norms

    @property
    def parts(self) -> int:
        """Parts of the block, mixing and feed-forward part, that are there."""
        return 2 - isinstance(self.mixer, NoMixer) - isinstance(self.ffn, NoFeedForward)

    @property
    def hidden(self) -> Number:
        return self.mixer.hidden

    @property
    def joins(self) -> int:
        """Times the block adds to the residual stream: once for each part, once where both stand side by side."""
        return 1 if self.parallel else 2 - isinstance(self.mixer, NoMixer) - isinstance(self.ffn, NoFeedForward)

    def norm_parameters(self) -> Number:
        return count.norm_vectors(self.hidden, self.norms, self.norm_vectors)

    def parameters(self) -> Number:
        mixer, ffn = self.mixer, self.ffn
        return count.block_parameters(
            mixer.matrices(), mixer.vectors(), ffn.matrices(), ffn.vectors(), self.norm_parameters()
        )

    def matrix_parameters(self) -> Number:
        """Parameters that multiply a text token: the matrices it meets, without norms and biases."""
        return count.block_parameters(self.mixer.text_matrices(), 0, self.ffn.active_matrices(), 0, 0)

    def vectors(self) -> Number:
        """Parameters of norms, biases, gates and convolutions."""
        return count.block_parameters(0, self.mixer.vectors(), 0, self.ffn.vectors(), self.norm_parameters())

    def share(self, tp: Number) -> Number:
        """Parameters of the block that one tensor parallel rank holds."""
        return count.block_share(self.mixer.share(tp), self.ffn.share(tp), self.vectors())

    def common_share(self, tp: Number) -> Number:
        """The same without routed experts: what every token meets."""
        return count.block_share(self.mixer.share(tp), self.ffn.common_share(tp), self.common_vectors())

    def common_vectors(self) -> Number:
        """Parameters of norms, biases, gates and convolutions outside routed experts."""
        return count.block_parameters(0, self.mixer.vectors(), 0, self.ffn.common_vectors(), self.norm_parameters())

    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of one rank that every token passes."""
        return self.mixer.projections(tp) + self.ffn.projections(tp)

    @property
    def reductions(self) -> int:
        """Times that tensor parallel ranks add up what a layer gives: after each part, once where they are parallel."""
        return 1 if self.parallel else self.parts

    @property
    def dense(self) -> bool:
        """Full attention over heads of one width and a dense feed-forward part, each behind one norm, or behind one."""
        return isinstance(self.ffn, FeedForward) and self._usual_attention

    @property
    def routed(self) -> bool:
        """The same with routed experts that read the residual stream, without biases."""
        experts = self.experts
        if experts is None or experts.bias or experts.shared_gate or experts.latent:
            return False
        return self._usual_attention

    @property
    def _usual_attention(self) -> bool:
        mixer = self.mixer
        return (
            type(mixer) is GroupedAttention
            and not (mixer.limited or mixer.sinks or mixer.output_gate or mixer.inner_norm)
            and bool(np.array_equal(mixer.value_dim, mixer.head_dim))
            and self.norms == (1 if self.parallel else 2)
        )
