"""Rows of measurements against the engine's predictions, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..engine import evaluate
from .comparison import Comparison, NotExpressibleError, Skipped, Verdict
from .kv_rows import compare_kv
from .memory_rows import compare_memory
from .rows import Row, Table
from .serving_rows import compare_serving
from .sources import source_of
from .training_rows import check_metric, measured_step, training_plan

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


def _training(row: Row) -> Iterator[Result]:
    check_metric(row)
    scenario, settings = training_plan(row)
    report = evaluate(scenario)
    predicted, measured = float(report["time.step_s"]), measured_step(settings.row, report)
    yield Comparison(row.id, "training", settings.source, "step time", "s", measured, predicted, row.flagged)


COMPARE: dict[str, Callable[[Row], Iterator[Result]]] = {
    "training": _training,
    "memory": compare_memory,
    "serving": compare_serving,
    "vllm_kv": compare_kv,
}
