"""What the model of the plan is made of: a cell a layer, coloured by kind, with its sizes in words below."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ..core.model.anatomy import FEED_FORWARD, MIXING, Anatomy, Part, Stretch, anatomy
from ..core.model.layers import build
from ..core.model.spec import ModelSpec
from .ink import Ink
from .store import Store
from .theme import Theme

_ROW, _GAP, _LINE, _SIZE = 9, 2, 14, 11
_TOP = 3
#: Pixels below which the cells of a run are not set apart.
_CELL = 3.0
_SQUARE = 8
#: Letters that fit into one line of a panel.
_LETTERS = 42


class ModelStrip(QWidget):
    """Two rows of cells, the first what mixes tokens, the second what follows; hovering tells the sizes of a layer."""

    def __init__(self, store: Store, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("anatomy")
        self._store, self._ink = store, Ink(theme)
        self._spec: ModelSpec | None = None
        self.anatomy: Anatomy
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.sync()

    def sync(self) -> None:
        """Show the store's model."""
        if self._store.scenario.model is self._spec:
            return
        self._spec = self._store.scenario.model
        self.anatomy = anatomy(build(self._spec))
        self.setAccessibleName(f"{self._spec.name}: {'. '.join(self.anatomy.lines())}")
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._ink = Ink(theme)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, round(_TOP + 2 * _ROW + _GAP + _LINE * (1 + len(self._words())) + 3))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def words_at(self, point: QPointF) -> str:
        """What is under a point: the layer with its sizes, or all there is to say below the cells."""
        if point.y() < _TOP + 2 * _ROW + _GAP + 2:
            return next((_words(s) for cell, s in self._cells() if cell.left() <= point.x() < cell.right()), "")
        return "\n".join(self.anatomy.lines())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        for cell, stretch in self._cells():
            self._paint_part(painter, cell, stretch.mixing, stretch.count)
            self._paint_part(painter, cell.translated(0, _ROW + _GAP), stretch.feed_forward, stretch.count)
        y = _TOP + 2 * _ROW + _GAP + 3
        self._paint_key(painter, y)
        for place, text in enumerate(self._words(), start=1):
            shown = self._ink.text(self._ink.elided(text, self.width(), size=_SIZE), size=_SIZE)
            self._ink.write(painter, shown, 0, y + place * _LINE, self._ink.readable("muted"))
        painter.end()

    def _words(self) -> list[str]:
        """The sizes in one line, or in two where it would be too long."""
        lines = [" · ".join(words) for words in (self.anatomy.sizes, self.anatomy.cache) if words]
        joined = " · ".join(lines)
        return [joined] if len(joined) <= _LETTERS else lines

    def _cells(self) -> Iterator[tuple[QRectF, Stretch]]:
        """The stretches with their places in the first row."""
        each = self.width() / self.anatomy.layers
        for stretch in self.anatomy.stretches:
            yield QRectF((stretch.first - 1) * each, _TOP, stretch.count * each, _ROW), stretch

    def _paint_part(self, painter: QPainter, cell: QRectF, part: Part, layers: int) -> None:
        """One part of some layers; kinds that stand side by side share the height."""
        height = cell.height() / len(part.kinds)
        for place, kind in enumerate(part.kinds):
            share = QRectF(cell.left(), cell.top() + place * height, cell.width(), height)
            painter.fillRect(share, self._ink.brush(kind))
        each = cell.width() / layers
        painter.setPen(QPen(self._ink.theme.color("panel"), 0.6 if each >= 2 * _CELL else 0.3))
        edges = range(layers) if each >= _CELL else (0,)
        painter.drawLines([QPointF(cell.left() + n * each, y) for n in edges for y in (cell.top(), cell.bottom())])

    def _paint_key(self, painter: QPainter, y: float) -> None:
        """The names of the kinds there are, each beside its colour."""
        x, ink = 0.0, self._ink
        found = [(kind, MIXING[kind]) for kind in self.anatomy.mixing if kind != "none"]
        found += [(kind, FEED_FORWARD[kind]) for kind in self.anatomy.feed_forward if kind != "none"]
        for kind, name in found:
            word = ink.text(name if len(found) < 4 else name.removesuffix(" attention"), size=_SIZE)
            painter.fillRect(QRectF(x, y + (word.height - _SQUARE) / 2, _SQUARE, _SQUARE), ink.brush(kind))
            ink.write(painter, word, x + _SQUARE + 4, y, ink.readable("text"))
            x += _SQUARE + 4 + word.width + 10


def _words(stretch: Stretch) -> str:
    first, *rest = (stretch.mixing.words, stretch.feed_forward.words)
    return "\n".join((f"{stretch.place}: {first}", *rest))
