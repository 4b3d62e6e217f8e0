from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from triledger.core import evaluate, load_scenario
from triledger.core.report import Edit, Report
from triledger.core.scenario import Scenario
from triledger.gui.store import Store

TP = "parallelism.tp"


class Engine:
    """The engine, counted; raises `problem` when there is one."""

    def __init__(self) -> None:
        self.calls: list[Scenario] = []
        self.problem: Exception | None = None

    def __call__(self, scenario: Scenario) -> Report:
        if np.ndim(scenario.cluster.gpus) == 0:
            self.calls.append(scenario)
        if self.problem:
            raise self.problem
        return evaluate(scenario)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def counted(qapp: QApplication, plan: Scenario, engine: Engine) -> Store:
    store = Store(plan, evaluate=engine)
    store.flush()
    engine.calls.clear()
    return store


def test_a_store_reports_on_its_scenario_by_itself(qtbot: QtBot, plan: Scenario) -> None:
    store = Store(plan)
    assert store.report is None
    with qtbot.waitSignals([store.report_changed, store.curve_changed], order="strict"):
        pass
    assert store.report is not None
    assert store.report.scenario is plan
    assert store.curve is not None
    assert np.ndim(store.curve["training.days"]) == 1


def test_the_scenario_changes_at_once_and_the_report_follows(qtbot: QtBot, store: Store) -> None:
    before = store.report
    with qtbot.waitSignal(store.report_changed):
        with qtbot.waitSignal(store.scenario_changed, timeout=0):
            store.set("cluster.gpus", 128)
        assert store.scenario.cluster.gpus == 128
        assert store.report is before
    assert store.report is not None
    assert store.report.scenario.cluster.gpus == 128


def test_many_changes_within_a_frame_are_evaluated_once(qtbot: QtBot, counted: Store, engine: Engine) -> None:
    gesture = counted.gesture()
    with qtbot.waitSignal(counted.report_changed):
        for tokens in range(1, 101):
            counted.set("training.tokens", tokens * 1e10, gesture)
    assert [scenario.training.tokens for scenario in engine.calls] == [1e12]


def test_a_gesture_is_one_undo_step_with_a_name(store: Store, plan: Scenario) -> None:
    gesture = store.gesture()
    for tp in (4, 2, 4):
        store.set(TP, tp, gesture)
    assert store.undo_stack.count() == 1
    assert store.undo_stack.undoText() == "Tensor (TP) 8 → 4"
    store.undo_stack.undo()
    assert store.scenario == plan
    store.undo_stack.redo()
    assert store.scenario.parallelism.tp == 4


@pytest.mark.parametrize("path", ["parallelism.pp", TP])
def test_other_fields_and_other_gestures_are_other_steps(store: Store, path: str) -> None:
    gesture = store.gesture()
    store.set(TP, 4, gesture)
    store.set(path, 2, store.gesture() if path == TP else gesture)
    assert store.undo_stack.count() == 2


def test_a_gesture_that_comes_back_to_where_it_began_leaves_no_step(store: Store) -> None:
    gesture = store.gesture()
    store.set(TP, 4, gesture)
    store.set(TP, 8, gesture)
    assert store.undo_stack.count() == 0
    assert store.undo_stack.isClean()


def test_setting_a_field_to_what_it_is_changes_nothing(qtbot: QtBot, store: Store) -> None:
    with qtbot.assertNotEmitted(store.scenario_changed):
        store.set(TP, 8)
    assert store.undo_stack.count() == 0


def test_opening_another_plan_is_one_step_and_undo_brings_back_plan_file_and_origin(
    store: Store, plan: Scenario
) -> None:
    other = load_scenario("7b-8xa100-train")
    store.set(TP, 4)
    store.apply(other, "Open other.yaml", Path("other.yaml"))
    assert (store.scenario, store.origin, store.path) == (other, other, Path("other.yaml"))
    assert store.undo_stack.isClean()
    assert store.undo_stack.undoText() == "Open other.yaml"
    store.undo_stack.undo()
    assert store.scenario.parallelism.tp == 4
    assert (store.origin, store.path) == (plan, None)
    assert not store.undo_stack.isClean()


def test_undo_of_a_field_does_not_forget_the_file_saved_in_the_meantime(store: Store) -> None:
    store.set(TP, 4)
    store.saved(Path("mine.yaml"))
    assert store.undo_stack.isClean()
    store.undo_stack.undo()
    assert store.path == Path("mine.yaml")
    assert not store.undo_stack.isClean()


def test_a_suggestion_is_one_step_under_its_own_name(store: Store, plan: Scenario) -> None:
    store.apply_edit(Edit("Shard it all", (("parallelism.zero", 3), ("training.recompute", "full"))))
    assert (store.scenario.parallelism.zero, store.scenario.training.recompute) == (3, "full")
    assert store.undo_stack.undoText() == "Shard it all"
    store.undo_stack.undo()
    assert store.scenario == plan


def test_a_suggestion_that_would_break_a_rule_is_refused_with_the_rule(
    qtbot: QtBot, store: Store, plan: Scenario
) -> None:
    with qtbot.waitSignal(store.failed) as said:
        store.apply_edit(Edit("TP 1, PP 512", (("parallelism.tp", 1), ("parallelism.pp", 512))))
    assert said.args[0].startswith("TP 1, PP 512 is not possible in this plan: ")
    assert store.scenario is plan
    assert store.undo_stack.count() == 0


def test_a_plan_that_was_changed_no_longer_has_the_bare_name_of_what_it_came_from(store: Store, tmp_path) -> None:
    name = store.scenario.name
    assert store.title == name
    store.set("model.layers", 76)
    assert store.title == f"{name} (changed)"
    store.set("name", "Mine")
    assert store.title == "Mine"
    store.undo_stack.undo()
    store.saved(tmp_path / "plan.yaml")
    assert store.title == name
    store.set("model.layers", 72)
    assert store.title == f"{name} (changed)"
    for _ in range(2):
        store.undo_stack.undo()
    assert store.scenario == store.origin
    assert store.title == name


def test_when_the_engine_fails_the_last_report_stays_and_one_line_says_so(
    qtbot: QtBot, counted: Store, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    good = counted.report
    engine.problem = ZeroDivisionError("no ranks")
    with qtbot.waitSignal(counted.failed) as said, qtbot.assertNotEmitted(counted.report_changed):
        counted.set(TP, 4)
    assert "no ranks" in said.args[0]
    assert counted.report is good
    assert "ZeroDivisionError" in caplog.text
    engine.problem = None
    with qtbot.waitSignal(counted.report_changed):
        counted.set(TP, 2)
    assert counted.report is not good


def test_serving_has_a_curve_over_concurrency(qtbot: QtBot, store: Store) -> None:
    with qtbot.waitSignal(store.curve_changed):
        store.set("kind", "serving")
    assert store.kind == "serving"
    assert store.undo_stack.undoText() == "Serving"
    assert store.curve is not None
    assert np.ndim(store.curve.scenario.serving.concurrency) == 1


def test_what_does_not_divide_is_known_by_field(store: Store) -> None:
    assert store.broken == {}
    store.set(TP, 6)
    assert "6 does not divide 64 attention heads" in store.broken[TP]
