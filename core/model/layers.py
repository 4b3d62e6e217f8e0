"""What a model is built of: blocks of token mixing and a feed-forward part, in groups of equal ones.

The ledgers ask the kinds (`model.kinds`). A new kind is a class with the same questions answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np

from ..numeric import Number, is_array
from ..sums import add_elements, add_parameters, total_bytes
from ..terms import is_recording
from . import cache
from . import parameters as count
from .block import Block
from .build import NORM_VECTORS, build_block
from .kinds.attention import GroupedAttention
from .kinds.feed_forward import Experts, FeedForward
from .kinds.mixer import Matrix, Mixer, present
from .order import layer_kinds, layer_order, layers_before
from .spec import ModelSpec

__all__ = ["Block", "Experts", "FeedForward", "GroupedAttention", "Matrix", "Mixer", "Model", "build"]

#: Tokens of a page of the cache, and bytes of an element of a state: what engines do unless told otherwise.
PAGE, STATE_WIDTH = 16.0, 4.0


@dataclass(frozen=True)
class Model:
    """A decoder: blocks in groups of equal ones, and what stands before and after them."""

    spec: ModelSpec
    #: Blocks in groups of equal ones: (how many, the block), in the order of the first of each.
    groups: tuple[tuple[Number, Block], ...]

    @property
    def hidden(self) -> Number:
        return self.spec.hidden_size

    @property
    def layers(self) -> Number:
        return self.spec.layers

    @property
    def block(self) -> Block:
        """The block of a model whose blocks are all equal."""
        return self.groups[0][1]

    @property
    def dense(self) -> bool:
        """Equal dense blocks between an embedding and a head of the usual form, and nothing beside them."""
        return self.block.dense and self._usual

    @property
    def routed(self) -> bool:
        """Equal blocks of full attention and routed experts, in the same place."""
        return self.block.routed and self._usual

    @property
    def _usual(self) -> bool:
        """Equal blocks between an embedding and a head of the usual form, and nothing beside them."""
        spec = self.spec
        beside = (spec.embedding_size, spec.extra_rows, spec.vision_parameters, spec.mtp_modules)
        switches = spec.embedding_norm or spec.head_bias or not spec.final_norm
        return len(self.groups) == 1 and not switches and not any(map(present, beside))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The group of every layer, first to last. Needs one number of layers, not an array."""
        if not self.spec.runs:
            return (0,) * int(self.layers)
        kinds = [kind for _, kind in layer_kinds(self.spec)]
        return tuple(kinds.index(layer) for layer in layer_order(self.spec))

    @property
    def last_group(self) -> int:
        """The group of the last layer."""
        return len(self.groups) - 1 if is_array(self.layers) else self.order[-1]

    def layers_before(self, place: Number) -> tuple[Number, ...]:
        """Layers of each group among the first `place` layers; numbers or arrays alike."""
        if len(self.groups) == 1:
            return (place,)
        if not is_array(place):
            return self._counts_of_places[int(place)]
        index = place.astype(int)
        return tuple(self._counts[index, group] for group in range(len(self.groups)))

    @cached_property
    def _counts(self) -> np.ndarray:
        return layers_before(self.spec.runs, int(self.spec.repeat), int(np.max(self.layers)))

    @cached_property
    def _counts_of_places(self) -> list[tuple[Number, ...]]:
        return [tuple(counts[: len(self.groups)]) for counts in self._counts.tolist()]

    @property
    def width(self) -> Number:
        """Width of the embedding."""
        return self.spec.embedding_size if present(self.spec.embedding_size) else self.hidden

    @cached_property
    def embedding(self) -> Number:
        rows, extra = self.spec.vocabulary, self.spec.extra_rows
        return count.embedding_matrix(count.embedding_rows(rows, extra) if present(extra) else rows, self.width)

    @cached_property
    def head(self) -> Number:
        """Parameters of an output head of its own; 0 when it is the embedding. A bias counts in both cases."""
        bias = self.spec.vocabulary if self.spec.head_bias else 0.0
        matrix = 0.0 if self.spec.tied else count.embedding_matrix(self.spec.vocabulary, self.width)
        return add_parameters(matrix, bias) if self.spec.head_bias else matrix

    @cached_property
    def positions(self) -> Number:
        return count.embedding_matrix(self.spec.positions, self.hidden)

    @property
    def norm_vectors(self) -> int:
        """Vectors of one norm."""
        return NORM_VECTORS[self.spec.norm]

    @cached_property
    def final_norm(self) -> Number:
        """Parameters of the norms outside the blocks."""
        switches = float(self.spec.final_norm), float(self.spec.embedding_norm)
        return count.outer_vectors(self.hidden, self.norm_vectors, *switches)

    @cached_property
    def text_parameters(self) -> Number:
        """Parameters of the language model, exact."""
        return self._total(0.0)

    @cached_property
    def parameters(self) -> Number:
        """All parameters, exact: the language model, and a vision tower where there is one."""
        return self._total(self.spec.vision_parameters)

    def _total(self, vision: Number) -> Number:
        layers = self._sum(lambda block: block.parameters(), count.layers_parameters)
        embedding = self.embedding
        if present(self.spec.embedding_size):
            embedding = add_parameters(embedding, count.embedding_projections(self.hidden, self.width))
        return count.total_parameters(layers, embedding, self.head, self.positions, self.final_norm, vision)

    @cached_property
    def active_parameters(self) -> Number:
        """Parameters that a token meets: all but the experts that it is not sent to."""
        idle = self._sum(lambda block: block.ffn.inactive(), count.layers_parameters)
        return count.active_parameters(self.parameters, idle)

    @cached_property
    def met_parameters(self) -> Number:
        """Parameters that the rules of thumb speak of: those a token meets, all where there are no experts."""
        routed = [block for _, block in self.groups if block.experts]
        return self.active_parameters if routed else self.parameters

    @cached_property
    def buffers(self) -> Number:
        """Stored values of the blocks that are no parameters: biases that steer routing."""
        return self._sum(lambda block: block.ffn.buffers(), count.layers_parameters)

    @cached_property
    def mtp_parameters(self) -> Number:
        """Values of the modules that predict further tokens; not in the count of the model."""
        last = self.groups[self.last_group][1]
        return count.prediction_parameters(
            self.spec.mtp_modules, last.parameters(), self.hidden, self.norm_vectors, last.ffn.buffers()
        )

    def _sum(self, of_block: Callable[[Block], Number], times: Callable[[Number, Number], Number]) -> Number:
        return reduce(add_parameters, [times(layers, of_block(block)) for layers, block in self.groups])

    def kv_elements(self) -> Number:
        """Elements cached for one text token, windows not regarded."""
        return reduce(add_elements, [cache.layers_elements(n, block.mixer.kv_elements()) for n, block in self.groups])

    def kv_bytes_per_token(self, width: Number) -> Number:
        """Bytes cached for one text token at `width` bytes an element, windows not regarded."""
        return cache.token_bytes(self.kv_elements(), width)

    def kv_bytes_per_image_token(self, width: Number) -> Number:
        """Bytes cached for one image token in layers that attend across to it."""
        each = [cache.layers_elements(n, block.mixer.image_elements()) for n, block in self.groups]
        return cache.token_bytes(reduce(add_elements, each), width)

    def kv_bytes_per_sequence(self, tokens: Number, width: Number, page: Number = PAGE) -> Number:
        """Bytes cached for a sequence of text: whole pages, no page beyond a window, and no states."""
        return total_bytes(self.kv_bytes_by_group(tokens, width, page))

    def kv_bytes_by_group(self, tokens: Number, width: Number, page: Number = PAGE) -> list[Number]:
        """Bytes cached for a sequence of text, and its images, in the layers of each group."""
        parts = []
        for layers, block in self.groups:
            if present(block.mixer.images):
                kept, each = cache.paged(block.mixer.images, page), block.mixer.image_elements()
                parts.append(cache.layers_cache_bytes(layers, kept, each, width))
                continue
            limit = block.mixer.kv_limit
            kept = tokens if limit is None else cache.kept_tokens(tokens, limit)
            elements = block.mixer.kv_elements()
            parts.append(cache.layers_cache_bytes(layers, cache.paged(kept, page), elements, width))
        return parts

    def state_bytes_per_sequence(self, width: Number = STATE_WIDTH) -> Number:
        """Bytes of the states of a sequence; `width` is of a recurrent element."""
        states = [(layers, block.mixer.state()) for layers, block in self.groups]
        return total_bytes([cache.layers_state_bytes(n, s.recurrent, s.convolution, width) for n, s in states])


def build(spec: ModelSpec, images: Number = 0.0) -> Model:
    """The layers that a written description stands for, where a sequence has some image tokens beside its text.

    Those of a description that came before are looked up.
    """
    if not is_recording():
        try:
            return _kept(spec, images)
        except TypeError:  # a description that holds arrays has no hash
            pass
    return _built(spec, images)


@lru_cache(maxsize=64)
def _kept(spec: ModelSpec, images: Number) -> Model:
    return _built(spec, images)


def _built(spec: ModelSpec, images: Number) -> Model:
    return Model(spec, tuple((layers, build_block(spec, kind).seeing(images)) for layers, kind in layer_kinds(spec)))
