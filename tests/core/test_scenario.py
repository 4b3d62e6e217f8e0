"""Scenarios: what changes with a field that is changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue

SCENARIO = load_scenario("7b-8xa100-train")


@pytest.mark.parametrize(
    ("path", "value"), [("model", catalogue().models["llama-3-70b"]), ("model.layers", 40), ("model.gated", False)]
)
def test_another_model_or_shape_has_not_the_label_of_the_one_before(path: str, value: Any) -> None:
    assert SCENARIO.whiteboard.parameters == 7e9
    changed = SCENARIO.with_(path, value)
    assert changed.whiteboard.parameters is None
    report = evaluate(changed)
    assert report["whiteboard.parameters"] == report["model.parameters"]
    assert changed.with_("whiteboard.parameters", 8e9).whiteboard.parameters == 8e9


def test_other_fields_keep_the_label() -> None:
    assert SCENARIO.with_("cluster.gpus", 16).whiteboard.parameters == 7e9
    assert SCENARIO.with_("training.tokens", np.array([1e12, 2e12])).whiteboard.parameters == 7e9
