"""The text of a config.json to a checked tree of values, with no way to grow without bound."""

from __future__ import annotations

import json
from typing import Any

from ..errors import ScenarioError

#: Quantised files list every module that stays as it was.
MAX_BYTES = 16_000_000
WHAT = "a config.json is JSON text"

_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


def parse_document(text: str, file: str) -> dict[str, Any]:
    """The object that a config.json holds. Raises ScenarioError, one line with the place, for anything else."""
    if not text.strip():
        raise ScenarioError(file, 0, "", "is empty; a config.json holds one object {…}")
    try:
        document = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, file))
    except json.JSONDecodeError as error:
        raise ScenarioError(file, error.lineno, "", f"not JSON: {error.msg}, column {error.colno}") from None
    except ScenarioError:
        raise
    except RecursionError:
        raise ScenarioError(file, 0, "", "is nested too deep; a config.json has 3 or 4 levels") from None
    except ValueError:
        raise ScenarioError(file, 0, "", "holds a number of thousands of digits") from None
    if not isinstance(document, dict):
        raise ScenarioError(file, 1, "", f"is {_KINDS[type(document)]}; a config.json holds one object {{…}}")
    return document


def _object(pairs: list[tuple[str, Any]], file: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result and result[key] != value:
            raise ScenarioError(file, 0, key, "is written twice with different values; keep one of them")
        result[key] = value
    return result
