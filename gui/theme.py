"""Two themes as data, and how one is put on the application: Fusion, a palette and one style sheet."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from ..core.figures.figure import SERIES


@dataclass(frozen=True)
class Theme:
    """Colours as "#rrggbb". `soft` ones are backgrounds for text in the colour they are named after.

    The strip under a slider uses `fits`, `tight`, `over` (out of memory) and `illegal`; `groove` is a strip that
    says nothing.
    """

    name: str
    window: str
    panel: str
    surface: str
    border: str
    grid: str
    text: str
    muted: str
    accent: str
    accent_soft: str
    on_accent: str
    hover: str
    good: str
    warn: str
    bad: str
    bad_soft: str
    groove: str
    fits: str
    tight: str
    over: str
    illegal: str

    @property
    def dark(self) -> bool:
        return self.name == "dark"

    def color(self, role: str) -> QColor:
        """The colour of one of the attributes above."""
        return QColor(getattr(self, role))

    def series(self, name: str) -> QColor:
        """The colour of a series of a Figure, the same in every chart."""
        return QColor(SERIES[name][1 if self.dark else 0])


LIGHT = Theme(
    name="light",
    window="#f3f5f9",
    panel="#fafbfd",
    surface="#ffffff",
    border="#d9dfe8",
    grid="#e8ecf2",
    text="#111827",
    muted="#5b6675",
    accent="#2563eb",
    accent_soft="#edf3ff",
    on_accent="#ffffff",
    hover="#eef2f8",
    good="#0b7a5b",
    warn="#8f5d10",
    bad="#c22f2f",
    bad_soft="#fdeaea",
    groove="#dfe4ec",
    fits="#b6e3cc",
    tight="#fbdc8c",
    over="#f4bab0",
    illegal="#e3e7ee",
)

DARK = Theme(
    name="dark",
    window="#0e131a",
    panel="#121821",
    surface="#171e28",
    border="#2b3542",
    grid="#232c38",
    text="#e6eaf0",
    muted="#9aa5b4",
    accent="#6f9bf5",
    accent_soft="#1d2c4a",
    on_accent="#0e131a",
    hover="#1f2833",
    good="#3ac79b",
    warn="#e5ab45",
    bad="#f37c7c",
    bad_soft="#3a1f22",
    groove="#303a48",
    fits="#246b51",
    tight="#8a6a22",
    over="#84382f",
    illegal="#28303b",
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def palette(theme: Theme) -> QPalette:
    """The palette that Fusion paints standard widgets with."""
    role = QPalette.ColorRole
    colors = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.surface,
        role.AlternateBase: theme.hover,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.surface,
        role.ButtonText: theme.text,
        role.BrightText: theme.bad,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Link: theme.accent,
        role.ToolTipBase: theme.surface,
        role.ToolTipText: theme.text,
        role.Light: theme.surface,
        role.Midlight: theme.hover,
        role.Mid: theme.border,
        role.Dark: theme.muted,
        role.Shadow: theme.border,
    }
    result = QPalette()
    for which, color in colors.items():
        result.setColor(which, QColor(color))
    for which in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.muted))
    return result


def style_sheet(theme: Theme) -> str:
    """The style sheet of the whole application; widgets are addressed by class, object name or property."""
    t = theme
    return f"""
    QToolTip {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border}; padding: 4px 6px; }}
    QMainWindow::separator {{ background: {t.border}; width: 1px; height: 1px; }}
    QMainWindow::separator:hover {{ background: {t.accent}; }}
    QSplitter::handle {{ background: transparent; }}
    QSplitter::handle:hover {{ background: {t.accent_soft}; }}

    QToolBar {{ background: {t.surface}; border: 0; border-bottom: 1px solid {t.border}; padding: 4px 8px;
        spacing: 6px; }}
    QToolBar QToolButton {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border}; border-radius: 5px;
        padding: 0 9px; min-height: 24px; }}
    QToolBar QToolButton#square {{ padding: 0 4px; min-width: 20px; }}
    QToolBar QToolButton:hover, QToolBar QToolButton:focus {{ background: {t.hover}; border-color: {t.accent}; }}
    QToolBar QToolButton:pressed {{ background: {t.accent_soft}; }}
    QToolBar QToolButton:disabled {{ color: {t.muted}; background: transparent; }}
    QToolBar QToolButton:checked {{ background: {t.accent_soft}; color: {t.accent}; border-color: {t.accent};
        font-weight: 600; }}
    QToolBar QToolButton::menu-indicator {{ image: none; width: 0; }}
    QToolButton[place="left"] {{ border-top-right-radius: 0; border-bottom-right-radius: 0; }}
    QToolButton[place="middle"] {{ border-radius: 0; border-left: 0; }}
    QToolButton[place="right"] {{ border-top-left-radius: 0; border-bottom-left-radius: 0; border-left: 0; }}
    QLabel#brand {{ font-weight: 600; font-size: 15px; padding: 0 10px 0 6px; }}

    QMenu {{ background: {t.surface}; border: 1px solid {t.border}; padding: 4px; }}
    QMenu::item {{ padding: 5px 22px 5px 12px; border-radius: 4px; }}
    QMenu::item:selected {{ background: {t.accent_soft}; color: {t.accent}; }}
    QMenu::item:disabled {{ color: {t.muted}; }}
    QMenu::separator {{ height: 1px; background: {t.border}; margin: 4px 8px; }}

    QComboBox QAbstractItemView, #choices {{ background: {t.surface}; color: {t.text}; border: 1px solid {t.border};
        outline: 0; selection-background-color: {t.accent_soft}; selection-color: {t.accent}; }}
    QComboBox QAbstractItemView::item, #choices::item {{ min-height: 24px; padding: 0 6px; }}

    QDockWidget, #panel, #panel QScrollArea, #rows {{ background: {t.panel}; border: 0; }}
    QMainWindow > QTabBar {{ background: {t.window}; }}
    QMainWindow > QTabBar::tab {{ background: transparent; color: {t.muted}; border: 0; padding: 4px 11px 3px 11px;
        border-bottom: 2px solid transparent; }}
    QMainWindow > QTabBar::tab:selected {{ background: {t.panel}; color: {t.text}; border-bottom-color: {t.accent}; }}
    QMainWindow > QTabBar::tab:hover, QMainWindow > QTabBar::tab:focus {{ color: {t.accent}; }}
    #title {{ background: {t.panel}; }}
    #title QLabel {{ color: {t.muted}; font-weight: 600; font-size: 11px; }}
    #title QToolButton {{ border: 0; background: transparent; color: {t.muted}; font-size: 11px; border-radius: 3px;
        padding: 1px 3px; }}
    #title QToolButton:hover, #title QToolButton:focus {{ color: {t.accent}; background: {t.hover}; }}

    #row QLabel {{ color: {t.text}; }}
    #row QLabel#note {{ color: {t.muted}; font-size: 11px; }}
    #row QLabel#error {{ color: {t.bad}; font-size: 11px; }}
    #row QComboBox {{ background: transparent; border: 1px solid transparent; padding: 0 0 0 2px; }}
    #row QLineEdit {{ background: transparent; border: 1px solid transparent; border-radius: 3px; padding: 0 2px;
        selection-background-color: {t.accent}; selection-color: {t.on_accent}; }}
    #row QLineEdit:hover {{ border-color: {t.border}; background: {t.surface}; }}
    #row QLineEdit:focus {{ border-color: {t.accent}; background: {t.surface}; }}
    #row QLineEdit[wrong="true"] {{ border-color: {t.bad}; background: {t.bad_soft}; color: {t.bad}; }}

    QFrame#notice {{ background: {t.accent_soft}; border: 0; border-bottom: 1px solid {t.accent}; }}
    QFrame#notice QLabel {{ color: {t.accent}; }}
    QFrame#notice[bad="true"] {{ background: {t.bad_soft}; border-bottom-color: {t.bad}; }}
    QFrame#notice[bad="true"] QLabel {{ color: {t.bad}; }}
    QFrame#notice QToolButton {{ border: 0; background: transparent; border-radius: 3px; padding: 2px; }}
    QFrame#notice QToolButton:hover, QFrame#notice QToolButton:focus {{ background: {t.surface}; }}

    QScrollBar:vertical {{ background: transparent; width: 8px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: 8px; margin: 0; }}
    QScrollBar::handle {{ background: {t.border}; border-radius: 3px; margin: 1px; }}
    QScrollBar::handle:vertical {{ min-height: 24px; }}
    QScrollBar::handle:horizontal {{ min-width: 24px; }}
    QScrollBar::handle:hover {{ background: {t.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    """


def apply(application: QApplication, theme: Theme) -> None:
    """Put a theme on the application. Views that paint themselves take it through their own `set_theme`."""
    if application.style().objectName().lower() != "fusion":
        application.setStyle("Fusion")
    application.setPalette(palette(theme))
    application.setStyleSheet(style_sheet(theme))


def page_style(theme: Theme) -> str:
    """The look of a page with a table."""
    return f"""
    QLabel {{ color: {theme.text}; }}
    QToolButton {{ background: transparent; border: 1px solid {theme.border}; color: {theme.muted};
        padding: 3px 10px; }}
    QToolButton:checked {{ background: {theme.accent_soft}; color: {theme.accent};
        border-color: {theme.accent}; }}
    QToolButton:hover, QToolButton:focus {{ color: {theme.accent}; border-color: {theme.accent}; }}
    QLabel#notes {{ color: {theme.muted}; font-size: 12px; }}
    QTableView {{ background: {theme.surface}; alternate-background-color: {theme.hover}; color: {theme.text};
        selection-background-color: {theme.accent_soft}; selection-color: {theme.text}; }}
    QHeaderView, QHeaderView::section {{ background: {theme.surface}; color: {theme.muted}; border: 0; }}
    QHeaderView::section {{ padding: 0 11px; }}
    QTableView::item {{ padding: 0 8px; }}
    QAbstractScrollArea::corner {{ background: transparent; border: 0; }}
    """


def dialog_style(theme: Theme) -> str:
    """The look of a dialog of our own: its words, buttons and progress."""
    return f"""
    QDialog {{ background: {theme.window}; }}
    QLabel {{ color: {theme.text}; }}
    QProgressBar {{ background: {theme.groove}; border: 0; border-radius: 4px; }}
    QProgressBar::chunk {{ background: {theme.accent}; border-radius: 4px; }}
    QPushButton {{ background: {theme.surface}; color: {theme.text}; border: 1px solid {theme.border};
        border-radius: 5px; padding: 4px 12px; }}
    QPushButton:hover, QPushButton:focus {{ border-color: {theme.accent}; }}
    QPushButton:disabled {{ color: {theme.muted}; }}
    """
