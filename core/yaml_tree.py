"""YAML text to a tree that remembers the line of everything, with no way to run code or to grow without bound.

Only mappings, lists and scalars of one document are accepted: no tags, no anchors and aliases, no duplicate keys.
Scalars stay text; what a text means is up to the field that it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .errors import ScenarioError

MAX_BYTES = 1_000_000
MAX_DEPTH = 16

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Node(NamedTuple):
    """A scalar's text, a mapping of nodes or a list of nodes, with the line (of the key, in a mapping)."""

    value: Any
    line: int
    quoted: bool = False

    @property
    def is_empty(self) -> bool:
        """Nothing written, `~` or `null`."""
        return isinstance(self.value, str) and not self.quoted and self.value in ("", "~", "null", "Null", "NULL")


def read_text(path: Path, file: str, what: str = "a scenario is a YAML file", limit: int = MAX_BYTES) -> str:
    """The text of a file of at most `limit` bytes; ScenarioError, which says `what` it should be, for anything else."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe may never end, or never begin
        raise ScenarioError(file, 0, "", "is a pipe or a device; give a file")
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
        text = data.decode("utf-8-sig")
    except IsADirectoryError:
        raise ScenarioError(file, 0, "", "is a folder; give a file in it") from None
    except OSError as error:
        raise ScenarioError(file, 0, "", f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(file, 0, "", f"is not UTF-8 text; {what}") from None
    except ValueError as error:
        raise ScenarioError(file.replace("\0", "?"), 0, "", f"is not a file name: {error}") from None
    if len(data) > limit:
        raise ScenarioError(file, 0, "", f"is larger than {limit // 10**6} MB; {what} of a few hundred lines")
    return text


def parse_tree(text: str, file: str) -> Node:
    """The one mapping a YAML text holds, as a Node. ScenarioError with the line for anything else."""
    if strange := _NOT_TEXT.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        raise ScenarioError(file, line, "", f"character {ord(strange[0]):#x} is not text; a scenario is a YAML file")
    try:
        return _document(yaml.parse(text, Loader=_LOADER), file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise ScenarioError(file, mark.line + 1 if mark else 0, "", f"not YAML: {reason}") from None
    except yaml.YAMLError as error:
        raise ScenarioError(file, 0, "", f"not YAML: {error}") from None


def _document(events: Iterator[Any], file: str) -> Node:
    next(events)
    if isinstance(next(events), yaml.StreamEndEvent):
        raise ScenarioError(file, 0, "", "is empty; write key: value lines, for example name: My plan")
    root = _node(next(events), events, file, 0)
    next(events)
    after = next(events)
    if not isinstance(after, yaml.StreamEndEvent):
        raise ScenarioError(file, _line(after), "", "a second document begins here; write one document a file")
    if root.is_empty:
        raise ScenarioError(file, 0, "", "is empty; write key: value lines, for example name: My plan")
    if not isinstance(root.value, dict):
        raise ScenarioError(file, root.line, "", "is not a mapping; write key: value lines, for example name: My plan")
    return root


def _line(event: Any) -> int:
    return event.start_mark.line + 1


def _node(event: Any, events: Iterator[Any], file: str, depth: int) -> Node:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise ScenarioError(file, line, "", "anchors and aliases (& and *) are not read; write the value out")
    if event.tag:
        raise ScenarioError(file, line, "", f"tag {event.tag} is not read; write a plain value")
    if isinstance(event, yaml.ScalarEvent):
        return Node(event.value, line, event.style in ("'", '"', "|", ">"))
    if depth >= MAX_DEPTH:
        raise ScenarioError(file, line, "", f"nested deeper than {MAX_DEPTH} levels; a scenario needs 5")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_node(item, events, file, depth + 1))
        return Node(items, line)
    return Node(_mapping(events, file, depth), line)


def _mapping(events: Iterator[Any], file: str, depth: int) -> dict[str, Node]:
    entries: dict[str, Node] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _node(event, events, file, depth + 1)
        if not isinstance(key.value, str):
            raise ScenarioError(file, key.line, "", "a key is not a word; write key: value")
        if key.value in entries:
            first = entries[key.value].line
            raise ScenarioError(
                file, key.line, key.value, f"is written twice (first on line {first}); keep one of them"
            )
        value = _node(next(events), events, file, depth + 1)
        entries[key.value] = value._replace(line=key.line)
    return entries
