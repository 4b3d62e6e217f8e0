"""The language model of a file, as facts of a ModelSpec."""

from __future__ import annotations

from typing import Any

from ..model.spec import LayerRun
from . import names
from .config import Config
from .family import Family
from .layer_kinds import largest, layer_kinds, runs
from .outer import attention_facts, bias_facts, gated, norm_facts, outer_facts
from .sizes import attention_sizes, expert_sizes, ffn_size, state_sizes

#: Kinds of mixing without heads of queries.
_HEADLESS = {"mamba", "mamba2", "conv", "none", "matrix", "delta"}


def text_facts(config: Config, family: Family, assumed: list[str]) -> dict[str, Any]:
    """All facts of the language model; `assumed` gets what was taken for a file of no known family.

    Raises ScenarioError where a size is missing or sizes contradict each other.
    """
    if not any(config.has(name) for name in (*names.HIDDEN, *names.LAYERS, *names.LAYER_LISTS)):
        raise config.refusal(names.HIDDEN[0], "is missing, and the number of layers too")
    facts: dict[str, Any] = {"hidden_size": config.size(*names.HIDDEN), "layers": _layers(config)}
    facts |= norm_facts(config, family, assumed)
    facts |= expert_sizes(config, family, assumed)
    kinds = layer_kinds(config, family, facts["layers"], "experts" in facts)
    mixers = {kind.mixer for kind in kinds}
    facts |= _attention(config, family, facts["hidden_size"], mixers, assumed)
    facts |= state_sizes(config, family, facts["hidden_size"], mixers)
    facts |= _feed_forward(config, family, facts, kinds, assumed)
    facts |= bias_facts(config, family, assumed)
    facts |= outer_facts(config, family, facts["hidden_size"], assumed)
    facts["mtp_modules"] = config.count(*names.PREDICTION) if family.prediction else 0
    if all(kind.kv_heads for kind in kinds if kind.mixer == "attention"):  # each layer says its own
        facts["kv_heads"] = largest(kinds, lambda kind: kind.kv_heads) or facts["kv_heads"]
    facts["runs"], facts["repeat"] = runs(kinds, facts)
    return facts


def _layers(config: Config) -> int:
    """The number of layers, or else the length of the list that names them."""
    listed = next((v for name in names.LAYER_LISTS if isinstance(v := config.value(name), (list, str)) and v), "")
    if not config.says(*names.LAYERS) and listed:
        return len(listed)
    return config.size(*names.LAYERS)


def _attention(config: Config, family: Family, hidden: int, mixers: set[str], assumed: list[str]) -> dict[str, Any]:
    if mixers <= _HEADLESS:
        config.mark_read(*names.HEADS, *names.KV_HEADS, *names.HEAD_DIM)
        return {"heads": 0, "kv_heads": 0}
    facts = attention_sizes(config, family, hidden) | attention_facts(config, family, assumed)
    if "window" in mixers:
        facts["window"] = config.size("sliding_window", "window_size")
    elif "chunk" in mixers:
        facts["window"] = config.size("attention_chunk_size")
    elif not family.known and config.optional_size("sliding_window") and config.flag("use_sliding_window") is not False:
        assumed.append("no layer uses the sliding window, as no field says which do")
    return facts


def _feed_forward(
    config: Config, family: Family, facts: dict[str, Any], kinds: list[LayerRun], assumed: list[str]
) -> dict[str, Any]:
    parts = {kind.feed_forward for kind in kinds}
    if not parts & {"dense", "experts"}:
        return {"ffn_size": 0}
    own = largest(kinds, lambda kind: kind.ffn_size)
    size = own or ffn_size(config, family, facts["hidden_size"])
    if size is None and "dense" in parts:
        raise config.refusal(family.dense_size or names.FFN[0], "is missing")
    return {
        "ffn_size": size or facts["expert_size"],
        "gated": gated(config, family, facts["norm"], assumed),
    }
