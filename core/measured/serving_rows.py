"""A row of a serving table as a plan, and its metric from one decode step, a static batch or a simulated benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..numeric import Number
from ..scenario import Scenario
from ..scenario_model import model_of
from ..serving.goodput import tail_values
from ..serving.iteration import Pass
from ..serving.plan import plan_of
from ..serving.settings import settings_of as constants_of
from ..serving.simulation import ROUNDS, Benchmark, benchmark
from ..serving.static import prompt_seconds, static_batch, step_seconds
from .comparison import Case, NotExpressibleError
from .plans import within_range
from .reported import MILLISECONDS, TOKENS, TOKENS_EACH, Quantity
from .rows import Row
from .serving_plan import serving_plan
from .sources import settings_of

#: Clients that keep an engine saturated.
_SATURATED = 100_000.0


@dataclass(frozen=True)
class Request:
    """What a row asks of the engine: sequences together, and tokens of prompts and outputs.

    A benchmark sends a number of requests to each engine, or so many rounds of what it runs together.
    """

    batch: float
    prompt: float
    output: float
    gpus: float
    requests: float
    rounds: float

    @staticmethod
    def of(row: Row) -> Request:
        asked = _number(row, "batch_or_concurrency")
        return Request(
            within_range(row, "serving.concurrency", asked) if asked else _SATURATED,
            within_range(row, "serving.prompt_tokens", max(1.0, _number(row, "input_len"))),
            within_range(row, "serving.output_tokens", row.number("output_len", 0.0)),
            row.number("num_gpus", 1.0),
            row.number("requests", 0.0),
            row.number("rounds", ROUNDS),
        )


def serving_case(row: Row) -> Case:
    """A serving run and its metric. Raises NotExpressibleError with the reason where there is none."""
    settings = settings_of("serving", row)
    row = settings.row
    schedule = row["schedule"]
    predict = SCHEDULES.get(schedule, {}).get(row["metric"])
    if predict is None:
        raise NotExpressibleError(_not_predicted(row["metric"], schedule))
    request = Request.of(row)
    scenario = _asked(serving_plan(settings), request)
    name, unit, quantity = METRICS[row["metric"]]
    measured = quantity.read(row, "value")
    return Case(scenario, lambda plan: predict(plan, request), settings.source, name, unit, measured)


def _not_predicted(metric: str, schedule: str) -> str:
    """Why a metric is not predicted, with the metrics or the schedules that are."""
    if schedule in SCHEDULES:
        return f"{metric} is not predicted of a {schedule}, but {', '.join(SCHEDULES[schedule])}"
    if metric not in METRICS:
        return f"{metric} is not predicted, but {', '.join(METRICS)}"
    schedules = [name for name, metrics in SCHEDULES.items() if metric in metrics]
    return f"{metric} is predicted where schedule is {' or '.join(schedules)}"


def _asked(scenario: Scenario, request: Request) -> Scenario:
    """The plan with the requests of a row."""
    work = {"concurrency": request.batch, "prompt_tokens": request.prompt, "output_tokens": request.output}
    for name, value in {**work, "max_context": request.prompt + request.output}.items():
        scenario = scenario.with_(f"serving.{name}", value)
    return scenario


def _number(row: Row, column: str) -> float:
    if not row[column]:
        raise NotExpressibleError(f"{column} is not stated")
    try:
        return float(row[column])
    except ValueError:
        raise NotExpressibleError(f"{column} is {row[column]!r}, not one number") from None


def _passes(scenario: Scenario) -> Pass:
    return Pass(scenario, model_of(scenario), constants_of(scenario))


# ---------------------------------------------------------------- one step, one batch

Predict = Callable[[Scenario, Request], Number]


def _decode_rate(scenario: Scenario, request: Request) -> Number:
    """Tokens a second that each sequence of a batch gets."""
    return 1 / step_seconds(_passes(scenario), request.batch, request.prompt, request.output)


def _step(scenario: Scenario, request: Request) -> Number:
    return step_seconds(_passes(scenario), request.batch, request.prompt, request.output)


def _prompts(scenario: Scenario, request: Request) -> Number:
    return prompt_seconds(_passes(scenario), request.batch, request.prompt)


def _latency(scenario: Scenario, request: Request) -> Number:
    return static_batch(_passes(scenario), request.batch, request.prompt, request.output)


def _batch_rate_per_gpu(scenario: Scenario, request: Request) -> Number:
    return request.batch * request.output / _latency(scenario, request) / request.gpus


# ---------------------------------------------------------------- a benchmark


def _benchmark(pick: Callable[[Benchmark], Number], per_gpu: bool = False) -> Predict:
    def predict(scenario: Scenario, request: Request) -> Number:
        if request.output < 1:
            raise NotExpressibleError("no output tokens are stated")
        plan = plan_of(scenario, model_of(scenario))
        each = request.requests / scenario.serving.attention_dp
        value = pick(benchmark(plan, each, request.rounds))
        return value / request.gpus if per_gpu else value

    return predict


def _ttft(run: Benchmark) -> Number:
    return run.ttft.mean


def _tpot(run: Benchmark) -> Number:
    if run.tpot is None:
        raise NotExpressibleError("an output of one token has no time per token")
    return run.tpot.mean


def _output(run: Benchmark) -> Number:
    return run.output


def _within_targets(scenario: Scenario, request: Request) -> Number:
    """Output at the largest rate of random arrivals within the targets, as its share of what saturates the engines."""
    tails = tail_values(plan_of(scenario, model_of(scenario)))
    share = tails["serving.goodput_requests_per_s"] / tails["serving.most_requests_per_s"]
    return share * _benchmark(_output)(scenario, request)


#: How a metric is predicted, by the schedule that the table of sources names.
SCHEDULES: dict[str, dict[str, Predict]] = {
    "decode step": {"decode_tokens_per_s_per_user": _decode_rate},
    "static batch": {
        "request_latency": _latency,
        "output_throughput_per_gpu": _batch_rate_per_gpu,
        "ttft": _prompts,
        "prefill_latency": _prompts,
        "tpot": _step,
    },
    "closed loop": {"ttft_mean": _benchmark(_ttft), "tpot_mean": _benchmark(_tpot)},
    "saturated engine": {
        "output_throughput_total": _benchmark(_output),
        "output_throughput_total_offline": _benchmark(_output),
        "output_throughput_total_server": _within_targets,
        "output_throughput_per_gpu": _benchmark(_output, per_gpu=True),
    },
}

#: Metric -> its name, its unit, and what its value may be in.
METRICS: dict[str, tuple[str, str, Quantity]] = {
    "decode_tokens_per_s_per_user": ("decode rate", "tokens/s", TOKENS),
    "request_latency": ("request latency", "s", MILLISECONDS),
    "prefill_latency": ("prompt latency", "s", MILLISECONDS),
    "tpot": ("time per token", "s", MILLISECONDS),
    "ttft": ("time to first token", "s", MILLISECONDS),
    "ttft_mean": ("mean time to first token", "s", MILLISECONDS),
    "tpot_mean": ("mean time per token", "s", MILLISECONDS),
    "output_throughput_per_gpu": ("output per GPU", "tokens/s", TOKENS_EACH),
    "output_throughput_total": ("output", "tokens/s", TOKENS),
    "output_throughput_total_offline": ("output", "tokens/s", TOKENS),
    "output_throughput_total_server": ("output within latency limits", "tokens/s", TOKENS),
}
