"""validate, calibrate and measure as a person or a script meets them."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from triledger.cli import main
from triledger.core import read_scenario
from triledger.core.measured.rows import shipped_tables
from triledger.core.measured.timing import BANDWIDTH, Task
from triledger.gui.this_machine import ThisMachine


@pytest.fixture
def run(capsys):
    """Runs a command; answers (status, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def table(tmp_path: Path):
    """A CSV file with the shipped training rows of some sources; answers its path."""

    def write(*prefixes: str) -> str:
        rows = [row.cells for row in shipped_tables()[0].rows if row.id.startswith(prefixes)]
        path = tmp_path / "runs.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return str(path)

    return write


def test_text_has_a_line_a_source_and_names_what_was_left_out(run, table) -> None:
    status, out, err = run("validate", "--data", table("kor-", "bloom-05"))
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert any(line.split()[:4] == ["kor", "step", "time", "4"] for line in lines)
    assert any("time of one layer" in line and "kor-t4-base-fwd" in line for line in lines)
    assert any("apart" in line for line in lines), "flagged rows have a table of their own"
    assert "rows compared" in lines[-1]


def test_json_has_the_rows_the_skipped_ones_and_their_errors(run, table) -> None:
    status, out, _ = run("validate", "--data", table("kor-", "bloom-05"), "--format", "json")
    found = json.loads(out)
    assert status == 0
    rows = {row["id"]: row for row in found["rows"]}
    first = rows["kor-t5-22B-full"]
    assert first["measured"] == 1.42
    assert first["error"] == pytest.approx(first["predicted"] / first["measured"] - 1)
    plain = [abs(row["error"]) for row in found["rows"] if not row["flagged"]]
    assert any(row["flagged"] for row in found["rows"])
    assert found["count"] == len(plain)
    assert found["mean_abs_error"] == pytest.approx(sum(plain) / len(plain))
    assert found["max_abs_error"] == pytest.approx(max(plain))
    assert found["median_abs_error"] < found["max_abs_error"]
    assert found["by_source"]["kor"]["training: step time"]["count"] == 4
    assert {row["id"] for row in found["skipped"]} >= {"kor-t4-base-fwd"}
    assert all(row["reason"] for row in found["skipped"])


def test_without_a_file_the_shipped_measurements_are_compared(run) -> None:
    status, out, _ = run("validate", "--format", "json")
    kinds = {row["kind"] for row in json.loads(out)["rows"]}
    assert status == 0
    assert kinds == {"training", "memory", "serving", "vllm_kv"}
    assert json.loads(out)["fits"]


def test_the_chart_is_written_beside_the_table(run, table, tmp_path: Path) -> None:
    for name in ("chart.svg", "chart.csv"):
        status, _, _ = run("validate", "--data", table("kor-"), "--plot", str(tmp_path / name))
        assert status == 0
    assert "<svg" in (tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert len((tmp_path / "chart.csv").read_text(encoding="utf-8").splitlines()) == 5


def test_the_ranking_of_layouts_is_told(run, table) -> None:
    path = table("bloom-0")
    _, out, _ = run("validate", "--data", path)
    assert "ranking of layouts" in out
    assert "of the best measured in" in out
    bloom = json.loads(run("validate", "--data", path, "--format", "json")[1])["ranking"]["bloom"]
    assert bloom["runs"] >= sum(sweep["runs"] for sweep in bloom["sweeps"])
    assert -1 <= bloom["tau"] <= 1


def test_a_table_in_which_nothing_is_a_plan_has_status_1(run, table) -> None:
    status, out, _ = run("validate", "--data", table("hours-"))
    assert status == 1
    assert "no row could be compared" in out
    assert run("validate", "--data", table("hours-"), "--format", "json")[0] == 1


@pytest.mark.parametrize("command", ["validate --data", "calibrate"])
def test_bad_tables_are_refused_in_one_line(run, tmp_path: Path, command: str) -> None:
    bad = tmp_path / "bad.csv"
    cases = {
        "id,x\n1,2\n": "bad.csv:1",
        "": "is empty",
        "id,reported_metric,reported_value,gpu,num_gpus,global_batch\na,step_time,1\n": "bad.csv:2",
    }
    for text, said in cases.items():
        bad.write_text(text, encoding="utf-8")
        status, out, err = run(*command.split(), str(bad))
        assert (status, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1
    status, out, err = run(*command.split(), str(tmp_path / "none.csv"))
    assert (status, out) == (2, "")
    assert "cannot be read" in err


def test_a_bad_cell_is_named_by_file_line_and_column(run, table) -> None:
    path = Path(table("kor-t5"))
    path.write_text(path.read_text(encoding="utf-8").replace(",1.42,", ",quick,"), encoding="utf-8")
    status, out, err = run("validate", "--data", str(path), "--plot", str(path.with_suffix(".svg")))
    assert (status, out) == (2, "")
    assert f"{path}:2: reported_value: 'quick' is not a number" in err
    assert not path.with_suffix(".svg").exists()


def test_calibrate_writes_assumptions_that_a_scenario_takes(run, table, tmp_path: Path) -> None:
    output = tmp_path / "assumptions.yaml"
    status, out, _ = run("calibrate", table("ievo-"), "-o", str(output))
    assert status == 0
    assert "before" in out
    assert "after" in out
    section = yaml.safe_load(output.read_text(encoding="utf-8"))
    text = yaml.safe_dump({"model": "llama-2-7b", "cluster": {"accelerator": "a100-sxm-80gb"}} | section)
    assert dict(read_scenario(text, "own.yaml").assumptions) == section["assumptions"]


def test_constants_that_do_not_describe_the_runs_are_not_written(run, table, tmp_path: Path) -> None:
    output, path = tmp_path / "assumptions.yaml", Path(table("ievo-"))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"reported_value": f"{float(row['reported_value']) / 30:g}"} for row in rows)
    status, out, _ = run("calibrate", str(path), "-o", str(output))
    assert status == 1
    assert "do not describe the runs" in out
    assert not output.exists()


@pytest.mark.parametrize("command", ["calibrate", "validate"])
def test_the_help_lists_the_columns_of_own_runs(command: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    assert "tokens_per_s_per_gpu" in out
    assert "batch_or_concurrency" in out


def test_calibrate_says_why_it_fits_nothing(run, table, tmp_path: Path) -> None:
    output = tmp_path / "assumptions.yaml"
    status, out, _ = run("calibrate", table("kor-t5-22B"), "-o", str(output))
    assert status == 1
    assert "not fitted" in out
    assert not output.exists()
    assert run("calibrate", table("hours-"))[0] == 1


@pytest.fixture
def machine(monkeypatch):
    """A machine whose work lasts a tenth of a second by a clock that nobody waits for: 5 TFLOP/s and 100 GB/s."""
    now = [0.0]

    def work() -> None:
        now[0] += 0.1

    tasks = (Task("fp32 product", "fp32", 5e11, lambda: work), Task("copy", BANDWIDTH, 1e10, lambda: work))
    found = ThisMachine("a machine", "numpy 2", 32.0 * 2**30, tasks)
    monkeypatch.setattr("triledger.gui.this_machine.this_machine", lambda: found)
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return found


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--peak", "-5", "--peak: -5 is too small: 1.00 GFLOP/s or more would do"),
        ("--peak", "0", "--peak: 0 is too small"),
        ("--bandwidth", "-5", "--bandwidth: -5 is too small"),
        ("--power", "-3", "--power: -3 is too small"),
        ("--memory", "1e30", "--memory: 1e30 is too large: 32.0 TiB or less would do"),
    ],
)
def test_a_data_sheet_that_no_scenario_takes_is_refused_before_measuring(
    run, monkeypatch, tmp_path: Path, option: str, value: str, said: str
) -> None:
    monkeypatch.setattr("triledger.gui.this_machine.this_machine", lambda: pytest.fail("measured"))
    status, out, err = run("measure", option, value, "-o", str(tmp_path / "machine.yaml"))
    assert (status, out) == (2, "")
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_measure_prints_and_writes_an_entry(run, machine, tmp_path: Path) -> None:
    output = tmp_path / "machine.yaml"
    status, out, err = run("measure", "-o", str(output), "--power", "65 W")
    assert status == 0
    assert "on the roofline: 5.00 TFLOP/s and 100 GB/s, which meet at 50.0 FLOP/B" in out
    assert err.splitlines() == ["  0%  fp32 product …", " 50%  copy …"]
    entry = yaml.safe_load(output.read_text(encoding="utf-8"))
    text = yaml.safe_dump({"model": "llama-3.2-1b", "cluster": {"gpus": 1, "accelerator": entry}})
    device = read_scenario(text, "own.yaml").cluster.accelerator
    assert (device.memory, device.power) == (32 * 2**30, 65)
    assert (device.peak.fp32, device.memory_bandwidth) == (pytest.approx(5e12), pytest.approx(1e11))


@pytest.mark.parametrize(
    ("stated", "peak"),
    [(("--peak", "8 TFLOP/s", "--bandwidth", "120 GB/s"), 8e12), (("--base", "a100-sxm-80gb"), 312e12)],
)
def test_what_was_measured_is_a_second_roof_of_a_plan(run, machine, tmp_path: Path, stated, peak: float) -> None:
    output, chart = tmp_path / "me.yaml", tmp_path / "roof.csv"
    assert run("measure", "-o", str(output), *stated)[0] == 0
    setting = f"cluster.accelerator={output}"
    assert run("chart", "7b-8xa100-train", "--set", setting, "--chart", "roofline", "-o", str(chart)) == (0, "", "")
    rows = {row["name"]: row for row in csv.DictReader(chart.read_text(encoding="utf-8").splitlines())}
    knee = rows["measured knee"]
    assert (float(knee["intensity [FLOP/B]"]), float(knee["achieved [FLOP/s]"])) == (50.0, 5e12)
    assert float(rows["whole step"]["attainable [FLOP/s]"]) == peak
    picture = tmp_path / "roof.png"
    assert run("chart", "7b-8xa100-train", "--set", setting, "--chart", "roofline", "-o", str(picture))[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_measure_leaves_nothing_when_it_is_stopped(run, machine, tmp_path: Path, monkeypatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    stopped = replace(machine, tasks=(replace(machine.tasks[0], prepare=lambda: stop), *machine.tasks[1:]))
    monkeypatch.setattr("triledger.gui.this_machine.this_machine", lambda: stopped)
    status, out, err = run("measure", "-o", str(tmp_path / "machine.yaml"))
    assert (status, out) == (130, "")
    assert "copy" not in err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--base", "a100"), "--base a100: is not in the catalogue; did you mean"),
        (("--base", "a100-sxm-80gb", "--peak", "3 TFLOP/s"), "leave out --peak"),
        (("--peak", "3 GiB"), "FLOP/s"),
    ],
)
def test_measure_refuses_data_sheets_that_cannot_be(run, arguments, part: str) -> None:
    status, out, err = run("measure", *arguments)
    assert (status, out) == (2, "")
    assert part in err


def test_measure_refuses_what_is_no_quantity(run) -> None:
    status, out, err = run("measure", "--power", "much")
    assert (status, out) == (2, "")
    assert "much" in err


def test_the_table_of_errors_is_written(run, table, tmp_path: Path) -> None:
    output = tmp_path / "errors.csv"
    assert run("validate", "--data", table("kor-"), "--write", str(output))[0] == 0
    rows = list(csv.DictReader(output.read_text(encoding="utf-8").splitlines()))
    assert {row["id"] for row in rows} >= {"kor-t5-22B-full"}
    assert run("validate", "--data", table("kor-"), "--write", str(tmp_path / "no" / "errors.csv"))[0] == 2


def test_the_runs_most_like_a_plan_are_listed(run) -> None:
    status, out, _ = run("validate", "--like", "70b-64xh100-train", "--set", "training.micro_batch=2")
    assert status == 0
    assert "published runs of" in out
    assert "Megatron" in out
    found = json.loads(run("validate", "--like", "70b-64xh100-train", "--format", "json")[1])
    assert found["band"]["rows"] > 0
    first = found["rows"][0]
    assert first["error"] == pytest.approx(first["predicted"] / first["measured"] - 1)
    assert all(len(pair) == 2 for pair in first["differs"].values())
    assert run("validate", "--like", "no-such-plan")[0] == 2
    assert run("validate", "--like", "70b-64xh100-train", "--data", "x.csv")[0] == 2
