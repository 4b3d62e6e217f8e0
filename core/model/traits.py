"""What kinds of layers a written description has, in words that fields of a panel ask for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from .order import layer_kinds
from .spec import LayerRun, ModelSpec

_HEADS = ("heads", "kv heads")
#: Words that a mixer earns; any other one earns its own name.
_OF_MIXER = {
    "attention": _HEADS,
    "window": (*_HEADS, "window"),
    "chunk": (*_HEADS, "window"),
    "cross": (*_HEADS, "images"),
    "lightning": _HEADS,
    "attention+mamba2": _HEADS,
    "latent": ("heads", "latent"),
}


@lru_cache(maxsize=64)
def traits(spec: ModelSpec) -> frozenset[str]:
    """What the layers have: heads, KV heads of their own, window, latent, images, dense, experts and so on."""
    return frozenset(word for _, run in layer_kinds(spec) for word in _words(spec, run))


def _words(spec: ModelSpec, run: LayerRun) -> Iterator[str]:
    mixer = run.mixer or ("latent" if spec.kv_rank else "attention")
    yield from _OF_MIXER.get(mixer, (mixer,))
    yield run.feed_forward or ("experts" if spec.experts else "dense")
