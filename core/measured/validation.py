"""Rows of measurements against the engine's predictions, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .comparison import Case, Comparison, NotExpressibleError, Skipped, Verdict
from .kv_rows import compare_kv
from .memory_rows import compare_memory
from .rows import Row, Table
from .serving_rows import serving_case
from .sources import source_of
from .training_rows import training_case

Result = Comparison | Verdict


@dataclass(frozen=True)
class Validation:
    """What came of some tables: rows compared, whether runs fit, and rows that were not compared."""

    comparisons: tuple[Comparison, ...]
    verdicts: tuple[Verdict, ...]
    skipped: tuple[Skipped, ...]


def validate(tables: list[Table]) -> Validation:
    """Compares every row of some tables. Raises ScenarioError for a cell that is not what its column holds."""
    comparisons, verdicts, skipped = [], [], []
    for table in tables:
        for row in table.rows:
            try:
                for result in COMPARE[table.kind](row):
                    (comparisons if isinstance(result, Comparison) else verdicts).append(result)
            except NotExpressibleError as reason:
                skipped.append(Skipped(row.id, table.kind, source_of(table.kind, row), str(reason)))
    return Validation(tuple(comparisons), tuple(verdicts), tuple(skipped))


def _of_case(case_of: Callable[[Row], Case], kind: str) -> Callable[[Row], Iterator[Result]]:
    def compare(row: Row) -> Iterator[Result]:
        case = case_of(row)
        predicted = float(case.predict(case.scenario))
        told = (case.metric, case.unit, case.measured, predicted)
        yield Comparison(row.id, kind, case.source, *told, case.scenario, flagged=row.flagged)

    return compare


#: Kinds whose rows stand for one plan and one number of it.
CASES: dict[str, Callable[[Row], Case]] = {"training": training_case, "serving": serving_case}

COMPARE: dict[str, Callable[[Row], Iterator[Result]]] = {
    **{kind: _of_case(case_of, kind) for kind, case_of in CASES.items()},
    "memory": compare_memory,
    "vllm_kv": compare_kv,
}
