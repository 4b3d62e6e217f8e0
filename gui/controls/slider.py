"""A slider over the stops of a field, with a strip that says where along it the plan fits."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy, QToolTip, QWidget

from ...core.explore.stops import Scale
from ..fonts import font
from ..theme import LIGHT, Theme
from .groove import TICKS_HEIGHT, Groove

_KEYS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageDown: -10,
    Qt.Key.Key_PageUp: 10,
    Qt.Key.Key_Home: -1_000_000,
    Qt.Key.Key_End: 1_000_000,
}


class Slider(QAbstractSlider):
    """Moves a value through the stops of a scale; values that are not allowed are stepped over.

    `moved(value, gesture)` is sent while it moves: all moves between a press and its release carry one gesture, drawn
    from `new_gesture`. A double click sends `reset(gesture)`, Escape during a drag goes back to where it began.
    """

    moved = Signal(object, int)
    reset = Signal(int)

    def __init__(self, scale: Scale, new_gesture: Callable[[], int], ticks: bool = False) -> None:
        super().__init__()
        self._new_gesture = new_gesture
        self._gesture: int | None = None
        self._start: float | None = None
        self._hovered = False
        self._theme: Theme = LIGHT
        self.groove = Groove(scale, ticks=ticks)
        #: What would happen at a stop, in words, for the tooltip.
        self.describe: Callable[[float], str] = str
        self.setFont(font())
        self.setRange(0, len(scale.stops) - 1)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    @property
    def current(self) -> float | None:
        """The value shown, which need not be a stop; None while the field is unset."""
        return self.groove.value

    def show_value(self, value: float | None, mark: float | None = None) -> None:
        """Show a value, and a small mark where a double click goes back to."""
        self.groove.value, self.groove.mark = value, mark
        if value is not None:
            stops = self.groove.scale.stops
            self.setValue(stops.index(self.groove.scale.nearest(self.groove.scale.place(value))))
        self.update()

    def show_scale(self, scale: Scale, legal: Collection[float] | None) -> None:
        """Take the stops and the values among them that are allowed (None: all)."""
        if (scale, legal) == (self.groove.scale, self.groove.legal):
            return
        if scale != self.groove.scale:
            self.groove.verdicts = ()
        self.groove.scale, self.groove.legal = scale, legal
        self.setRange(0, len(scale.stops) - 1)
        self.updateGeometry()
        self.update()

    def show_strip(self, verdicts: tuple[str, ...]) -> None:
        """Colour the groove: one verdict for each stop, or none."""
        if verdicts != self.groove.verdicts:
            self.groove.verdicts = verdicts
            self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, 14 + (TICKS_HEIGHT if self.groove.ticks else 0))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.groove.paint(painter, self.width(), self._theme, self.font(), self.hasFocus(), self._hovered)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._begin()
        x = event.position().x()
        if self.current is None or abs(x - self.groove.x(self.current, self.width())) > 8:
            self._go(self.groove.value_at(x, self.width()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._gesture is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        x = event.position().x()
        self._go(self.groove.value_at(x, self.width()))
        wanted = self.groove.stop_at(x, self.width())
        if self.groove.legal is not None and wanted not in self.groove.legal:
            QToolTip.showText(event.globalPosition().toPoint(), self.describe(wanted), self)
        else:
            QToolTip.hideText()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._gesture = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.reset.emit(self._begin())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape and self._gesture is not None and self._start is not None:
            self._go(self._start)
            self._gesture = None
        elif key in _KEYS and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            if not event.isAutoRepeat():
                self._begin()
            self.step(_KEYS[key])
        else:
            QWidget.keyPressEvent(self, event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() in _KEYS and not event.isAutoRepeat():
            self._gesture = None

    def step(self, count: int) -> None:
        """Move by a number of allowed stops."""
        scale = self.groove.allowed()
        middle = scale.stops[len(scale.stops) // 2]
        self._go(middle if self.current is None else scale.step(self.current, count))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._gesture = None
        super().focusOutEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The wheel scrolls the panel; a value must not change because the pointer passed over it.
        event.ignore()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            self._explain(event.pos(), event.globalPos())
            return True
        if event.type() in (QEvent.Type.HoverEnter, QEvent.Type.HoverLeave):
            self._hovered = event.type() == QEvent.Type.HoverEnter
            self.update()
        return super().event(event)

    def _explain(self, at: QPoint, on_screen: QPoint) -> None:
        QToolTip.showText(on_screen, self.describe(self.groove.stop_at(at.x(), self.width())), self)

    def _begin(self) -> int:
        if self._gesture is None:
            self._gesture, self._start = self._new_gesture(), self.current
        return self._gesture

    def _go(self, value: float) -> None:
        if value != self.current:
            self.moved.emit(value, self._begin())
