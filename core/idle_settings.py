"""Settings that a person made and that this plan has nothing for: each is told, so that none is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from .fields import FIELDS, Field
from .report import Edit, Finding
from .scenario import Scenario
from .scenario_values import default
from .traits import traits

#: Why a field changes nothing, by what it needs.
_WITHOUT = {
    "images": "the model attends to no image across; the images of others are tokens of the prompt or the sequence",
    "experts": "the model has no routed experts",
    "latent": "the model caches no latents",
    "adapters": "all weights are trained",
    "frozen base": "no frozen weights are quantised",
    "low precision": "products are in 16 or 32 bits",
}


def idle_settings(scenario: Scenario) -> Iterator[Finding]:
    """Fields of this kind of plan that are set to something else than their default and change nothing."""
    present = traits(scenario)
    for field, usual in _asked(scenario.kind):
        if field.needs in present:
            continue
        value = scenario.get(field.path)
        if value != usual:
            message = f"{field.label} changes nothing: {_WITHOUT[field.needs]}."
            edit = Edit(f"{field.label} as usual", ((field.path, usual),))
            yield Finding("idle-setting", "hint", message, field.path, (edit,))


@cache
def _asked(kind: str) -> tuple[tuple[Field, Any], ...]:
    """The fields beside the model's that ask a plan for something, with their defaults."""
    fields = (f for f in FIELDS.values() if kind in f.kinds and f.needs and f.panel != "model")
    return tuple((field, default(field.path)) for field in fields)
