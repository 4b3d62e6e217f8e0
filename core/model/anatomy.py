"""What a model is made of, in words and colours' names: its layers in order, and its sizes.

Pure data for whatever shows a model: the strip of the window, `triledger eval` and `triledger import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from itertools import groupby

from ..units import format_quantity
from ..words import count, plural
from .kinds.attention import GroupedAttention
from .kinds.cross import CrossAttention
from .kinds.feed_forward import Experts, FeedForward
from .kinds.latent import LatentAttention
from .kinds.mixer import present
from .kinds.recurrent import DeltaNet, LightningAttention
from .kinds.single import NoFeedForward, NoMixer, SideBySide, SingleFeedForward, SingleMixer
from .kinds.state_space import Mamba, Mamba2, ShortConvolution
from .layers import Model

#: What a layer can be made of, by the series that colours it: first what mixes tokens, then what follows.
MIXING = {
    "full": "full attention",
    "window": "window",
    "latent": "latent attention",
    "linear": "linear attention",
    "state": "state space",
    "convolution": "convolution",
    "cross": "cross-attention",
    "matrix": "one matrix",
    "none": "nothing",
}
FEED_FORWARD = {"dense": "dense FFN", "experts": "experts", "matrix": "one matrix", "none": "no FFN"}
#: What keeps the cache of some kinds of token mixing, in place of keys and values of all tokens.
_KEEPERS = {"window": "windows", "latent": "latent"}


@dataclass(frozen=True)
class Part:
    """One part of a layer: the kinds it is made of, more than one where they stand side by side, and its sizes."""

    kinds: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class Stretch:
    """Equal layers in a row; `first` counts from 1."""

    first: int
    count: int
    mixing: Part
    feed_forward: Part

    @property
    def place(self) -> str:
        """Which layers these are: "layer 4", "layers 4–61"."""
        last = self.first + self.count - 1
        return f"layer {self.first}" if self.count == 1 else f"layers {self.first}–{last}"


@dataclass(frozen=True)
class Anatomy:
    """The layers of a model from first to last in stretches of equal ones, and its sizes in words."""

    layers: int
    stretches: tuple[Stretch, ...]
    #: How many there are of each kind of layer, in the order of the first of each.
    groups: tuple[tuple[int, Part, Part], ...]
    #: Parameters: all, those a token meets, and those that stand apart; cache of a token and states of a sequence.
    sizes: tuple[str, ...]
    cache: tuple[str, ...]

    @property
    def mixing(self) -> tuple[str, ...]:
        """The kinds of token mixing there are, in the order of MIXING."""
        found = {kind for _, mixing, _ in self.groups for kind in mixing.kinds}
        return tuple(kind for kind in MIXING if kind in found)

    @property
    def feed_forward(self) -> tuple[str, ...]:
        found = {kind for _, _, part in self.groups for kind in part.kinds}
        return tuple(kind for kind in FEED_FORWARD if kind in found)

    def kinds(self) -> Iterator[str]:
        """Every kind of layer with how many there are, a line each."""
        for layers, mixing, part in self.groups:
            yield f"{layers} × {mixing.words}; {part.words}"

    def lines(self) -> Iterator[str]:
        """The model in lines of text: its kinds of layers, and the sizes."""
        yield from self.kinds()
        yield ", ".join(self.sizes)
        if self.cache:
            yield ", ".join(self.cache)


def anatomy(model: Model) -> Anatomy:
    """What a model is made of. Needs single numbers, not arrays."""
    parts = [(mixing_part(block.mixer), feed_forward_part(block.ffn)) for _, block in model.groups]
    stretches, first = [], 1
    for group, layers in groupby(model.order):
        equal = len(list(layers))
        stretches.append(Stretch(first, equal, *parts[group]))
        first += equal
    groups = tuple((int(layers), *part) for (layers, _), part in zip(model.groups, parts, strict=True))
    return Anatomy(int(model.layers), tuple(stretches), groups, tuple(_sizes(model)), tuple(_cache(model)))


def kept_by_kind(model: Model, tokens: float, width: float) -> dict[str, float]:
    """Bytes that a sequence of some tokens keeps, at `width` bytes a cached element, by what keeps them."""
    kept = {"kv_cache": 0.0, "latent": 0.0, "windows": 0.0, "states": float(model.state_bytes_per_sequence())}
    for (_, block), size in zip(model.groups, model.kv_bytes_by_group(tokens, width, page=1.0), strict=True):
        kept[_KEEPERS.get(mixing_part(block.mixer).kinds[0], "kv_cache")] += float(size)
    return kept


def _sizes(model: Model) -> Iterator[str]:
    yield f"{_amount(model.parameters)} parameters"
    if model.active_parameters != model.parameters:
        yield f"{_amount(model.active_parameters)} active"
    if present(model.spec.vision_parameters):
        yield f"{_amount(model.spec.vision_parameters)} vision"
    if present(model.spec.mtp_modules):
        yield f"MTP {_amount(model.mtp_parameters)} apart"


def _cache(model: Model) -> Iterator[str]:
    each = model.kv_bytes_per_token(2.0)
    if each:
        yield f"KV {format_quantity(each, 'bytes')} a token"
    if image := model.kv_bytes_per_image_token(2.0):
        yield f"{format_quantity(image, 'bytes')} an image token"
    limits = [limit for _, block in model.groups if (limit := block.mixer.kv_limit) is not None]
    if limits:
        grows = model.kv_bytes_per_sequence(2 * max(limits), 2.0) - model.kv_bytes_per_sequence(max(limits), 2.0)
        beyond = format_quantity(grows / max(limits), "bytes") if grows else "none"
        yield f"{beyond} beyond {count(max(limits))}"
    if state := model.state_bytes_per_sequence():
        yield f"states {format_quantity(state, 'bytes')} a sequence"


def _amount(value: float) -> str:
    return format_quantity(value, "amount")


def _grouped_heads(mixer: GroupedAttention) -> str:
    return f"{plural(mixer.heads, 'head')}, {plural(mixer.kv_heads, 'KV head')} of {count(mixer.head_dim)}"


@singledispatch
def mixing_part(mixer: object) -> Part:
    """What mixes tokens in a layer, and its sizes."""
    raise TypeError(f"{type(mixer).__name__} mixes no tokens")


@mixing_part.register
def _(mixer: GroupedAttention) -> Part:
    words = _grouped_heads(mixer) + (" with sinks" if mixer.sinks else "")
    if not mixer.limited:
        return Part(("full",), f"full attention: {words}")
    length = count(mixer.window)
    return Part(("window",), f"{f'chunks of {length}' if mixer.chunked else f'window of {length}'}: {words}")


@mixing_part.register
def _(mixer: CrossAttention) -> Part:
    return Part(("cross",), f"cross-attention to images: {_grouped_heads(mixer)}")


@mixing_part.register
def _(mixer: LatentAttention) -> Part:
    widths = f"{count(mixer.nope_dim)} + {count(mixer.rope_dim)}"
    words = f"latent attention: {plural(mixer.heads, 'head')} of {widths}, latent {count(mixer.kv_rank)}"
    if present(mixer.index_topk):
        words += f", {count(mixer.index_topk)} keys picked"
        words += "" if mixer.indexes else " by an earlier layer"
    return Part(("latent",), words)


@mixing_part.register
def _(mixer: LightningAttention) -> Part:
    return Part(("linear",), f"lightning attention: {plural(mixer.heads, 'head')} of {count(mixer.head_dim)}")


@mixing_part.register
def _(mixer: DeltaNet) -> Part:
    keys = f"{plural(mixer.key_heads, 'key head')} of {count(mixer.key_dim)}"
    values = f"{plural(mixer.value_heads, 'value head')} of {count(mixer.value_dim)}"
    return Part(("linear",), f"gated delta net: {keys}, {values}")


@mixing_part.register
def _(mixer: Mamba) -> Part:
    return Part(("state",), f"Mamba: {count(mixer.inner)} wide, state {count(mixer.state_size)}")


@mixing_part.register
def _(mixer: Mamba2) -> Part:
    sizes = f"{plural(mixer.heads, 'head')}, {plural(mixer.groups, 'group')}"
    return Part(("state",), f"Mamba-2: {sizes}, state {count(mixer.state_size)}")


@mixing_part.register
def _(mixer: ShortConvolution) -> Part:
    return Part(("convolution",), f"convolution over {count(mixer.conv_size)} tokens")


@mixing_part.register
def _(mixer: SingleMixer) -> Part:
    return Part(("matrix",), "one matrix in place of attention")


@mixing_part.register
def _(mixer: NoMixer) -> Part:
    return Part(("none",), "no attention")


@mixing_part.register
def _(mixer: SideBySide) -> Part:
    parts = [mixing_part(part) for part in mixer.parts]
    return Part(tuple(kind for part in parts for kind in part.kinds), " beside ".join(part.words for part in parts))


@singledispatch
def feed_forward_part(ffn: object) -> Part:
    """What follows token mixing in a layer, and its sizes."""
    raise TypeError(f"{type(ffn).__name__} is no feed-forward part")


@feed_forward_part.register
def _(ffn: FeedForward) -> Part:
    return Part(("dense",), f"FFN {count(ffn.ffn_size)} wide{', gated' if ffn.gated else ''}")


@feed_forward_part.register
def _(ffn: Experts) -> Part:
    words = f"{count(ffn.per_token)} of {plural(ffn.experts, 'expert')}, each {count(ffn.size)} wide"
    words += f" on a latent of {count(ffn.latent)}" if present(ffn.latent) else ""
    words += f", shared {count(ffn.shared_size)}" if present(ffn.shared_size) else ""
    return Part(("experts",), words)


@feed_forward_part.register
def _(ffn: SingleFeedForward) -> Part:
    return Part(("matrix",), "one matrix in place of the FFN")


@feed_forward_part.register
def _(ffn: NoFeedForward) -> Part:
    return Part(("none",), "no FFN")
