"""The working shown: mathematics, values put in, spreadsheet cells, origins."""

from __future__ import annotations

import importlib
import math
import pkgutil

import pytest

from tests.core.spreadsheet import computed
from triledger import core
from triledger.core import evaluate, load_scenario
from triledger.core.catalogue import catalogue
from triledger.core.cells import cell_text
from triledger.core.mathematics import math_text
from triledger.core.numeric import Number, both, ceil, largest, maximum, ratio, smallest, where
from triledger.core.report import Report
from triledger.core.sums import add_seconds, times_seconds
from triledger.core.terms import Datum, Formula, Term, formula, formula_of, recording, traced
from triledger.core.working import UnknownKeyError, explain, explain_input, result_keys, substituted

BYTES = {"fp32": 4, "bf16": 2, "fp8": 1}
TILES = ((256, 128), (128, 64))
FACTOR = 6


@formula("F", "FLOP", "Kaplan 2020", "attention")
def training_flops(parameters: Number, tokens: Number) -> Number:
    """FLOPs of a training run."""
    return FACTOR * parameters * tokens


@formula("t", "seconds")
def run_seconds(flops: Number, gpus: Number, peak: Number, mfu: Number) -> Number:
    """Time of the run."""
    return flops / (gpus * peak * mfu)


@formula("x", "number")
def signs(first: Number, second: Number) -> Number:
    """Powers, signs and brackets."""
    return -(first**2) - (first - (second - 1)) / (first * second) ** 2 + (-first) ** 2


@formula("w", "bytes")
def element(precision: str, wide: bool) -> Number:
    """A table looked up by a word, and a choice."""
    return BYTES[precision] if not wide and precision in ("bf16", "fp8") else 4


@formula("n", "count")
def waves(rows: Number, columns: Number) -> Number:
    """A loop over a table."""
    return smallest(ceil(rows / height) * ceil(columns / width) * height for height, width in TILES if height > 1)


@formula("m", "number")
def chosen(first: Number, second: Number) -> Number:
    """Every function of the formulas."""
    return where(both(first > 0, second <= 4), maximum(first, ratio(first, second)), 0) + largest([first, second])


@formula("l", "layers")
def over_stages(layers: tuple[float, ...], extra: Number) -> Number:
    """A sum over a list."""
    return sum(layers) + sum(each * extra for each in layers)


def term_of(called, *arguments) -> Term:
    with recording() as recorder:
        called(*arguments)
    return recorder.terms[-1]


CASES = [
    (training_flops, (7e9, 2e12), "F = 6 · N · T"),
    (run_seconds, (8.4e22, 8, 312e12, 0.5), "t = F / (n · Π · MFU)"),
    (signs, (3.0, 5.0), "x = −first² − (first − (second − 1)) / (first · second)² + (−first)²"),
    (element, ("fp8", False), "w = bytes[precision] if not wide and precision is one of bf16, fp8, else 4"),
    (
        waves,
        (300.0, 700.0),
        "n = min(⌈rows / height⌉ · ⌈columns / width⌉ · height for height, width in tiles, if height > 1)",
    ),
    (chosen, (2.0, 4.0), "m = (max(first, first / second) if first > 0 and second ≤ 4, else 0) + max(first, second)"),
    (over_stages, ((3.0, 4.0), 2.0), "l = Σ L + Σ each · extra over each in L"),
]


@pytest.mark.parametrize(("called", "arguments", "text"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_mathematics_reads_as_the_field_writes_it(called, arguments, text) -> None:
    assert math_text(term_of(called, *arguments).formula) == text


@pytest.mark.parametrize(("called", "arguments", "text"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_a_cell_computes_what_the_formula_computed(called, arguments, text) -> None:
    term = term_of(called, *arguments)
    assert computed(cell_text(term), term.inputs) == pytest.approx(term.value, rel=1e-12)


def test_cells_take_the_place_of_names() -> None:
    term = term_of(run_seconds, 8.4e22, 8, 312e12, 0.5)
    assert cell_text(term, {"flops": "B2", "gpus": "Inputs!C4"}) == "B2/(Inputs!C4*peak*mfu)"


def test_a_choice_between_words_survives_another_word() -> None:
    text = cell_text(term_of(element, "fp8", False))
    assert [computed(text, {"precision": word, "wide": False}) for word in ("bf16", "fp8", "fp32")] == [2, 1, 4]
    assert computed(text, {"precision": "bf16", "wide": True}) == 4


@pytest.mark.parametrize(("text", "value"), [("-2^2", 4), ("2^3^2", 64), ("7-2-1", 4), ("2*3+4>=10", True)])
def test_the_spreadsheet_of_these_tests_binds_as_spreadsheets_do(text: str, value: float) -> None:
    assert computed(text, {}) == value


@pytest.fixture
def report() -> Report:
    parameters = traced(7e9, Datum("whiteboard.parameters"))
    peak = traced(312e12, Datum("cluster.accelerator.peak.bf16", "NVIDIA A100 data sheet"))
    with recording() as recorder:
        flops = training_flops(parameters, traced(2e12, Datum("training.tokens")))
        seconds = run_seconds(flops, traced(8, Datum("cluster.gpus")), peak, 0.5)
    values = {"compute.flops": flops, "time.run_s": seconds, "roofline.peak_flops": peak, "kind": "training"}
    return Report(None, values, terms=tuple(recorder.terms))  # pyright: ignore[reportArgumentType]


def test_working_puts_values_in_with_their_units(report: Report) -> None:
    assert substituted(report.explain("compute.flops")) == "F = 6 · 7B · 2T = 84\u202f000 EFLOP"


def test_every_input_says_where_it_came_from(report: Report) -> None:
    working = explain(report, "time.run_s")
    assert [entry.path for entry in working.inputs] == ["", "cluster.gpus", "cluster.accelerator.peak.bf16", ""]
    flops, gpus, peak, mfu = working.inputs
    assert flops.working is not None
    assert flops.working.source == "Kaplan 2020"
    assert flops.working.leaves_out == "attention"
    assert "GPUs (cluster.gpus)" in gpus.origin
    assert "NVIDIA A100 data sheet" in peak.origin
    assert peak.text == "312 TFLOP/s"
    assert mfu.origin == "a number of the method"


def test_depth_limits_the_working_of_inputs(report: Report) -> None:
    assert explain(report, "time.run_s", depth=1).inputs[0].working is None


def test_a_value_that_nothing_computed_says_where_it_came_from(report: Report) -> None:
    working = explain(report, "roofline.peak_flops")
    assert working.formula == ""
    assert working.path == "cluster.accelerator.peak.bf16"
    assert working.text == "312 TFLOP/s"


def test_text_holds_formula_values_origins_source_and_gaps(report: Report) -> None:
    text = "\n".join(explain(report, "time.run_s").lines())
    for part in ("t = F / (n · Π · MFU)", "GPUs (cluster.gpus)", "Kaplan 2020", "not counted", "attention"):
        assert part in text


def test_an_unknown_key_names_the_nearest(report: Report) -> None:
    with pytest.raises(UnknownKeyError, match=r"did you mean time\.run_s\?"):
        explain(report, "time.run")


def test_lists_are_explained_row_by_row(report: Report) -> None:
    assert explain(report, "communication").text == "0 rows"


def test_large_and_small_numbers_of_a_formula_are_readable() -> None:
    @formula("y", "number")
    def scaled(value: Number) -> Number:
        """Scaled."""
        return value * 1e9 + 1e-7 * value + 0.5

    assert math_text(term_of(scaled, 3.0).formula) == "y = value · 10⁹ + 10⁻⁷ · value + 0.5"
    assert math.isclose(computed(cell_text(term_of(scaled, 3.0)), {"value": 3.0}), 3e9 + 3e-7 + 0.5, rel_tol=1e-15)


@formula("p > 1", "s")
def only_in_pipeline(pipeline: Number, seconds: Number) -> Number:
    """Nothing is sent where there is one stage."""
    return where(pipeline > 1, seconds, 0.0)


@formula("t_send", "s")
def send_seconds(size: Number, rate: Number) -> Number:
    """Time of one transfer; both ways."""
    return size / rate


@formula("t_all", "s")
def with_transfers(steady: Number, transfers: Number, reduction: Number) -> Number:
    """Time with transfers."""
    return steady + transfers + reduction


def wrapped(pipeline: float) -> Report:
    with recording() as recorder:
        sent = send_seconds(traced(8e9, Datum("sent")), traced(1e9, Datum("rate")))
        transfers = only_in_pipeline(pipeline, sent)
        reduction = add_seconds(add_seconds(times_seconds(3.0, sent), 0.0), times_seconds(1.0, sent))
        total = with_transfers(2.0, transfers, reduction)
    return Report(None, {"time.all_s": total}, terms=tuple(recorder.terms))  # pyright: ignore[reportArgumentType]


def test_what_a_guard_lets_through_is_what_it_means() -> None:
    through, stopped = (explain(wrapped(pipeline), "time.all_s").inputs[1] for pipeline in (4, 1))
    assert through.origin == "Time of one transfer; both ways"
    assert through.working is not None
    assert through.working.formula == "t_send = size / rate"
    assert stopped.origin == "Nothing is sent where there is one stage"
    assert stopped.working is not None
    assert "if pipeline > 1" in stopped.working.formula.replace("p >", "pipeline >")


def test_sums_and_multiples_say_what_is_in_them_and_go_by_the_name_of_their_place() -> None:
    reduction = explain(wrapped(4), "time.all_s").inputs[2]
    assert reduction.origin == "Sum of 3 × time of one transfer; time of one transfer"
    assert reduction.working is not None
    assert reduction.working.formula == "reduction = times seconds + t_send"
    assert reduction.working.substituted == "reduction = 24 s + 8 s = 32 s"


def test_inputs_of_inputs_are_reached_step_by_step() -> None:
    assert explain_input(wrapped(4), "time.all_s", (2, 0)).formula == "times seconds = count · seconds"
    assert explain_input(wrapped(4), "time.all_s", (2, 0, 1)).formula == "t_send = size / rate"
    assert explain_input(wrapped(4), "time.all_s", (9,)).key == "time.all_s"


def test_a_negative_value_takes_the_sign_of_its_place() -> None:
    @formula("e", "number")
    def end(low: Number) -> Number:
        """End."""
        return (1 + low) * (2 - low) * low

    assert substituted(term_of(end, -0.06)) == "e = (1 − 0.06) · (2 + 0.06) · −0.06 = −0.1162"


# ---------------------------------------------------------------- the formulas of the engine


@pytest.fixture(params=sorted(catalogue().presets), scope="module")
def recorded(request) -> Report:
    return evaluate(load_scenario(request.param), record=True)


def test_every_cell_of_a_preset_computes_what_the_engine_computed(recorded: Report) -> None:
    assert recorded.terms
    for term in recorded.terms:
        text = cell_text(term)
        value = computed(text, term.inputs)
        if isinstance(term.value, str):
            assert value == term.value, text
        else:
            assert math.isclose(value, term.value, rel_tol=1e-12), text


def test_every_result_of_a_preset_knows_where_it_came_from(recorded: Report) -> None:
    for key in recorded.values:
        working = explain(recorded, key)
        assert working.formula or working.origin or isinstance(working.value, str), key


def test_no_input_of_a_preset_is_left_without_words(recorded: Report) -> None:
    for key in result_keys(recorded):
        waiting = [explain(recorded, key, depth=3)]
        while waiting:
            inputs = waiting.pop().inputs
            waiting += [entry.working for entry in inputs if entry.working]
            for entry in inputs:
                said = entry.origin
                assert said or entry.symbol in ("words", "parts", "tiles"), (key, entry.symbol)
                assert not any(empty in said for empty in ("one after the other", "several times", "together.", "`"))


def test_rows_of_the_ledgers_have_a_working_with_the_unit_of_their_column(recorded: Report) -> None:
    units = {"seconds": "s", "exposed_seconds": "s", "bytes_per_gpu": "B", "bytes": "B", "flops": "FLOP"}
    for name, rows in (("communication", recorded.communication), ("roofline.points", recorded.points)):
        for number, row in enumerate(rows):
            for cell in units.keys() & vars(row).keys():
                working = explain(recorded, f"{name}.{number}.{cell}")
                assert working.unit in ("", units[cell]), (name, number, cell)


def test_constants_of_money_say_what_they_are_and_where_from() -> None:
    report = evaluate(load_scenario("7b-8xa100-train"), record=True)
    power = explain(report, "cost.energy_kwh").inputs[1].working
    assert power is not None
    idle = power.inputs[1]
    assert idle.text == "15 %"
    assert "drawn when idle" in idle.origin
    assert "estimate" in idle.origin


def test_a_byte_constant_reads_as_bytes() -> None:
    report = evaluate(load_scenario("7b-8xa100-train"), record=True)
    texts = {entry.text for entry in explain(report, "memory.needed_bytes").inputs}
    assert {"768 MiB", "1 GiB"} <= texts


def test_the_heart_of_the_prediction_can_be_reached() -> None:
    report = evaluate(load_scenario("70b-64xh100-train"), record=True)
    matrices = explain(report, "time.block_forward_s").inputs[0]
    assert matrices.working is not None
    assert next(entry.symbol for entry in matrices.working.inputs) == "QKV forward"
    assert explain(report, "time.stage_s").inputs[1].working is not None


def test_recording_changes_no_number(recorded: Report) -> None:
    assert recorded.flat() == evaluate(recorded.scenario).flat()


def formulas() -> list[Formula]:
    modules = (
        importlib.import_module(found.name) for found in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")
    )
    found = {id(made): made for module in modules for value in vars(module).values() if (made := formula_of(value))}
    return list(found.values())


@pytest.mark.parametrize("called", formulas(), ids=lambda called: called.name)
def test_every_formula_of_the_engine_can_be_written_and_says_what_it_means(called: Formula) -> None:
    left, equals, right = math_text(called).partition(" = ")
    assert left
    assert equals
    assert right
    assert called.meaning
    assert called.source
