"""Words in a chart: the end label of a bar gives way to the capacity line, leaders do not cross."""

from __future__ import annotations

from random import Random

import pytest

from triledger.core.figures.figure import Axis, Bar, Figure, Label, Mark, Rule
from triledger.core.figures.lettering import Text, letter
from triledger.core.figures.placement import leader, meet

WIDTH = 400.0


def measure(text: str, bold: bool) -> tuple[float, float]:
    return 7.0 * len(text), 14.0


def pixel(x: float, y: float) -> tuple[float, float]:
    return x * WIDTH / 100, 100 - 40 * y


def end_label(length: float) -> Text:
    figure = Figure(
        "memory", "", "", Axis("", 0, 100), Axis("", -0.6, 0.6, categories=("each GPU",)),
        bars=(Bar("weights", "weights", 0.0, 0.0, length),),
        rules=(Rule("usable", "capacity", "x", 70.0, "solid", "usable"),),
        labels=(Label("60.9 GiB", length, 0.0),),
    )  # fmt: skip
    return next(text for text in letter(figure, pixel, measure, (0, 0, WIDTH, 200)) if text.text == "60.9 GiB")


@pytest.mark.parametrize("length", [50, 56, 60, 66, 69.9])
def test_the_end_label_of_a_bar_never_stands_on_the_capacity_line(length: float) -> None:
    left, _, right, _ = end_label(length).box
    line = 70 * WIDTH / 100
    assert right < line or left > line
    assert left >= length * WIDTH / 100


def test_where_nothing_is_in_the_way_the_label_stands_at_the_end_of_its_bar() -> None:
    assert end_label(20).box[0] == pytest.approx(20 * WIDTH / 100 + 4)
    assert end_label(80).box[0] == pytest.approx(80 * WIDTH / 100 + 4)


def test_lines_from_labels_to_crowded_marks_do_not_cross() -> None:
    # a crowd in which the leaders would cross if nothing kept them apart
    scatter = Random(0)
    places = [(50 + scatter.uniform(-6, 6), scatter.uniform(-0.25, 0.25)) for _ in range(9)]
    marks = tuple(Mark(f"m{i}", "compute", x, y, "dot", 8, f"operator {i}") for i, (x, y) in enumerate(places))
    figure = Figure("roofline", "", "", Axis("", 0, 100), Axis("", -1, 1), marks=marks)
    placed = {text.text: text for text in letter(figure, pixel, measure, (0, 0, WIDTH, 200))}
    ways = [leader(placed[mark.label].box, pixel(mark.x, mark.y)) for mark in marks if mark.label in placed]
    assert len(ways) >= 3
    assert not any(meet(first, second) for i, first in enumerate(ways) for second in ways[:i])
