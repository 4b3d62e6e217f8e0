"""Settings that a plan has nothing for are told, each with the way back."""

from __future__ import annotations

import pytest

from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.fields import FIELDS
from triledger.core.idle_settings import idle_settings


@pytest.mark.parametrize(
    ("preset", "path", "value", "why"),
    [
        ("70b-int4-1xh100-serve", "serving.image_tokens", 5000, "tokens of the prompt"),
        ("70b-64xh100-train", "training.lora.rank", 64, "all weights are trained"),
        ("70b-64xh100-train", "moe.imbalance", 1.3, "no routed experts"),
        ("70b-64xh100-train", "fp8.cache_weights", False, "16 or 32 bits"),
    ],
)
def test_a_setting_without_effect_is_told_with_the_way_back(preset: str, path: str, value: object, why: str) -> None:
    usual = load_scenario(preset)
    changed = usual.with_(path, value)
    (found,) = (finding for finding in evaluate(changed).findings if finding.code == "idle-setting")
    assert (found.field, found.severity) == (path, "hint")
    assert FIELDS[path].label in found.message
    assert why in found.message
    assert found.edits[0].applied(changed) == usual


@pytest.mark.parametrize("preset", list(catalogue().presets))
def test_presets_set_nothing_in_vain(preset: str) -> None:
    assert not list(idle_settings(load_scenario(preset)))
