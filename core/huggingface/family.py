"""What the fields of a file do not say, by family: a row of `presets/families.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from ..catalogue import table
from .config import Config

#: A value, or what it is under conditions on the fields of the file, the first that holds.
Cases = Any

_PARTS = re.compile(r"(_text)?(_model)?$")
_CLASS = re.compile(r"(ForCausalLM|ForConditionalGeneration|LMHeadModel|ForMaskedLM|Model)+$")


@dataclass(frozen=True)
class Family:
    """One row of the table; its keys are explained at the head of the table."""

    name: str = ""
    refuse: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    own: tuple[str, ...] = ()
    norm: Cases = None
    norms: Cases = 0
    final_norm: Cases = True
    parallel: Cases = False
    gated: Cases = None
    ffn_multiple: int = 0
    ffn_stored: int = 1
    dense_size: str = ""
    expert_size: str = ""
    one_expert: str = "experts"
    needs: tuple[str, ...] = ()
    biases: Mapping[str, str] = field(default_factory=dict)
    head_bias: Cases = "lm_head_bias"
    qk_norm: Mapping[str, str] = field(default_factory=dict)
    sinks: Cases = False
    output_gate: Cases = "attn_output_gate"
    inner_norms: Cases = False
    activation_parameters: int = 0
    embedding_norm: Cases = False
    learned_positions: Cases = False
    extra_positions: int = 0
    extra_rows: int = 0
    kv_heads: Cases = field(default_factory=lambda: {"multi_query": 1, "else": "stated"})
    window: Cases = "never"
    window_kv_multiple: int = 1
    mixer: str = "attention"
    lightning: bool = False
    layer_list: str = ""
    ssm_norm: Cases = True
    ssm_bias: Cases = field(default_factory=lambda: {"use_bias": True, "mamba_proj_bias": True, "else": False})
    shared_gate: bool = False
    router_bias: Cases = "none"
    expert_bias: Cases = False
    tower: str = ""
    prediction: bool = False

    @property
    def known(self) -> bool:
        return bool(self.name)


def choose(cases: Cases, config: Config) -> Any:
    """What a value of a row is for a file: itself, or the first of its cases whose condition holds."""
    if not isinstance(cases, dict):
        return cases
    return next((value for condition, value in cases.items() if config.holds(condition)), None)


@cache
def families() -> dict[str, Family]:
    """The rows of the table by family."""
    rows: dict[str, Any] = table("families")
    return {name: _row(name, rows) for name in rows}


def _row(name: str, rows: dict[str, Any]) -> Family:
    row = dict(rows[name] or {})
    base = _row(like, rows) if (like := row.pop("like", "")) else Family()
    defaults = {**base.defaults, **row.pop("defaults", {})}
    row |= {name: tuple(row[name]) for name in ("own", "needs") if name in row}
    return replace(base, name=name, defaults=defaults, **row)


def stem(model_type: str) -> str:
    """The family that a model_type names: text parts belong to the family without the suffix."""
    return _PARTS.sub("", model_type)


def family_of_architecture(architecture: str) -> Family | None:
    """The family that a class of an `architectures` list is named after, or None."""
    wanted = _plain(_CLASS.sub("", architecture))
    return next((family for name, family in families().items() if _plain(name) == wanted), None)


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def row_keys() -> frozenset[str]:
    """The keys that a row of the table may have."""
    return frozenset(f.name for f in fields(Family)) - {"name"} | {"like"}
