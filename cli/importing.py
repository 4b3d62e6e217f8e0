"""`triledger import`: a Hugging Face config.json to a model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .arguments import InputError
from .text import aligned

if TYPE_CHECKING:
    from ..core.huggingface import Imported
    from ..core.model.layers import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG.json", help="a config.json as the Hugging Face hub has it")
    parser.add_argument("-o", "--output", metavar="MODEL.yaml", help="a model that a scenario can name by this path")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from ..core.errors import OutputError, ScenarioError
    from ..core.files import write_whole
    from ..core.huggingface import import_file
    from ..core.model.layers import build
    from ..core.scenario_writing import write_model

    try:
        imported = import_file(Path(options.config), options.config)
        if options.output:
            write_whole(options.output, write_model(imported.spec).encode())
    except (ScenarioError, OutputError) as error:
        raise InputError(str(error)) from None
    model = build(imported.spec)
    if options.format == "json":
        print(json.dumps(_values(imported, model), indent=2))
    else:
        print("\n".join(_text(imported, model)))
    return 0


def _counts(model: Model) -> dict[str, int]:
    return {
        "model.parameters": int(model.parameters),
        "model.active_parameters": int(model.active_parameters),
        "model.text_parameters": int(model.text_parameters),
        "model.vision_parameters": int(model.spec.vision_parameters),
        "model.mtp_parameters": int(model.mtp_parameters),
        "model.buffers": int(model.buffers),
        "model.kv_bytes_per_token": int(model.kv_bytes_per_token(2.0)),
    }


def _values(imported: Imported, model: Model) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": imported.spec.name,
        **_counts(model),
        "model.state_bytes_per_sequence": int(model.state_bytes_per_sequence()),
        "model.weight_format": imported.weight_format,
        "assumed": list(imported.assumed),
        "findings": [asdict(finding) for finding in imported.findings],
    }


#: What a person reads, by key: label and unit.
_LABELS = {
    "model.parameters": "parameters",
    "model.active_parameters": "active for a token",
    "model.text_parameters": "language model",
    "model.vision_parameters": "vision tower",
    "model.mtp_parameters": "prediction modules (not in the count)",
    "model.buffers": "routing buffers (not in the count)",
}


def _text(imported: Imported, model: Model) -> Iterator[str]:
    from ..core.model.anatomy import anatomy
    from ..core.units import format_quantity

    counts = _counts(model)
    rows = [
        (label, format_quantity(counts[key], "amount"), f"{counts[key]:,}".replace(",", "\u202f"))
        for key, label in _LABELS.items()
        if counts[key] or key == "model.parameters"
    ]
    cache = counts["model.kv_bytes_per_token"]
    rows.append(("cache of a token in 16 bits", format_quantity(cache, "bytes"), ""))
    if state := model.state_bytes_per_sequence():
        rows.append(("states of a sequence", format_quantity(state, "bytes"), ""))
    rows.append(("weights stored as", imported.weight_format, ""))
    yield imported.spec.name
    yield from (f"  {kind}" for kind in anatomy(model).kinds())
    yield ""
    yield from aligned(rows, "<>>")
    if imported.findings:
        yield ""
        yield from aligned([(f.severity, f.message, f.field) for f in imported.findings], "<<<")
