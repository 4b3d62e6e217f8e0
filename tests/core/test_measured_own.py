"""A person's own table: units of what was reported, columns and metrics named where they are missing or unknown."""

from __future__ import annotations

import pytest

from triledger.core.errors import ScenarioError
from triledger.core.measured.columns import own_runs
from triledger.core.measured.comparison import NotExpressibleError
from triledger.core.measured.rows import Row, read_table
from triledger.core.measured.serving_rows import METRICS, serving_case
from triledger.core.measured.training_rows import STEP_SECONDS, training_case

TRAINING = {
    "id": "own",
    "model": "llama-2-7b",
    "gpu": "a100-sxm-80gb",
    "num_gpus": "8",
    "dp": "8",
    "seq_len": "4096",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "reported_metric": "step_time",
    "reported_value": "15",
    "unit": "",
}
SERVING = {
    "id": "own",
    "model": "llama-2-7b",
    "gpu": "a100-sxm-80gb",
    "num_gpus": "1",
    "precision_weights": "fp16",
    "input_len": "512",
    "output_len": "128",
    "batch_or_concurrency": "4",
    "schedule": "static batch",
    "metric": "tpot",
    "value": "20",
    "unit": "",
}


def row_of(cells: dict[str, str], **changes: str) -> Row:
    cells = cells | changes
    return read_table(f"{','.join(cells)}\n{','.join(cells.values())}\n", "own.csv").rows[0]


def training(value: str, unit: str, metric: str = "step_time") -> float:
    return training_case(row_of(TRAINING, reported_value=value, unit=unit, reported_metric=metric)).measured


def serving(value: str, unit: str, metric: str = "tpot") -> float:
    return serving_case(row_of(SERVING, value=value, unit=unit, metric=metric)).measured


def test_times_and_rates_are_in_their_unit() -> None:
    assert training("15", "") == training("15", "s") == pytest.approx(training("15000", "ms"))
    assert training("0.25", "min") == pytest.approx(15)
    assert serving("20", "") == serving("20", "ms") == pytest.approx(serving("0.02", "s"))
    assert training("45", "", "mfu") == pytest.approx(training("0.45", "ratio", "mfu"))
    metric = "model_tflops_per_gpu"
    assert training("150", "", metric) == pytest.approx(training("0.15", "PFLOP/s/GPU", metric))
    metric = "tokens_per_s_per_gpu"
    assert training("2000", "tokens/s", metric) == pytest.approx(training("2", "ktokens/s/GPU", metric))


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("step_time", "parsecs"), ("step_time", "%"), ("tokens_per_s_total", "tokens/s/GPU"), ("mfu", "TFLOP/s")],
)
def test_a_unit_that_is_not_of_the_metric_is_refused_with_its_line(metric: str, unit: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        training("15", unit, metric)
    assert str(caught.value).startswith(f"own.csv:2: unit: {unit!r} is not one of ")


@pytest.mark.parametrize(("value", "unit"), [("110", ""), ("110", "%"), ("1.1", "ratio")])
def test_a_utilisation_is_100_per_cent_at_most(value: str, unit: str) -> None:
    with pytest.raises(ScenarioError, match=r"own\.csv:2: reported_value: .* is too large: 100 % or less would do"):
        training(value, unit, "mfu")


def test_what_is_not_stated_is_named_together() -> None:
    with pytest.raises(NotExpressibleError, match="seq_len, micro_batch are not stated"):
        training_case(row_of(TRAINING, seq_len="", micro_batch=""))
    with pytest.raises(ScenarioError, match="num_gpus, global_batch: are missing in a training table"):
        read_table("reported_metric,reported_value,gpu\nstep_time,1,a100\n", "own.csv")


def test_an_unknown_metric_is_told_the_known_ones() -> None:
    with pytest.raises(NotExpressibleError) as caught:
        training_case(row_of(TRAINING, reported_metric="iteration"))
    assert all(metric in str(caught.value) for metric in STEP_SECONDS)
    with pytest.raises(NotExpressibleError, match="not predicted of a static batch, but request_latency, "):
        serving_case(row_of(SERVING, metric="latency"))
    with pytest.raises(NotExpressibleError, match="predicted where schedule is static batch"):
        serving_case(row_of(SERVING, schedule=""))


def test_the_help_names_every_metric_and_what_a_row_needs() -> None:
    text = own_runs()
    assert all(name in text for name in (*STEP_SECONDS, *METRICS))
    assert all(name in text for name in ("seq_len", "micro_batch", "num_gpus", "schedule", "batch_or_concurrency"))
