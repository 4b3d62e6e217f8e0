"""The command line: arguments to calls of the engine, answers to text. Heavy imports wait until they are needed."""

from __future__ import annotations

import importlib
import io
import os
import sys
from pathlib import Path

from .arguments import InputError, Parser

#: Command -> (module that runs it, what it does).
COMMANDS = {
    "eval": ("evaluation", "every number of a plan, or the working of one of them"),
    "chart": ("chart", "one chart as SVG, PNG, PDF or CSV"),
    "sweep": ("sweep", "a table over the values of one or more fields, as CSV"),
    "simulate": ("simulation", "what requests of a serving plan meet, iteration by iteration"),
    "validate": ("validation", "predictions beside published or own measurements, by source"),
    "measure": ("measuring", "what this machine reaches: matrix products and memory bandwidth, as a catalogue entry"),
    "calibrate": ("calibration", "machine constants fitted to a person's own runs"),
    "import": ("importing", "what a Hugging Face config.json describes, and writes it as a model"),
    "list": ("listing", "the models, accelerators, networks and presets that can be named"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and answers with the exit status: 0 done, 1 the question has no answer, 2 bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = _run(sys.argv[1:] if arguments is None else arguments)
        if sys.stdout:
            sys.stdout.flush()
        return status
    except InputError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is None:
            _discard_output()
        return _refuse(f"{error.filename or 'standard output'}: {error.strerror or error}")


def _refuse(message: str) -> int:
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(message.split()))
    print(f"triledger: {line}", file=sys.stderr)
    return 2


def _discard_output() -> None:
    """What is still to be written goes nowhere, else Python complains once more while it shuts down."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        module, purpose = COMMANDS[name]
        command = importlib.import_module(f".{module}", __package__)
        parser = Parser(prog=f"triledger {name}", description=f"Prints {purpose}.")
        command.add_arguments(parser)
        return command.run(parser.parse_args(arguments[1:]))
    return _open_window(arguments)


def _open_window(arguments: list[str]) -> int:
    from . import window

    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = Parser(
        prog="triledger",
        description="What-if dashboard for LLM training and serving plans.",
        epilog=f"commands (triledger COMMAND --help says more):\n{commands}",
    )
    window.add_arguments(parser)
    options, rest = parser.parse_known_args(arguments)
    if not options.version and _meant_a_command(options.scenario, rest):
        from ..core.errors import did_you_mean

        raise InputError(f"no command is called {options.scenario!r}; {did_you_mean(options.scenario, COMMANDS)}")
    if rest:
        raise InputError(f"unrecognized arguments: {' '.join(rest)}")
    return window.run(options)


def _meant_a_command(name: str, rest: list[str]) -> bool:
    """Whether a mistyped command stands in the scenario's place: a second word follows, or it reads like one."""
    from ..core.errors import nearest

    return any(not word.startswith("-") for word in rest) or (bool(nearest(name, COMMANDS)) and not Path(name).exists())
