"""A quantity in a panel: typed on the right, moved by the slider beneath."""

from __future__ import annotations

from typing import Any

from ...core.explore.stops import scale_of
from ...core.explore.strips import legal_stops, refusal, strip
from ...core.fields import Field
from ...core.legality import allowed
from ...core.units import write_quantity
from ..store import Store
from ..text import VERDICTS, shown
from ..theme import Theme
from .quantity import QuantityEdit
from .row import HEIGHT, Row
from .slider import Slider

_UNSET = (None, "auto")


class QuantityRow(Row):
    """A typed quantity and, where the field has one, its slider."""

    def __init__(self, field: Field, store: Store, narrow: bool = False) -> None:
        super().__init__(field, store)
        self.control = QuantityEdit(edit_width(field, narrow))
        self.control.setFixedHeight(HEIGHT)
        self.control.setAccessibleName(field.label)
        self.control.entered.connect(self.enter)
        self.control.stepped.connect(self._step)
        self.label.setBuddy(self.control)
        if field.optional:
            self.control.setPlaceholderText("auto")
            self.setToolTip(f"{field.help}\nEmpty: automatic.")
        self._line(self.control)
        self.slider = self._slider() if field.slider else None

    def _slider(self) -> Slider:
        slider = Slider(scale_of(self.field), self.store.gesture, ticks=self.field.scale == "divisor")
        slider.setAccessibleName(f"{self.field.label}, slider")
        slider.describe = self._describe
        slider.moved.connect(lambda value, gesture: self.store.set(self.field.path, value, gesture))
        slider.reset.connect(self._reset)
        self._layout.addWidget(slider)
        return slider

    def show_value(self, value: Any) -> None:
        text = shown(self.field, value)
        unset = value in _UNSET
        self.control.show_value(text, text if unset else str(write_quantity(value, self.field.unit)))
        if self.slider is not None:
            origin = self.store.origin.get(self.field.path)
            self.slider.show_value(None if unset else value, None if origin in _UNSET else origin)
            self.slider.setAccessibleDescription(text)

    def set_theme(self, theme: Theme) -> None:
        if self.slider is not None:
            self.slider.set_theme(theme)

    def refuse(self, reason: str) -> None:
        super().refuse(reason)
        self.control.refuse(reason)

    def refresh_strip(self) -> None:
        """Find the stops that are allowed in the present plan, and where along them it fits."""
        if self.slider is None:
            return
        scenario, path, groove = self.store.scenario, self.field.path, self.slider.groove
        scale, legal = groove.scale, None
        if self.field.scale == "divisor":
            scale = scale_of(self.field, tuple(allowed(scenario, path)))
        if self.field.unit == "count":
            legal = legal_stops(scenario, path, scale.stops)
        self.slider.show_scale(scale, legal)
        self.slider.show_strip(strip(scenario, path, scale.stops, self.store.evaluate, legal))

    def clear_strip(self) -> None:
        """Say nothing along the groove."""
        if self.slider is not None:
            self.slider.show_strip(())

    def _step(self, count: int) -> None:
        if count == 0:
            self._clear_error()
        elif self.slider is not None:
            self.slider.step(count)

    def _reset(self, gesture: int) -> None:
        self.store.set(self.field.path, self.store.origin.get(self.field.path), gesture)

    def _describe(self, value: float) -> str:
        assert self.slider is not None
        groove = self.slider.groove
        said = shown(self.field, value)
        if groove.legal is not None and value not in groove.legal:
            scenario, path = self.store.scenario, self.field.path
            return refusal(scenario, scenario.with_(path, value), path) or f"{said} is not allowed"
        if groove.verdicts:
            verdict = groove.verdicts[groove.scale.stops.index(value)]
            return f"{self.field.label} {said}: {VERDICTS[verdict]}"
        return f"{self.field.label} {said}\n{self.field.help}"


def edit_width(field: Field, narrow: bool = True) -> int:
    """Pixels for the longest value that is usual: one with a unit in words, a large count, a small number."""
    if field.unit in ("bytes", "bytes/s", "FLOP/s", "USD/h", "kg/kWh", "tokens"):
        return 92
    return 54 if narrow and (field.half or field.unit != "count") else 70
