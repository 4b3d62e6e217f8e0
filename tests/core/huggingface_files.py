"""Configurations of published models, trimmed to the fields that matter, and the counts they must give."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from triledger.core.huggingface import Imported, read_config
from triledger.core.model.layers import Model, build

FOLDER = Path(__file__).parent / "data" / "configs"
#: Published config.json files by repository on the Hugging Face hub.
CONFIGS: dict[str, dict[str, Any]] = json.loads((FOLDER / "configs.json").read_text(encoding="utf-8"))
#: What each must give, with its source; no count where the file is to be refused.
COUNTS: list[dict[str, str]] = list(csv.DictReader((FOLDER / "counts.csv").read_text(encoding="utf-8").splitlines()))
#: Small configurations of every family with the parameters that the model class of transformers 5.24.0 has.
CLASSES: dict[str, list[dict[str, Any]]] = json.loads((FOLDER / "classes.json").read_text(encoding="utf-8"))

#: The least that a file of no family has to say.
PLAIN = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}


def imported(config: dict[str, Any], file: str = "config.json") -> Imported:
    return read_config(json.dumps(config), file)


def model(config: dict[str, Any]) -> Model:
    return build(imported(config).spec)


def published(repository: str) -> Model:
    return model(CONFIGS[repository])
