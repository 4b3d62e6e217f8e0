"""What the commands share: a parser that refuses in one line, and the scenario with its settings."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ..core.scenario import Scenario


class InputError(Exception):
    """Bad input; the message is the one line that the person reads."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are InputErrors and whose help keeps its lines."""

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def add_scenario(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """The scenario to read and the fields to change in it; with a default it may be left out."""
    parser.add_argument(
        "scenario",
        metavar="SCENARIO",
        nargs="?" if default else None,
        default=default,
        help="a preset's id, the path of a scenario file, or run:ID for a published run"
        + (f" ({default})" if default else ""),
    )
    add_settings(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The fields to change in a scenario."""
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="change one field, for example parallelism.tp=8 or training.tokens=2T; may be repeated",
    )


def scale(text: str) -> float:
    """The type of an argument that enlarges a picture: a number from 0.25 to 10."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.25 <= number <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.25 to 10")
    return number


def scenario_of(options: argparse.Namespace) -> Scenario:
    """The scenario that the options name, with their settings made. Raises InputError."""
    from ..core.errors import ScenarioError
    from ..core.legality import require_legal
    from ..core.scenario_file import load_scenario, set_field

    try:
        scenario = load_scenario(options.scenario)
        settings = [split_setting("--set", setting) for setting in options.settings]
        for path, value in settings:
            scenario = set_field(scenario, path, value)
        refuse_other_kind([path for path, _ in settings], scenario.kind)
        require_legal(scenario)
    except ScenarioError as error:
        raise InputError(str(error)) from None
    return scenario


def refuse_other_kind(paths: Iterable[str], kind: str) -> None:
    """Raises InputError for a field that a plan of this kind has no use for; a file may hold settings of both kinds."""
    from ..core.fields import of_other_kind

    for path in paths:
        if reason := of_other_kind(path, kind):
            raise InputError(f"{path}: {reason}")


def split_setting(option: str, text: str) -> tuple[str, str]:
    """The path and the value of PATH=VALUE."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise InputError(f"{option} {text}: write PATH=VALUE, for example parallelism.tp=8")
    return path.strip(), value.strip()
