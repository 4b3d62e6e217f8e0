"""The verdict in one sentence with what would help, and the cards of headline numbers."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from ..core.headlines import Headline, headlines
from ..core.verdict import Verdict as Judgement
from ..core.verdict import verdict
from .fonts import font, prose
from .ink import Ink
from .store import Store
from .surface import RADIUS, Surface
from .theme import Theme

_BUTTONS = 3
#: Font size of the sentence, and how much longer it is with its bold words and broken lines.
_SENTENCE, _LOOSE = 14, 1.1
_BAR = 4.0
#: Font sizes of number, unit and lines, and those of a narrow card.
_SIZES, _NARROW_SIZES = (22, 13, 11), (18, 10, 10)
_NARROW = 140
#: Height of the verdict, with two lines.
_HEIGHT = 52


class Verdict(Surface):
    """The plan in one sentence, a bar in the colour of its severity, and buttons for the edits that would help."""

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._store = store
        self._judgement: Judgement | None = None
        self.sentence = QLabel()
        self.sentence.setFont(font(_SENTENCE))
        self.sentence.setWordWrap(True)
        self.sentence.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.buttons = [self._button(place) for place in range(_BUTTONS)]
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 6, 12, 6)
        layout.setSpacing(6)
        layout.addWidget(self.sentence, 1)
        for button in self.buttons:
            layout.addWidget(button)
        self.setFixedHeight(_HEIGHT)
        self.set_theme(theme)
        store.report_changed.connect(self._show)
        self._show()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.sentence.setStyleSheet(f"color: {theme.text}; background: transparent;")
        style = (
            f"QPushButton {{ background: {theme.accent_soft}; color: {theme.accent}; border: 1px solid {theme.accent};"
            " border-radius: 5px; padding: 4px 10px; }"
            f"QPushButton:hover {{ background: {theme.accent}; color: {theme.on_accent}; }}"
            "QPushButton:focus { border-width: 2px; padding: 3px 9px; }"
        )
        for button in self.buttons:
            button.setStyleSheet(style)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        severity = self._judgement.severity if self._judgement else "good"
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = QPainterPath()
        ground.addRoundedRect(QRectF(self.rect()), RADIUS, RADIUS)
        painter.setClipPath(ground)
        painter.fillRect(QRectF(0, 0, _BAR, self.height()), QColor(self.theme.color(severity)))
        painter.end()

    def _button(self, place: int) -> QPushButton:
        button = QPushButton()
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda: self._apply(place))
        button.hide()
        return button

    def _apply(self, place: int) -> None:
        if self._judgement and place < len(self._judgement.edits):
            self._store.apply_edit(self._judgement.edits[place])

    def _show(self) -> None:
        report = self._store.report
        if report is None:
            return
        judgement = verdict(report, _BUTTONS)
        if judgement == self._judgement:
            return
        self._judgement = judgement
        self.sentence.setText("".join(_rich(text, bold) for text, bold in judgement.spans))
        self.sentence.setToolTip(judgement.text)
        self.setAccessibleName(judgement.text)
        for edit, button in zip(judgement.edits, self.buttons, strict=False):
            button.setText(edit.label)
        self._offer()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._offer()

    def _offer(self) -> None:
        """As many buttons as leave the sentence two lines; the first always, the findings list the others."""
        if self._judgement is None:
            return
        words = _LOOSE * QFontMetricsF(font(_SENTENCE)).horizontalAdvance(self._judgement.text)
        room = self.width() - 40.0
        for place, button in enumerate(self.buttons):
            needed = button.sizeHint().width() + 6
            offered = place < len(self._judgement.edits) and (place == 0 or words <= 2 * (room - needed))
            button.setVisible(offered)
            room -= needed if offered else 0
        fitting = (size for size in (_SENTENCE, _SENTENCE - 1) if words * size / _SENTENCE <= 2 * room)
        self.sentence.setFont(font(next(fitting, _SENTENCE - 2)))
        self.setFixedHeight(max(_HEIGHT, self.sentence.heightForWidth(int(room)) + 12))  # a third line is not cut


def _rich(text: str, bold: bool) -> str:
    words = escape(prose(text))
    return f'<span style="font-weight: 600">{words}</span>' if bold else words


class Card(Surface):
    """One headline: its label, the number large with a small unit, and two muted lines, in a narrow card three.

    The number keeps its place and its digits their width, so nothing jumps while it changes. A click, Enter or F1
    asks for its working.
    """

    #: The key of the headline whose working is wanted.
    asked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.headline: Headline | None = None
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ink = Ink(theme)
        self.setFixedHeight(90)
        self.setMinimumWidth(110)

    def set_theme(self, theme: Theme) -> None:
        self._ink = Ink(theme)
        super().set_theme(theme)

    def set_headline(self, headline: Headline) -> None:
        if headline == self.headline:
            return
        self.headline = headline
        lines = (f"{headline.label}: {headline.number} {headline.unit}".strip(), *headline.details)
        self.setAccessibleName(". ".join(lines))
        self.setToolTip("\n".join(lines))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(170, 86)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._ask()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_F1, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._ask()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def _ask(self) -> None:
        if self.headline is not None:
            self.asked.emit(self.headline.key)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.headline is None:
            return
        narrow = self.width() < _NARROW
        large, middle, small = _NARROW_SIZES if narrow else _SIZES
        left = 8.0 if narrow else 10.0
        painter, ink, room = QPainter(self), self._ink, self.width() - 2 * left
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self.theme.color("accent"), 1.5))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), RADIUS, RADIUS)
        number = ink.text(self.headline.number, True, large)
        state = self.headline.state if self.headline.state in ("warn", "bad") else "text"
        ink.write(painter, number, left, 36 - number.height / 2, ink.readable(state))
        words = self._unit(room - number.width - 5, middle)
        unit = ink.text(words, size=middle)
        lines = [
            (self.headline.label, 8.0, 0.0, small),
            (words, 40 - 0.6 * unit.height, number.width + 5, middle),
        ]
        details = self.lines(room, small)
        top, pitch = (51.0, 15) if len(details) < 3 else (48.0, 12)
        lines += [(text, top + pitch * place, 0.0, small) for place, text in enumerate(details)]
        for text, top, indent, size in lines:
            shown = ink.text(ink.elided(text, room - indent, size=size), size=size)
            ink.write(painter, shown, left + indent, top, ink.readable("muted"))
        painter.end()

    def _unit(self, room: float, size: int) -> str:
        """The unit, without its last words where there is no room for them."""
        assert self.headline is not None
        words = self.headline.unit
        while " " in words and self._ink.text(words, size=size).width > room:
            words = words.rpartition(" ")[0].removesuffix(" at")
        return words

    def lines(self, room: float, size: int) -> list[str]:
        """The details, in three lines where two are too long; what is still too long loses its last parts."""
        assert self.headline is not None
        lines = list(self.headline.details[:2])
        for place, text in enumerate(lines):
            if self._ink.text(text, size=size).width > room:
                first, dot, rest = text.rpartition(" · " if " · " in text else ", ")
                parts = [first, rest] if dot else self._ink.wrapped(text, room, 2, size=size)
                lines = [*lines[:place], *parts, *lines[place + 1 :]][:3]
                break
        return [self._shortened(text, room, size) for text in lines]

    def _shortened(self, text: str, room: float, size: int) -> str:
        """The text without the parts behind its last commas or dots for which there is no room."""
        while self._ink.text(text, size=size).width > room and (cut := max(text.rfind(", "), text.rfind(" · "))) > 0:
            text = text[:cut]
        return text


class Cards(QWidget):
    """The headline numbers of the present plan in a row."""

    #: The key of a result whose working is wanted.
    explained = Signal(str)

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._theme = theme
        self.cards: list[Card] = []
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)
        store.report_changed.connect(self._show)
        self._show()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for card in self.cards:
            card.set_theme(theme)

    def _show(self) -> None:
        if self._store.report is None:
            return
        shown = headlines(self._store.report)
        while len(self.cards) < len(shown):
            card = Card(self._theme)
            card.asked.connect(self.explained)
            self.cards.append(card)
            self._layout.addWidget(card, 1)
        for place, card in enumerate(self.cards):
            card.setVisible(place < len(shown))
        for card, headline in zip(self.cards, shown, strict=False):
            card.set_headline(headline)
