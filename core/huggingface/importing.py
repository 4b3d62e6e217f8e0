"""`read_config`: the text of a config.json in, a ModelSpec with all that was assumed out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..entries import out_of_range
from ..errors import ScenarioError
from ..model.consistency import faults
from ..model.spec import ModelSpec
from ..report import Finding
from ..yaml_tree import read_text
from . import names
from .config import Config, text_part
from .document import MAX_BYTES, WHAT, parse_document
from .family import Family, families, family_of_architecture, stem
from .refusals import refuse_what_is_no_decoder, refuse_what_only_a_family_tells, unexplained
from .text_model import text_facts
from .vision import vision_parameters
from .weights import weight_format

_NO_NAME = ("config", "params", "model", "")


@dataclass(frozen=True)
class Imported:
    """A model read from a config.json: the description, the format of its weights, and what a person should know."""

    spec: ModelSpec
    weight_format: str
    #: What the file does not say and no family either; the count is exact only if all of it holds.
    assumed: tuple[str, ...]
    findings: tuple[Finding, ...]


def import_file(path: Path, file: str) -> Imported:
    """The model of a config.json file; `file` is what messages call it. Raises ScenarioError."""
    return read_config(read_text(path, file, WHAT, MAX_BYTES), file)


def read_config(text: str, file_name: str) -> Imported:
    """The model that the text of a config.json describes.

    Raises ScenarioError, one line with the file and the field, for what is no decoder, cannot be or cannot be told.
    """
    top = Config(file_name, parse_document(text, file_name))
    config = text_part(top)
    family = _family(top, config)
    refuse_what_is_no_decoder(top, family)
    config.defaults, config.own_names = family.defaults, frozenset(family.own)
    assumed: list[str] = []
    facts = text_facts(config, family, assumed)
    vision, unknown_parts = _vision(top, family, facts["hidden_size"])
    number_format, format_notes = weight_format(config)
    if not family.known:
        refuse_what_only_a_family_tells(config)
    note = f"Assumed: {'; '.join(assumed)}." if assumed else ""
    spec = ModelSpec(**_identity(top, config, file_name), **facts, vision_parameters=vision, note=note)
    for field, message in (*out_of_range(spec), *faults(spec)):
        raise ScenarioError(file_name, 0, field, message)
    findings = [
        *_family_findings(top, config, family, assumed),
        *unknown_parts,
        *(Finding("weight-format", "warning", note, "quantization_config") for note in format_notes),
        *(Finding("names-disagree", "warning", note) for note in config.disagreements),
        *_left_out(config, family),
    ]
    return Imported(spec, number_format, tuple(assumed), tuple(findings))


def _family(top: Config, config: Config) -> Family:
    """The row of the model_type of the text part, else of the file, else of its class; else the row of no family."""
    named = [families().get(stem(part.word("model_type"))) for part in (config, top)]
    by_class = family_of_architecture(_class_name(top))
    if not top.has("model_type") and not config.has("model_type"):
        named.append(by_class)
        if by_class is None and top.has("dim") and top.has("n_layers"):
            named.append(families()["params.json"])
    return next((family for family in named if family is not None), Family())


def _class_name(top: Config) -> str:
    architectures = top.value("architectures")
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _family_findings(top: Config, config: Config, family: Family, assumed: list[str]) -> Iterator[Finding]:
    """What is said of the family, and of what was assumed for want of one."""
    by_class = family_of_architecture(_class_name(top))
    if not family.known:
        said = repr(config.word("model_type")) if config.has("model_type") else "absent"
        message = f"model_type is {said}, no family that is known; read as: {'; '.join(assumed)}"
        yield Finding("unknown-family", "warning", message, "model_type")
    else:
        yield from (Finding("assumed", "warning", f"not in the file, assumed: {text}") for text in assumed)
    if family.known and config is top and by_class is not None and by_class.name != family.name:
        message = f"model_type says {family.name}, architectures says {_class_name(top)}; read as {family.name}"
        yield Finding("family-disagrees", "warning", message, "model_type")
    if family.known and not top.has("model_type") and not config.has("model_type"):
        yield Finding("family-by-class", "hint", f"model_type is absent; read as {family.name}", "model_type")


def _vision(top: Config, family: Family, hidden: int) -> tuple[int, list[Finding]]:
    """Parameters of a vision tower, 0 where there is none, and findings where parts of the model are not known."""
    count, findings = 0, []
    for name in ("vision_config", "visual", "audio_config", "speech_config"):
        part = top.section(name)
        if part is None:
            continue
        known = vision_parameters(part, family, hidden) if name == "vision_config" else None
        if known is None:
            kind = part.word("model_type") or "no model_type"
            message = f"{name} ({kind}) is not known; its parameters are not counted"
            findings.append(Finding("part-not-counted", "warning", message, name))
        count += known or 0
    return count, findings


def _left_out(config: Config, family: Family) -> Iterator[Finding]:
    """Prediction modules of unknown structure, and fields that nobody asked for though they sound like sizes."""
    if not family.prediction and (modules := config.count(*names.PREDICTION)):
        message = f"{modules} modules that predict further tokens are not counted; their structure is not known"
        yield Finding("part-not-counted", "hint", message, config.first(*names.PREDICTION))
    for path in unexplained(config):
        message = f"{path} is not understood; if it changes the shape of a tensor, the count is wrong"
        yield Finding("field-not-understood", "warning", message, path)


def _identity(top: Config, config: Config, file_name: str) -> dict[str, Any]:
    """Id, name and source: the name that the file has of the model, else that of the file or its folder."""
    path = Path(file_name)
    said = str(top.value("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    name = said or next((part for part in (path.stem, path.parent.name) if part.lower() not in _NO_NAME), "")
    name = name or config.word("model_type") or "imported"
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
    return {"id": slug or "imported", "name": name[:80], "source": f"{path.name} (Hugging Face config.json)"}
