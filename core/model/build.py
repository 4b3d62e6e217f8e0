"""From the written description to the kinds of a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..numeric import Number, ratio
from ..terms import formula
from .block import Block
from .kinds.attention import GroupedAttention
from .kinds.cross import CrossAttention
from .kinds.feed_forward import Experts, FeedForward, FeedForwardKind
from .kinds.latent import LatentAttention
from .kinds.mixer import Mixer, present
from .kinds.recurrent import DeltaNet, LightningAttention
from .kinds.single import NoFeedForward, NoMixer, SideBySide, SingleFeedForward, SingleMixer
from .kinds.state_space import Mamba, Mamba2, ShortConvolution
from .spec import LayerRun, ModelSpec

#: Vectors of one norm, by its kind.
NORM_VECTORS = {"rms": 1, "layer": 2, "layer-no-bias": 1, "none": 0}


@formula("d = h/a", "elements")
def default_head_dim(hidden: Number, heads: Number) -> Number:
    """Width of one head where the model does not state it."""
    return ratio(hidden, heads)


def build_block(spec: ModelSpec, run: LayerRun) -> Block:
    """The block of one kind of layer of a model."""
    mixer = MIXERS[run.mixer or ("latent" if present(spec.kv_rank) else "attention")](spec, run)
    ffn = FEED_FORWARDS[run.feed_forward or ("experts" if present(spec.experts) else "dense")](spec, run)
    parts = 2 - isinstance(mixer, NoMixer) - isinstance(ffn, NoFeedForward)
    norms = int(spec.norms) or (1 if spec.parallel_block else 2)
    return Block(
        mixer, ffn, norms if parts == 2 else norms // 2 * parts, NORM_VECTORS[spec.norm], bool(spec.parallel_block)
    )


def _stated(run: LayerRun, spec: ModelSpec, name: str) -> Any:
    """A size or switch of a run, or else the model's."""
    value = getattr(run, name)
    return getattr(spec, name) if value is None else value


def _attention(spec: ModelSpec, run: LayerRun, kind: type[GroupedAttention] = GroupedAttention) -> GroupedAttention:
    heads, head_dim, value_dim = (_stated(run, spec, name) for name in ("heads", "head_dim", "value_dim"))
    if not present(head_dim):
        head_dim = default_head_dim(spec.hidden_size, heads)
    return kind(
        hidden=spec.hidden_size,
        heads=heads,
        kv_heads=_stated(run, spec, "kv_heads"),
        head_dim=head_dim,
        value_dim=value_dim if present(value_dim) else head_dim,
        qkv_bias=int(spec.qkv_bias),
        output_bias=int(spec.output_bias),
        qk_norm=(1 + spec.qk_norm_bias) * spec.qk_norm,
        rotary=not present(spec.positions),
        window=_stated(run, spec, "window") if run.mixer in ("window", "chunk") else 0,
        chunked=run.mixer == "chunk",
        wide_norm=spec.qk_norm_over == "projection",
        sinks=int(_stated(run, spec, "sinks")),
        output_gate=int(spec.output_gate),
        inner_norm=int(spec.inner_norms),
    )


def _cross(spec: ModelSpec, run: LayerRun) -> Mixer:
    return replace(_attention(spec, run, CrossAttention), qk_norm=1)


def _latent(spec: ModelSpec, run: LayerRun) -> Mixer:
    return LatentAttention(
        hidden=spec.hidden_size,
        heads=_stated(run, spec, "heads"),
        q_rank=spec.q_rank,
        kv_rank=spec.kv_rank,
        nope_dim=spec.nope_dim,
        rope_dim=spec.rope_dim,
        value_dim=_stated(run, spec, "value_dim"),
        qkv_bias=int(spec.qkv_bias),
        output_bias=int(spec.output_bias),
        index_heads=spec.index_heads,
        index_dim=spec.index_dim,
        index_topk=spec.index_topk,
        indexer=run.indexer is not False,
    )


def _lightning(spec: ModelSpec, run: LayerRun) -> Mixer:
    attention = _attention(spec, run)
    return LightningAttention(spec.hidden_size, attention.heads, attention.head_dim, spec.scan_chunk)


def _delta(spec: ModelSpec, run: LayerRun) -> Mixer:
    return DeltaNet(
        hidden=spec.hidden_size,
        key_heads=spec.linear_key_heads,
        key_dim=spec.linear_key_dim,
        value_heads=spec.linear_value_heads,
        value_dim=spec.linear_value_dim,
        conv_size=spec.conv_size,
        chunk=spec.scan_chunk,
    )


def _mamba(spec: ModelSpec, run: LayerRun) -> Mixer:
    return Mamba(
        hidden=spec.hidden_size,
        inner=spec.ssm_size,
        rank=spec.ssm_rank,
        state_size=spec.state_size,
        conv_size=spec.conv_size,
        conv_bias=int(spec.conv_bias),
        bias=int(spec.ssm_bias),
        norms=int(spec.ssm_norm),
    )


def _mamba2(spec: ModelSpec, run: LayerRun) -> Mixer:
    return Mamba2(
        hidden=spec.hidden_size,
        inner=spec.ssm_size,
        heads=spec.ssm_heads,
        groups=spec.ssm_groups,
        state_size=spec.state_size,
        conv_size=spec.conv_size,
        conv_bias=int(spec.conv_bias),
        bias=int(spec.ssm_bias),
        norm=int(spec.ssm_norm),
        chunk=spec.scan_chunk,
    )


def _convolution(spec: ModelSpec, run: LayerRun) -> Mixer:
    return ShortConvolution(spec.hidden_size, spec.conv_size, int(spec.conv_bias))


def _attention_and_mamba2(spec: ModelSpec, run: LayerRun) -> Mixer:
    return SideBySide(spec.hidden_size, (_attention(spec, run), _mamba2(spec, run)))


def _dense(spec: ModelSpec, run: LayerRun) -> FeedForwardKind:
    return FeedForward(
        hidden=spec.hidden_size,
        ffn_size=_stated(run, spec, "ffn_size"),
        gated=int(spec.gated),
        mlp_bias=int(spec.mlp_bias),
        inner_norm=int(spec.inner_norms),
        activation=spec.activation_parameters,
    )


def _experts(spec: ModelSpec, run: LayerRun) -> FeedForwardKind:
    return Experts(
        hidden=spec.hidden_size,
        experts=spec.experts,
        per_token=spec.experts_per_token,
        size=spec.expert_size,
        gated=int(spec.gated),
        bias=int(spec.expert_bias),
        shared_size=spec.shared_size,
        shared_bias=int(spec.mlp_bias),
        shared_gate=int(spec.shared_gate),
        router_bias=spec.router_bias,
        latent=spec.expert_latent,
    )


MIXERS: dict[str, Callable[[ModelSpec, LayerRun], Mixer]] = {
    "attention": _attention,
    "window": _attention,
    "chunk": _attention,
    "latent": _latent,
    "cross": _cross,
    "lightning": _lightning,
    "delta": _delta,
    "mamba": _mamba,
    "mamba2": _mamba2,
    "conv": _convolution,
    "attention+mamba2": _attention_and_mamba2,
    "matrix": lambda spec, run: SingleMixer(spec.hidden_size),
    "none": lambda spec, run: NoMixer(spec.hidden_size),
}

FEED_FORWARDS: dict[str, Callable[[ModelSpec, LayerRun], FeedForwardKind]] = {
    "dense": _dense,
    "experts": _experts,
    "matrix": lambda spec, run: SingleFeedForward(spec.hidden_size),
    "none": lambda spec, run: NoFeedForward(spec.hidden_size),
}
