"""`triledger list`: what a scenario can name."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .text import aligned

if TYPE_CHECKING:
    from ..core.catalogue import Engine, Preset
    from ..core.model.spec import ModelSpec
    from ..core.scenario import Accelerator, Network


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", choices=tuple(_COLUMNS), help=", ".join(_COLUMNS))
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    from ..core.catalogue import catalogue

    entries = getattr(catalogue(), options.what).values()
    if options.format == "json":
        print(json.dumps([asdict(entry) for entry in entries], indent=2, default=str))
    else:
        heads, columns = _COLUMNS[options.what]
        sides = "".join(side for _, side in heads)
        print("\n".join(aligned([tuple(head for head, _ in heads), *map(columns, entries)], sides)))
    return 0


def _quantity(value: Any, unit: str) -> str:
    from ..core.units import format_quantity

    return format_quantity(value, unit)


def _model(model: ModelSpec) -> tuple[str, ...]:
    from ..core.model.layers import build

    return model.id, model.name, _quantity(build(model).parameters, "amount"), _quantity(model.layers, "count")


def _accelerator(part: Accelerator) -> tuple[str, ...]:
    return (
        part.id,
        part.name,
        _quantity(part.memory, "bytes"),
        _quantity(part.memory_bandwidth, "bytes/s"),
        _quantity(part.peak.bf16 or part.peak.fp16, "FLOP/s"),
        _quantity(part.link.bandwidth, "bytes/s") if part.link.bandwidth else "",
    )


def _network(network: Network) -> tuple[str, ...]:
    return network.id, network.name, _quantity(network.bandwidth, "bytes/s")


def _named(entry: Engine | Preset) -> tuple[str, ...]:
    return entry.id, entry.name


#: What can be listed -> (heads of the columns with their side, an entry's cells).
_COLUMNS: dict[str, Any] = {
    "models": ((("id", "<"), ("name", "<"), ("parameters", ">"), ("layers", ">")), _model),
    "accelerators": (
        (("id", "<"), ("name", "<"), ("memory", ">"), ("bandwidth", ">"), ("16-bit peak", ">"), ("link", ">")),
        _accelerator,
    ),
    "networks": ((("id", "<"), ("name", "<"), ("per GPU and direction", ">")), _network),
    "engines": ((("id", "<"), ("name", "<")), _named),
    "presets": ((("id", "<"), ("name", "<")), _named),
}
