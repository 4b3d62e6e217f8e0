"""Published measurements against predictions: tables of the source hold the bars that their evidence supports."""

from __future__ import annotations

import math

import pytest

from tests.core.plans import plan
from triledger.core import evaluate
from triledger.core.catalogue import table
from triledger.core.entries import entry_field
from triledger.core.errors import ScenarioError
from triledger.core.fields import FIELDS
from triledger.core.legality import violations
from triledger.core.measured.comparison import (
    Comparison,
    NotExpressibleError,
    Verdict,
    by_source,
    fits_by_source,
    statistics,
)
from triledger.core.measured.rows import KINDS, Row, Table, read_table, shipped_tables
from triledger.core.measured.sources import settings_of, source_of
from triledger.core.measured.training_rows import training_case
from triledger.core.measured.validation import Validation, validate
from triledger.core.model.traits import traits
from triledger.core.scenario_values import assumption_names

RUN = {
    "id": "own-1",
    "model": "Llama 7B",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "32",
    "ffn": "11008",
    "vocab": "32000",
    "seq_len": "4096",
    "gpu": "H100-SXM-80GB",
    "num_gpus": "8",
    "dp": "8",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "reported_metric": "step_time",
    "reported_value": "5.0",
}


def csv_of(*rows: dict[str, str]) -> str:
    return "\n".join([",".join(RUN), *(",".join(row.get(name, "") for name in RUN) for row in rows)])


def run_of(**cells: str) -> Row:
    return read_table(csv_of(RUN | cells), "own.csv").rows[0]


def errors(shipped: Validation, kind: str, *sources: str) -> list[Comparison]:
    found = [row for row in shipped.comparisons if row.kind == kind and row.source in sources and not row.flagged]
    assert found
    return found


# ---------------------------------------------------------------- what the evidence supports


def test_every_shipped_row_is_compared_judged_or_left_out_with_a_reason(shipped: Validation) -> None:
    ids = {row.id for rows in shipped_tables() for row in rows.rows}
    told = {row.id for part in (shipped.comparisons, shipped.verdicts, shipped.skipped) for row in part}
    assert told == ids
    assert all(row.reason for row in shipped.skipped)
    assert len(shipped.comparisons) > 1000


@pytest.mark.parametrize(
    ("sources", "median", "percentile_90"),
    [
        (("kor", "sc21"), 0.03, 0.10),
        (("mpt",), 0.045, 0.12),
        (("mlp5", "nemo2407"), 0.05, 0.11),
        (("bloom",), 0.07, 0.14),
        # the stacks whose settings are least known
        (("tt", "nano", "ievo", "msc"), 0.11, 0.35),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else None,
)
def test_step_times(shipped: Validation, sources: tuple[str, ...], median: float, percentile_90: float) -> None:
    found = statistics(errors(shipped, "training", *sources))
    assert found
    assert found.median < median
    assert found.percentile_90 < percentile_90


def test_step_times_of_models_of_every_kind(shipped: Validation) -> None:
    rows = errors(shipped, "training", "dgxc", "mbr", "am")
    rows = [row for row in rows if row.scenario.training.finetune == "full"]
    dense = [row for row in rows if traits(row.scenario.model).isdisjoint({"experts", "mamba2"})]
    states = [row for row in rows if "mamba2" in traits(row.scenario.model)]
    routed = [row for row in rows if row not in (*dense, *states)]
    assert (len(dense), len(states), len(routed)) == (71, 16, 91)
    for found, median, percentile_90 in ((dense, 0.05, 0.11), (states, 0.20, 0.23), (routed, 0.09, 0.22)):
        numbers = statistics(found)
        assert numbers
        assert numbers.median < median
        assert numbers.percentile_90 < percentile_90


def test_step_times_of_adapters(shipped: Validation) -> None:
    rows = errors(shipped, "training", "mbr", "am", "nemo2407")
    adapters = [row for row in rows if row.scenario.training.finetune == "lora"]
    found = statistics(adapters)
    assert found
    assert len(adapters) == 11
    assert found.median < 0.04
    assert found.percentile_90 < 0.08


def test_step_times_of_megatron_tables_on_the_mean(shipped: Validation) -> None:
    rows = [row for row in errors(shipped, "training", "kor", "sc21") if "ZeRO-3" not in row.id]
    found = statistics(rows)
    assert found
    assert found.mean < 0.03


def test_allocator_peaks(shipped: Validation) -> None:
    rows = [row for row in errors(shipped, "memory", "fmsacc", "litgpt") if row.metric == "allocator peak"]
    found = statistics(rows)
    assert found
    assert len(rows) == 190
    assert found.median < 0.006
    assert found.percentile_90 < 0.025


def test_whether_runs_fit(shipped: Validation) -> None:
    answers = fits_by_source(shipped.verdicts)
    assert answers["fmsacc"].right == answers["litgpt"].right == 1.0
    assert answers["bloomm"].right > 0.95
    assert all(answer.counts[2] > 0 for answer in answers.values()), "runs that failed are among them"


def test_trainings_that_were_timed_are_said_to_fit(shipped: Validation) -> None:
    ran = [row.scenario for row in shipped.comparisons if row.kind == "training" and not row.flagged]
    assert sum(bool(evaluate(each)["memory.fits"]) for each in ran) / len(ran) >= 0.96


def test_cache_pools_and_bytes_of_a_cached_token(shipped: Validation) -> None:
    found = by_source([row for row in shipped.comparisons if row.kind == "vllm_kv" and not row.flagged])
    assert found["vllm_kv", "kv-llmd", "cache"].median < 0.005
    assert found["vllm_kv", "kv", "cache"].median < 0.03
    token = found["vllm_kv", "kv", "cache of a token"]
    assert token.median < 0.001
    assert abs(token.worst) < 0.012, "one log prints a rounded size"


def test_decode_steps_and_static_batches(shipped: Validation) -> None:
    decode = statistics(errors(shipped, "serving", "gptfast", "aoi", "exl", "lcpp"))
    static = statistics(errors(shipped, "serving", "ft"))
    assert decode
    assert static
    assert decode.median < 0.05
    assert static.median < 0.045
    assert static.percentile_90 < 0.12


def test_saturated_engines(shipped: Validation) -> None:
    found = statistics(errors(shipped, "serving", "trt10", "trtv1", "mlpi41"))
    assert found
    assert found.median < 0.09
    assert found.percentile_90 < 0.24


def test_random_arrivals_within_latency_limits(shipped: Validation) -> None:
    rows = [row for row in errors(shipped, "serving", "mlpi41") if row.metric == "output within latency limits"]
    found = statistics(rows)
    assert found
    assert found.count > 50
    assert found.median < 0.08
    assert found.percentile_90 < 0.20


def test_clients_at_a_fixed_concurrency(shipped: Validation) -> None:
    rows = errors(shipped, "serving", "sil")
    first, each = (
        statistics([row for row in rows if row.metric == f"mean time {metric}"])
        for metric in ("to first token", "per token")
    )
    assert first
    assert each
    assert first.median < 0.20
    assert each.median < 0.10


# ---------------------------------------------------------------- the table of sources


def test_every_setting_of_the_sources_is_a_field_or_a_constant() -> None:
    for kind in KINDS:
        data = table("measured/sources")[kind]
        parts = [{"set": data["usual"]}, *data["columns"], *data["sources"].values(), *data.get("stacks", {}).values()]
        rules = [rule for part in parts for rule in (part, *part.get("rules", ()))]
        for path in {path for rule in rules for path in rule.get("set", {})}:
            constant = path.removeprefix("assumptions.") in assumption_names()
            assert path in FIELDS or entry_field(path) or constant, path


def test_every_source_has_a_title_and_says_why_it_is_set_so() -> None:
    for kind in KINDS:
        for name, source in table("measured/sources")[kind]["sources"].items():
            assert "title" in source or name == "llmd", name


def test_the_longest_known_start_of_an_id_names_the_source() -> None:
    assert source_of("vllm_kv", Row("", 1, {"id": "kv-llmd-x"})) == "kv-llmd"
    assert source_of("vllm_kv", Row("", 1, {"id": "kv-17122"})) == "kv"
    assert source_of("training", Row("", 1, {"id": "mine-1"})) == "mine"


def test_columns_win_over_the_habits_of_a_source() -> None:
    columns = {"id": "bloom-1", "model": "GPT", "layers": "70", "gpu": "A100", "precision": "fp16"}
    assert settings_of("training", Row("", 1, columns)).values["parallelism.zero"] == 1
    stated = columns | {"zero_stage_or_sharding": "ZeRO-0", "precision": "bf16 (fp32 grad accumulation)"}
    settings = settings_of("training", Row("", 1, stated))
    assert settings.values["parallelism.zero"] == 0
    assert settings.values["training.gradient_precision"] == "fp32"
    assert (settings.row["vocab"], settings.row["heads"]) == ("250880", "64")


def test_cells_that_follow_from_others() -> None:
    cells = {"id": "bloom-1", "gpu": "A100", "hidden": "12288", "params_b": "175", "precision": "fp16"}
    assert settings_of("training", Row("", 1, cells)).row["layers"] == "95"
    with pytest.raises(NotExpressibleError, match="hidden is not stated"):
        settings_of("training", Row("", 1, cells | {"hidden": ""}))


# ---------------------------------------------------------------- rows to plans


def test_a_row_becomes_the_plan_that_its_cells_describe() -> None:
    case = training_case(run_of())
    plan_ = case.scenario
    assert (plan_.model.layers, plan_.model.gated, plan_.model.tied) == (32, True, False)
    assert (plan_.cluster.accelerator.id, plan_.cluster.gpus) == ("h100-sxm-80gb", 8)
    assert (plan_.parallelism.zero, plan_.training.global_batch) == (0, 64)
    assert case.measured == 5.0
    assert case.predict(plan_) == evaluate(plan_)["time.step_s"]


def test_a_row_may_name_a_model_and_a_device_by_id_and_any_field_by_its_path() -> None:
    cells = RUN | {"model": "llama-3-8b", "gpu": "h200-sxm-141gb", "layers": "", "hidden": "", "heads": "", "vocab": ""}
    more = {"cluster.network": "25 GB/s", "overlap.tp_forward": "yes", "training.gradient_precision": "bf16"}
    scenario = training_case(Row("own.csv", 2, cells | more)).scenario
    assert (scenario.model.id, scenario.cluster.accelerator.id) == ("llama-3-8b", "h200-sxm-141gb")
    assert (scenario.model.gated, scenario.model.tied, scenario.model.positions) == (True, False, 0)
    assert scenario.cluster.network.bandwidth == 25e9
    assert (scenario.overlap.tp_forward, scenario.training.gradient_precision) == (True, "bf16")


@pytest.mark.parametrize(("column", "value"), [("overlap.tp_forward", "maybe"), ("overlap.everything", "yes")])
def test_a_field_that_is_none_is_named_with_its_line(column: str, value: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        training_case(Row("own.csv", 7, RUN | {column: value}))
    assert (caught.value.file, caught.value.line, caught.value.field) == ("own.csv", 7, column)


def test_metrics_turn_into_the_same_step_time() -> None:
    tokens, gpus = 64 * 4096, 8
    report = evaluate(training_case(run_of()).scenario)
    flops = tokens * report["compute.full_mask_flops_per_token"]
    reported = {
        "tokens_per_s_total": tokens / 5,
        "tokens_per_s_per_gpu": tokens / 5 / gpus,
        "samples_per_s_total": 64 / 5,
        "mfu": 100 * flops / (5 * gpus * 989.4e12),
        "model_tflops_per_gpu": flops / (5 * gpus * 1e12),
    }
    for metric, value in reported.items():
        case = training_case(run_of(reported_metric=metric, reported_value=repr(value)))
        assert case.measured == pytest.approx(5.0, rel=1e-9), metric


def test_hardware_flops_count_recomputation_as_narayanan_does() -> None:
    # arXiv 2104.04473, equation 3, for a GPT model with f = 4h
    layers, width, vocabulary, sequence, batch = 24, 2048, 51200, 2048, 32
    counted = 96 * batch * sequence * layers * width**2
    counted *= 1 + sequence / (6 * width) + vocabulary / (16 * layers * width)
    cells = {"model": "GPT", "layers": "24", "hidden": "2048", "heads": "16", "kv_heads": "16", "ffn": "8192"}
    row = run_of(
        **cells,
        vocab="51200",
        seq_len="2048",
        global_batch="32",
        reported_metric="hardware_tflops_per_gpu",
        reported_value=repr(counted / (8 * 1e12)),
    )
    full = Row(row.file, row.line, {**row.cells, "recompute": "full"})
    assert training_case(full).measured == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"model": "Mixtral 8x7B"}, "routed experts"),
        ({"layers": ""}, "layers is not stated"),
        ({"ffn": "18432 dense/2048 expert"}, "not one number"),
        ({"gpu": "abacus"}, "abacus"),
        ({"dp": "4"}, "is not the number of GPUs"),
        ({"reported_value": "OOM"}, "out of memory"),
        ({"reported_metric": "gpu_hours_total"}, "whole run"),
        ({"precision": ""}, "number format"),
    ],
)
def test_rows_that_are_no_plan_say_why(cells: dict[str, str], reason: str) -> None:
    with pytest.raises(NotExpressibleError, match=reason):
        training_case(run_of(**cells))
    skipped = validate([read_table(csv_of(RUN | cells), "own.csv")]).skipped
    assert [row.id for row in skipped] == ["own-1"]


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        ({"reported_value": "fast"}, "reported_value"),
        ({"reported_value": "-1"}, "reported_value"),
        ({"reported_value": "nan"}, "reported_value"),
        ({"num_gpus": "0"}, "num_gpus"),
        ({"dp": "many"}, "dp"),
        ({"layers": "1e9"}, "model.layers"),
        ({"seq_len": "1e300"}, "training.sequence_length"),
    ],
)
def test_cells_that_are_no_numbers_are_named_with_their_line(cells: dict[str, str], column: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        validate([read_table(csv_of(RUN, RUN | {"id": "own-2"} | cells), "own.csv")])
    assert (caught.value.file, caught.value.line, caught.value.field) == ("own.csv", 3, column)


def refusal_of(kind: str, row: Row) -> ScenarioError | None:
    try:
        validate([Table(kind, (row,))])
    except ScenarioError as error:
        return error
    return None


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("text", ["0", "-1", "1e308", "1e-308", "inf", "max load", "x" * 300])
def test_strange_cells_are_skipped_or_refused_and_never_break(kind: str, text: str) -> None:
    rows = next(table_ for table_ in shipped_tables() if table_.kind == kind).rows
    columns = [column for column in rows[0].cells if column != "id"]
    strange = [rows[index % len(rows)].with_({column: text}) for index, column in enumerate(columns)]
    for row in strange:
        refused = refusal_of(kind, row)
        assert refused is None or (refused.line == row.line and refused.field)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 0, "is empty"),
        ("a,b\n1,2\n", 1, "no table of measurements"),
        (csv_of(RUN).replace("num_gpus", "gpus"), 1, "num_gpus"),
        (csv_of(RUN).replace("num_gpus", "gpu"), 1, "two columns"),
        (csv_of(RUN) + "\n1,2\n", 3, "2 cells"),
        (csv_of(RUN, RUN), 3, "is also on line 2"),
        (csv_of(), 0, "no rows"),
    ],
)
def test_tables_that_cannot_be_read_say_where(text: str, line: int, said: str) -> None:
    with pytest.raises(ScenarioError, match=said) as caught:
        read_table(text, "own.csv")
    assert caught.value.line == line


def test_a_row_without_an_id_is_called_after_its_line() -> None:
    assert read_table(csv_of(RUN | {"id": ""}), "own.csv").rows[0].id == "training-2"


# ---------------------------------------------------------------- statistics


def comparison(error: float, name: str = "a") -> Comparison:
    return Comparison(name, "training", "s", "step time", "s", 2.0, 2.0 * (1 + error), plan("llama-2-7b"))


def test_statistics_of_errors() -> None:
    found = statistics([comparison(e, f"{e}") for e in (0.01, -0.02, 0.03, -0.10)])
    assert found
    assert found.median == pytest.approx(0.025)
    assert found.mean == pytest.approx(0.04)
    assert found.bias == pytest.approx(-0.02)
    assert (found.worst, found.worst_id) == (pytest.approx(-0.10), "-0.1")
    assert found.percentile_90 == pytest.approx(0.079)
    assert statistics([]) is None


def test_answers_count_each_of_the_four_cases_and_leave_flagged_rows_out() -> None:
    cases = [(True, True), (True, True), (True, False), (False, False), (False, True)]
    verdicts = [Verdict(str(i), "s", ran, fits) for i, (ran, fits) in enumerate(cases)]
    found = fits_by_source([*verdicts, Verdict("f", "s", True, False, flagged=True)])["s"]
    assert found.counts == (2, 1, 1, 1)
    assert found.right == pytest.approx(0.6)


def test_published_training_runs_are_possible_plans(shipped: Validation) -> None:
    runs = [row for row in shipped.comparisons if row.kind == "training"]
    assert [row.id for row in runs if violations(row.scenario)] == []


def test_flagged_rows_stand_apart(shipped: Validation) -> None:
    flagged = [row for row in shipped.comparisons if row.flagged]
    assert flagged
    assert all("FLAG" in row.id or math.isfinite(row.error) for row in flagged)


def test_a_prediction_is_that_of_the_engine() -> None:
    row = run_of(gpu="A100-SXM-80GB", seq_len="2048")
    scenario = training_case(row).scenario
    usual = plan("llama-2-7b", parallelism__zero=0, training__sequence_length=2048, training__global_batch=64)
    assert evaluate(scenario)["time.step_s"] == pytest.approx(evaluate(usual)["time.step_s"], rel=0.02)
