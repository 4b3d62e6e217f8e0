"""Colours of the series and of what stands on them, as "#rrggbb"."""

from __future__ import annotations

from .figure import SERIES


def colour(series: str, dark: bool = False) -> str:
    """The colour of a series on a light or a dark ground."""
    return SERIES[series][dark]


def channels(code: str) -> tuple[int, int, int]:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


def mixed(code: str, ground: str, share: float) -> str:
    """`share` of a colour on top of a ground, as one opaque colour: no renderer needs transparency."""
    parts = (round(share * a + (1 - share) * b) for a, b in zip(channels(code), channels(ground), strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def luminance(code: str) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(code)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def ink_on(code: str) -> str:
    """White or near black, whichever reads better on a colour."""
    return max("#ffffff", "#111827", key=lambda ink: contrast(ink, code))


def legible(code: str, ground: str) -> str:
    """The colour, moved towards black or white until text in it reaches a contrast of 4.5 on a ground."""
    ink = ink_on(ground)
    shades = (mixed(code, ink, 1 - step / 10) for step in range(11))
    return next((shade for shade in shades if contrast(shade, ground) >= 4.5), ink)
