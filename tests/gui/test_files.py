"""Opening, saving, renaming and dropping files on the window, and what is asked before something is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core import load_scenario, save_scenario
from triledger.core.catalogue import catalogue
from triledger.core.errors import ScenarioError
from triledger.core.scenario import Scenario
from triledger.core.scenario_writing import write_model
from triledger.gui.store import Store
from triledger.gui.window import Window

from .conftest import Answers, press

TP = "parallelism.tp"
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
}


def test_the_title_names_the_plan_and_marks_changes(window: Window, store: Store) -> None:
    assert window.windowTitle() == f"{store.scenario.name}[*] – Triledger"
    assert not window.isWindowModified()
    store.set(TP, 4)
    assert window.isWindowModified()
    store.undo_stack.undo()
    assert not window.isWindowModified()


def test_a_plan_is_saved_and_opened_again(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.set(TP, 4)
    answers.save = str(tmp_path / "mine")
    press(qtbot, window, "Ctrl+S")
    file = tmp_path / "mine.yaml"
    assert load_scenario(file) == store.scenario
    assert not window.isWindowModified()
    assert store.path == file

    store.set(TP, 2)
    press(qtbot, window, "Ctrl+S")
    assert answers.asked == ["save"], "a plan that has a file is saved without asking"
    assert load_scenario(file).parallelism.tp == 2

    window.files.open_preset("7b-8xa100-train")
    answers.open = str(file)
    press(qtbot, window, "Ctrl+O")
    assert store.scenario.parallelism.tp == 2
    assert window.files.recent() == [str(file)]


def test_save_as_writes_another_file(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.saved(tmp_path / "first.yaml")
    answers.save = str(tmp_path / "second.yaml")
    press(qtbot, window, "Ctrl+Shift+S")
    assert load_scenario(tmp_path / "second.yaml") == store.scenario
    assert not (tmp_path / "first.yaml").exists()


def test_a_file_that_cannot_be_read_is_said_in_one_line_that_can_be_dismissed(
    qtbot: QtBot, window: Window, store: Store, tmp_path: Path, plan: Scenario
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("model: llama-2-7b\ncluster: {accelerator: h100-sxm-80gb}\nparallelism: {tp: 3}\n")
    window.files.open(broken)
    assert window.notice.isVisible()
    assert "broken.yaml:3: parallelism.tp: 3 does not divide" in window.notice.label.text()
    assert store.scenario is plan
    qtbot.mouseClick(window.notice.dismiss, Qt.MouseButton.LeftButton)
    assert not window.notice.isVisible()


def test_a_folder_that_is_not_there_is_said_when_saving(window: Window, answers: Answers, tmp_path: Path) -> None:
    answers.save = str(tmp_path / "nowhere" / "plan.yaml")
    assert not window.files.save()
    assert window.notice.label.text().startswith("Not saved:")


@pytest.mark.parametrize(("answer", "closed"), [("cancel", False), ("discard", True), ("save", True)])
def test_closing_with_unsaved_changes_asks(
    window: Window, store: Store, answers: Answers, tmp_path: Path, answer: str, closed: bool
) -> None:
    store.set(TP, 4)
    answers.unsaved, answers.save = answer, str(tmp_path / "kept.yaml")
    assert window.close() is closed
    assert answers.asked[0] == "unsaved"
    assert (tmp_path / "kept.yaml").exists() is (answer == "save")


def test_closing_without_changes_asks_nothing(window: Window, answers: Answers) -> None:
    assert window.close()
    assert answers.asked == []


def drop(window: Window, path: Path) -> bool:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    where, copy, left = QPointF(300, 300), Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    enter = QDragEnterEvent(where.toPoint(), copy, data, left, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, enter)
    if enter.isAccepted():
        QApplication.sendEvent(window, QDropEvent(where, copy, data, left, Qt.KeyboardModifier.NoModifier))
    return enter.isAccepted()


def test_a_scenario_file_dropped_on_the_window_opens(window: Window, store: Store, tmp_path: Path) -> None:
    other = load_scenario("7b-8xa100-train")
    save_scenario(other, tmp_path / "other.yaml")
    assert drop(window, tmp_path / "other.yaml")
    assert store.scenario == other
    assert not drop(window, tmp_path / "picture.png")


def test_a_preset_is_one_step(window: Window, store: Store, plan: Scenario) -> None:
    menu = window.toolbar.presets.menu()
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()][2:] == [p.name for p in catalogue().presets.values()]
    action = next(a for a in menu.actions() if a.text() == catalogue().presets["7b-8xa100-train"].name)
    action.trigger()
    assert store.scenario == load_scenario("7b-8xa100-train")
    assert store.undo_stack.count() == 1
    store.undo_stack.undo()
    assert store.scenario == plan


def test_a_preset_that_was_changed_is_saved_under_the_name_of_its_file(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.set("model", catalogue().models["llama-2-7b"])
    assert store.title == "70B pre-training on 64×H100 (changed)"
    assert window.windowTitle().startswith(store.title)
    answers.save = str(tmp_path / "small.yaml")
    press(qtbot, window, "Ctrl+S")
    assert store.scenario.name == load_scenario(tmp_path / "small.yaml").name == store.title == "small"
    assert window.windowTitle().startswith("small[*]")
    press(qtbot, window, "Ctrl+Z")
    assert store.scenario.name == store.origin.name


def test_f2_renames_the_plan_in_one_step(qtbot: QtBot, window: Window, store: Store, answers: Answers) -> None:
    answers.called = "Eight racks"
    press(qtbot, window, "F2")
    assert answers.asked == ["name, not 70B pre-training on 64×H100"]
    assert window.windowTitle().startswith("Eight racks[*]")
    assert window.toolbar.presets.text() == "Eight racks"
    store.set(TP, 4)
    assert store.title == "Eight racks"
    assert store.undo_stack.undoText() == "Tensor (TP) 8 → 4"
    press(qtbot, window, "Ctrl+Z")
    assert store.undo_stack.undoText() == "Rename to Eight racks"
    press(qtbot, window, "Ctrl+Z")
    answers.called = ""
    window.toolbar.presets.menu().aboutToShow.emit()
    window.toolbar.presets.menu().actions()[0].trigger()
    assert store.scenario.name == store.origin.name


def test_charts_are_taken_away_under_the_name_the_plan_has(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path
) -> None:
    store.set("model.layers", 76)
    store.flush()
    assert window.charts is not None
    assert window.charts.chart("memory").figure.scenario == "70B pre-training on 64×H100 (changed)"
    answers.save = str(tmp_path / "taken.svg")
    window.charts.chart("memory").export(".svg")
    assert "64×H100 (changed)" in (tmp_path / "taken.svg").read_text()


def test_files_of_a_model_and_of_constants_are_taken_into_the_plan(
    window: Window, store: Store, tmp_path: Path
) -> None:
    model, constants = tmp_path / "model.yaml", tmp_path / "assumptions.yaml"
    model.write_text(write_model(catalogue().models["mistral-7b-v0.3"]), encoding="utf-8")
    constants.write_text("assumptions:\n  e_gemm: 0.6\n", encoding="utf-8")
    before = store.scenario
    window.files.open(model)
    assert store.scenario.model.name == catalogue().models["mistral-7b-v0.3"].name
    window.files.open(constants)
    assert store.scenario.assumptions == (("e_gemm", 0.6),)
    assert store.scenario.training == before.training
    store.undo_stack.undo()
    store.undo_stack.undo()
    assert store.scenario == before


@pytest.mark.parametrize("name", ["out v1.5", "out.png", "out.json", "out"])
def test_a_scenario_always_gets_its_suffix(
    qtbot: QtBot, window: Window, answers: Answers, tmp_path: Path, name: str
) -> None:
    answers.save = str(tmp_path / name)
    press(qtbot, window, "Ctrl+S")
    assert [path.name for path in tmp_path.glob("*.yaml")] == [f"{name}.yaml"]
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("agrees", [False, True])
def test_a_file_that_got_its_suffix_here_is_not_replaced_unasked(
    qtbot: QtBot, window: Window, answers: Answers, tmp_path: Path, agrees: bool
) -> None:
    (tmp_path / "there.yaml").write_text("mine")
    answers.save, answers.agrees = str(tmp_path / "there"), agrees
    press(qtbot, window, "Ctrl+S")
    assert answers.asked == ["save", "replace there.yaml"]
    assert ((tmp_path / "there.yaml").read_text() == "mine") is not agrees


@pytest.mark.parametrize("agrees", [False, True])
def test_a_file_that_another_program_changed_is_not_replaced_unasked(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path, agrees: bool
) -> None:
    file = tmp_path / "plan.yaml"
    save_scenario(store.scenario, file)
    window.files.open(file)
    store.set(TP, 4)
    press(qtbot, window, "Ctrl+S")
    assert answers.asked == []
    file.write_text(file.read_text() + "# by hand\n")
    os.utime(file, ns=(1, 1))
    answers.agrees = agrees
    press(qtbot, window, "Ctrl+S")
    assert answers.asked == ["replace plan.yaml"]
    assert ("by hand" in file.read_text()) is not agrees


@pytest.mark.parametrize("agrees", [False, True])
def test_a_plan_that_cannot_be_opened_again_is_saved_only_on_demand(
    qtbot: QtBot, window: Window, store: Store, answers: Answers, tmp_path: Path, agrees: bool
) -> None:
    store.set("model", catalogue().models["falcon-7b"])
    answers.save, answers.agrees = str(tmp_path / "falcon.yaml"), agrees
    press(qtbot, window, "Ctrl+S")
    assert answers.asked[1].startswith("illegal: Tensor (TP): 8 does not divide 71 attention heads")
    assert (tmp_path / "falcon.yaml").exists() is agrees
    if agrees:
        with pytest.raises(ScenarioError):
            load_scenario(tmp_path / "falcon.yaml")


def test_what_was_said_of_one_file_goes_when_another_is_used(
    qtbot: QtBot, window: Window, answers: Answers, tmp_path: Path
) -> None:
    def fail() -> None:
        answers.save = str(tmp_path / "nowhere" / "plan.yaml")
        window.files.ask_and_save()
        assert window.notice.isVisible()

    fail()
    answers.save = str(tmp_path / "plan.yaml")
    assert window.files.ask_and_save()
    assert not window.notice.isVisible()
    fail()
    window.files.open(tmp_path / "plan.yaml")
    assert not window.notice.isVisible()
    fail()
    assert window.charts is not None
    answers.save = str(tmp_path / "chart.csv")
    window.charts.chart("memory").export(".csv")
    assert not window.notice.isVisible()
    answers.save = str(tmp_path / "nowhere" / "chart.csv")
    window.charts.chart("memory").export(".csv")
    assert window.notice.label.text().startswith("Not exported:")
    window.files.open_preset("7b-8xa100-train")
    assert not window.notice.isVisible()


# ------------------------------------------------------------ a model's config.json


def config(tmp_path: Path, **facts: object) -> Path:
    file = tmp_path / "Llama-3-8B" / "config.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(LLAMA | facts))
    return file


def test_a_dropped_config_becomes_the_model_in_one_step(window: Window, store: Store, tmp_path: Path) -> None:
    before = store.scenario
    assert drop(window, config(tmp_path))
    model = store.scenario.model
    assert (model.name, model.layers, model.kv_heads, model.ffn_size) == ("Llama-3-8B", 32, 8, 14336)
    assert not window.notice.isVisible(), "all of it was in the file"
    assert store.scenario == before.with_("model", model)
    assert store.undo_stack.count() == 1
    store.undo_stack.undo()
    assert store.scenario == before


def test_what_was_assumed_of_a_model_is_said_and_not_as_an_error(window: Window, tmp_path: Path) -> None:
    assert drop(window, config(tmp_path, model_type="newcomer", architectures=["NewcomerForCausalLM"]))
    assert "newcomer" in window.notice.label.text()
    assert window.notice.property("bad") is False


def test_the_format_of_quantised_weights_is_taken_along(window: Window, store: Store, tmp_path: Path) -> None:
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    assert drop(window, config(tmp_path, quantization_config=gptq))
    assert store.scenario.serving.weight_format == "gptq-g128"
    assert store.undo_stack.count() == 1


def test_a_config_that_is_no_decoder_is_refused_in_one_line(window: Window, store: Store, tmp_path: Path) -> None:
    before = store.scenario
    assert drop(window, config(tmp_path, model_type="bert", architectures=["BertModel"]))
    assert window.notice.property("bad") is True
    assert "bert is an encoder" in window.notice.label.text()
    assert "\n" not in window.notice.label.text()
    assert store.scenario is before
