"""Which layers a description lists, how often each kind occurs, and in which order."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

import numpy as np

from ..numeric import Number, floor, is_array, maximum
from ..terms import formula
from .spec import LayerRun, ModelSpec


@formula("L_kind", "layers")
def layers_of_kind(partial: Number, each: Number, layers: Number, leading: Number, repeat: Number) -> Number:
    """Layers of one kind: those of every whole repetition, and those of the leading layers and the cut repetition."""
    return partial + each * floor(maximum(0, layers - leading) / repeat)


def listed_layers(spec: ModelSpec) -> list[LayerRun]:
    """The layers that the runs list, one by one, each with count 1."""
    return [replace(run, count=1) for run in spec.runs for _ in range(int(run.count))]


def layer_kinds(spec: ModelSpec) -> list[tuple[Number, LayerRun]]:
    """The kinds of layers in the order in which they first occur, with how many there are of each."""
    if not spec.runs:
        return [(spec.layers, LayerRun())]
    listed = listed_layers(spec)
    counted = ((_count(spec, [layer == kind for layer in listed]), kind) for kind in dict.fromkeys(listed))
    return [(count, kind) for count, kind in counted if is_array(count) or count > 0]


def layer_order(spec: ModelSpec) -> list[LayerRun]:
    """Every layer of a model with one number of layers."""
    listed, repeat = listed_layers(spec) or [LayerRun()], int(spec.repeat)
    leading = len(listed) - repeat
    return [
        listed[place if place < leading else leading + (place - leading) % repeat] for place in range(int(spec.layers))
    ]


@lru_cache(maxsize=64)
def layers_before(runs: tuple[LayerRun, ...], repeat: int, layers: int) -> np.ndarray:
    """Layers of each kind among the first n of a list of runs, for n from 0 to `layers`: an array of [n, kind]."""
    listed = [replace(run, count=1) for run in runs for _ in range(int(run.count))]
    kinds = {kind: index for index, kind in enumerate(dict.fromkeys(listed))}
    leading = len(listed) - repeat
    places = [place if place < leading else leading + (place - leading) % repeat for place in range(layers)]
    each = np.zeros((layers + 1, len(kinds)))
    each[np.arange(1, layers + 1), [kinds[listed[place]] for place in places]] = 1.0
    return np.cumsum(each, axis=0)


def _count(spec: ModelSpec, of_kind: list[bool]) -> Number:
    repeat = int(spec.repeat)
    leading = len(of_kind) - repeat
    sums = np.array([0, *accumulate(of_kind)])
    layers = np.asarray(spec.layers).astype(int)
    place = np.where(layers < leading, layers, leading + (layers - leading) % repeat)
    partial = sums[place] if is_array(spec.layers) else float(sums[place])
    return layers_of_kind(partial, sum(of_kind[leading:]), spec.layers, leading, repeat)
