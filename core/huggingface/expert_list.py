"""Which layers of a file have experts."""

from __future__ import annotations

from collections.abc import Callable

from .config import Config
from .layer_list import layer_flags, layer_places, per_layer


def feed_forward_words(config: Config, layers: int) -> list[str]:
    """Whether every layer has experts, in a model that has some."""
    for rule in (_named_parts, _listed_parts, _first_dense, _sparse_step, _expert_period, _expert_range):
        words = rule(config, layers)
        if words is not None:
            return words
    return ["experts"] * layers


def _parts(layers: int, has_experts: Callable[[int], bool]) -> list[str]:
    return ["experts" if has_experts(place) else "dense" for place in range(layers)]


def _named_parts(config: Config, layers: int) -> list[str] | None:
    words = per_layer(config, "mlp_layer_types", layers)
    if words is None:
        return None
    known = {"dense": "dense", "sparse": "experts"}
    for word in words:
        if word not in known:
            raise config.refusal("mlp_layer_types", f"{word!r} is neither dense nor sparse")
    return [known[word] for word in words]


def _listed_parts(config: Config, layers: int) -> list[str] | None:
    places = layer_places(config, "moe_layers", layers)
    if places is not None:
        return _parts(layers, lambda place: place in places)
    if not isinstance(config.value("moe_layer_freq"), list):
        return None
    return layer_flags(config, "moe_layer_freq", layers, "experts", "dense")


def _first_dense(config: Config, layers: int) -> list[str] | None:
    asked = ("first_k_dense_replace", "num_dense_layers")
    first = config.optional_size(*asked, least=0)
    if first is not None and first > layers:
        raise config.refusal(config.first(*asked), f"{first} is more than the {layers} layers there are")
    every = config.optional_size("moe_layer_freq")
    if first is None and every is None:
        return None
    return _parts(layers, lambda place: place >= (first or 0) and place % (every or 1) == 0)


def _sparse_step(config: Config, layers: int) -> list[str] | None:
    step = config.optional_size("decoder_sparse_step", "interleave_moe_layer_step")
    dense = layer_places(config, "mlp_only_layers", layers) or set()
    if step is None and not dense:
        return None
    every = step or 1
    return _parts(layers, lambda place: place not in dense and (place + 1) % every == 0)


def _expert_period(config: Config, layers: int) -> list[str] | None:
    period = config.optional_size("expert_layer_period")
    offset = config.count("expert_layer_offset")
    return None if period is None else _parts(layers, lambda place: place % period == offset)


def _expert_range(config: Config, layers: int) -> list[str] | None:
    first = config.optional_size("moe_layer_start_index", least=0)
    if first is None:
        return None
    stated = config.value("moe_layer_end_index")
    last = layers - 1 if stated in (None, -1) else config.whole("moe_layer_end_index", stated, 0)
    every = config.optional_size("moe_layer_interval") or 1
    return _parts(layers, lambda place: first <= place <= last and (place + 1) % every == 0)
