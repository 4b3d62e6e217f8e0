"""The chart cards: what they show, when they change, and how a chart is taken away."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from tests.gui.reports import training_report
from triledger.core import load_scenario
from triledger.core.figures.figure import Axis, Bar, Figure, Label, Mark, Rule
from triledger.core.figures.memory import memory
from triledger.gui.chart_card import ChartCard, description
from triledger.gui.charts import ChartGrid
from triledger.gui.store import Store
from triledger.gui.theme import DARK, LIGHT

NAMES = ("roofline", "memory", "communication", "training")


class Paths:
    """Answers the question for a file, and remembers what was suggested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = ""
        self.suggested: list[str] = []

    def __call__(self, parent: object, suggestion: str, kinds: str) -> str:
        self.suggested.append(suggestion)
        return str(self.folder / self.name) if self.name else ""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


@pytest.fixture
def card(qtbot: QtBot, paths: Paths) -> ChartCard:
    card = ChartCard(LIGHT, paths)
    qtbot.addWidget(card)
    card.resize(540, 320)
    card.show()
    card.set_figure(memory(training_report()))
    return card


@pytest.fixture
def grid(qtbot: QtBot, store: Store, paths: Paths) -> Iterator[ChartGrid]:
    grid = ChartGrid(store, LIGHT, paths)
    qtbot.addWidget(grid)
    grid.resize(1100, 640)
    grid.show()
    return grid


def act(card: ChartCard, text: str) -> None:
    """Choose an entry of the card's menu."""
    next(action for action in card.menu.actions() if action.text() == text).trigger()


def test_a_screen_reader_hears_what_the_chart_says(card: ChartCard) -> None:
    assert card.plot.accessibleName() == card.figure.title
    assert card.plot.focusPolicy() & Qt.FocusPolicy.TabFocus
    said = card.plot.accessibleDescription()
    assert said.startswith(card.figure.subtitle)
    assert "stage 0: 56.4 GiB" in said
    assert card.menu_button.accessibleName()


def test_the_description_names_rows_marks_and_rules() -> None:
    figure = Figure(
        "chart",
        "title",
        "subtitle",
        Axis(),
        Axis(categories=("first", "second")),
        bars=(Bar("bar", "weights", 0, 0.0, 1.0),),
        marks=(Mark("plan", "plan", 0.0, 0.0, label="390 days", bold=True), Mark("other", "plan", 0.0, 0.0, label="x")),
        rules=(Rule("limit", "capacity", "x", 1.0, hover="the limit"),),
        labels=(Label("2 GB", 0.0, 1.0),),
    )
    assert description(figure) == "subtitle. 390 days. second: 2 GB. the limit"


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_a_chart_is_exported_as_a_picture(card: ChartCard, paths: Paths, suffix: str, start: bytes) -> None:
    paths.name = f"chart{suffix}"
    act(card, f"Export as {suffix[1:].upper()}…")
    assert (paths.folder / paths.name).read_bytes().startswith(start)
    assert paths.suggested == [f"70B-on-64×H100-memory{suffix}"]


def test_a_chart_is_exported_as_the_data_behind_it(card: ChartCard, paths: Paths) -> None:
    paths.name = "chart"
    act(card, "Export as CSV…")
    head, *rows = csv.reader((paths.folder / "chart.csv").read_text(encoding="utf-8").splitlines())
    assert tuple(head) == card.figure.columns
    assert len(rows) == len(card.figure.rows)


def test_an_export_that_is_called_off_writes_nothing(card: ChartCard, paths: Paths) -> None:
    act(card, "Export as SVG…")
    assert list(paths.folder.iterdir()) == []


def test_an_export_that_fails_says_so(card: ChartCard, paths: Paths, qtbot: QtBot) -> None:
    paths.name = "missing/chart.svg"
    with qtbot.waitSignal(card.failed) as failure:
        act(card, "Export as SVG…")
    assert "missing" in failure.args[0]
    assert "\n" not in failure.args[0]


def test_a_copied_chart_is_a_picture_and_an_svg(card: ChartCard) -> None:
    act(card, "Copy chart")
    data = QGuiApplication.clipboard().mimeData()
    assert QImage(data.imageData()).width() > card.plot.width()
    assert b"<svg" in bytes(data.data("image/svg+xml").data())


def test_what_is_taken_away_is_drawn_for_paper_whatever_the_theme(card: ChartCard, paths: Paths) -> None:
    card.set_theme(DARK)
    paths.name = "chart.png"
    act(card, "Export as PNG…")
    act(card, "Copy chart")
    for picture in (QImage(str(paths.folder / "chart.png")), QGuiApplication.clipboard().image()):
        assert picture.pixelColor(3, 3).name() == "#ffffff"


def test_a_copied_table_is_text_for_sheets_and_html_for_documents(card: ChartCard) -> None:
    act(card, "Copy table")
    data = QGuiApplication.clipboard().mimeData()
    head, first, *_ = data.text().splitlines()
    assert tuple(head.split("\t")) == card.figure.columns
    assert any(float(cell) > 2**30 for cell in first.split("\t")[1:] if cell), "sizes are in bytes"
    assert data.html().count("<tr>") == 1 + len(card.figure.rows)


def test_a_long_title_keeps_its_words_on_two_lines_and_the_plot_in_its_place(card: ChartCard) -> None:
    place = card.plot.geometry()
    one_line = card.heading.grab().toImage()
    card.heading.set_texts("a title that goes on and on, far longer than the card is wide, to say it all", "subtitle")
    assert card.plot.geometry() == place
    assert card.heading.grab().toImage() != one_line
    assert "to say it all" in card.heading.toolTip()


def test_the_grid_shows_the_four_charts_of_a_plan(grid: ChartGrid) -> None:
    assert [grid.chart(name).figure.name for name in NAMES] == list(NAMES)
    assert all(grid.chart(name).isVisible() for name in NAMES)


def test_a_change_reaches_every_chart(grid: ChartGrid, store: Store) -> None:
    before = [grid.chart(name).figure for name in NAMES]
    store.set("training.sequence_length", 8192)
    store.flush()
    after = [grid.chart(name).figure for name in NAMES]
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_a_serving_plan_has_its_own_fourth_chart(grid: ChartGrid, store: Store) -> None:
    store.apply(load_scenario("70b-bf16-8xa100-serve"), "serving")
    store.flush()
    assert grid.chart("serving") is grid.chart("training")
    assert grid.chart("serving").figure.name == "serving"


def test_a_hidden_grid_is_not_computed_and_catches_up_when_it_is_shown(grid: ChartGrid, store: Store) -> None:
    grid.hide()
    before = grid.chart("memory").figure
    store.set("training.sequence_length", 8192)
    store.flush()
    assert grid.chart("memory").figure == before
    grid.show()
    assert grid.chart("memory").figure == replace(memory(store.report), scenario=store.title)


def end_of(grid: ChartGrid) -> float:
    return grid.chart("communication").plot.frame().x_range[1]


def test_axes_hold_still_while_something_is_dragged_and_settle_after_a_rest(
    grid: ChartGrid, store: Store, qtbot: QtBot
) -> None:
    long = end_of(grid)
    gesture = store.gesture()
    store.set("training.sequence_length", 1024, gesture)
    store.flush()
    assert end_of(grid) == long
    qtbot.waitUntil(lambda: end_of(grid) < long)


def test_another_plan_takes_its_own_axes_at_once(grid: ChartGrid, store: Store) -> None:
    long = end_of(grid)
    store.apply(load_scenario("7b-8xa100-train"), "7B")
    store.flush()
    assert end_of(grid) < long


def test_a_theme_reaches_every_card(grid: ChartGrid) -> None:
    grid.set_theme(DARK)
    for name in NAMES:
        assert grid.chart(name).plot.grab().toImage().pixelColor(2, 2).name() == DARK.surface


@pytest.mark.parametrize("name", NAMES)
def test_reset_views_brings_everything_back(grid: ChartGrid, name: str) -> None:
    plot = grid.chart(name).plot
    whole = plot.frame().x_range
    plot.box.scaleBy((0.5, 0.5))
    plot.box.sigRangeChangedManually.emit([True, True])
    assert plot.frame().x_range != whole
    grid.reset_views()
    assert plot.frame().x_range == pytest.approx(whole)


def test_a_failing_curve_is_said_in_its_chart(qtbot: QtBot, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    grid = ChartGrid(store, LIGHT)
    qtbot.addWidget(grid)
    grid.show()
    evaluate: Callable = store.evaluate
    store.evaluate = lambda scenario: evaluate(scenario) if scenario is store.scenario else 1 / 0
    store.set("training.sequence_length", 8192)
    store.flush()
    assert grid.chart("training").figure.empty


def test_the_last_chart_shows_where_a_step_goes_instead(grid: ChartGrid, store: Store) -> None:
    card = grid.chart("training")
    assert card.figure.name == "training"
    asked = grid.chart("waterfall")
    assert asked is card
    assert card.figure.name == "waterfall"
    # it follows the plan, and the curve does not come back over it
    store.set("reliability.restart_seconds", 3000.0)
    store.flush()
    assert card.figure.bars[-1].length == store.report["time.effective_s"]  # type: ignore[index]
    grid.chart("training")
    assert card.figure.name == "training"


def test_a_serving_plan_shows_where_a_token_goes(grid: ChartGrid, store: Store) -> None:
    card = grid.chart("waterfall")
    store.apply(load_scenario("70b-bf16-8xa100-serve"), "other")
    store.flush()
    assert card.figure.name == "waterfall"
    assert card.figure.bars[-1].link == "serving.tpot_s"
    assert grid.chart("serving").figure.name in ("serving", "curve")


@pytest.mark.parametrize("name", ["latency", "speculation"])
def test_a_serving_plan_shows_waits_and_drafts_and_a_training_plan_its_curve_again(
    grid: ChartGrid, store: Store, name: str
) -> None:
    store.apply(load_scenario("70b-bf16-8xa100-serve"), "other")
    store.flush()
    card = grid.chart(name)
    assert card.figure.name == name
    words = [button.text() for button in card.switch.findChildren(QToolButton) if button.isVisible()]
    assert words == ["load", "token", "waits", "drafts"]
    store.apply(load_scenario("7b-8xa100-train"), "back")
    store.flush()
    assert card.figure.name in ("training", "curve")
    assert [button.text() for button in card.switch.findChildren(QToolButton) if button.isVisible()] == ["days", "step"]


def test_enter_on_a_bar_asks_for_the_working_of_its_result(qtbot: QtBot, grid: ChartGrid) -> None:
    plot = grid.chart("waterfall").plot
    names = [bar.name for bar in plot.figure.bars]
    for _ in range(names.index("exposed traffic") + 1):
        qtbot.keyClick(plot, Qt.Key.Key_Right)
    with qtbot.waitSignal(grid.explained) as asked:
        qtbot.keyClick(plot, Qt.Key.Key_Return)
    assert asked.args == ["time.exposed_communication_s"]
