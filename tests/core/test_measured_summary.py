"""The accuracy in a few lines."""

from __future__ import annotations

from pathlib import Path

from triledger.core.measured.errors import errors_text, read_errors, shipped_errors
from triledger.core.measured.summary import claims, markdown, summary
from triledger.core.measured.validation import Validation


def test_groups_share_the_figures_without_counting_one_twice() -> None:
    rows = shipped_errors()
    groups = dict(summary(rows))
    assert sum(found.count for found in groups.values()) <= len(rows)
    runs = sum(found.count for name, found in groups.items() if name.startswith("step time"))
    assert runs == len([row for row in rows if row.kind == "training"]), "every training run is in a group"


def test_the_table_is_that_of_the_errors(shipped: Validation) -> None:
    rows = read_errors(errors_text(row for row in shipped.comparisons if row.source == "kor"))
    lines = list(markdown(rows))
    assert len(lines) == 3
    assert lines[2].startswith("| step time, dense: Megatron-LM on A100")
    assert "| 4 | 2." in lines[2]


def test_the_readme_says_what_the_rows_say(shipped: Validation) -> None:
    """Where this fails: `triledger validate --format markdown` prints what is true."""
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    said = [" ".join(claim.split()) for claim in claims(shipped)]
    assert [claim for claim in said if claim.lower() not in readme.lower()] == []
