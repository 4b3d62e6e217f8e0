"""A row of a serving table as a plan: model, device and engine by the table of sources, the layout by columns."""

from __future__ import annotations

from typing import Any

from ..model.spec import ModelSpec
from ..scenario import Scenario
from .comparison import NotExpressibleError
from .plans import plan_of
from .rows import Row
from .sources import Settings


def serving_plan(settings: Settings) -> Scenario:
    """The serving plan of a row whose settings are known. Raises NotExpressibleError where model or device is not."""
    return plan_of(settings, "serving", _model, _layout)


def _model(row: Row) -> ModelSpec:
    """A GPT model of the sizes in the row's cells."""
    if not row["layers"]:
        raise NotExpressibleError(f"no model of the catalogue is meant by {row['model']!r}")
    hidden, heads = row.positive("hidden"), row.positive("heads")
    return ModelSpec(
        id=row.id,
        name=row["model"],
        layers=row.positive("layers"),
        hidden_size=hidden,
        heads=heads,
        kv_heads=heads,
        ffn_size=4 * hidden,
        vocabulary=row.positive("vocab"),
        gated=False,
        norm="layer",
        tied=True,
        positions=2048,
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
    )


def _layout(row: Row) -> dict[str, Any]:
    tp, pp = (row.positive(name) if row[name] else 1.0 for name in ("tp", "pp"))
    engines = max(1.0, row.number("num_gpus", 1.0) // (tp * pp))
    return {"parallelism.tp": tp, "parallelism.pp": pp, "cluster.gpus": engines * tp * pp}
