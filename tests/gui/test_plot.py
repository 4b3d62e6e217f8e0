"""The plot: what is painted where, what the pointer and the keys do, and that nothing jumps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core.figures.figure import Axis, Band, Bar, Figure, Label, Line, Mark, Rule
from triledger.gui.plot import PlotView
from triledger.gui.plot.frame import TICK, held, rows_in, spaced, view_range, zoomed
from triledger.gui.plot.hover import anchor
from triledger.gui.theme import DARK, LIGHT

TICKS = tuple((x, f"{x:.0f}") for x in (0.0, 20.0, 40.0, 60.0, 80.0))
BARS = Figure(
    "memory",
    "Stage 0 holds the most",
    "GiB per GPU",
    Axis("GiB", 0.0, 80.0, ticks=TICKS),
    Axis("", -0.6, 1.6, categories=("stage 0", "stage 1")),
    bars=(
        Bar("weights", "weights", 0, 0.0, 40.0, hover="weights: 40 GiB, 50 %"),
        Bar("optimizer", "optimizer", 1, 0.0, 30.0, pattern="pale", hover="optimizer: 30 GiB"),
        Bar("over", "capacity", 1, 30.0, 30.0, pattern="hatched", hover="over: 30 GiB"),
    ),
    rules=(Rule("usable", "capacity", "x", 70.0, label="70 usable", hover="usable: 70 GiB"),),
    key=(("weights", "weights"), ("optimizer", "optimizer")),
)
DECADES = tuple((10.0**k, f"{10**k}") for k in range(4))
ROOF = Figure(
    "roofline",
    "Compute bound",
    "one GPU",
    Axis("FLOP/byte", 1.0, 1000.0, True, DECADES),
    Axis("TFLOP/s", 1e12, 1e15, True, tuple((at * 1e12, text) for at, text in DECADES), unit=1e12),
    lines=(Line("roof", "roof", (1.0, 100.0, 1000.0), (1e13, 1e15, 1e15), hover="the roof"),),
    bands=(Band("band", "prediction", (1.0, 1000.0), (2e12, 2e12), (8e12, 8e12), hover="the band"),),
    marks=(Mark("attention", "compute", 100.0, 3e13, label="attention", hover="attention: 30 TFLOP/s"),),
)


Show = Callable[[Figure], PlotView]


@pytest.fixture
def view(qtbot: QtBot) -> Show:
    def make(figure: Figure) -> PlotView:
        plot = PlotView(LIGHT)
        qtbot.addWidget(plot)
        plot.resize(500, 300)
        plot.show()
        plot.set_figure(figure)
        QApplication.processEvents()
        return plot

    return make


def point_to(view: PlotView, qtbot: QtBot, x: float, y: float) -> None:
    at = view.frame().pixel(x, y)
    qtbot.mouseMove(view.viewport(), QPoint(2, 2))
    qtbot.mouseMove(view.viewport(), QPoint(round(at[0]), round(at[1])))


def color_at(view: PlotView, x: float, y: float) -> QColor:
    px, py = view.frame().pixel(x, y)
    return view.grab().toImage().pixelColor(round(px), round(py))


def wheel(view: PlotView, x: float, y: float, steps: int = 1) -> QWheelEvent:
    at = QPointF(*view.frame().pixel(x, y))
    event = QWheelEvent(
        at,
        view.viewport().mapToGlobal(at),
        QPoint(),
        QPoint(0, 120 * steps),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.viewport(), event)
    return event


def test_a_bar_is_painted_in_its_colour_where_its_data_are(view: Show) -> None:
    plot = view(BARS)
    assert color_at(plot, 20.0, 0).name() == LIGHT.series("weights").name()
    assert color_at(plot, 50.0, 0).name() == LIGHT.surface


def test_hidden_and_overflowing_bars_look_different_from_solid_ones(view: Show) -> None:
    plot = view(BARS)
    pale = color_at(plot, 15.0, 1).name()
    assert pale not in (LIGHT.series("optimizer").name(), LIGHT.surface)
    image, frame = plot.grab().toImage(), plot.frame()
    row = round(frame.pixel_y(1.0))
    across = range(round(frame.pixel_x(32.0)), round(frame.pixel_x(58.0)))
    assert len({image.pixelColor(x, row).name() for x in across}) > 2


def test_a_theme_recolours_ground_and_bars(view: Show) -> None:
    plot = view(BARS)
    plot.set_theme(DARK)
    assert color_at(plot, 20.0, 0).name() == DARK.series("weights").name()
    assert color_at(plot, 50.0, 0).name() == DARK.surface


@pytest.mark.parametrize(
    ("figure", "x", "y", "words"),
    [
        (BARS, 20.0, 0, "weights: 40 GiB, 50 %"),
        (BARS, 70.0, 0, "usable: 70 GiB"),
        (ROOF, 100.0, 3e13, "attention: 30 TFLOP/s"),
        (ROOF, 10.0, 1e14, "the roof"),
        (ROOF, 10.0, 4e12, "the band"),
    ],
)
def test_the_pointer_learns_what_is_under_it(
    view: Show, qtbot: QtBot, figure: Figure, x: float, y: float, words: str
) -> None:
    plot = view(figure)
    point_to(plot, qtbot, x, y)
    assert plot.tip.isVisible()
    assert plot.tip.text() == words


def test_nothing_is_said_over_empty_ground(view: Show, qtbot: QtBot) -> None:
    plot = view(BARS)
    point_to(plot, qtbot, 20.0, 0)
    point_to(plot, qtbot, 55.0, 0)
    assert not plot.tip.isVisible()


def test_the_tip_stays_inside_the_plot_and_follows_new_numbers(view: Show, qtbot: QtBot) -> None:
    plot = view(BARS)
    point_to(plot, qtbot, 70.0, 0)
    assert plot.rect().contains(plot.tip.geometry())
    point_to(plot, qtbot, 20.0, 0)
    plot.set_figure(replace(BARS, bars=(replace(BARS.bars[0], hover="weights: 39 GiB"), *BARS.bars[1:])))
    assert plot.tip.text() == "weights: 39 GiB"
    plot.set_figure(replace(BARS, bars=BARS.bars[1:]))
    assert not plot.tip.isVisible()


def test_keys_walk_over_the_parts(view: Show, qtbot: QtBot) -> None:
    plot = view(BARS)
    said = []
    for _ in range(5):
        qtbot.keyClick(plot, Qt.Key.Key_Right)
        said.append(plot.tip.text())
    assert said == ["weights: 40 GiB, 50 %", "optimizer: 30 GiB", "over: 30 GiB", "usable: 70 GiB", said[0]]
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert plot.tip.text() == "usable: 70 GiB"
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert not plot.tip.isVisible()


def test_a_click_on_a_linked_bar_asks_for_its_result(view: Show, qtbot: QtBot) -> None:
    linked = replace(BARS, bars=(replace(BARS.bars[0], link="memory.weights_bytes"), *BARS.bars[1:]))
    plot, asked = view(linked), []
    plot.asked.connect(asked.append)
    for x, row in ((20.0, 0), (10.0, 1)):
        point_to(plot, qtbot, x, row)
        at = QPoint(*map(round, plot.frame().pixel(x, row)))
        qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert asked == ["memory.weights_bytes"]


@pytest.mark.parametrize("back", ["double click", "R", "Home"])
def test_the_wheel_zooms_at_the_pointer_and_the_whole_comes_back(view: Show, qtbot: QtBot, back: str) -> None:
    plot = view(ROOF)
    whole, at = plot.frame().x_range, plot.frame().pixel(100.0, 3e13)
    wheel(plot, 100.0, 3e13, 3)
    low, high = plot.frame().x_range
    assert high - low < whole[1] - whole[0]
    assert plot.frame().pixel(100.0, 3e13) == pytest.approx(at, abs=1.0)
    if back == "double click":
        qtbot.mouseDClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(200, 100))
    else:
        qtbot.keyClick(plot, Qt.Key.Key_R if back == "R" else Qt.Key.Key_Home)
    assert plot.frame().x_range == pytest.approx(whole)


def test_a_zoomed_axis_has_ticks_for_what_is_visible(view: Show) -> None:
    plot = view(ROOF)
    wheel(plot, 100.0, 3e13, 20)
    frame = plot.frame()
    low, high = frame.y_range
    assert high - low < 1.0
    visible = [float(text) for at, text in frame.y.ticks if low <= frame.y.view(at) <= high]
    assert len(visible) >= 2
    assert all(1 <= value <= 1000 for value in visible)


def test_panning_never_loses_the_data(view: Show, qtbot: QtBot) -> None:
    plot = view(ROOF)
    wheel(plot, 100.0, 3e13, 20)
    for _ in range(12):
        qtbot.mousePress(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(60, 40))
        for step in range(1, 9):
            qtbot.mouseMove(plot.viewport(), QPoint(60 + 50 * step, 40 + 25 * step))
        qtbot.mouseRelease(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(460, 240))
    low, high = plot.frame().x_range
    assert low < view_range(ROOF.x)[0] + 0.5, "it did move"
    assert high > view_range(ROOF.x)[0]
    assert plot.frame().y_range[0] < view_range(ROOF.y)[1]


def test_bars_do_not_zoom_and_leave_the_wheel_to_what_is_around(view: Show) -> None:
    plot = view(BARS)
    before = plot.frame().x_range
    assert not wheel(plot, 20.0, 0, 3).isAccepted()
    assert plot.frame().x_range == before


def test_labels_behind_bars_end_inside_the_plot(view: Show) -> None:
    label = Label("40.0 GiB in 2.8 s, of it 2.1 s exposed", 40.0, 0, bold=True)
    tight = replace(BARS, x=replace(BARS.x, high=44.0, ticks=TICKS[:3]), rules=(), labels=(label,))
    plot = view(tight)
    frame = plot.frame()
    assert frame.pixel_x(40.0) + plot.ink.text(label.text, True).width < frame.right
    shorter = replace(tight, labels=(replace(label, text="40.0 GiB"),))
    at = frame.pixel_x(40.0)
    plot.set_figure(shorter, settle=False)
    assert plot.frame().pixel_x(40.0) == at, "bars stand still while labels change"
    plot.set_figure(shorter)
    assert plot.frame().pixel_x(40.0) > at


MANY = replace(
    BARS,
    y=Axis("", -0.6, 19.4, categories=tuple(f"stage {n}" for n in range(20))),
    bars=tuple(Bar(f"bar {n}", "weights", n, 0.0, 40.0, hover=f"bar {n}") for n in range(20)),
    rules=(),
)


def test_rows_that_do_not_fit_are_scrolled_to(view: Show) -> None:
    plot = view(MANY)
    low, high = plot.frame().y_range
    assert low == MANY.y.low
    assert high - low < 20
    assert wheel(plot, 20.0, 1, -3).isAccepted()
    assert plot.frame().y_range == pytest.approx((low + 3, high + 3))
    wheel(plot, 20.0, 5, -100)
    assert plot.frame().y_range[1] == pytest.approx(MANY.y.high)
    plot.reset_view()
    assert plot.frame().y_range[0] == MANY.y.low


@pytest.mark.parametrize("rows", [2, 7, 20])
def test_rows_that_fit_a_little_closer_are_all_shown(rows: int) -> None:
    axis = Axis("", -0.6, rows - 0.4, categories=("row",) * rows)
    assert rows_in(axis, 19 * rows) == axis.high - axis.low
    assert rows_in(axis, 14 * rows) < rows


def test_ticks_of_a_low_chart_keep_off_one_another(view: Show) -> None:
    rates = (1e12, 1e13, 1e14, 6e14, 1e15)
    axis = replace(ROOF.y, ticks=tuple((rate, f"{rate / 1e12:.0f}") for rate in rates))
    assert spaced(axis, (12.0, 15.0), 300) == axis
    assert [text for _, text in spaced(axis, (12.0, 15.0), 45).ticks] == ["1", "10", "100", "1000"]
    plot = view(replace(ROOF, y=axis))
    plot.resize(500, 120)
    frame = plot.frame()
    at = [frame.pixel_y(position) for position, _ in frame.y.ticks]
    assert all(low - high >= TICK + 3 for low, high in itertools.pairwise(at))
    assert frame.y.ticks[-1][1] == "1000"


def test_the_words_on_rows_out_of_sight_lie_on_no_other(view: Show) -> None:
    labels = tuple(Label(f"row {row} of many, a long label", 40.0, row, bold=True) for row in range(20))
    plot = view(replace(MANY, labels=labels))
    plot.frame()
    _, low, right, _ = plot.frame().bounds
    below = plot.ink.text("15 more below", size=TICK)
    corner = (right - below.width, low, right, low + below.height)
    for text in plot._texts:
        assert text.box[2] < corner[0] or text.box[1] > corner[3]


def test_a_row_that_is_the_result_is_in_sight_until_a_person_scrolls(view: Show) -> None:
    fullest = replace(MANY.bars[15], link="memory.weights_bytes")
    plot = view(replace(MANY, bars=(*MANY.bars[:15], fullest, *MANY.bars[16:])))
    low, high = plot.frame().y_range
    assert low < 15 < high
    wheel(plot, 20.0, low + 1, 100)
    assert plot.frame().y_range[0] == MANY.y.low


def test_keys_bring_rows_out_of_sight_into_it(view: Show, qtbot: QtBot) -> None:
    plot = view(MANY)
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert plot.tip.text() == "bar 19"
    assert plot.frame().y_range[1] == pytest.approx(MANY.y.high)


def test_a_taller_plot_shows_more_rows(view: Show) -> None:
    plot = view(MANY)
    before = plot.frame().y_range
    plot.resize(500, 700)
    assert plot.frame().y_range[1] > before[1]
    assert plot.frame().y_range[1] == MANY.y.high


def test_a_moved_view_stays_when_the_numbers_change(view: Show) -> None:
    plot = view(ROOF)
    wheel(plot, 100.0, 3e13, 3)
    moved = plot.frame().x_range
    plot.set_figure(replace(ROOF, marks=()), settle=False)
    assert plot.frame().x_range == pytest.approx(moved)


def test_axes_grow_at_once_and_shrink_only_when_settled(view: Show) -> None:
    plot = view(BARS)
    at = plot.frame().pixel_x(40.0)
    shorter = replace(BARS, x=replace(BARS.x, high=50.0, ticks=TICKS[:3]))
    plot.set_figure(shorter, settle=False)
    assert plot.frame().pixel_x(40.0) == at
    plot.set_figure(replace(BARS, x=replace(BARS.x, high=160.0)), settle=False)
    assert plot.frame().x_range == (0.0, 160.0)
    plot.set_figure(shorter, settle=False)
    assert plot.frame().x_range == (0.0, 160.0)
    plot.set_figure(shorter)
    assert plot.frame().x_range == (0.0, 50.0)


def test_held_axes_keep_ticks_over_their_whole_length() -> None:
    shorter = Axis("GiB", 0.0, 50.0, ticks=TICKS[:3])
    assert held(BARS.x, shorter).ticks == TICKS
    assert held(shorter, BARS.x) == BARS.x
    assert held(ROOF.x, shorter) == shorter


def test_zooming_leaves_the_whole_axis_as_it_is() -> None:
    assert zoomed(ROOF.x, view_range(ROOF.x)) is ROOF.x
    assert [text for _, text in zoomed(BARS.x, (10.0, 20.0)).ticks] == ["10", "12", "14", "16", "18", "20"]


def test_an_equal_figure_is_not_painted_again(view: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    plot = view(BARS)
    painted = []
    monkeypatch.setattr(plot, "paint", painted.append)
    plot.set_figure(replace(BARS))
    QApplication.processEvents()
    assert painted == []
    plot.set_figure(replace(BARS, bars=BARS.bars[:1]))
    QApplication.processEvents()
    assert len(painted) == 1


def test_a_figure_with_nothing_to_draw_says_so(view: Show) -> None:
    plot = view(Figure("communication", "Nothing is sent", "", Axis(), Axis(), empty="One GPU: nothing to send."))
    image = plot.grab().toImage()
    middle = {image.pixelColor(x, y).name() for x in range(150, 350) for y in range(130, 170)}
    assert len(middle) > 2
    assert not plot.zoomable


def test_a_part_is_hit_where_its_anchor_is(view: Show) -> None:
    plot = view(ROOF)
    for part in (*ROOF.marks, *ROOF.lines):
        x, y = anchor(part, plot.frame())
        assert plot.frame().left <= x <= plot.frame().right
        assert plot.frame().top - 1 <= y <= plot.frame().bottom
