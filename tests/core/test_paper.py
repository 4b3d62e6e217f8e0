"""Charts as files: readable, complete, the same every time, and written whole or not at all."""

from __future__ import annotations

import csv
import struct
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from tests.core.figure_reports import every_figure, training_report
from triledger.core.errors import OutputError
from triledger.core.export import write_figure
from triledger.core.figures.figure import Axis, Figure
from triledger.core.figures.ground import THEMES
from triledger.core.figures.memory import memory
from triledger.core.figures.roofline import roofline
from triledger.core.paper import HEIGHT, WIDTH, draw, render

FIGURE_NAMES = list(every_figure())
LONG = (
    "A plan with a name that somebody wrote as a whole sentence, with every number of the meeting in it, 70B on 64×H100"
)


def boxes(figure: Figure, theme: str = "print") -> dict[str, list[tuple[float, float, float, float]]]:
    """Where each text of the sheet lies, in points: left, low, right, high."""
    sheet = draw(figure, theme)
    result: dict[str, list[tuple[float, float, float, float]]] = {}
    for text in sheet.axes[0].findobj(Text):
        if isinstance(text, Text) and text.get_text():
            extent = text.get_window_extent().transformed(sheet.dpi_scale_trans.inverted())
            box = tuple(72 * edge for edge in (extent.x0, extent.y0, extent.x1, extent.y1))
            result.setdefault(text.get_text(), []).append(box)  # pyright: ignore[reportArgumentType]
    return result


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_no_text_is_clipped_and_none_lies_on_another(name: str) -> None:
    placed = [(text, box) for text, found in boxes(every_figure()[name]).items() for box in found]
    for index, (text, (left, low, right, high)) in enumerate(placed):
        assert left >= 0, text
        assert low >= 0, text
        assert right <= WIDTH, text
        assert high <= HEIGHT, text
        for other, box in placed[:index]:
            across = min(right, box[2]) - max(left, box[0])
            up = min(high, box[3]) - max(low, box[1])
            assert across <= 0 or up <= 2.5, (text, other)


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_the_sheet_says_title_plan_and_axes(name: str) -> None:
    figure = every_figure()[name]
    words = set(boxes(figure))
    assert figure.title.split()[0] in " ".join(words)
    assert figure.scenario in words
    if figure.empty:
        assert figure.empty in words
    else:
        assert figure.x.label in words
        assert {text for _, text in figure.x.ticks} <= words
        assert {text for _, text in figure.key} <= words


def test_letters_are_six_points_or_more_on_half_the_size() -> None:
    for figure in every_figure().values():
        texts = [text for text in draw(figure).axes[0].findobj(Text) if isinstance(text, Text) and text.get_text()]
        assert min(text.get_fontsize() for text in texts) / 2 >= 6


def test_the_present_plan_is_always_named() -> None:
    for figure in every_figure().values():
        bold = {mark.label for mark in figure.marks if mark.bold}
        assert bold <= set(boxes(figure))


def test_a_long_title_wraps_and_a_long_word_is_cut() -> None:
    figure = replace(roofline(training_report()), title=LONG, scenario="x" * 500)
    found = boxes(figure)
    lines = [text for text in found if text in LONG]
    assert len(lines) > 1
    assert set(LONG.split()) <= set(" ".join(lines).split())
    assert all(box[2] <= WIDTH for text in found for box in found[text])


@pytest.mark.parametrize("words", range(6, 14))
def test_a_number_keeps_its_unit_where_a_title_wraps(words: int) -> None:
    title = " ".join(["42 % of 10 GiB"] * words)
    lines = [text for text in boxes(replace(roofline(training_report()), title=title)) if "42" in text]
    assert not any(line.startswith(("%", "GiB")) or line.endswith(("42", "10")) for line in lines)


def test_letters_that_no_font_has_do_not_stop_a_chart() -> None:
    assert render(replace(roofline(training_report()), scenario="七百亿 \U000f0000"), "svg")


@pytest.mark.parametrize("theme", list(THEMES))
def test_the_sheet_has_the_ground_of_its_theme(theme: str) -> None:
    sheet = draw(memory(training_report()), theme)
    red, green, blue, _ = sheet.get_facecolor()
    assert f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}" == THEMES[theme].surface
    faces = {tuple(p.get_facecolor()) for p in sheet.axes[0].patches if isinstance(p, Rectangle)}
    assert len(faces) > 4


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_the_same_chart_gives_the_same_bytes(suffix: str) -> None:
    figure = roofline(training_report())
    assert render(figure, suffix) == render(figure, suffix)


def test_a_persons_own_matplotlib_settings_change_nothing() -> None:
    import matplotlib

    figure = roofline(training_report())
    expected = render(figure, "svg")
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "none", "axes.facecolor": "red"}):
        assert render(figure, "svg") == expected
        assert matplotlib.rcParams["font.size"] == 30


# ---------------------------------------------------------------- files


def test_files_are_of_the_kind_their_suffix_says(tmp_path: Path) -> None:
    figure = roofline(training_report())
    for suffix in ("svg", "pdf", "png", "csv", "PNG"):
        write_figure(figure, tmp_path / f"chart.{suffix}")
    svg = ElementTree.fromstring((tmp_path / "chart.svg").read_bytes())
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert figure.title in "".join(svg.itertext())
    assert (tmp_path / "chart.pdf").read_bytes().startswith(b"%PDF-")
    assert b"CreationDate" not in (tmp_path / "chart.pdf").read_bytes()
    assert (tmp_path / "chart.PNG").read_bytes() == (tmp_path / "chart.png").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "chart.PNG", "chart.csv", "chart.pdf", "chart.png", "chart.svg",
    ]  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_scale_is_pixels_for_each_96th_of_an_inch(tmp_path: Path, scale: float) -> None:
    write_figure(roofline(training_report()), tmp_path / "chart.png", scale=scale)
    width, height = struct.unpack(">II", (tmp_path / "chart.png").read_bytes()[16:24])
    assert width == pytest.approx(WIDTH / 72 * 96 * scale, abs=1)
    assert height == pytest.approx(HEIGHT / 72 * 96 * scale, abs=1)


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_csv_reads_back_to_the_very_numbers(name: str, tmp_path: Path) -> None:
    figure = every_figure()[name]
    write_figure(figure, tmp_path / "chart.csv")
    with open(tmp_path / "chart.csv", encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file)) or [[]]
    assert tuple(head) == figure.columns
    assert len(rows) == len(figure.rows)
    for written, row in zip(rows, figure.rows, strict=True):
        for text, cell in zip(written, row, strict=True):
            assert text == cell if isinstance(cell, str) else float(text) == cell


def test_heads_of_columns_carry_units() -> None:
    heads = [head for figure in every_figure().values() for head in figure.columns]
    for unit in ("[B]", "[s]", "[FLOP/s]", "[FLOP/B]", "[days]"):
        assert any(unit in head for head in heads), unit


def test_an_unknown_suffix_is_refused_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"chart\.gif: a chart is written as \.svg, \.png, \.pdf, \.csv") as refusal:
        write_figure(roofline(training_report()), tmp_path / "chart.gif")
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no such file or directory") as refusal:
        write_figure(roofline(training_report()), tmp_path / "missing" / "chart.svg")
    assert "\n" not in str(refusal.value)
    (tmp_path / "chart.csv").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        write_figure(roofline(training_report()), tmp_path / "chart.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["chart.csv"]


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    write_figure(roofline(training_report()), path)
    before = path.read_bytes()
    broken = Figure("broken", "broken", "", Axis(high=1.0), Axis(high=1.0), lines=(), key=(("no such series", "x"),))
    with pytest.raises(KeyError):
        write_figure(broken, path)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["chart.png"]


def test_writing_through_a_link_changes_the_file_behind_it(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_figure(roofline(training_report()), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() != "old"
