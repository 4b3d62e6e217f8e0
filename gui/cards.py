"""The verdict in one sentence with what would help, and the cards of headline numbers."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from ..core.headlines import Headline, headlines
from ..core.verdict import Verdict as Judgement
from ..core.verdict import verdict
from .fonts import font, typeset
from .ink import Ink
from .store import Store
from .surface import RADIUS, Surface
from .theme import Theme

_BUTTONS = 3
_BAR = 4.0
#: Font sizes of number, unit and lines, and those of a narrow card.
_SIZES, _NARROW_SIZES = (22, 13, 11), (18, 10, 10)
_NARROW = 140


class Verdict(Surface):
    """The plan in one sentence, a bar in the colour of its severity, and buttons for the edits that would help."""

    def __init__(self, store: Store, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._store = store
        self._judgement: Judgement | None = None
        self.sentence = QLabel()
        self.sentence.setFont(font(14))
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
        self.setFixedHeight(52)
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
        words = 1.1 * self.sentence.fontMetrics().horizontalAdvance(self._judgement.text)
        room = self.width() - 40.0
        for place, button in enumerate(self.buttons):
            room -= button.sizeHint().width() + 6
            button.setVisible(place < len(self._judgement.edits) and (place == 0 or words <= 2 * room))


def _rich(text: str, bold: bool) -> str:
    words = escape(typeset(text))
    return f'<span style="font-weight: 600">{words}</span>' if bold else words


class Card(Surface):
    """One headline: its label, the number large with a small unit, and up to two muted lines.

    The number keeps its place and its digits their width, so nothing jumps while it changes.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self.headline: Headline | None = None
        self._ink = Ink(theme)
        self.setFixedHeight(86)
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

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.headline is None:
            return
        narrow = self.width() < _NARROW
        large, middle, small = _NARROW_SIZES if narrow else _SIZES
        left = 8.0 if narrow else 10.0
        painter, ink, room = QPainter(self), self._ink, self.width() - 2 * left
        number = ink.text(self.headline.number, True, large)
        state = self.headline.state if self.headline.state in ("warn", "bad") else "text"
        ink.write(painter, number, left, 36 - number.height / 2, ink.readable(state))
        unit = ink.text(self.headline.unit, size=middle)
        lines = [
            (self.headline.label, 8.0, 0.0, small),
            (self.headline.unit, 40 - 0.6 * unit.height, number.width + 5, middle),
        ]
        lines += [(text, 51.0 + 15 * place, 0.0, small) for place, text in enumerate(self.headline.details[:2])]
        for text, top, indent, size in lines:
            shown = ink.text(ink.elided(text, room - indent, size=size), size=size)
            ink.write(painter, shown, left + indent, top, ink.readable("muted"))
        painter.end()


class Cards(QWidget):
    """The headline numbers of the present plan in a row."""

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
            self.cards.append(card)
            self._layout.addWidget(card, 1)
        for place, card in enumerate(self.cards):
            card.setVisible(place < len(shown))
        for card, headline in zip(self.cards, shown, strict=False):
            card.set_headline(headline)
