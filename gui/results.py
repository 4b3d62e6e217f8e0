"""All results of a plan as a list that is searched by typing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QVBoxLayout, QWidget

from .fonts import font, typeset
from .theme import Theme

#: Pixels in a narrow window and at most.
_LEAST, _MOST = 150, 250


class ResultList(QWidget):
    """The keys of all results; what is typed above leaves those that have all its words."""

    #: The key of a result that was chosen.
    opened = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search, self.list = QLineEdit(), QListWidget()
        self.search.setPlaceholderText("Find a result")
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName("Find a result")
        self.list.setFont(font(12, tabular=False))
        self.list.setUniformItemSizes(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideLeft)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName("Results")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.search)
        column.addWidget(self.list, 1)
        self.setMinimumWidth(_LEAST)
        self.setMaximumWidth(_MOST)
        self.search.textChanged.connect(self._filter)
        self.search.returnPressed.connect(self._open_first)
        self.search.installEventFilter(self)
        self.list.itemClicked.connect(lambda item: self.opened.emit(item.text()))
        self.list.itemActivated.connect(lambda item: self.opened.emit(item.text()))

    def set_theme(self, theme: Theme) -> None:
        self.setStyleSheet(
            f"""
            QLineEdit {{ background: {theme.surface}; color: {theme.text}; border: 1px solid {theme.border};
                border-radius: 4px; padding: 3px 6px; }}
            QLineEdit:focus {{ border-color: {theme.accent}; }}
            QListWidget {{ background: {theme.surface}; color: {theme.muted}; outline: 0; }}
            QListWidget::item {{ padding: 1px 4px; border-radius: 3px; }}
            QListWidget::item:hover {{ background: {theme.hover}; color: {theme.text}; }}
            QListWidget::item:selected {{ background: {theme.accent_soft}; color: {theme.accent}; }}
            """
        )

    def set_keys(self, keys: list[str]) -> None:
        """Another plan may have other results."""
        if keys == self._keys():
            return
        self.list.clear()
        self.list.addItems(keys)
        for place, key in enumerate(keys):
            self.list.item(place).setToolTip(typeset(key))
        self._filter()

    def mark(self, key: str) -> None:
        """Show which result is open; none with ""."""
        keys = self._keys()
        if key in keys:
            self.list.setCurrentRow(keys.index(key))
            # once the list has its size
            QTimer.singleShot(0, self.list, lambda: self.list.scrollToItem(self.list.currentItem()))
        else:
            self.list.clearSelection()

    def shown(self) -> list[str]:
        """The keys that the search leaves."""
        return [key for place, key in enumerate(self._keys()) if not self.list.item(place).isHidden()]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Down in the search goes to the list, and Backspace there deletes as in any text."""
        if watched is self.search and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Down:
                self.list.setFocus(Qt.FocusReason.OtherFocusReason)
                return True
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Backspace:
                event.accept()
                return True
        return super().eventFilter(watched, event)

    def _keys(self) -> list[str]:
        return [self.list.item(place).text() for place in range(self.list.count())]

    def _filter(self) -> None:
        words = self.search.text().lower().split()
        for place, key in enumerate(self._keys()):
            spelled = f"{key} {key.replace('_', ' ').replace('.', ' ')}".lower()
            self.list.item(place).setHidden(not all(word in spelled for word in words))

    def _open_first(self) -> None:
        if found := self.shown():
            self.opened.emit(found[0])
