"""Words in a chart: the end label of a bar gives way to the capacity line, leaders do not cross."""

from __future__ import annotations

from random import Random

import pytest

from triledger.core.figures.figure import Axis, Bar, Figure, Label, Mark, Rule
from triledger.core.figures.lettering import Text, letter
from triledger.core.figures.placement import crosses, leader, meet

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


def lettered(marks: tuple[Mark, ...], rules: tuple[Rule, ...] = (), height: float = 200) -> dict[str, Text]:
    figure = Figure("roofline", "", "", Axis("", 0, 100), Axis("", 0, 1), marks=marks, rules=rules)
    ground = (0, 0, WIDTH, height)
    return {text.text: text for text in letter(figure, lambda x, y: (x * WIDTH / 100, y * height), measure, ground)}


def test_the_label_of_a_rule_gives_way_to_that_of_the_plan() -> None:
    # room for one of the two
    knee = Rule("knee", "bound", "x", 10.0, "dashed", "knee 412")
    own = Mark("step", "compute", 8, 0.5, "ring", 8, "the whole step", bold=True)
    assert list(lettered((own,), (knee,), height=24)) == ["the whole step"]


def test_no_label_stands_on_the_line_that_leads_to_that_of_the_plan() -> None:
    scatter, led = Random(0), 0
    for _ in range(60):
        places = [(50 + scatter.uniform(-9, 9), 0.5 + scatter.uniform(-0.12, 0.12)) for _ in range(9)]
        others = tuple(Mark(f"m{i}", "memory", x, y, "dot", 8, f"op {i}") for i, (x, y) in enumerate(places))
        texts = lettered((Mark("step", "compute", 50, 0.5, "ring", 8, "the whole step", bold=True), *others))
        if (told := texts.pop("the whole step", None)) and told.leader:
            led += 1
            way = leader(told.box, (50 * WIDTH / 100, 100.0))
            assert not any(crosses(way, text.box) for text in texts.values())
    assert led > 5


def test_a_limit_has_its_label_before_the_steps_beside_it() -> None:
    steps = tuple(Mark(f"s{i}", "compute", 40 + 8 * i, 0.5, "dot", 6, f"{2**i} requests") for i in range(4))
    limit = Mark("full", "capacity", 52, 0.5, "hollow", 8, "12 fill the cache")
    texts = lettered((*steps, limit), height=60)
    assert "12 fill the cache" in texts
    assert len(texts) < len(steps) + 1
