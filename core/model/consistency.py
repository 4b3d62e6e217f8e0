"""What contradicts itself in a written description: sizes that do not divide, kinds of layers without their sizes.

Each check is written once for single numbers and for arrays of them; a file, a setting, a sweep and the window ask the
same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from typing import Any, NamedTuple

from ..numeric import Number, both, maximum
from ..rule_words import does_not_divide, either, whole
from .kinds.mixer import present
from .spec import LayerRun, ModelSpec

#: Sizes that a kind of mixing needs.
_NEEDED = {
    "attention": ("heads", "kv_heads"),
    "window": ("heads", "kv_heads", "window"),
    "chunk": ("heads", "kv_heads", "window"),
    "cross": ("heads", "kv_heads"),
    "latent": ("heads", "kv_rank", "nope_dim", "rope_dim", "value_dim"),
    "lightning": ("heads",),
    "delta": (*("linear_key_heads", "linear_key_dim", "linear_value_heads", "linear_value_dim", "conv_size"),),
    "mamba": ("ssm_size", "state_size", "ssm_rank", "conv_size"),
    "mamba2": ("ssm_size", "state_size", "ssm_heads", "conv_size"),
    "conv": ("conv_size",),
    "attention+mamba2": ("heads", "kv_heads", "ssm_size", "state_size", "ssm_heads", "conv_size"),
}
_FEED_FORWARD = {"dense": ("ffn_size",), "experts": ("experts", "experts_per_token", "expert_size")}
#: Sizes that an index needs, and why.
_INDEX = {
    "q_rank": "the index takes its queries from the compressed query",
    "index_dim": "the heads of the index need a width",
    "index_topk": "the index picks so many keys for a query",
}
#: Mixing whose heads are as wide as the hidden size over their number where no width is stated.
_SHARED_OUT = ("attention", "window", "chunk", "cross", "lightning", "attention+mamba2")


class Check(NamedTuple):
    """A field, whether its rule holds (a truth or an array), and what is said of one description that breaks it."""

    field: str
    holds: Any
    message: Callable[[], str]


def _runs(spec: ModelSpec) -> tuple[LayerRun, ...]:
    return tuple(dict.fromkeys(spec.runs)) or (LayerRun(),)


def _kind(spec: ModelSpec, run: LayerRun) -> tuple[str, str]:
    """A kind of layers by name: (mixer, feed-forward part)."""
    mixer = run.mixer or ("latent" if present(spec.kv_rank) else "attention")
    return mixer, run.feed_forward or ("experts" if present(spec.experts) else "dense")


def faults(spec: ModelSpec) -> tuple[tuple[str, str], ...]:
    """(field, message) of everything that cannot be in a description whose numbers are single."""
    return absent(spec) or _disproportions(spec)


@lru_cache(maxsize=64)
def absent(spec: ModelSpec) -> tuple[tuple[str, str], ...]:
    """(field, message) of what is not there and without which there are no layers to ask anything of."""
    return _broken(_needs(spec))


@lru_cache(maxsize=64)
def _disproportions(spec: ModelSpec) -> tuple[tuple[str, str], ...]:
    return _broken(_proportions(spec))


def consistent(spec: ModelSpec) -> Any:
    """Whether a description contradicts itself nowhere: a truth, or an array where its sizes are arrays."""
    try:
        return not faults(spec)
    except TypeError:  # a description that holds arrays has no hash
        return reduce(both, [check.holds for check in (*_needs(spec), *_proportions(spec))], True)


def _broken(checks: Iterator[Check]) -> tuple[tuple[str, str], ...]:
    return tuple((check.field, check.message()) for check in checks if not check.holds)


def _needs(spec: ModelSpec) -> Iterator[Check]:
    yield Check("model.vocabulary", spec.vocabulary > 0, lambda: "is missing; it is the rows of the embedding")
    yield from _sizes(spec)
    for name, reason in _INDEX.items():
        message = f"is missing; {reason}"
        there = either(spec.index_heads == 0, getattr(spec, name) > 0)
        yield Check(f"model.{name}", there, lambda message=message: message)
    listed = sum(run.count for run in spec.runs)
    yield Check(
        "model.repeat",
        not spec.runs or 1 <= spec.repeat <= listed,
        lambda: f"{spec.repeat:.0f} layers cannot repeat where {listed} are listed",
    )


def _proportions(spec: ModelSpec) -> Iterator[Check]:
    yield from _experts(spec)
    for run in _runs(spec):
        yield from _heads(spec, run)


def _sizes(spec: ModelSpec) -> Iterator[Check]:
    """Sizes that some kind of layer needs, and neither the model nor each layer of that kind states."""
    needed: dict[str, str] = {}
    for run in _runs(spec):
        mixer, part = _kind(spec, run)
        for kind, names in ((mixer, _NEEDED.get(mixer, ())), (part, _FEED_FORWARD.get(part, ()))):
            needed |= {name: kind for name in names if not getattr(run, name, None)}
    for name, kind in needed.items():
        message = f"is missing; {kind} layers need it"
        yield Check(f"model.{name}", getattr(spec, name) > 0, lambda message=message: message)


def _experts(spec: ModelSpec) -> Iterator[Check]:
    def message() -> str:
        most = whole(spec.experts)
        return f"{whole(spec.experts_per_token)} is more than the {most} experts there are ({most} or less does)"

    yield Check("model.experts_per_token", spec.experts_per_token <= spec.experts, message)


def _heads(spec: ModelSpec, run: LayerRun) -> Iterator[Check]:
    heads: Number = run.heads or spec.heads
    kv_heads: Number = run.kv_heads or spec.kv_heads
    own = run.heads or run.kv_heads
    yield Check(
        "model.runs" if own else "model.kv_heads",
        heads % maximum(kv_heads, 1) == 0,
        lambda: does_not_divide(kv_heads, heads, "attention heads"),
    )
    if _kind(spec, run)[0] in _SHARED_OUT and not run.head_dim:
        yield Check(
            "model.heads",
            either(spec.head_dim > 0, spec.hidden_size % maximum(heads, 1) == 0),
            lambda: (
                f"{whole(heads)} does not divide hidden size {whole(spec.hidden_size)} "
                "(another number of heads, or model.head_dim, would do)"
            ),
        )
