"""What is shipped: packages, data files, licence, version; and what the README tells a newcomer to type."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

from triledger.cli import main
from triledger.core import evaluate, read_scenario
from triledger.core.measured.errors import shipped_errors
from triledger.core.measured.summary import markdown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("core", "gui", "cli", "assets", "presets")


def test_every_package_of_the_checkout_is_in_the_wheel() -> None:
    found = {
        ".".join(("triledger", *init.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_modules_or_data_is_a_package(folder: str) -> None:
    holders = {path.parent for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert not [holder for holder in holders if not (holder / "__init__.py").is_file()]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_data_file_has_a_kind_that_the_wheel_takes(folder: str) -> None:
    kinds = {pattern.removeprefix("*") for pattern in PROJECT["tool"]["setuptools"]["package-data"]["*"]} | {".py"}
    files_ = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert not [path for path in files_ if path.suffix not in kinds]


def test_data_can_be_read_where_the_package_is_installed() -> None:
    assert list(files("triledger.presets.scenarios").joinpath("7b-8xa100-train.yaml").read_text(encoding="utf-8"))
    assert files("triledger.assets.fonts").joinpath("Inter-LICENSE.txt").is_file()


def test_version_is_the_projects() -> None:
    assert version("triledger") == PROJECT["project"]["version"]


def test_the_interpreter_killing_qt_release_is_excluded() -> None:
    assert any(
        need.startswith("pyside6-essentials") and "!=6.12.0" in need for need in PROJECT["project"]["dependencies"]
    )


def test_readme_names_the_libraries_that_the_checks_install() -> None:
    readme = re.search(r"apt-get install (.+)", README)
    script = re.search(r"libraries=\((.*?)\)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.DOTALL)
    assert readme
    assert script
    assert set(readme[1].split()) | {"xvfb", "xauth"} == set(script[1].split())


def test_no_file_names_a_package_registry() -> None:
    texts = [ROOT / name for name in ("pyproject.toml", "README.md", ".ci/run")]
    assert not [
        path for path in texts if re.search(r"index-url|extra-index|pypi\.org", path.read_text(encoding="utf-8"))
    ]


def readme_commands() -> list[list[str]]:
    """The commands of the README that open no window, without their remarks."""
    lines = re.findall(r"^triledger (.+)$", README, re.MULTILINE)
    commands = [shlex.split(re.split(r"\s{2,}", line)[0]) for line in lines]
    return [command for command in commands if command[0] in ("eval", "chart", "sweep", "list")]


@pytest.mark.parametrize("command", readme_commands(), ids=" ".join)
def test_commands_of_the_readme_work(command: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 0
    assert capsys.readouterr().out or list(tmp_path.iterdir())


def test_scenario_of_the_readme_is_one() -> None:
    block = re.search(r"```yaml\n(.+?)```", README, re.DOTALL)
    assert block
    assert evaluate(read_scenario(block[1], "README.md"))["memory.fits"]


def test_the_table_of_accuracy_is_that_of_the_shipped_errors() -> None:
    """Where this fails: `triledger validate --format markdown`."""
    assert "\n".join(markdown(shipped_errors())) in README
