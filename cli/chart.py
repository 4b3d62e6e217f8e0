"""`triledger chart`: one chart as a file."""

from __future__ import annotations

import argparse

from .arguments import InputError, add_scenario, scale, scenario_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scenario(parser)
    names = "roofline, memory, communication, training, serving, waterfall, latency, speculation or measured"
    parser.add_argument("--chart", metavar="NAME", required=True, help=names)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="FILE.svg, .png, .pdf or .csv")
    parser.add_argument("--theme", choices=("light", "dark", "print"), default="print")
    parser.add_argument("--scale", type=scale, default=2.0, help="pixels of a PNG for each 1/96 inch (2)")


def run(options: argparse.Namespace) -> int:
    from ..core.engine import evaluate
    from ..core.errors import OutputError
    from ..core.export import write_figure
    from ..core.figures.by_name import figure

    scenario = scenario_of(options)
    try:
        chart = figure(options.chart, scenario, evaluate(scenario))
        write_figure(chart, options.output, options.theme, options.scale)
    except OutputError as error:
        raise InputError(str(error)) from None
    return 0
