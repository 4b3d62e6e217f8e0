"""What is said of a file or an entry that cannot be used: one line that names the place and what would do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: Longer messages are cut: what is wrong may be a key of a million letters.
MAX_LENGTH = 500


class ScenarioError(ValueError):
    """An unusable file or entry. `str` is one line, `FILE:LINE: field: message`, without the parts that are unknown."""

    def __init__(self, file: str, line: int, field: str, message: str) -> None:
        super().__init__(file, line, field, message)
        self.file, self.line, self.field, self.message = file, line, field, message

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        line = " ".join(": ".join(part for part in (place, self.field, self.message) if part).split())
        return "".join(c if c.isprintable() else "�" for c in line[:MAX_LENGTH])


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant, or None where none is alike."""
    by_folded = {candidate.casefold(): candidate for candidate in words}
    found = get_close_matches(word.casefold(), by_folded, 1, 0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """The end of a message on an unknown word: the one that was probably meant, or the first few that exist."""
    words = list(words)
    meant = nearest(word, words)
    if meant:
        return f"did you mean {meant}?"
    return "known: " + ", ".join(words[:12]) + (" …" if len(words) > 12 else "")


class OutputError(ValueError):
    """A file that cannot be written, or a chart that does not exist; `str` is one line."""
