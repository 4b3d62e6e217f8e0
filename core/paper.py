"""Figures on paper: SVG, PDF and PNG through matplotlib, sized to stay readable at half their width.

A picture is 16 cm wide with texts of 12 to 15 points, so that it can stand in one column of a report or fill a slide.
Everything is painted in points of 1/72 inch on one sheet-wide Axes; matplotlib's own ticks and legends are not used.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from .figures.colour import ink_on, legible
from .figures.figure import Bar, Figure, Mark
from .figures.ground import THEMES, Ground, Plot
from .figures.lettering import Text, letter
from .figures.placement import Box, leader
from .words import unbroken

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure as Sheet
    from matplotlib.font_manager import FontProperties

Point = tuple[float, float]

#: Points of 1/72 inch.
WIDTH, HEIGHT = 16 / 2.54 * 72, 11.2 / 2.54 * 72
_MARGIN, _GAP = 12.0, 6.0
_TITLE, _TEXT, _FOOT = 15.0, 12.0, 12.0
_LINE = 1.25
_BAND = 0.2
_DASHES = {"solid": "solid", "dashed": (0, (4, 2.5)), "dotted": (0, (1, 1.8))}
#: Families that hold Chinese, wherever one is installed.
_CHINESE = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "SimHei",
            "WenQuanYi Zen Hei")  # fmt: skip


def render(figure: Figure, file_format: str, theme: str = "print", scale: float = 2.0) -> bytes:
    """The picture as the content of an svg, pdf or png file; the same figure gives the same bytes.

    scale: pixels of a png for each 1/96 inch.
    """
    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Title": figure.title, "Creator": "Triledger", "Date": None},
        "pdf": {"Title": figure.title, "Creator": "Triledger", "Producer": None, "CreationDate": None},
        "png": {"Title": figure.title, "Software": "Triledger"},
    }
    stream = io.BytesIO()
    sheet = draw(figure, theme)
    with _settings():
        sheet.savefig(stream, format=file_format, dpi=96 * scale, metadata=metadata[file_format])
    return stream.getvalue()


def draw(figure: Figure, theme: str = "print") -> Sheet:
    """The figure as a matplotlib Figure of 16 by 11.2 cm; theme is print, light or dark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as NewSheet

    ground = THEMES[theme]
    with _settings():
        sheet = NewSheet((WIDTH / 72, HEIGHT / 72), dpi=96, facecolor=ground.surface)
        FigureCanvasAgg(sheet)
        _Painter(sheet, ground).paint(figure)
    return sheet


@contextmanager
def _settings() -> Iterator[None]:
    """matplotlib as it is shipped, whatever the person's own settings, and with nothing that varies from run to run.

    Letters of an SVG are outlines: it looks the same where the font is missing. Those of a PDF stay text.
    """
    import warnings

    import matplotlib

    fixed: dict[Any, Any] = {
        "svg.hashsalt": "triledger",
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
        "hatch.linewidth": 1.4,
        "text.hinting": "none",
    }
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(fixed)
        # a name in letters that no installed font has is drawn as boxes
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


@cache
def _faces() -> tuple[FontProperties, FontProperties]:
    """The regular and the bold face: the bundled Inter, with what the machine has for letters that Inter lacks."""
    from matplotlib.font_manager import FontProperties, fontManager

    for name in ("Inter-Regular.ttf", "Inter-SemiBold.ttf"):
        with as_file(files("triledger.assets.fonts").joinpath(name)) as path:
            fontManager.addfont(path)
    installed = {font.name for font in fontManager.ttflist}
    others = [*[name for name in _CHINESE if name in installed][:1], "DejaVu Sans"]
    return FontProperties(family=["Inter", *others]), FontProperties(family=["Inter SemiBold", *others])


class _Painter:
    """Paints one figure on one sheet: words from the edges inwards, then the plot in what is left."""

    def __init__(self, sheet: Sheet, ground: Ground) -> None:
        from matplotlib.textpath import TextToPath

        self.ground = ground
        self.faces = _faces()
        self.text_size = TextToPath().get_text_width_height_descent
        self.axes = sheet.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
        self.axes.set_axis_off()

    def paint(self, figure: Figure) -> None:
        top = self.heading(figure)
        bottom = self.footing(figure)
        if figure.empty:
            self.write(figure.empty, WIDTH / 2, (top + bottom) / 2, self.ground.muted, align="center")
            return
        plot = self.frame(figure, top, bottom)
        for band in figure.bands:
            corners = [plot.pixel(x, y) for x, y in zip(band.x, band.low, strict=True)]
            corners += [plot.pixel(x, y) for x, y in reversed(list(zip(band.x, band.high, strict=True)))]
            self.polygon(corners, self.ground.pale(band.series, _BAND), plot)
        for bar in figure.bars:
            self.bar(bar, plot)
        for rule in figure.rules:
            (x, y), (left, low, right, high) = plot.pixel(rule.at, rule.at), plot.box
            ends = ((x, low), (x, high)) if rule.across == "x" else ((left, y), (right, y))
            self.line(ends, self.ground.series(rule.series), 1.2, rule.style)
        for line in figure.lines:
            corners = [plot.pixel(x, y) for x, y in zip(line.x, line.y, strict=True)]
            self.line(corners, self.ground.series(line.series), line.width, line.style, plot)
        for mark in figure.marks:
            self.mark(mark, *plot.pixel(mark.x, mark.y))
        for text in letter(figure, plot.pixel, self.measure, plot.box):
            self.letter(text)

    def heading(self, figure: Figure) -> float:
        """Title and subtitle, wrapped; answers how far down they reach."""
        y = HEIGHT - _MARGIN
        words = ((figure.title, True, _TITLE, self.ground.text), (figure.subtitle, False, _TEXT, self.ground.muted))
        for text, bold, size, color in words:
            for line in self.wrapped(text, bold, size):
                y -= size * _LINE
                self.write(line, _MARGIN, y + size * 0.6, color, bold, size)
        return y - _GAP

    def footing(self, figure: Figure) -> float:
        """The scenario's name, over it the key with the x axis's label on the right; answers how far up they reach."""
        y = _MARGIN - 2
        for name in self.wrapped(figure.scenario, False, _FOOT)[:1]:
            self.write(name, _MARGIN, y + _FOOT * 0.4, self.ground.muted, size=_FOOT)
            y += _FOOT * _LINE + 4
        label = self.measure(figure.x.label)[0]
        rows = self.key_rows(figure, label)
        for row in reversed(rows):
            for x, series, text in row:
                self.polygon(_corners((x, y + 1, x + 9, y + 10)), self.ground.series(series))
                self.write(text, x + 14, y + 5.5, self.ground.text)
            y += _TEXT * 1.35
        if label:
            self.write(figure.x.label, WIDTH - _MARGIN - label, y - _TEXT * 1.35 + 5.5, self.ground.muted)
        return y + _GAP / 2

    def key_rows(self, figure: Figure, label: float) -> list[list[tuple[float, str, str]]]:
        """(left end, series, text) of the key's entries, row by row; the first row has room for the axis label."""
        rows: list[list[tuple[float, str, str]]] = [[]]
        x, end = _MARGIN, WIDTH - _MARGIN - (label + 14 if label else 0.0)
        for series, text in figure.key:
            width = 14 + self.measure(text)[0]
            if x + width > end:
                rows.append([])
                x, end = _MARGIN, WIDTH - _MARGIN
            rows[-1].append((x, series, text))
            x += width + 14
        return rows if figure.key or label else []

    def frame(self, figure: Figure, top: float, bottom: float) -> Plot:
        """Axes, grid and ticks; answers where the data land."""
        muted, x_axis, y_axis = self.ground.muted, figure.x, figure.y
        if y_axis.label:
            self.write(y_axis.label, _MARGIN, top - _TEXT / 2, muted)
            top -= _TEXT * 1.6
        low = bottom + _TEXT * 1.5
        names = () if y_axis.above else tuple(enumerate(y_axis.categories))
        ticks = names or y_axis.ticks
        left = _MARGIN + max((self.measure(text)[0] + 7 for _, text in ticks), default=0.0)
        last = self.measure(x_axis.ticks[-1][1])[0] / 2 if x_axis.ticks else 0.0
        plot = Plot((left, low, WIDTH - _MARGIN - last, top), x_axis, y_axis)
        for at, text in x_axis.ticks:
            x, _ = plot.pixel(at, y_axis.low)
            self.line(((x, low), (x, top)), self.ground.grid, 0.8)
            self.write(text, x, low - _TEXT * 0.8, muted, align="center")
        for at, text in ticks:
            _, y = plot.pixel(x_axis.low, at)
            if not names:
                self.line(((left, y), (plot.box[2], y)), self.ground.grid, 0.8)
            self.write(text, left - 7 - self.measure(text)[0], y, self.ground.text if names else muted)
        self.line(((left, top), (left, low)), muted, 0.9)
        if not names:
            self.line(((left, low), (plot.box[2], low)), muted, 0.9)
        return plot

    # ---------------------------------------------------------------- shapes

    def bar(self, bar: Bar, plot: Plot) -> None:
        from matplotlib.patches import Rectangle

        (left, low), (right, high) = (
            plot.pixel(bar.start, bar.row + bar.height / 2),
            plot.pixel(bar.start + bar.length, bar.row - bar.height / 2),
        )
        color, pale = self.ground.series(bar.series), self.ground.pale(bar.series)
        looks: dict[str, dict[str, Any]] = {
            "solid": {"facecolor": color, "linewidth": 0},
            "pale": {"facecolor": pale, "linewidth": 0},
            "hatched": {"facecolor": self.ground.surface, "edgecolor": color, "linewidth": 1.0, "hatch": "////"},
            "ghost": {"facecolor": "none", "edgecolor": color, "linewidth": 1.0, "linestyle": (0, (3, 2))},
        }
        self.put(Rectangle((left, low), right - left, high - low, **looks[bar.pattern]))

    def mark(self, mark: Mark, x: float, y: float) -> None:
        from matplotlib.patches import Circle

        color = self.ground.series(mark.series)
        looks = {
            "dot": {"facecolor": color, "edgecolor": self.ground.surface, "linewidth": 0.7},
            "ring": {"facecolor": self.ground.surface, "edgecolor": color, "linewidth": 2.8},
            "hollow": {"facecolor": self.ground.surface, "edgecolor": color, "linewidth": 1.5},
        }
        inset = {"dot": 0.0, "ring": 1.4, "hollow": 0.7}[mark.shape]
        self.put(Circle((x, y), mark.size / 2 - inset, **looks[mark.shape]))

    def polygon(self, corners: Sequence[Point], color: str, plot: Plot | None = None) -> None:
        from matplotlib.patches import Polygon

        self.put(Polygon(corners, closed=True, facecolor=color, linewidth=0), plot)

    def line(
        self, corners: Sequence[Point], color: str, width: float, style: str = "solid", plot: Plot | None = None
    ) -> None:
        from matplotlib.lines import Line2D

        x, y = zip(*corners, strict=True)
        line = Line2D(
            x, y, color=color, linewidth=width, linestyle=_DASHES[style], solid_joinstyle="round", solid_capstyle="butt"
        )
        self.put(line, plot)

    def put(self, artist: Artist, plot: Plot | None = None) -> None:
        """Adds a shape on top of everything that is there, cut off at the plot's edges when a plot is given."""
        from matplotlib.patches import Rectangle

        self.axes.add_artist(artist)
        artist.set_zorder(len(self.axes.get_children()))
        if plot:
            left, low, right, high = plot.box
            artist.set_clip_path(Rectangle((left, low), right - left, high - low, transform=self.axes.transData))

    # ---------------------------------------------------------------- words

    def measure(self, text: str, bold: bool = False, size: float = _TEXT) -> tuple[float, float]:
        face = self.faces[bold].copy()
        face.set_size(size)
        return self.text_size(text, face, False)[0], size * 1.15

    def wrapped(self, text: str, bold: bool, size: float) -> list[str]:
        """The text in lines that fit the sheet; a word that is too long by itself is cut."""
        lines: list[str] = []
        for word in filter(None, unbroken(text).split(" ")):
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.fits(longer, bold, size):
                lines[-1] = longer
            else:
                lines.append(self.cut(word, bold, size))
        return lines

    def fits(self, text: str, bold: bool, size: float) -> bool:
        return self.measure(text, bold, size)[0] <= WIDTH - 2 * _MARGIN

    def cut(self, word: str, bold: bool, size: float) -> str:
        if len(word) < 200 and self.fits(word, bold, size):
            return word
        return next(f"{word[:end]}…" for end in range(200, -1, -1) if self.fits(f"{word[:end]}…", bold, size))

    def letter(self, text: Text) -> None:
        left, low, right, high = text.box
        if text.leader:
            x0, y0, x1, y1 = leader(text.box, text.leader)
            self.line(((x0, y0), (x1, y1)), self.ground.muted, 0.6)
        if text.patch:
            self.polygon(_corners((left - 1, low + 2, right + 1, high - 2)), self.ground.surface)
        on = self.ground.series(text.on) if text.on else ""
        color = ink_on(on) if on else legible(self.ground.series(text.series), self.ground.surface)
        self.write(text.text, left, (low + high) / 2, color, text.bold)

    def write(
        self,
        text: str,
        x: float,
        middle: float,
        color: str,
        bold: bool = False,
        size: float = _TEXT,
        align: str = "left",
    ) -> None:
        """A text whose capitals are centred on a height."""
        from matplotlib.text import Text as Lettering

        looks: dict[str, Any] = {"color": color, "fontproperties": self.faces[bold], "fontsize": size, "ha": align}
        self.put(Lettering(x, middle - 0.36 * size, text, va="baseline", parse_math=False, **looks))


def _corners(box: Box) -> Sequence[Point]:
    left, low, right, high = box
    return (left, low), (right, low), (right, high), (left, high)
