"""The fields of a config.json: found under any of their names, checked, and remembered as read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ScenarioError
from .names import FROM_THE_TOP, NULL_IS_NONE, TEXT_PARTS, limit

#: No number of a file of a model that was ever built comes near this.
LARGEST = 10**9
#: Objects whose fields are not of the shape of the language model.
_OTHER_SUBJECTS = ("quantization_config", "compression_config", "vision_config", "audio_config", "text_config")


class Config:
    """One object of the file, with the defaults of its family. null stands for absent.

    Every name that is asked for counts as read, also where the file does not have it.
    """

    def __init__(self, file: str, fields: Mapping[str, Any], path: str = "") -> None:
        self.file, self.fields, self.path = file, fields, path
        self.defaults: Mapping[str, Any] = {}
        self.own_names: frozenset[str] = frozenset()
        self.read: set[str] = set()
        self.disagreements: list[str] = []
        self.sections: dict[str, Config] = {}

    def refusal(self, name: str, message: str) -> ScenarioError:
        """The error that names a field of this object."""
        return ScenarioError(self.file, 0, self.path + name, message)

    def has(self, name: str) -> bool:
        """Whether the file itself says something under a name."""
        self.read.add(name)
        return self.fields.get(name) is not None

    def value(self, *names: str) -> Any:
        """The value under the first of some names that is there, else the family's default, else None.

        A dotted name stands for a field of an object in the file. Where two names disagree, the family's own wins.
        A null keeps the default away from fields in which it means none.
        """
        found = [(name, value) for name in names if (value := self._stated(name)) is not None]
        if not found and any(name in NULL_IS_NONE and name in self.fields for name in names):
            return None
        if not found:
            return next((self.defaults[name] for name in names if name in self.defaults), None)
        name, value = next((pair for pair in found if pair[0] in self.own_names), found[0])
        for other, another in found:
            if another != value:
                said = f"{self.path}{other} is {_shown(another)}, but {name} is {_shown(value)}, which counts"
                self.disagreements.append(said)
        return value

    def says(self, *names: str) -> bool:
        """Whether the file or its family says anything under one of some names, which need not mean the same."""
        return any(self.value(name) is not None for name in names)

    def first(self, *names: str) -> str:
        """The first of some names, which need not mean the same, under which something is said; else the first."""
        return next((name for name in names if self.says(name)), names[0])

    def mark_read(self, *names: str) -> None:
        """Counts some names as read: what they say is said by another field."""
        self.read.update(names)

    def _stated(self, name: str) -> Any:
        head, _, rest = name.partition(".")
        if rest:
            section = self.section(head)
            return section._stated(rest) if section else None
        self.read.add(name)
        return self.fields.get(name)

    def section(self, name: str) -> Config | None:
        """An object in this one, or None where there is none."""
        self.read.add(name)
        fields = self.fields.get(name)
        if fields is None:
            return None
        if not isinstance(fields, dict):
            raise self.refusal(name, "is not an object {…}")
        if name not in self.sections:
            self.sections[name] = Config(self.file, fields, f"{self.path}{name}.")
        return self.sections[name]

    def size(self, *names: str) -> int:
        """A whole number of at least 1 under one of some names. Raises ScenarioError where there is none."""
        size = self.optional_size(*names)
        if size is None:
            raise self.refusal(names[0], "is missing")
        return size

    def optional_size(self, *names: str, least: int = 1) -> int | None:
        """A whole number of at least `least`, or None where there is none; of a list, the value all entries share."""
        value = self.value(*names)
        name = next((name for name in names if self._stated(name) is not None), names[0])
        if isinstance(value, list) and value and all(entry == value[0] for entry in value):
            value = value[0]
        return None if value is None else self.whole(name, value, least)

    def count(self, *names: str) -> int:
        """A whole number, 0 where there is none."""
        return self.optional_size(*names, least=0) or 0

    def whole(self, name: str, value: Any, least: int = 1) -> int:
        """A value as a whole number from `least` on. Raises ScenarioError, which names the field."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refusal(name, f"is {_shown(value)}, not a whole number")
        most = limit(name)
        if not least <= value <= most or value != int(value):
            raise self.refusal(name, f"is {_shown(value)}; a whole number from {least} to {most} would do")
        return int(value)

    def number(self, name: str) -> float | None:
        """A positive number, or None where there is none."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
            raise self.refusal(name, f"is {_shown(value)}, not a positive number")
        return float(value)

    def flag(self, *names: str) -> bool | None:
        """True or false, or None where neither is said."""
        value = self.value(*names)
        if value is None or isinstance(value, bool):
            return value
        raise self.refusal(names[0], f"is {_shown(value)}, neither true nor false")

    def word(self, *names: str) -> str:
        """A word, "" where there is none."""
        value = self.value(*names)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.refusal(names[0], f"is {_shown(value)}, not a word")
        return value

    def entries(self, name: str) -> list[Any] | None:
        """A list, or None where there is none."""
        value = self.value(name)
        if value is None or isinstance(value, list):
            return value
        raise self.refusal(name, f"is {_shown(value)}, not a list")

    def holds(self, condition: str | bool) -> bool:
        """Whether a condition on the fields holds: NAME, not NAME, NAME=VALUE, always, never, or else."""
        if isinstance(condition, bool) or condition in ("always", "else", "never"):
            return condition not in (False, "never")
        if condition.startswith("not "):
            return not self.holds(condition.removeprefix("not "))
        name, equals, wanted = condition.partition("=")
        return str(self.value(name)) == wanted if equals else bool(self.flag(name))

    def unread(self) -> Iterator[tuple[str, Any]]:
        """Paths and values of the fields that nobody asked for, those of objects that were looked into too."""
        for name, value in self.fields.items():
            if name not in self.read:
                yield self.path + name, value
        for name, section in self.sections.items():
            if name not in _OTHER_SUBJECTS:
                yield from section.unread()


def text_part(top: Config) -> Config:
    """The part of a file that describes the language model: an object of its own, or the file itself.

    A few things are said at the top for the whole model.
    """
    for path in TEXT_PARTS:
        part = top
        for name in path.split("."):
            inner = part.section(name)
            if inner is None:
                break
            part = inner
        else:
            own = {name: value for name, value in part.fields.items() if value is not None}
            shared = {name: top.fields[name] for name in FROM_THE_TOP if top.has(name)}
            head = {name: value for name, value in shared.items() if name == "tie_word_embeddings"}
            part.fields = {**part.fields, **shared, **own, **head}
            return part
    return top


def _shown(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value)[:60]
