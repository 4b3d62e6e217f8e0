"""The strip of the model panel: a cell a layer, and what is said of it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from pytestqt.qtbot import QtBot

from triledger.core.catalogue import catalogue
from triledger.core.scenario import Scenario
from triledger.gui.model_strip import ModelStrip
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT, Theme


@pytest.fixture
def strip(qtbot: QtBot, plan: Scenario, request: pytest.FixtureRequest) -> ModelStrip:
    """The strip of a model of the catalogue, 244 pixels wide; of the plan's own when none is asked for."""
    asked = getattr(request, "param", None)
    scenario = plan.with_("model", catalogue().models[asked]) if asked else plan
    strip = ModelStrip(Store(scenario, evaluate=lambda _: None), LIGHT)  # type: ignore[arg-type,return-value]
    qtbot.addWidget(strip)
    strip.resize(244, strip.sizeHint().height())
    return strip


def colors(strip: ModelStrip, y: int) -> list[str]:
    """The colours in the middle of the cells of a row."""
    picture = strip.grab().toImage()
    each = strip.width() / strip.anatomy.layers
    return [picture.pixelColor(round((n + 0.5) * each), y).name() for n in range(strip.anatomy.layers)]


@pytest.mark.parametrize("strip", ["deepseek-v3"], indirect=True)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_cells_have_the_colour_of_their_kind(strip: ModelStrip, theme: Theme) -> None:
    strip.set_theme(theme)
    mixing, feed_forward = colors(strip, 7), colors(strip, 18)
    assert mixing == [theme.series("latent").name()] * 61
    assert feed_forward == [theme.series("dense").name()] * 3 + [theme.series("experts").name()] * 58


@pytest.mark.parametrize("strip", ["gpt-oss-20b"], indirect=True)
def test_hover_tells_the_layer_and_below_the_cells_everything(strip: ModelStrip) -> None:
    assert strip.words_at(QPointF(15, 7)).startswith("layer 2: full attention: 64 heads, 8 KV heads of 64")
    assert "4 of 32 experts" in strip.words_at(QPointF(5, 18))
    whole = strip.words_at(QPointF(5, 30))
    assert "12 × window of 128" in whole
    assert "4.19B active" in whole
    assert strip.accessibleName().startswith("gpt-oss 20B: 12 × window of 128")


def test_the_strip_follows_the_model(strip: ModelStrip) -> None:
    store = strip._store
    store.set("model.layers", 40)
    strip.sync()
    assert strip.anatomy.layers == 40
    store.undo_stack.undo()
    strip.sync()
    assert strip.anatomy.layers == 80
    assert strip.words_at(QPointF(100, 7)) == (
        "layers 1–80: full attention: 64 heads, 8 KV heads of 128\nFFN 28\u202f672 wide, gated"
    )
