"""What a person's own table of runs must say, in words, from what the readers of its rows ask for."""

from __future__ import annotations

from collections.abc import Mapping

from .reported import Quantity
from .rows import KINDS
from .serving_rows import METRICS, SCHEDULES
from .training_rows import NEEDED, SIZES, STEP_SECONDS

_TIMED = """\
A table of own runs holds one run a row below a line of column names; blank cells are not stated.

training runs
  needed        {training}
  model         an id of `triledger list models`, or {sizes}
  metrics       of reported_metric:
{training_metrics}
  layout        dp or tp; pp, cp, vpp, ep, etp, replicas (1 where blank)

serving runs
  needed        {serving}, batch_or_concurrency, output_len, schedule
  model         an id of `triledger list models`
  metrics       of metric, by schedule:
{serving_metrics}
  layout        num_gpus, tp, pp (1 where blank)

`triledger validate` also reads
  memory        {memory}
  vLLM starts   {vllm_kv}

gpu is an id of `triledger list accelerators`. The unit column may say another unit than the one named here. Any field
of a plan is a column too, such as cluster.network, parallelism.zero, training.recompute or serving.engine."""


def own_runs() -> str:
    """The columns and metrics of tables of own runs, for the help of the commands that read them."""
    training = {name: quantity for name, (quantity, _) in STEP_SECONDS.items()}
    serving = {name: quantity for name, (_, _, quantity) in METRICS.items()}
    schedules = (
        line
        for schedule, metrics in SCHEDULES.items()
        for line in (f"    {schedule}", *_lines({name: serving[name] for name in metrics}, 6))
    )
    return _TIMED.format(
        training=", ".join(dict.fromkeys((*KINDS["training"], *NEEDED))),
        sizes=", ".join(SIZES),
        training_metrics="\n".join(_lines(training, 4)),
        serving=", ".join(KINDS["serving"]),
        memory=", ".join((*KINDS["memory"], *NEEDED[1:], "unit")),
        vllm_kv=", ".join(KINDS["vllm_kv"]),
        serving_metrics="\n".join(schedules),
    )


def _lines(metrics: Mapping[str, Quantity], indent: int) -> list[str]:
    width = max(map(len, metrics)) + 2
    return [f"{'':{indent}}{name:<{width}}{quantity.written}" for name, quantity in metrics.items()]
