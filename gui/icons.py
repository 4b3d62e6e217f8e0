"""The few icons of the window: strokes in a box of 16 by 16, in the colour of the theme."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

_STROKES = {
    "undo": "M6 3.5 2.8 6.7 6 9.9 M2.8 6.7H9.5a3.6 3.6 0 0 1 0 7.2H7",
    "redo": "M10 3.5 13.2 6.7 10 9.9 M13.2 6.7H6.5a3.6 3.6 0 0 0 0 7.2H9",
    "dark": "M13.2 9.7A5.8 5.8 0 0 1 6.3 2.8a5.8 5.8 0 1 0 6.9 6.9z",
    "light": "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6z M8 1.2v1.6 M8 13.2v1.6 M1.2 8h1.6 M13.2 8h1.6 "
    "M3.2 3.2l1.1 1.1 M11.7 11.7l1.1 1.1 M3.2 12.8l1.1-1.1 M11.7 4.3l1.1-1.1",
    "down": "M4.5 6.5 8 10 11.5 6.5",
    "right": "M6.5 4.5 10 8 6.5 11.5",
    "float": "M4 6.5h5.5V12H4z M6.5 6.5V4H12v5.5H9.5",
    "close": "M4.5 4.5l7 7 M11.5 4.5l-7 7",
}
_SIZE = 16
#: Pixels are made for screens of up to this scale.
_SCALE = 3


def icon(name: str, color: str) -> QIcon:
    """An icon in a colour such as "#5b6675"."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="{color}" '
        f'stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"><path d="{_STROKES[name]}"/></svg>'
    )
    pixels = QPixmap(_SIZE * _SCALE, _SIZE * _SCALE)
    pixels.setDevicePixelRatio(_SCALE)
    pixels.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixels)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, _SIZE, _SIZE))
    painter.end()
    return QIcon(pixels)
