"""What contradicts itself in a written description: sizes that do not divide, kinds of layers without their sizes."""

from __future__ import annotations

from collections.abc import Iterator

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


def kinds_of(spec: ModelSpec) -> set[tuple[str, str]]:
    """The kinds of layers by name: (mixer, feed-forward part)."""
    usual = "latent" if present(spec.kv_rank) else "attention", "experts" if present(spec.experts) else "dense"
    return {(run.mixer or usual[0], run.feed_forward or usual[1]) for run in spec.runs or (LayerRun(),)}


def has_heads(spec: ModelSpec) -> bool:
    """Whether any layer has heads of queries."""
    return any("heads" in _NEEDED.get(mixer, ()) for mixer, _ in kinds_of(spec))


def faults(spec: ModelSpec) -> Iterator[tuple[str, str]]:
    """(field, message) of everything that cannot be in a description whose numbers are single."""
    if not spec.vocabulary > 0:
        yield "model.vocabulary", "is missing; it is the rows of the embedding"
    for mixer, part in sorted(kinds_of(spec)):
        for name in (*_NEEDED.get(mixer, ()), *_FEED_FORWARD.get(part, ())):
            if not getattr(spec, name) > 0 and not all(getattr(run, name, None) for run in spec.runs or (None,)):
                yield f"model.{name}", f"is missing; {mixer if name in _NEEDED.get(mixer, ()) else part} layers need it"
    for run in spec.runs:
        heads, kv_heads = run.heads or spec.heads, run.kv_heads or spec.kv_heads
        if kv_heads > 0 and heads % kv_heads:
            yield "model.runs", f"{kv_heads:.0f} does not divide {heads:.0f} attention heads"
    if spec.experts_per_token > spec.experts:
        more = f"{spec.experts_per_token:.0f} is more than the {spec.experts:.0f} experts there are"
        yield "model.experts_per_token", more
    if spec.index_heads > 0 and not spec.q_rank > 0:
        yield "model.q_rank", "is missing; the index takes its queries from the compressed query"
    listed = sum(run.count for run in spec.runs)
    if spec.runs and not 1 <= spec.repeat <= listed:
        yield "model.repeat", f"{spec.repeat:.0f} layers cannot repeat where {listed} are listed"
