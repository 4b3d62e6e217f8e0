"""The widget that shows a Figure and answers pointer and keyboard."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from ...core.figures.figure import Bar, Figure
from ..theme import Theme
from .drawing import Drawing
from .hover import Element, anchor, element_at, elements
from .tip import Tip

_STEP = 0.8
_BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)


class PlotView(Drawing):
    """Draws one Figure and answers pointer and keyboard.

    Wheel and drag zoom and pan plots of two numeric axes, never so far that the data are lost; a double click, R or
    Home brings the whole back. Left and right walk over the parts and say what they are, Escape stops it. A click on
    a part that is linked to a result, or Enter, asks for its working.
    """

    #: The key of a result whose working is wanted.
    asked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.tip = Tip(theme, self)
        self.viewport().setMouseTracking(True)

    def set_figure(self, figure: Figure, settle: bool = True) -> None:
        super().set_figure(figure, settle)
        if self._touched:  # what is said follows the numbers
            same = (p for p in elements(self._shown) if type(p) is type(self._touched) and p.name == self._touched.name)
            self._touch(next(same, None))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.tip.set_theme(theme)

    def wheelEvent(self, ev: QWheelEvent) -> None:
        if self._rows_hidden() > 0:
            self._scroll(-ev.angleDelta().y() / 120)
            ev.accept()
        else:
            super().wheelEvent(ev)

    def mousePressEvent(self, ev: QMouseEvent) -> None:
        super().mousePressEvent(ev)
        ev.accept()

    def mouseReleaseEvent(self, ev: QMouseEvent) -> None:
        super().mouseReleaseEvent(ev)
        ev.accept()
        if ev.button() == Qt.MouseButton.LeftButton and self._link:
            self.asked.emit(self._link)

    @property
    def _link(self) -> str:
        """The result that the part under the pointer is linked to."""
        return self._touched.link if isinstance(self._touched, Bar) else ""

    def mouseMoveEvent(self, ev: QMouseEvent) -> None:
        super().mouseMoveEvent(ev)
        point = ev.position()
        if ev.buttons() == Qt.MouseButton.NoButton and not self._shown.empty:
            self._touch(element_at(self._shown, self.frame(), (point.x(), point.y())), point)

    def leaveEvent(self, ev) -> None:
        super().leaveEvent(ev)
        self._touch(None)

    def mouseDoubleClickEvent(self, ev: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(ev)
        ev.accept()
        self.reset_view()

    def keyPressEvent(self, ev: QKeyEvent) -> None:
        key = ev.key()
        if key in (Qt.Key.Key_R, Qt.Key.Key_Home):
            self.reset_view()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._walk(1 if key == Qt.Key.Key_Right else -1)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus) and self.zoomable:
            self.box.scaleBy((1 / _STEP, 1 / _STEP) if key == Qt.Key.Key_Minus else (_STEP, _STEP))
            self._take_move()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F1) and self._link:
            self.asked.emit(self._link)
        elif key == Qt.Key.Key_Escape and self._touched:
            self._touch(None)
        else:
            ev.ignore()

    def focusInEvent(self, ev: QFocusEvent) -> None:
        super().focusInEvent(ev)
        self._ringed = ev.reason() in _BY_KEYBOARD
        self.canvas.update()

    def focusOutEvent(self, ev: QFocusEvent) -> None:
        super().focusOutEvent(ev)
        self._ringed = False
        self._touch(None)
        self.canvas.update()

    def _walk(self, step: int) -> None:
        parts = elements(self._shown)
        if not parts:
            return
        at = parts.index(self._touched) if self._touched in parts else (-1 if step > 0 else 0)
        part = parts[(at + step) % len(parts)]
        if isinstance(part, Bar) and self._rows_hidden() > 0:
            self._scroll(part.row - 1.0 - self._scrolled)
        self._touch(part, QPointF(*anchor(part, self.frame())))
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, part.hover))

    def _touch(self, part: Element | None, point: QPointF | None = None) -> None:
        """Bring out a part and say what it is beside a point."""
        if part is not self._touched:
            self._touched = part
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if self._link else Qt.CursorShape.ArrowCursor)
            self.canvas.update()
        self.tip.say(part.hover if part else "", point, self.size())
