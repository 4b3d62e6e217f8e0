"""The layers: a pure core, a command line without Qt, a window that reads the core and is not read by it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PURE = {"numpy", "yaml"}
#: Modules of the standard library that would make an evaluation depend on when or where it runs.
IMPURE = {"time", "datetime", "random", "socket", "subprocess", "platform", "locale", "getpass"}
QT = {"PySide6", "shiboken6", "pyqtgraph"}


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(absolute name of what is imported, whether at import time) of every import in a file."""
    package = ("triledger", *path.relative_to(ROOT).parent.parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = within(tree, lambda node: isinstance(node, (ast.FunctionDef, ast.Lambda)))
    for_types = within(tree, lambda node: isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in functions
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            stem = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield f"{stem}.{alias.name}", id(node) not in functions


def within(tree: ast.Module, wanted: Callable[[ast.AST], bool]) -> set[int]:
    """The ids of the nodes inside the nodes that are wanted."""
    return {id(node) for block in ast.walk(tree) if wanted(block) for node in ast.walk(block)}


def top(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("path", modules("core"), ids=lambda path: str(path.relative_to(ROOT)))
def test_core_imports_numpy_yaml_and_the_standard_library_only(path: Path) -> None:
    allowed = PURE | set(sys.stdlib_module_names) | {"triledger"}
    for name, at_import in imports(path):
        if path.name == "paper.py" and top(name) == "matplotlib":
            assert not at_import, "matplotlib is imported only when a figure is drawn on paper"
            continue
        assert top(name) in allowed, name
        assert top(name) not in IMPURE, name


@pytest.mark.parametrize("path", modules("core"), ids=lambda path: str(path.relative_to(ROOT)))
def test_core_knows_neither_window_nor_command_line_nor_environment(path: Path) -> None:
    for name, _ in imports(path):
        assert not name.startswith(("triledger.gui", "triledger.cli")), name
    text = ast.unparse(ast.parse(path.read_text(encoding="utf-8")))
    assert "os.environ" not in text
    assert "getenv" not in text


@pytest.mark.parametrize("path", modules("cli"), ids=lambda path: path.name)
def test_command_line_imports_neither_qt_nor_numpy_nor_the_engine_when_it_starts(path: Path) -> None:
    started = [name for name, at_import in imports(path) if at_import]
    assert not [name for name in started if top(name) in QT | {"numpy", "yaml", "matplotlib"}]
    assert not [name for name in started if name.startswith(("triledger.core", "triledger.gui"))]


@pytest.mark.parametrize("path", modules("gui"), ids=lambda path: str(path.relative_to(ROOT)))
def test_window_does_not_import_the_command_line(path: Path) -> None:
    assert not [name for name, _ in imports(path) if name.startswith("triledger.cli")]


@pytest.mark.parametrize("folder", ["core", "gui", "cli"])
def test_no_import_brings_everything_of_a_module(folder: str) -> None:
    assert not [(path, name) for path in modules(folder) for name, _ in imports(path) if name.endswith(".*")]
