"""Norms, biases, switches, and what stands outside the layers."""

from __future__ import annotations

from typing import Any

from . import names
from .config import Config
from .family import Family, choose

#: Kinds of norm by the words of `norm_type`.
_NORM_TYPES = {"rmsnorm": "rms", "layernorm": "layer", "low_precision_layernorm": "layer"}
_RMS = ("rms_norm_eps", "rms_norm_epsilon")
_LAYER = ("layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_epsilon")
_GATED = ("silu", "swish", "swiglu", "geglu")
_PLAIN = ("relu", "relu2", "xielu", "gelu_new", "gelu_fast")
_EITHER = ("gelu", "gelu_pytorch_tanh")
#: What a bias field covers where no family says it.
_BIASES = {
    "attention_bias": "qkv output",
    "qkv_bias": "qkv",
    "use_qkv_bias": "qkv",
    "add_qkv_bias": "qkv",
    "use_bias": "qkv output ffn",
    "bias": "qkv output ffn",
    "mlp_bias": "ffn",
}
_SWITCHES = {"qkv": "qkv_bias", "output": "output_bias", "ffn": "mlp_bias"}


def norm_facts(config: Config, family: Family, assumed: list[str]) -> dict[str, Any]:
    """The norms of a model. Raises ScenarioError where the kind of norm cannot be told."""
    norm = choose(family.norm, config) or _norm_by_field(config)
    if not family.known:
        assumed.append("RMSNorm before each part" if norm == "rms" else "LayerNorm with bias before each part")
    norms = choose(family.norms, config)
    return {
        "norm": norm,
        "norms": norms if norms == 4 or (norms == 2 and config.holds(choose(family.parallel, config))) else 0,
        "parallel_block": config.holds(choose(family.parallel, config)),
        "final_norm": config.holds(choose(family.final_norm, config)),
        "embedding_norm": config.holds(choose(family.embedding_norm, config)),
        "inner_norms": config.holds(choose(family.inner_norms, config)),
    }


def _norm_by_field(config: Config) -> str:
    if word := config.word("norm_type"):
        if word not in _NORM_TYPES:
            raise config.refusal("norm_type", f"{word} is none of {', '.join(_NORM_TYPES)}")
        return _NORM_TYPES[word]
    if any(config.value(name) is not None for name in _RMS):
        return "rms"
    if any(config.value(name) is not None for name in _LAYER):
        return "layer"
    raise config.refusal(_RMS[0], "is missing, and nothing else says which kind of norm the layers have")


def gated(config: Config, family: Family, norm: str, assumed: list[str]) -> bool:
    """Whether the feed-forward part has three matrices. Raises ScenarioError where that cannot be told."""
    stated = choose(family.gated, config)
    word = config.word(*names.ACTIVATION).lower()
    if stated is not None:
        return config.holds(stated)
    if not word:
        raise config.refusal(names.ACTIVATION[0], "is missing; it tells a gated feed-forward part from a plain one")
    if word not in (*_GATED, *_PLAIN, *_EITHER):
        raise config.refusal(names.ACTIVATION[0], f"{word} is no activation that is known")
    result = word in _GATED or (word in _EITHER and norm == "rms")
    assumed.append(f"{'gated' if result else 'plain'} feed-forward part, by its activation {word}")
    return result


def bias_facts(config: Config, family: Family, assumed: list[str]) -> dict[str, Any]:
    """The biases of a model, by the fields that its family reads."""
    rules = family.biases if family.known else _BIASES
    covered = {part for condition, parts in rules.items() if config.holds(condition) for part in parts.split()}
    if not family.known:
        assumed.append(f"biases on {', '.join(sorted(covered))}" if covered else "no biases")
    return {switch: part in covered for part, switch in _SWITCHES.items()} | {
        "head_bias": config.holds(choose(family.head_bias, config))
    }


def attention_facts(config: Config, family: Family, assumed: list[str]) -> dict[str, Any]:
    """Norms on queries and keys, sinks, output gates."""
    rules = family.qk_norm
    if not family.known:
        rules = {"use_qk_norm": "head", "qk_norm": "head"}
    word = choose(dict(rules), config) or ""
    if word and not family.known:
        assumed.append("a norm on each head of queries and keys")
    return {
        "qk_norm": bool(word),
        "qk_norm_over": "projection" if word == "projection" else "head",
        "qk_norm_bias": word == "head-bias",
        "sinks": config.holds(choose(family.sinks, config)),
        "output_gate": config.holds(choose(family.output_gate, config)),
    }


def _rotates(config: Config) -> bool:
    """Whether any field speaks of rotary positions, or of scores that fall with distance."""
    said = any(name.startswith(("rope_", "rotary", "partial_rotary")) for name in config.fields)
    return said or bool(config.flag("alibi")) or config.word("position_embedding_type") in ("rope", "nope")


def outer_facts(config: Config, family: Family, hidden: int, assumed: list[str]) -> dict[str, Any]:
    """Embedding, positions and head."""
    tied = config.flag("tie_word_embeddings", "tie_embedding")
    if tied is None:
        assumed.append("an output head of its own (not tied to the embedding)")
    vocabulary = config.optional_size(names.PADDED_VOCABULARY) or config.size(*names.VOCABULARY)
    config.mark_read(*names.VOCABULARY)
    if (multiple := config.optional_size("pad_vocab_size_multiple")) is not None:
        vocabulary = -(-vocabulary // multiple) * multiple
    longest = next((size for name in names.POSITIONS if (size := config.optional_size(name)) is not None), 0)
    learned = config.holds(choose(family.learned_positions, config))
    if not family.known and not _rotates(config):
        assumed.append("no learned positions")
    if learned and not longest:
        raise config.refusal(names.POSITIONS[0], "is missing, but positions are learned")
    width = config.optional_size("word_embed_proj_dim")
    return {
        "vocabulary": vocabulary,
        "extra_rows": family.extra_rows,
        "tied": bool(tied),
        "positions": longest + family.extra_positions if learned else 0,
        "embedding_size": 0 if width in (None, hidden) else width,
        "max_context": longest,
        "activation_parameters": family.activation_parameters,
    }
