"""Which kind every layer of a file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import did_you_mean
from .config import Config
from .family import Family, choose
from .names import PREDICTION

#: Names of kinds in lists of layers. "state" and "linear" are told apart by the sizes in the file.
_WORDS = {
    "full_attention": "attention",
    "attention": "attention",
    "global": "attention",
    "sliding_attention": "window",
    "local": "window",
    "chunked_attention": "chunk",
    "linear_attention": "linear",
    "mamba": "state",
    "mamba2": "state",
    "conv": "conv",
    "hybrid": "attention+mamba2",
    "indexed_attention": "attention",
}
#: Names and letters of single-block layers: (mixer, feed-forward part).
_BLOCKS = {
    "mamba": ("state", "none"),
    "linear_attention": ("linear", "none"),
    "attention": ("attention", "none"),
    "full_attention": ("attention", "none"),
    "mlp": ("none", "dense"),
    "moe": ("none", "experts"),
    "M": ("state", "none"),
    "*": ("attention", "none"),
    "-": ("none", "dense"),
    "E": ("none", "experts"),
}
#: Letters of a pattern that comes again.
_LETTERS = {"L": "window", "G": "attention"}
#: Periods of the layers, which a list of layers may say over again.
_PERIODS = (
    *("full_attention_interval", "sliding_window_pattern", "_sliding_window_pattern", "attn_layer_period"),
    *("global_attn_every_n_layers", "layers_block_type", "attn_layer_offset", "no_rope_layers"),
    "attention_types",
)
_STATES = ("state_size", "ssm_state_size", "mamba_d_state")
_MAMBA2 = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "ssm_state_size")


def per_layer(config: Config, name: str, layers: int) -> list[Any] | None:
    """A list with an entry a layer, or None where there is none; entries of prediction modules at its end are cut."""
    entries = config.entries(name)
    return None if entries is None else _one_each(config, name, entries, layers)


def _one_each(config: Config, name: str, entries: list[Any], layers: int) -> list[Any]:
    if len(entries) == layers + config.count(*PREDICTION):
        entries = entries[:layers]
    if len(entries) != layers:
        raise config.refusal(name, f"has {len(entries)} entries, but there are {layers} layers")
    return entries


def mixer_words(config: Config, family: Family, layers: int) -> tuple[list[str], list[str] | None]:
    """The kind of mixing of every layer, and the feed-forward parts where the same list says them."""
    config.mark_read(*_PERIODS)
    single = _single_blocks(config, layers)
    if single is not None:
        return [mixer for mixer, _ in single], [ffn for _, ffn in single]
    for listed in (_named, _softmax_list, _window_list, _attention_list, _by_period):
        words = listed(config, family, layers)
        if words is not None:
            return words, None
    if family.layer_list:
        raise config.refusal(family.layer_list, "is missing; it says which layers are of which kind")
    return ["state" if _attention_free(config) else family.mixer] * layers, None


def _single_blocks(config: Config, layers: int) -> list[tuple[str, str]] | None:
    name = config.first("hybrid_override_pattern", "layers_block_type")
    pattern = config.value(name)
    letters = list(pattern) if isinstance(pattern, str) else []
    entries = _one_each(config, name, letters, layers) if letters else per_layer(config, name, layers)
    if not entries or not (letters or "mlp" in entries or "moe" in entries):
        return None
    return [_BLOCKS[_known(config, name, entry, _BLOCKS)] for entry in entries]


def _known(config: Config, name: str, entry: Any, words: Mapping[str, Any]) -> str:
    """The entry of a list of layers; ScenarioError where it is none of the words that are known."""
    if isinstance(entry, str) and entry in words:
        return entry
    raise config.refusal(
        name, f"{str(entry)[:60]!r} is no kind of layer that is known; {did_you_mean(str(entry), words)}"
    )


def _named(config: Config, family: Family, layers: int) -> list[str] | None:
    """`layer_types` and the like: a name for every layer."""
    for name in ("layer_types", "layers_block_type", "attention_layers"):
        entries = per_layer(config, name, layers)
        if entries is not None:
            return [_WORDS[_known(config, name, entry, _WORDS)] for entry in entries]
    return None


def _softmax_list(config: Config, family: Family, layers: int) -> list[str] | None:
    return layer_flags(config, "attn_type_list", layers, "attention", "linear")


def _window_list(config: Config, family: Family, layers: int) -> list[str] | None:
    return layer_flags(config, "hybrid_layer_pattern", layers, "window", "attention")


def layer_flags(config: Config, name: str, layers: int, one: str, zero: str) -> list[str] | None:
    """A word for every layer from a list of 0 and 1, or None where there is no list."""
    entries = per_layer(config, name, layers)
    if entries is None:
        return None
    for entry in entries:
        if entry not in (0, 1):
            raise config.refusal(name, f"{entry!r} is neither 0 nor 1")
    return [one if entry else zero for entry in entries]


def _attention_list(config: Config, family: Family, layers: int) -> list[str] | None:
    """Lists of the layers that are attention, or that attend across to images."""
    for name, listed, other in (
        ("cross_attention_layers", "cross", "attention"),
        ("attn_layer_indices", "attention", "state"),
        ("full_attn_idxs", "attention", "conv"),
    ):
        places = layer_places(config, name, layers)
        if places is not None:
            return [listed if place in places else other for place in range(layers)]
    return None


def layer_places(config: Config, name: str, layers: int) -> set[int] | None:
    """A list of layers by number, or None where there is none."""
    entries = config.entries(name)
    if entries is None:
        return None
    places = {config.whole(name, entry, 0) for entry in entries}
    if places and max(places) >= layers:
        raise config.refusal(name, f"names layer {max(places)}, but the last of {layers} is {layers - 1}")
    return places


def _by_period(config: Config, family: Family, layers: int) -> list[str] | None:
    """Kinds that come again after some layers."""
    window = config.optional_size("sliding_window", "window_size")
    letters = config.value("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= set(_LETTERS):
        return [_LETTERS[letters[place % len(letters)]] for place in range(layers)]
    every = config.optional_size("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    if every is not None and window is not None:
        return _others(layers, every, "window")
    if (every := config.optional_size("full_attention_interval")) is not None:
        return _others(layers, every, "linear")
    if (every := config.optional_size("attn_layer_period")) is not None:
        offset = config.count("attn_layer_offset")
        return ["attention" if place % every == offset else "state" for place in range(layers)]
    if config.optional_size("attention_chunk_size") is not None:
        rotary = per_layer(config, "no_rope_layers", layers) if config.entries("no_rope_layers") else None
        if rotary is not None:
            return ["chunk" if entry else "attention" for entry in rotary]
        return _others(layers, config.optional_size("no_rope_layer_interval") or 4, "chunk")
    if window is not None and config.holds(choose(family.window, config)):
        first = config.count("max_window_layers") if family.window == "use_sliding_window" else 0
        return ["window" if place >= first else "attention" for place in range(layers)]
    return None


def _others(layers: int, every: int, word: str) -> list[str]:
    """Full attention in every so many-th layer, and another kind in the others."""
    return ["attention" if (place + 1) % every == 0 else word for place in range(layers)]


def _attention_free(config: Config) -> bool:
    return not config.says("num_attention_heads", "n_head", "n_heads") and config.says(*_STATES)


def mixer_kind(word: str, config: Config, family: Family) -> str:
    """The mixer of the model that a word of the file stands for."""
    if word == "linear" and not config.says("linear_num_key_heads") and config.says(*_STATES):
        word = "state"
    if word == "state":
        return "mamba2" if config.says(*_MAMBA2) or _mamba2_file(config) else "mamba"
    if word == "linear":
        return "lightning" if family.lightning else "delta"
    return word


def _mamba2_file(config: Config) -> bool:
    """Heads of a state space are named as if they were of attention in a file that has no attention."""
    return config.says("num_heads") and config.says("n_groups")


def runs_of(kinds: Sequence[Any]) -> tuple[int, int]:
    """(leading, repeat) of the shortest list of layers whose last `repeat` occur twice or more and give all of them."""
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    order = [numbers[kind] for kind in kinds]
    best = (len(order) - 1, 1)
    for repeat in range(1, len(order) // 2 + 1):
        leading = len(order) - repeat
        while leading > 0 and order[leading - 1] == order[leading - 1 + repeat]:
            leading -= 1
        if leading + 2 * repeat <= len(order) and leading + repeat < sum(best):
            best = (leading, repeat)
    return best
