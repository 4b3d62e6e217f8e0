"""validate, calibrate and measure as a person or a script meets them."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
import yaml

from triledger.cli import main
from triledger.core import read_scenario
from triledger.core.measured.rows import shipped_tables


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


def test_calibrate_says_why_it_fits_nothing(run, table, tmp_path: Path) -> None:
    output = tmp_path / "assumptions.yaml"
    status, out, _ = run("calibrate", table("kor-t5-22B"), "-o", str(output))
    assert status == 1
    assert "not fitted" in out
    assert not output.exists()
    assert run("calibrate", table("hours-"))[0] == 1


def test_measure_prints_and_writes_an_entry(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("triledger.cli.measuring._SECONDS", 0.0)
    output = tmp_path / "machine.yaml"
    status, out, err = run("measure", "-o", str(output), "--power", "65 W", "--memory", "32 GiB")
    assert status == 0
    assert "on the roofline" in out
    assert "product" in err
    entry = yaml.safe_load(output.read_text(encoding="utf-8"))
    text = yaml.safe_dump({"model": "llama-3.2-1b", "cluster": {"gpus": 1, "accelerator": entry}})
    device = read_scenario(text, "own.yaml").cluster.accelerator
    assert device.memory == 32 * 2**30
    assert device.peak.fp32 is not None
    assert device.peak.fp32 > 1e8
    assert device.memory_bandwidth > 1e7


def test_measure_leaves_nothing_when_it_is_stopped(run, tmp_path: Path, monkeypatch) -> None:
    def stop(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("triledger.cli.measuring._best", stop)
    status, out, err = run("measure", "-o", str(tmp_path / "machine.yaml"))
    assert (status, out, err) == (130, "", "")
    assert os.listdir(tmp_path) == []


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
