"""What every kind of token mixing answers: its parameters, its matrices, what it caches, and the FLOPs of its core.

A kind with no cache, no state or no core inherits the answer zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...numeric import Number
from ...terms import formula


@dataclass(frozen=True)
class Matrix:
    """A linear layer on one rank: `inputs` x `outputs`, after tensor parallelism."""

    name: str
    inputs: Number
    outputs: Number
    #: Kept whole on every rank, which multiplies its share of the sequence where there is sequence parallelism.
    whole: bool = False
    #: Makes something wide of a narrow vector that is kept, so that it may be computed again cheaply.
    expands: bool = False
    #: Multiplies the image tokens of a sequence, not its text.
    of_images: bool = False
    #: Multiplies what other ranks of a sequence send.
    received: bool = False


def present(size: Number) -> bool:
    """Whether a size is there at all; 0 stands for absent, and an array is a size that is looked at."""
    return isinstance(size, np.ndarray) or bool(size > 0)


class State(NamedTuple):
    """What a sequence keeps beside its cache, in elements: a recurrence, and the last inputs of a convolution."""

    recurrent: Number = 0.0
    convolution: Number = 0.0


class Stream(NamedTuple):
    """Pointwise kernels over a tensor: its width on one rank, bytes of an element forward and backward, launches.

    `steps` says that an eager framework runs it step by step.
    """

    width: Number
    forward: float
    backward: float
    launches: int = 1
    launches_back: int = 1
    steps: bool = False


class Heads(NamedTuple):
    """What an attention kernel sees on one rank: heads of queries, heads of keys and values, and their widths."""

    queries: Number
    keys: Number
    key_dim: Number
    value_dim: Number


@formula("KV", "elements", "Shazeer 2019, arXiv 1911.02150; grouped heads: Ainslie 2023, arXiv 2305.13245")
def kv_of_heads(kv_heads: Number, head_dim: Number, value_dim: Number) -> Number:
    """Elements of one token in one layer, cached or passed on: a key and a value for each of their heads."""
    return kv_heads * (head_dim + value_dim)


class Mixer(ABC):
    """One kind of token mixing. Parameters and elements are of one layer; `tp` is the tensor parallel degree."""

    hidden: Number
    #: What checkpoints of some number formats leave in 16 bits by this name.
    part = "attention"

    @abstractmethod
    def matrices(self) -> Number:
        """Parameters that multiply every token."""

    @abstractmethod
    def vectors(self) -> Number:
        """Parameters of norms, biases, gates and convolutions."""

    @abstractmethod
    def share(self, tp: Number) -> Number:
        """Matrix parameters that one tensor parallel rank holds."""

    @abstractmethod
    def projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of one rank."""

    def kv_elements(self) -> Number:
        """Elements cached for a text token."""
        return 0.0

    def kv_share(self, tp: Number) -> Number:
        """Elements cached for a text token on one rank."""
        return 0.0

    def index_elements(self) -> Number:
        """Those of them that only an index reads, which no rank splits."""
        return 0.0

    def scale_group(self) -> Number:
        """Cached elements that share a scale in number formats that have one for each head."""
        return 1.0

    def kv_heads_to_split(self) -> Number:
        """Parts of the cache that ranks can share out; 1: every rank keeps all of it."""
        return 1

    def split_sizes(self) -> tuple[Number, ...]:
        """Numbers of heads or channels that tensor parallel ranks share out."""
        return ()

    #: Image tokens of a sequence that its text attends to across.
    images: Number = 0.0

    def image_elements(self) -> Number:
        """Elements cached for an image token that text attends to across."""
        return 0.0

    def image_share(self, tp: Number) -> Number:
        """The same on one rank."""
        return 0.0

    def text_matrices(self) -> Number:
        """Parameters that multiply every text token."""
        return self.matrices()

    def image_matrices(self) -> Number:
        """Parameters that multiply image tokens instead."""
        return 0.0

    def text_projections(self, tp: Number) -> tuple[Matrix, ...]:
        """The matrices of one rank that text tokens pass."""
        return self.projections(tp)

    def image_projections(self, tp: Number) -> tuple[Matrix, ...]:
        """Those that image tokens pass, where there are some."""
        return ()

    @property
    def kv_limit(self) -> Number | None:
        """Tokens after which the cache of a sequence does not grow; None: it always grows."""
        return None

    def state(self) -> State:
        """Elements a sequence keeps however long it is."""
        return State()

    def core_flops(self, tokens: Number, context: Number) -> Number:
        """FLOPs beside the matrices of `tokens` new tokens of one sequence over `context` cached ones."""
        return 0.0

    def decode_core_flops(self, context: Number) -> Number:
        """The same of one decoded token."""
        return self.core_flops(1, context)

    def pair_flops(self) -> Number:
        """FLOPs of one pair of query and key in all heads, as training computes it; 0 where there are no pairs."""
        return 0.0

    @property
    def looks_back_fully(self) -> bool:
        """Whether every query attends to all that stands before it, and the core does nothing else."""
        return False

    #: What the core is called among the operators of a step.
    core_name = "attention"

    def cores(self) -> tuple[Mixer, ...]:
        """The kinds whose cores run one after the other."""
        return (self,)

    def heads_on(self, tp: Number) -> Heads | None:
        """Heads of the attention kernel on one rank; None where there is no such kernel."""
        return None

    @property
    def edge_work(self) -> float:
        """Pairs that an attention kernel computes for each pair of the mask: tiles at its edges are computed whole."""
        return 1.0

    def pairs(self, tokens: Number, context: Number) -> Number:
        """Pairs of query and key of `tokens` new tokens of one sequence over `context` cached ones."""
        return 0.0

    #: Whether a query may not attend to all the keys there are, so that there is a full mask to compare with.
    masked = True

    def keys_of(self, tokens: Number) -> Number:
        """Keys of a sequence of some tokens."""
        return tokens

    def passed_on(self, tp: Number, latent: bool) -> Number:
        """Elements of a key that context parallel ranks pass on: of the heads of one rank, or what makes them."""
        heads = self.heads_on(tp)
        return kv_of_heads(heads.keys, heads.key_dim, heads.value_dim) if heads else 0.0

    def received_through(self, tp: Number) -> Matrix | None:
        """The matrix of one rank that makes keys and values of heads from latents; None where there is none."""
        return None

    def passed_tokens(self, sequence: Number, context_parallel: Number) -> Number:
        """Tokens of a sequence over which context parallel ranks pass on keys: all, or as many as windows reach."""
        return sequence

    @property
    def has_core(self) -> bool:
        """Whether anything is computed beside the matrices when a text is trained on."""
        return True

    def index_flops(self) -> Number:
        """FLOPs of scoring one earlier token to pick those that are attended to; 0 without an index."""
        return 0.0

    def streamed(self, tp: Number) -> Number:
        """16-bit elements that a core without pairs reads and writes for one token on one rank."""
        return 0.0

    @property
    def scans(self) -> bool:
        """Whether the core runs on vector units, so that only its bytes count."""
        return False

    def pointwise(self, tp: Number) -> tuple[Stream, ...]:
        """Pointwise kernels beside the core."""
        return ()

    def executed_core_flops(self, tokens: Number, context: Number) -> Number:
        """The same as the usual kernels execute them for whole prompts and in training."""
        return self.core_flops(tokens, context)


@formula("F_core", "FLOP")
def pairs_flops(pair: Number, pairs: Number) -> Number:
    """FLOPs of an attention core: each pair of query and key."""
    return pair * pairs


@formula("F_core", "FLOP")
def tokens_flops(token: Number, tokens: Number) -> Number:
    """FLOPs of a core whose work is the same for every token."""
    return token * tokens
