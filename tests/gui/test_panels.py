from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core import load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.fields import PANELS, fields_of
from triledger.core.report import Report
from triledger.core.traits import traits
from triledger.gui.controls.quantity_row import QuantityRow
from triledger.gui.controls.row import CatalogueRow, ChoiceRow, DerivedRow, FlagRow
from triledger.gui.panels import Panel
from triledger.gui.store import Store
from triledger.gui.strips import StripFeed
from triledger.gui.theme import LIGHT

LEFT = Qt.MouseButton.LeftButton


def entries(name: str) -> list[tuple[str, str]]:
    return [(key, entry.name) for key, entry in getattr(catalogue(), name).items()]


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> Callable[[str], Panel]:
    def show(name: str) -> Panel:
        panel = Panel(name, store, LIGHT, entries)
        qtbot.addWidget(panel)
        panel.resize(292, 900)
        panel.show()
        return panel

    return show


def quantity(panel: Panel, path: str) -> QuantityRow:
    row = panel.row(path)
    assert isinstance(row, QuantityRow)
    return row


def enter(qtbot: QtBot, row: QuantityRow, text: str) -> None:
    row.control.setFocus()
    row.control.selectAll()
    qtbot.keyClicks(row.control, text)
    qtbot.keyClick(row.control, Qt.Key.Key_Return)


def at(row: QuantityRow, value: float) -> QPoint:
    assert row.slider is not None
    return QPoint(round(row.slider.groove.x(value, row.slider.width())), 7)


@pytest.mark.parametrize("kind", ["training", "serving"])
@pytest.mark.parametrize("name", PANELS)
def test_a_panel_holds_the_daily_fields_of_its_kind_and_folds_the_advanced_ones(
    panel: Callable[[str], Panel], store: Store, name: str, kind: str
) -> None:
    store.set("kind", kind)
    shown = panel(name)
    daily, more = (fields_of(name, kind, advanced, traits(store.scenario)) for advanced in (False, True))
    if not daily:  # a panel is no empty heading
        daily, more = more, []
    assert shown.rows
    assert [row.field for row in shown.rows] == daily
    assert all(row.isVisible() for row in shown.rows)
    if more:
        shown.title.fold.click()
        assert [row.field for row in shown.rows] == daily + more
        assert all(row.isVisible() for row in shown.rows)
        shown.title.fold.click()
        assert [row.field for row in shown.rows if row.isVisible()] == daily
    else:
        assert not shown.title.fold.isVisible()


def test_controls_fit_their_fields_and_have_names_for_a_screen_reader(panel: Callable[[str], Panel]) -> None:
    kinds = {"choice": ChoiceRow, "flag": FlagRow, "catalogue": CatalogueRow}
    for name in PANELS:
        shown = panel(name)
        if shown.title.fold.isVisible():
            shown.title.fold.click()
        for row in shown.rows:
            assert type(row) is kinds.get(row.field.unit, QuantityRow)
            control = row.label.buddy()
            assert control is not None
            assert control.accessibleName() == row.field.label
            if isinstance(row, QuantityRow):
                assert (row.slider is not None) == (row.field.slider is not None)


def test_the_kind_of_plan_changes_the_rows(panel: Callable[[str], Panel], store: Store) -> None:
    shown = panel("workload")
    store.set("kind", "serving")
    assert [row.field.path for row in shown.rows][:2] == ["serving.prompt_tokens", "serving.output_tokens"]
    store.undo_stack.undo()
    assert shown.rows[0].field.path == "training.sequence_length"


@pytest.mark.parametrize(
    ("path", "text", "value", "shown"),
    [
        ("cluster.gpus", "8*16", 128, "128"),
        ("training.tokens", "1.5T", 1.5e12, "1.50T"),
        ("cluster.network.bandwidth", "200 Gb/s", 25e9, "25.0 GB/s"),
        ("economics.gpu_price", "2.40 USD/h", 2.4, "2.40 USD/h"),
        ("training.mfu", "45%", 0.45, "45.0 %"),
        ("reliability.restart_seconds", "10 min", 600, "600 s"),
    ],
)
def test_a_quantity_is_typed_with_its_unit_or_as_arithmetic(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store, path: str, text: str, value: float, shown: str
) -> None:
    row = next(quantity(p, path) for p in map(panel, PANELS) if path in [r.field.path for r in p.rows])
    enter(qtbot, row, text)
    row.control.clearFocus()
    assert store.scenario.get(path) == pytest.approx(value)
    assert row.control.text() == shown
    assert row.error == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [("6", "6 does not divide 64 attention heads"), ("many", "'many' is not a quantity"), ("0", "too small")],
)
def test_a_wrong_value_says_why_beneath_and_leaves_the_plan_until_escape(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store, text: str, said: str
) -> None:
    row = quantity(panel("parallelism"), "parallelism.tp")
    enter(qtbot, row, text)
    assert said in row.error
    assert row.control.wrong
    assert row.control.text() == text
    assert store.scenario.parallelism.tp == 8
    qtbot.keyClick(row.control, Qt.Key.Key_Escape)
    assert row.error == ""
    assert not row.control.wrong
    assert row.control.text() == "8"


def test_another_change_leaves_a_wrong_value_where_it_stands(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store
) -> None:
    row = quantity(panel("parallelism"), "parallelism.tp")
    enter(qtbot, row, "6")
    store.set("training.tokens", 1e12)
    assert row.control.wrong
    enter(qtbot, row, "8")
    assert not row.control.wrong
    assert row.error == ""


def test_a_row_marks_what_another_choice_made_impossible(panel: Callable[[str], Panel], store: Store) -> None:
    row = quantity(panel("parallelism"), "parallelism.tp")
    store.set("model.heads", 12)
    store.set("parallelism.tp", 8)
    assert "does not divide 12 attention heads" in row.error
    assert row.control.wrong
    store.undo_stack.undo()
    assert row.error == ""


def test_a_drag_is_one_step_and_undo_moves_the_thumb_back(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store
) -> None:
    row = quantity(panel("parallelism"), "parallelism.tp")
    slider = row.slider
    assert slider is not None
    qtbot.mousePress(slider, LEFT, pos=at(row, 8))
    for value in (4, 2, 4):
        qtbot.mouseMove(slider, at(row, value))
    qtbot.mouseRelease(slider, LEFT, pos=at(row, 4))
    assert store.scenario.parallelism.tp == 4
    assert store.undo_stack.count() == 1
    assert store.undo_stack.undoText() == "Tensor (TP) 8 → 4"
    assert row.control.text() == "4"
    store.undo_stack.undo()
    assert slider.current == 8


def test_a_double_click_goes_back_to_the_value_of_the_preset(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store
) -> None:
    row = quantity(panel("workload"), "training.tokens")
    assert row.slider is not None
    store.set("training.tokens", 5e12)
    qtbot.mouseDClick(row.slider, LEFT, pos=at(row, 5e12))
    assert store.scenario.training.tokens == store.origin.training.tokens


def test_arrows_in_the_field_step_the_slider(qtbot: QtBot, panel: Callable[[str], Panel], store: Store) -> None:
    row = quantity(panel("hardware"), "cluster.gpus")
    row.control.setFocus()
    qtbot.keyClick(row.control, Qt.Key.Key_Up)
    assert store.scenario.cluster.gpus == 128


def test_an_optional_field_is_automatic_until_it_is_set(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store
) -> None:
    row = quantity(panel("assumptions"), "training.mfu")
    assert row.slider is not None
    store.set("training.mfu", "auto")
    assert row.control.text() == "auto"
    assert row.slider.current is None
    enter(qtbot, row, "40%")
    assert store.scenario.training.mfu == pytest.approx(0.4)
    row.control.selectAll()
    qtbot.keyClick(row.control, Qt.Key.Key_Delete)
    assert row.control.placeholderText() == "auto"
    qtbot.keyClick(row.control, Qt.Key.Key_Return)
    assert store.scenario.training.mfu == "auto"


def test_a_model_is_chosen_by_name_and_an_unknown_one_is_refused(
    qtbot: QtBot, panel: Callable[[str], Panel], store: Store
) -> None:
    row = panel("model").row("model")
    assert isinstance(row, CatalogueRow)
    edit = row.control.lineEdit()
    assert edit is not None
    edit.setFocus()
    edit.setText(catalogue().models["llama-2-7b"].name)
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert store.scenario.model == catalogue().models["llama-2-7b"]
    edit.setText("llama-nine")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert row.error.startswith("'llama-nine' is not in the catalogue")
    assert "known:" not in row.error, "the box lists them itself"
    assert row.control.wrong
    assert store.scenario.model.id == "llama-2-7b"
    qtbot.keyClick(edit, Qt.Key.Key_Escape)
    assert row.error == ""
    assert not row.control.wrong
    assert edit.text() == catalogue().models["llama-2-7b"].name


@pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard")
def test_a_serving_engine_is_chosen_by_its_name(qtbot: QtBot, panel: Callable[[str], Panel], store: Store) -> None:
    store.set("kind", "serving")
    shown = panel("workload")
    row = shown.row("serving.engine")
    assert isinstance(row, CatalogueRow)
    qtbot.waitUntil(shown.isActiveWindow)
    shown.setFocus()
    edit = row.control.lineEdit()
    assert edit is not None
    assert edit.text() == "vLLM V1"
    qtbot.mouseClick(edit, LEFT)
    qtbot.keyClicks(edit, "sglang")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert row.error == ""
    assert store.scenario.serving.engine == "sglang-0.5"
    assert edit.text() == "SGLang 0.5"
    assert store.undo_stack.undoText() == "Engine vLLM V1 → SGLang 0.5"


def test_a_switch_and_a_choice_set_their_fields(qtbot: QtBot, panel: Callable[[str], Panel], store: Store) -> None:
    shown = panel("parallelism")
    zero, sp = shown.row("parallelism.zero"), shown.row("parallelism.sp")
    assert isinstance(zero, ChoiceRow)
    assert isinstance(sp, FlagRow)
    was = store.scenario.parallelism.sp
    qtbot.mouseClick(sp.control, LEFT)
    assert store.scenario.parallelism.sp is not was
    zero.control.setFocus()
    qtbot.keyClick(zero.control, Qt.Key.Key_End)
    assert store.scenario.parallelism.zero == 3
    assert store.undo_stack.undoText().startswith("ZeRO stage")


def test_the_data_parallel_degree_is_shown_with_its_working(panel: Callable[[str], Panel], store: Store) -> None:
    (derived,) = panel("parallelism").findChildren(DerivedRow)
    assert (derived.note.text(), derived.value.text()) == ("= 64 / (8·4)", "2")
    store.set("cluster.gpus", 128)
    assert (derived.note.text(), derived.value.text()) == ("= 128 / (8·4)", "4")


@pytest.fixture
def fed(panel: Callable[[str], Panel], store: Store) -> Panel:
    """The parallelism panel with its strips computed."""
    shown = panel("parallelism")
    feed = StripFeed(store, [shown], shown)
    feed.restart()
    feed.finish()
    return shown


def test_a_strip_says_before_the_move_what_the_engine_says_after(fed: Panel, store: Store) -> None:
    row = quantity(fed, "parallelism.tp")
    assert row.slider is not None
    groove = row.slider.groove
    said = dict(zip(groove.scale.stops, groove.verdicts, strict=True))
    assert set(said.values()) >= {"fits", "does-not-fit", "illegal"}
    for stop, verdict in said.items():
        plan = store.scenario.with_("parallelism.tp", stop)
        report: Report = store.evaluate(plan)
        assert verdict in ("illegal", report["memory.verdict"])


def test_a_stop_that_is_not_allowed_says_why(fed: Panel) -> None:
    row = quantity(fed, "parallelism.tp")
    assert row.slider is not None
    assert "GPUs: 64 is not a multiple of" in row.slider.describe(32)
    assert row.slider.describe(1) == "Tensor (TP) 1: does not fit in memory"
    assert row.slider.describe(8) == "Tensor (TP) 8: fits"


def test_a_divisor_slider_stops_at_divisors_that_are_no_powers_of_two(
    panel: Callable[[str], Panel], store: Store
) -> None:
    store.set("cluster.gpus", 96)
    shown = panel("parallelism")
    feed = StripFeed(store, [shown], shown)
    feed.restart()
    feed.finish()
    row = quantity(shown, "parallelism.pp")
    assert row.slider is not None
    assert {1, 2, 3, 4, 6, 8, 12} <= set(row.slider.groove.scale.stops)
    assert row.slider.groove.legal == {3, 6, 12}


def paths(shown: Panel) -> set[str]:
    return {row.field.path for row in shown.rows}


def test_fields_that_a_model_has_nothing_for_are_not_there(panel: Callable[[str], Panel], store: Store) -> None:
    parallelism, model = panel("parallelism"), panel("model")
    model.title.fold.setChecked(True)
    assert "parallelism.ep" not in paths(parallelism)
    assert "model.experts" not in paths(model)
    assert "model.ffn_size" in paths(model)
    store.apply(load_scenario("mixtral-8x7b-8xa100-serve"), "other")
    assert {"model.experts", "model.experts_per_token", "model.expert_size"} <= paths(model)
    assert "model.ffn_size" not in paths(model)
    store.undo_stack.undo()
    assert "model.experts" not in paths(model)


def test_a_panel_outlives_the_entry_that_changes_its_fields(panel: Callable[[str], Panel], store: Store) -> None:
    store.apply(load_scenario("mixtral-8x7b-8xa100-serve"), "other")
    model = panel("model")
    model.title.fold.setChecked(True)
    model.row("model").enter("llama-3-8b")
    QApplication.processEvents()
    assert "model.kv_heads" in paths(model)
    assert "model.experts" not in paths(model)


def test_fields_of_adapters_come_with_them(panel: Callable[[str], Panel], store: Store) -> None:
    workload = panel("workload")
    workload.title.fold.setChecked(True)
    assert "training.lora.rank" not in paths(workload)
    workload.row("training.finetune").enter("lora")
    assert "training.lora.rank" in paths(workload)
    assert "training.lora.base_format" not in paths(workload)
    workload.row("training.finetune").enter("qlora")
    assert "training.lora.base_format" in paths(workload)


def test_a_size_without_which_there_are_no_layers_is_refused_below_its_row(
    panel: Callable[[str], Panel], store: Store
) -> None:
    model = panel("model")
    store.set("model", catalogue().models["mixtral-8x7b"])
    before = store.scenario
    row = model.row("model.experts_per_token")
    row.enter("0")
    assert row.error == "is missing; experts layers need it"
    model.row("model.expert_size").enter("0")
    assert store.scenario is before
    row.enter("1")
    assert store.scenario.model.experts_per_token == 1
