"""Which layers a description lists, how often each kind occurs, and in which order."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..numeric import Number, floor, is_array, maximum
from ..terms import formula
from .spec import LayerRun, ModelSpec


@formula("L_kind", "layers")
def layers_of_kind(partial: Number, each: Number, layers: Number, leading: Number, repeat: Number) -> Number:
    """Layers of one kind: those of every whole repetition, and those of the leading layers and the cut repetition."""
    return partial + each * floor(maximum(0, layers - leading) / repeat)


def _listed(runs: tuple[LayerRun, ...]) -> list[LayerRun]:
    """The layers that runs list, one by one, each with count 1."""
    return [replace(run, count=1) for run in runs for _ in range(int(run.count))]


def _listed_place(place: Any, listed: int, repeat: int) -> Any:
    """Where in a list, whose last `repeat` layers recur, the layer at a place of the model stands; arrays alike."""
    leading = listed - repeat
    return np.where(place < leading, place, leading + (place - leading) % repeat)


def layer_kinds(spec: ModelSpec) -> list[tuple[Number, LayerRun]]:
    """The kinds of layers in the order in which they first occur, with how many there are of each."""
    if not spec.runs:
        return [(spec.layers, LayerRun())]
    counted = ((_count(spec, index), kind) for index, kind in enumerate(dict.fromkeys(_listed(spec.runs))))
    return [(count, kind) for count, kind in counted if is_array(count) or count > 0]


def layer_order(spec: ModelSpec) -> list[LayerRun]:
    """Every layer of a model with one number of layers."""
    listed = _listed(spec.runs) or [LayerRun()]
    places = _listed_place(np.arange(int(spec.layers)), len(listed), int(spec.repeat))
    return [listed[place] for place in places]


@lru_cache(maxsize=64)
def layers_before(runs: tuple[LayerRun, ...], repeat: int, layers: int) -> np.ndarray:
    """Layers of each kind among the first n of a list of runs, for n from 0 to `layers`: an array of [n, kind]."""
    listed = _listed(runs)
    kinds = {kind: index for index, kind in enumerate(dict.fromkeys(listed))}
    each = np.zeros((layers + 1, len(kinds)))
    places = _listed_place(np.arange(layers), len(listed), repeat)
    each[np.arange(1, layers + 1), [kinds[listed[place]] for place in places]] = 1.0
    return np.cumsum(each, axis=0)


def _count(spec: ModelSpec, kind: int) -> Number:
    """Layers of a kind, by its place among the kinds."""
    repeat, listed = int(spec.repeat), len(_listed(spec.runs))
    among = layers_before(spec.runs, repeat, listed)[:, kind]
    partial = among[_listed_place(np.asarray(spec.layers).astype(int), listed, repeat)]
    leading = listed - repeat
    partial = partial if is_array(spec.layers) else float(partial)
    return layers_of_kind(partial, float(among[listed] - among[leading]), spec.layers, leading, repeat)
