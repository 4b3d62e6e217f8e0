"""`triledger [SCENARIO]`: the dashboard, or a picture of it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from .arguments import InputError, add_scenario, scale, scenario_of

DEFAULT = "7b-8xa100-train"
_LARGEST = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..gui import SMALLEST

    add_scenario(parser, default=DEFAULT)
    parser.add_argument("--screenshot", metavar="FILE.png", help="draw the window into a file, without a display")
    parser.add_argument(
        "--size",
        metavar="WxH",
        type=_size,
        default=(1440, 900),
        help=f"of the picture, {'x'.join(map(str, SMALLEST))} or more (1440x900)",
    )
    parser.add_argument("--theme", choices=("light", "dark"), default="light", help="of the picture (light)")
    parser.add_argument("--scale", type=scale, default=1.0, help="pixels of the picture for one of the window (1)")
    parser.add_argument("--version", action="store_true", help="print the version and leave")


def _size(text: str) -> tuple[int, int]:
    from ..gui import SMALLEST

    match = re.fullmatch(r"(\d+)x(\d+)", text)
    sides = tuple(zip(SMALLEST, map(int, match.groups()), strict=True)) if match else ()
    smallest = "x".join(map(str, SMALLEST))
    if not match or not all(least <= pixels <= _LARGEST for least, pixels in sides):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size from {smallest} to {_LARGEST}x{_LARGEST}; write for example 1440x900"
        )
    return int(match[1]), int(match[2])


def run(options: argparse.Namespace) -> int:
    if options.version:
        from importlib.metadata import version

        print(f"triledger {version('triledger')}")
        return 0
    if options.screenshot and Path(options.screenshot).suffix.lower() != ".png":
        raise InputError(f"--screenshot {options.screenshot}: pictures of the window are written as .png")
    scenario = scenario_of(options)
    from ..gui import application

    if options.screenshot:
        return application.screenshot(scenario, Path(options.screenshot), options.size, options.theme, options.scale)
    path = Path(options.scenario)
    return application.run(scenario, path if path.is_file() else None)
