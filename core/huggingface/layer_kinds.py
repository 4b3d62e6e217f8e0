"""The layers of a file one by one, and as the runs of a ModelSpec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from typing import Any

from ..model.spec import LayerRun
from . import names
from .config import Config
from .expert_list import feed_forward_words
from .family import Family
from .layer_list import mixer_kind, mixer_words, per_layer, runs_of
from .sizes import ratio_width

_STATE_SPACES = {"mamba", "mamba2"}


def layer_kinds(config: Config, family: Family, layers: int, has_experts: bool) -> list[LayerRun]:
    """The kind of every layer. Raises ScenarioError for lists that do not fit or name a kind that is not known."""
    blocks = per_layer(config, "block_configs", layers)
    if blocks is not None:
        return [_searched(config, block, f"block_configs.{place}.") for place, block in enumerate(blocks)]
    words, parts = mixer_words(config, family, layers)
    mixers = [mixer_kind(word, config, family) for word in words]
    if parts is None and set(mixers) <= _STATE_SPACES and not config.says(*names.HEADS[:3]):
        parts = ["none"] * layers
    elif parts is None:
        parts = feed_forward_words(config, layers) if has_experts else ["dense"] * layers
    elif "experts" in parts and not has_experts:
        raise config.refusal(names.EXPERTS[0], "is missing, but some layers have experts")
    kinds = [_with_own_sizes(config, family, LayerRun(1, *kind)) for kind in zip(mixers, parts, strict=True)]
    return _with_indexes(config, kinds, layers)


def _with_own_sizes(config: Config, family: Family, kind: LayerRun) -> LayerRun:
    """A layer with sinks, and one with a window that has sizes of its own."""
    window = kind.mixer == "window"
    sinks = config.flag("add_swa_attention_sink_bias" if window else "add_full_attention_sink_bias")
    own: dict[str, Any] = {} if sinks is None else {"sinks": sinks}
    for size, name in (
        ("heads", "swa_num_attention_heads"),
        ("kv_heads", "swa_num_key_value_heads"),
        ("head_dim", "swa_head_dim"),
        ("value_dim", "swa_v_head_dim"),
    ):
        stated = config.optional_size(name)
        if window and stated is not None:
            own[size] = stated
    if window and family.window_kv_multiple > 1 and "kv_heads" not in own:
        own["kv_heads"] = family.window_kv_multiple * config.size(*names.KV_HEADS)
    return replace(kind, **own) if own else kind


def _with_indexes(config: Config, kinds: list[LayerRun], layers: int) -> list[LayerRun]:
    """Layers that use the index of an earlier one instead of their own."""
    words = per_layer(config, "indexer_types", layers)
    if words is None:
        return kinds
    for word in words:
        if word not in ("full", "shared"):
            raise config.refusal("indexer_types", f"{word!r} is neither full nor shared")
    return [kind if word == "full" else replace(kind, indexer=False) for kind, word in zip(kinds, words, strict=True)]


def _searched(config: Config, block: Any, path: str) -> LayerRun:
    """A layer of a model found by search: attention and feed-forward part each there, one matrix, or missing."""
    if not isinstance(block, dict):
        raise config.refusal(path.rstrip("."), "is not an object {…}")
    both = Config(config.file, block, config.path + path)
    attention, ffn = both.section("attention"), both.section("ffn")
    if attention is None or ffn is None:
        raise both.refusal("attention" if attention is None else "ffn", "is missing")
    mixer = _place(attention) or "attention"
    part = _place(ffn) or "dense"
    return LayerRun(
        mixer=mixer,
        feed_forward=part,
        kv_heads=_grouped_heads(config, attention) if mixer == "attention" else None,
        ffn_size=_searched_width(config, ffn) if part == "dense" else None,
    )


def _place(part: Config) -> str:
    return "none" if part.flag("no_op") else "matrix" if part.flag("replace_with_linear") else ""


def _grouped_heads(config: Config, attention: Config) -> int:
    heads = config.size(*names.HEADS)
    kv_heads = attention.optional_size("num_key_value_heads")
    if kv_heads is not None:
        return kv_heads
    group = attention.size("n_heads_in_group")
    if heads % group:
        raise attention.refusal("n_heads_in_group", f"{group} does not divide {heads} attention heads")
    return heads // group


def _searched_width(config: Config, ffn: Config) -> int:
    factor = ffn.number("ffn_mult")
    if factor is None:
        return ffn.size("intermediate_size")
    return ratio_width(factor, config.size(*names.HIDDEN))


def runs(kinds: list[LayerRun], facts: dict[str, Any]) -> tuple[tuple[LayerRun, ...], int]:
    """The runs that list the layers, and how many at their end repeat; nothing where all are as the sizes tell."""
    kinds = [_plainly(kind, facts) for kind in kinds]
    if set(kinds) == {LayerRun()}:
        return (), 1
    leading, repeat = runs_of(kinds)
    listed = kinds[: leading + repeat]
    return tuple(replace(kind, count=len(list(alike))) for kind, alike in groupby(listed)), repeat


def _plainly(kind: LayerRun, facts: dict[str, Any]) -> LayerRun:
    """A layer with nothing said that the model's own sizes say."""
    mixer, ffn = ("latent" if facts.get("kv_rank") else "attention"), ("experts" if facts.get("experts") else "dense")
    if kind.mixer in ("attention", "window") and facts.get("kv_rank"):
        kind = replace(kind, mixer="latent")
    if kind.mixer == "window" and facts.get("max_context") and facts["window"] >= facts["max_context"]:
        kind = replace(kind, mixer="attention")
    own: dict[str, Any] = {
        size: None
        for size in ("heads", "kv_heads", "head_dim", "value_dim", "ffn_size", "sinks")
        if getattr(kind, size) is not None and getattr(kind, size) == facts.get(size)
    }
    return replace(
        kind,
        mixer="" if kind.mixer == mixer else kind.mixer,
        feed_forward="" if kind.feed_forward == ffn else kind.feed_forward,
        **own,
    )


def largest(kinds: list[LayerRun], size: Callable[[LayerRun], int | None]) -> int | None:
    """The largest of a size that layers have of their own, or None where none has."""
    return max((stated for kind in kinds if (stated := size(kind)) is not None), default=None)
