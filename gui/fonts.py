"""The typeface of the window: Inter, shipped with the program, with figures of equal width."""

from __future__ import annotations

from importlib.resources import files

from PySide6.QtGui import QFont, QFontDatabase

from ..core.words import unbroken

FAMILY = "Inter"
SIZE = 13


def load() -> None:
    """Register the shipped fonts with Qt. Needs an application object; a font that fails leaves Qt's own choice."""
    folder = files("triledger.assets.fonts")
    for name in ("Inter-Regular.ttf", "Inter-SemiBold.ttf"):
        QFontDatabase.addApplicationFontFromData(folder.joinpath(name).read_bytes())


def font(size: int = SIZE, bold: bool = False, tabular: bool = True) -> QFont:
    """The typeface at a size in logical pixels.

    With `tabular` figures live numbers do not jump; hyphens become as wide as digits too, so words do without.
    """
    result = QFont(FAMILY)
    result.setPixelSize(size)
    result.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    # Hinted advances are whole pixels, which tears small text apart.
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    if tabular:
        result.setFeature(QFont.Tag("tnum"), 1)
    return result


def typeset(text: str) -> str:
    """The text with hyphens as wide as hyphens are: among tabular figures a hyphen-minus is as wide as a digit."""
    return text.replace("-", "\u2010")


def prose(text: str) -> str:
    """A sentence typeset, each number on the line of its unit."""
    return unbroken(typeset(text))
