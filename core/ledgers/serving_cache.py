"""What sequences keep on a rank of an engine: pages of keys and values or latents, up to a window, and states.

Sources: sizes of each kind with the kind; paging, Kwon 2023 (PagedAttention, arXiv 2309.06180).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ..model.block import Block
from ..model.cache import kept_tokens
from ..model.kinds.mixer import Mixer, State, present
from ..model.layers import STATE_WIDTH
from ..numeric import Number, ceil, is_array
from ..serving.settings import KvFormat
from ..sums import add_bytes, total_bytes
from ..terms import formula


@formula("w_kv", "B", leaves_out="scales of fp8 caches")
def element_width(element: Number, head: Number, head_dim: Number) -> Number:
    """Bytes of one cached element with its share of the scales of a head."""
    return element + head / head_dim


@formula("n − n_idx", "elements")
def beside_index(elements: Number, index: Number) -> Number:
    """Cached elements that no index reads."""
    return elements - index


@formula("KV", "B/token", "Shazeer 2019, arXiv 1911.02150; grouped heads: Ainslie 2023, arXiv 2305.13245")
def kv_bytes_per_token(elements: Number, width: Number, layers: Number) -> Number:
    """Cache of one token in some layers."""
    return elements * width * layers


@formula("n", "tokens", "PagedAttention, arXiv 2309.06180")
def paged_tokens(tokens: Number, block: Number) -> Number:
    """Tokens of a sequence rounded up to whole cache blocks."""
    return ceil(tokens / block) * block


@formula("KV_seq", "B")
def sequence_bytes(tokens: Number, per_token: Number) -> Number:
    """Cache of one sequence."""
    return tokens * per_token


@formula("S_seq", "B", "the last inputs of convolutions stay in 16 bits; heads and channels are split over ranks")
def state_bytes(recurrent: Number, convolution: Number, width: Number, tensor_parallel: Number) -> Number:
    """State of one sequence in one layer on one rank."""
    return (recurrent * width + 2 * convolution) / tensor_parallel


@formula("S_seq", "B")
def states_bytes(layers: Number, each: Number) -> Number:
    """States of one sequence in some layers."""
    return layers * each


def rank_state_bytes(state: State, tensor_parallel: Number) -> Number:
    """State of a sequence in one layer on one rank, recurrent elements in 32 bits."""
    return state_bytes(state.recurrent, state.convolution, STATE_WIDTH, tensor_parallel)


class SequenceCache:
    """The cache of sequences in some layers on one rank; the layers are those of a stage or of a whole model."""

    def __init__(
        self,
        layers: Sequence[Number],
        blocks: Sequence[Block],
        kv: KvFormat,
        tensor_parallel: Number,
        page: Number,
    ) -> None:
        self.kv, self.tensor, self.page = kv, tensor_parallel, page
        #: Bytes of a token in layers that keep all of them, in those that keep some, and how many these keep.
        growing: list[Number] = []
        self.limited: list[tuple[Number, Number]] = []
        states: list[Number] = []
        for count, each in zip(layers, blocks, strict=True):
            mixer, state = each.mixer, each.mixer.state()
            if any(map(present, state)):
                states.append(states_bytes(count, rank_state_bytes(state, tensor_parallel)))
            if present(mixer.images):
                states.append(sequence_bytes(paged_tokens(mixer.images, page), self._image_token(mixer, count)))
            if not present(mixer.kv_elements()):
                continue
            token = self._token(mixer, count)
            if mixer.kv_limit is None:
                growing.append(token)
            else:
                self.limited.append((mixer.kv_limit, token))
        self.growing = reduce(add_bytes, growing) if growing else 0.0
        #: Bytes of a sequence however long its text is: states, and keys and values of its images.
        self.states = reduce(add_bytes, states) if states else 0.0

    def _image_token(self, mixer: Mixer, layers: Number) -> Number:
        """Bytes of a token of images in some equal layers that attend across to it."""
        width = element_width(self.kv.bytes, self.kv.head_bytes, mixer.scale_group())
        return kv_bytes_per_token(mixer.image_share(self.tensor), width, layers)

    def image_token(self, layers: Sequence[Number], blocks: Sequence[Block]) -> Number:
        """Bytes of a token of images in all layers that attend across to it; 0 where none does."""
        found = ((n, each.mixer) for n, each in zip(layers, blocks, strict=True))
        across = [self._image_token(mixer, n) for n, mixer in found if present(mixer.image_elements())]
        return total_bytes(across) if across else 0.0

    def _token(self, mixer: Mixer, layers: Number) -> Number:
        kv, elements, index = self.kv, mixer.kv_share(self.tensor), mixer.index_elements()
        width = element_width(kv.bytes, kv.head_bytes, mixer.scale_group())
        if not present(index):
            return kv_bytes_per_token(elements, width, layers)
        indexed = element_width(kv.index_bytes, kv.index_head_bytes, index)
        return add_bytes(
            kv_bytes_per_token(beside_index(elements, index), width, layers),
            kv_bytes_per_token(index, indexed, layers),
        )

    @property
    def even(self) -> bool:
        """Whether every token takes the same, wherever it stands in its sequence."""
        return not self.limited and not is_array(self.states) and not self.states

    def token(self) -> Number:
        """Bytes of a token, windows not regarded."""
        return total_bytes([self.growing, *(each for _, each in self.limited)])

    def sequence(self, tokens: Number) -> Number:
        """Bytes of a sequence of some tokens in whole pages; no page beyond a window, and its states."""
        parts = [sequence_bytes(paged_tokens(tokens, self.page), self.growing)]
        for limit, each in self.limited:
            parts.append(sequence_bytes(paged_tokens(kept_tokens(tokens, limit), self.page), each))
        return total_bytes(parts if self.even else [*parts, self.states])
