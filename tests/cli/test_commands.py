"""The commands as a person or a script meets them: what they print, where, and with which exit status."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from triledger.cli import main
from triledger.core import evaluate, load_scenario
from triledger.core.scenario_writing import write_model

TRAINING = "7b-8xa100-train"
SERVING = "70b-bf16-8xa100-serve"


@pytest.fixture
def run(capsys):
    """Runs a command; answers (status, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(list(arguments))
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def refused(run):
    """Runs a command that must be refused: status 2, nothing printed, one line on standard error; the line."""

    def refused(*arguments: str) -> str:
        status, out, err = run(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("triledger: ")
        assert err.count("\n") == 1
        return err

    return refused


# ---------------------------------------------------------------- simulate


def test_a_simulated_benchmark_stands_beside_the_steady_state(run) -> None:
    status, out, _ = run("simulate", SERVING, "--rounds", "4")
    assert status == 0
    assert "99 %" in out
    _, out, _ = run("simulate", SERVING, "--rounds", "4", "--format", "json")
    found = json.loads(out)
    assert found["clients"] == 128
    assert found["requests"] == 512
    assert found["ttft"]["mean"] <= found["ttft"]["p99"]


def test_clients_in_step_are_told_from_those_of_the_steady_state(run) -> None:
    _, out, _ = run("simulate", SERVING, "--rounds", "4")
    assert "spread out: the steady state" in out
    assert "equal lengths keep clients that start together in step" in out
    drawn = run("simulate", SERVING, "--rounds", "4", "--set", "serving.lengths=drawn")[1]
    assert "spread out: the steady state" in drawn
    assert "in step" not in drawn


def test_requests_that_are_not_simulated_are_told(run) -> None:
    _, out, _ = run("simulate", SERVING, "--rounds", "4")
    assert "asked for" not in out
    _, out, _ = run("simulate", SERVING, "--rounds", "500")
    assert "6000 requests of 128 clients" in out
    assert "64 000 requests were asked for; at most 6 000 an engine are simulated" in out.replace("\u202f", " ")


def test_requests_that_come_at_random_stand_beside_the_formulas_of_waits(run) -> None:
    asked = ("simulate", SERVING, "--set", "serving.request_rate=2", "--requests", "100")
    status, out, _ = run(*asked)
    assert status == 0
    assert "90 requests at random, 2.00 requests/s" in out
    assert "its 99 %" in out
    assert "saturated" not in out
    assert json.loads(run(*asked, "--format", "json")[1])["clients"] == 0
    assert "saturated: " in run("simulate", SERVING, "--set", "serving.request_rate=99", "--requests", "50")[1]


def test_a_plan_without_room_for_a_request_is_not_simulated(run) -> None:
    status, out, error = run("simulate", SERVING, "--set", "cluster.gpus=1", "--set", "parallelism.tp=1")
    assert (status, out) == (1, "")
    assert error.strip().endswith("not one request fits into memory")


def test_what_cannot_be_simulated_is_refused(refused) -> None:
    assert "only serving plans" in refused("simulate", TRAINING)
    drafts = "serving.speculative.draft_tokens"
    assert drafts in refused("simulate", SERVING, "--set", f"{drafts}=4")
    assert "serving.output_tokens" in refused("simulate", SERVING, "--set", "serving.output_tokens=0")
    assert "--rounds" in refused("simulate", SERVING, "--rounds", "0")


# ---------------------------------------------------------------- eval


@pytest.mark.parametrize("preset", [TRAINING, SERVING])
def test_json_is_the_flat_report_and_what_is_assumed(run, preset: str) -> None:
    status, out, _ = run("eval", preset, "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert found.pop("assumptions")
    assert found == json.loads(json.dumps(evaluate(load_scenario(preset)).flat()))


def test_json_holds_no_number_that_json_has_not(run) -> None:
    _, out, _ = run("eval", TRAINING, "--format", "json")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    json.loads(out, parse_constant=refuse)


@pytest.mark.parametrize("preset", [TRAINING, SERVING])
def test_text_shows_verdict_headlines_ledgers_and_what_is_not_counted(run, preset: str) -> None:
    status, out, _ = run("eval", preset)
    assert status == 0
    for part in ("GiB", "bound", "Compute: ", "Memory: ", "Communication: ", "not counted"):
        assert part in out


def test_csv_numbers_the_rows_of_lists(run) -> None:
    _, out, _ = run("eval", TRAINING, "--format", "csv")
    values = dict(csv.reader(io.StringIO(out)))
    report = evaluate(load_scenario(TRAINING))
    assert float(values["time.step_s"]) == report["time.step_s"]
    assert float(values["communication.0.seconds"]) == report.communication[0].seconds


def test_settings_change_the_plan(run) -> None:
    _, out, _ = run(
        "eval", TRAINING, "--format", "json", "--set", "training.tokens=1T", "--set", "training.recompute=full"
    )
    scenario = load_scenario(TRAINING).with_("training.tokens", 1e12).with_("training.recompute", "full")
    assert json.loads(out)["training.days"] == evaluate(scenario)["training.days"]


def test_a_bare_deadline_is_in_days(run) -> None:
    _, out, _ = run("eval", "70b-128xa100-2t-train", "--set", "training.deadline=90")
    assert "Too late: 472 days, the deadline is 90 days." in out


def test_settings_are_judged_together(run) -> None:
    # eight ranks in a replica leave none for data parallelism, so the batch must shrink with them: alone neither is odd
    status, _, err = run("eval", TRAINING, "--set", "parallelism.tp=4", "--set", "parallelism.pp=2")
    assert (status, err) == (0, "")


def test_settings_are_of_the_kind_that_is_set_with_them(run) -> None:
    as_serving = ("--set", "serving.concurrency=4", "--set", "kind=serving")
    _, out, _ = run("eval", TRAINING, "--format", "json", *as_serving)
    assert json.loads(out)["kind"] == "serving"
    kinds = ("--over", "kind=training,serving", "--over", "serving.concurrency=1,64")
    status, out, _ = run("sweep", TRAINING, *kinds, "--metric", "memory.total_bytes")
    assert (status, len(out.splitlines())) == (0, 5)


def test_a_file_may_hold_settings_of_both_kinds(run, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    text = "model: llama-2-7b\ncluster: {accelerator: a100-sxm-80gb, gpus: 8}\nserving: {concurrency: 4}\n"
    file.write_text(text, encoding="utf-8")
    assert run("eval", str(file))[0] == 0


def test_what_was_measured_stands_beside_what_is_predicted(run) -> None:
    _, out, _ = run("eval", TRAINING, "--set", "measured.step_time=30 s")
    rows = {line.split("  ")[1]: line for line in out.splitlines() if line.startswith("  step time")}
    assert "30.0 s" in rows["step time"]
    assert "27.5 s" in rows["step time"]
    assert "−8.3 %" in rows["step time"]
    assert "measured  predicted" not in run("eval", TRAINING)[1]
    _, out, _ = run("eval", SERVING, "--set", "measured.tpot=40 ms", "--set", "measured.ttft=1 s")
    assert "time per token" in out
    assert "time to first token" in out


def test_a_file_of_a_part_of_a_scenario_says_how_it_is_named(run, refused, tmp_path: Path) -> None:
    model, constants = tmp_path / "model.yaml", tmp_path / "assumptions.yaml"
    model.write_text(write_model(load_scenario(TRAINING).model), encoding="utf-8")
    constants.write_text("# fitted to 9 runs\nassumptions:\n  e_gemm: 0.6\n", encoding="utf-8")
    assert f"{model}: is a model; name it with model: in a scenario, or" in refused("eval", str(model))
    assert "is the section assumptions of a scenario" in refused("eval", str(constants))
    assert run("eval", TRAINING, "--set", f"model={model}")[0] == 0


def test_working_of_a_number_is_text_or_json(run) -> None:
    _, text, _ = run("eval", TRAINING, "--explain", "time.step_s")
    assert text.startswith("time.step_s = ")
    assert "source" in text
    _, out, _ = run("eval", TRAINING, "--explain", "time.step_s", "--format", "json")
    assert json.loads(out)["value"] == evaluate(load_scenario(TRAINING))["time.step_s"]


@pytest.mark.parametrize("preset", [TRAINING, SERVING])
def test_every_result_key_can_be_explained(run, preset: str) -> None:
    for key in evaluate(load_scenario(preset)).flat():
        status, out, _ = run("eval", preset, "--explain", key)
        assert status == 0
        assert out.startswith(f"{key} = ")


# ---------------------------------------------------------------- bad input


def test_a_setting_that_is_not_legal_says_what_would_do(refused) -> None:
    assert "parallelism.tp: 6 does not divide 32 attention heads" in refused(
        "eval", TRAINING, "--set", "parallelism.tp=6"
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("eval", "7b-8xa100-trian"), TRAINING),
        (("eval", "nowhere.yaml"), "nowhere.yaml"),
        (("eval", TRAINING, "--set", "parallelism.tpp=2"), "parallelism.tp"),
        (("eval", TRAINING, "--set", "training.tokens=much"), "training.tokens"),
        (("eval", TRAINING, "--set", "training.tokens"), "PATH=VALUE"),
        (("eval", TRAINING, "--explain", "time.stepp_s"), "time.step_s"),
        (("eval", TRAINING, "--explain", "time.step_s", "--format", "csv"), "text or json"),
        (("eval", TRAINING, "--fromat", "json"), "--fromat"),
        (("eval",), "SCENARIO"),
        (("evla", TRAINING), "did you mean eval?"),
        (("swep",), "did you mean sweep?"),
        (("report", TRAINING, "-o", "report.pdf"), "no command is called 'report'"),
        (("list", "gpus"), "accelerators"),
        (("chart", TRAINING, "--chart", "roofine", "-o", "x.svg"), "roofline"),
        (("chart", TRAINING, "--chart", "roofline", "-o", "x.gif"), ".svg"),
        (("chart", TRAINING, "--chart", "roofline", "-o", "x.png", "--scale", "0"), "0.25"),
        (("sweep", TRAINING, "--over", "training.micro_batch=one"), "training.micro_batch"),
        (("sweep", TRAINING, "--over", "training.micro_bach=1"), "training.micro_batch"),
        (("sweep", TRAINING, "--over", "training.micro_batch=1", "--metric", "time.step"), "time.step_s"),
        (("--size", "big", "--screenshot", "x.png"), "1440x900"),
        (("--size", "400x400", "--screenshot", "x.png"), "is not a size from 1100x700 to 8000x8000"),
        (("eval", TRAINING, "--depth", "3"), "--depth: belongs to --explain KEY"),
        (("eval", TRAINING, "--explain", "time.step_s", "--depth", "-5"), "--depth: '-5' is not a whole number of 0"),
        (("eval", TRAINING, "--set", "serving.request_rate=5"), "serving.request_rate: is a field of serving plans"),
        (("eval", SERVING, "--set", "training.tokens=1T"), "training.tokens: is a field of training plans"),
        (("sweep", TRAINING, "--over", "serving.concurrency=1,64"), "serving.concurrency: is a field of serving plans"),
        (("eval", TRAINING, "--set", "kind=serving", "--set", "training.tokens=1T"), "and this is a serving plan"),
        ((TRAINING, "--set", "cluster.gpus=0", "--screenshot", "x.png"), "cluster.gpus"),
        ((TRAINING, "--screenshot", "x.jpg"), ".png"),
        (("eval", TRAINING, "--set", "model.experts=4"), "model.experts_per_token: is missing; experts layers need it"),
        (("eval", TRAINING, "--set", "model.kv_rank=512"), "model.nope_dim: is missing; latent layers need it"),
        (("simulate", SERVING, "--set", "model.experts=8"), "model.experts_per_token: is missing"),
        ((SERVING, "--set", "model.experts=8", "--screenshot", "x.png"), "model.experts_per_token: is missing"),
        (("eval", TRAINING, "--set", "training=1"), "training: is a section; name one of its fields, for example"),
        (("eval", TRAINING, "--set", "name=\x1b[31mred"), "character 0x1b is not text"),
        (("eval", TRAINING, "--set", "training.deadline=90 moons"), "write for example 90 d, 12 weeks"),
    ],
)
def test_bad_input_is_one_line_that_says_what_would_do(refused, monkeypatch, tmp_path, arguments, part) -> None:
    monkeypatch.chdir(tmp_path)
    assert part in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_named_with_its_line(refused, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    cluster = "cluster: {accelerator: a100-sxm-80gb}"
    file.write_text(f"triledger: 1\n{cluster}\nmodel: llama-2-7b\nparallelism:\n  tp: 6\n", encoding="utf-8")
    assert f"{file}:5: parallelism.tp: 6 does not divide" in refused("eval", str(file))


def test_control_characters_do_not_reach_the_terminal(refused, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    text = 'triledger: 1\nname: "\\e[31mred"\nmodel: llama-2-7b\ncluster: {accelerator: a100-sxm-80gb}\n'
    file.write_text(text, encoding="utf-8")
    assert f"{file}:2: name: character 0x1b is not text" in refused("eval", str(file))
    assert "\x1b" not in refused("--size\x1b[31m")


def test_a_pipe_is_refused_and_not_waited_for(refused, tmp_path: Path) -> None:
    pipe = tmp_path / "plan.yaml"
    os.mkfifo(pipe)
    assert "is a pipe or a device" in refused("eval", str(pipe))


@pytest.mark.parametrize("name", ["no/such/folder/x.svg", "no/such/folder/x.csv"])
def test_output_that_cannot_be_written_is_refused(refused, tmp_path: Path, name: str) -> None:
    assert name in refused("chart", TRAINING, "--chart", "memory", "-o", str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- chart, list, sweep


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.csv", b"")]
)
def test_a_chart_is_written_as_its_suffix_says(run, tmp_path: Path, name: str, start: bytes) -> None:
    assert run("chart", TRAINING, "--chart", "memory", "-o", str(tmp_path / name)) == (0, "", "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert (tmp_path / name).stat().st_size > 100


@pytest.mark.parametrize("what", ["models", "accelerators", "networks", "engines", "presets"])
def test_lists_name_every_entry_in_text_and_json(run, what: str) -> None:
    _, out, _ = run("list", what, "--format", "json")
    identifiers = [entry["id"] for entry in json.loads(out)]
    assert len(identifiers) >= 2
    _, text, _ = run("list", what)
    assert [line.split()[0] for line in text.splitlines()[1:]] == identifiers


def test_every_listed_preset_evaluates(run) -> None:
    _, out, _ = run("list", "presets", "--format", "json")
    for entry in json.loads(out):
        assert run("eval", entry["id"], "--format", "json")[0] == 0


def test_sweep_has_a_row_for_every_combination_and_a_reason_for_the_illegal(run) -> None:
    axes = ("--over", "training.recompute=none,full", "--over", "parallelism.tp=1,2,6")
    status, out, _ = run("sweep", TRAINING, *axes, "--metric", "time.step_s", "memory.verdict")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["training.recompute"], row["parallelism.tp"]) for row in rows] == [
        (recompute, tp) for recompute in ("none", "full") for tp in ("1", "2", "6")
    ]
    for row in rows:
        if row["parallelism.tp"] == "6":
            assert "6 does not divide 32 attention heads" in row["reason"]
            assert row["time.step_s"] == row["memory.verdict"] == ""
            continue
        scenario = load_scenario(TRAINING).with_("training.recompute", row["training.recompute"])
        report = evaluate(scenario.with_("parallelism.tp", int(row["parallelism.tp"])))
        assert float(row["time.step_s"]) == pytest.approx(report["time.step_s"], rel=1e-12)
        assert row["memory.verdict"] == report["memory.verdict"]
        assert row["reason"] == ""


# ---------------------------------------------------------------- the program as a process


def python(code: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)  # type: ignore[call-overload]


def test_no_command_but_the_window_imports_qt() -> None:
    code = (
        "import sys; from triledger.cli import main\n"
        "for command in sys.argv[1:]: assert main(command.split()) == 0\n"
        "assert not [name for name in sys.modules if name.startswith(('PySide6', 'pyqtgraph', 'matplotlib'))]"
    )
    commands = (f"eval {TRAINING}", "list models", f"sweep {TRAINING} --over cluster.gpus=8")
    assert python(code, *commands).returncode == 0


def test_help_and_version_load_no_engine() -> None:
    code = (
        "import sys; from triledger.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as leaving: assert leaving.code == 0\n"
        "assert main(['--version']) == 0\n"
        "assert not {'numpy', 'yaml', 'PySide6'} & set(sys.modules)"
    )
    result = python(code)
    assert result.returncode == 0
    assert "sweep" in result.stdout


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    code = (
        "import os, sys; from triledger.cli import main\n"
        "reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1)\n"
        f"sys.exit(main(['eval', '{TRAINING}']))"
    )
    result = python(code)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "triledger.cli", "list", "models"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("triledger: standard output: ")
    assert result.stderr.count("\n") == 1


def test_an_interrupt_is_quiet(monkeypatch, capsys) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("triledger.core.scenario_file.load_scenario", interrupt)
    assert main(["eval", TRAINING]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_terminal_that_is_not_utf_8_gets_what_it_can_show() -> None:
    result = python(
        f"import sys; from triledger.cli import main; sys.exit(main(['eval', '{TRAINING}']))",
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "GiB" in result.stdout


def test_settings_that_are_assumed_are_told_with_their_effect(capsys) -> None:
    assert main(["eval", "70b-64xh100-train", "--format", "json"]) == 0
    assumed = json.loads(capsys.readouterr().out)["assumptions"]
    assert assumed
    assert all(each["effect_low"] <= 0 <= each["effect_high"] for each in assumed)
    assert {"field", "value", "effect_low", "effect_high"} <= assumed[0].keys()
    assert main(["eval", "70b-64xh100-train"]) == 0
    text = capsys.readouterr().out
    assert "is assumed" in text
    assert "band of time: errors of" in text
    assert "band of memory: errors of" in text
