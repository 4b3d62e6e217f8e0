"""What requests of a serving plan see: times, rates, money, tails and drafts. They need a request that fits."""

from __future__ import annotations

from typing import Any

from ..ledgers.serving_memory import all_sequences
from ..model.kinds.mixer import present
from ..numeric import is_array
from ..training import days
from . import bounds, pools, speculative, steady
from .bands import request_bands
from .chunks import chunk_values
from .cost import cost_values, price_band
from .goodput import tail_values
from .plan import Plan

#: What has no end where requests come faster than they are answered.
ENDLESS = (
    "serving.ttft_s",
    "serving.over_ttft_target",
    "serving.place_wait_s",
    "serving.ttft_low_s",
    "serving.ttft_high_s",
    "serving.p99_ttft_s",
)


def request_values(plan: Plan, values: dict[str, Any]) -> dict[str, Any]:
    """The keys of requests, from the plan and what is known of it already."""
    state, serving, gpus = plan.steady, plan.mean.serving, plan.scenario.cluster.gpus
    output, rate = serving.output_tokens, days.throughput(values["compute.tokens_per_step"], state.step)
    found = {
        "time.tokens_per_s": rate,
        "time.tokens_per_s_per_gpu": days.throughput_per_gpu(rate, gpus),
        "serving.ttft_s": state.ttft,
        "serving.running": all_sequences(state.running, plan.decoding),
        "serving.decode_step_s": state.step,
        "serving.over_ttft_target": bounds.over_target(state.ttft, serving.ttft_target),
        "serving.saturated": bounds.saturated(serving.request_rate, state.requests),
        "serving.place_wait_s": state.place_wait,
        "serving.prompt_queue_s": state.queue,
        "serving.requests_per_s": state.requests,
        **_speculative(plan),
        **_first_token_parts(plan),
    }
    if present(output):
        found["serving.output_tokens_per_s"] = state.output
        found |= cost_values(plan.mean, state, plan.memory.replicas)
    # a single token has no other before it
    if is_array(output) or output > 1:
        found |= {
            "serving.tpot_s": state.tpot,
            "serving.over_tpot_target": bounds.over_target(state.tpot, serving.tpot_target),
            "serving.token_step_s": state.token,
            "serving.prefill_share": bounds.prefill_share(state.token, state.tpot),
        }
    found |= request_bands(plan.scenario, plan.settings.device, values | found)
    if "cost.usd_per_hour" in found:
        found |= price_band(found)
    return found | _pools(plan)


def later_values(plan: Plan) -> dict[str, Any]:
    """The keys that take as long as all the others: tails, goodput, and the recommended chunk."""
    return tail_values(plan) | chunk_values(plan)


def _pools(plan: Plan) -> dict[str, Any]:
    """Engines of each kind, the cache that moves between them, and what the same engines would do together."""
    found = plan.pools
    if found is None:
        return {}
    values = {
        "serving.prefill_engines": found.prefill,
        "serving.decode_engines": found.decode,
        "serving.prefill_engines_needed": found.prefill_needed,
        "serving.decode_engines_needed": found.decode_needed,
        "serving.kv_transfer_s": found.transfer,
        "serving.kv_transfer_exposed_s": found.exposed,
        "serving.tpot_over_together": pools.over_together(plan.steady.tpot, found.together.tpot),
        "serving.requests_over_together": pools.over_together(plan.steady.requests, found.together.requests),
    }
    rate = plan.scenario.serving.request_rate
    return values if present(rate) else {key: v for key, v in values.items() if "needed" not in key}


def _first_token_parts(plan: Plan) -> dict[str, Any]:
    """What a time to first token is made of, beside the waits for a place and behind prompts."""
    state, engine = plan.steady, plan.settings.engine
    return {
        "serving.prompt_alone_s": state.prompt_alone,
        "serving.prompt_beside_s": steady.beside_seconds(state.in_prompt, state.prompt_alone),
        "serving.iteration_wait_s": state.wait,
        "serving.interface_s": steady.interface_seconds(engine.t_request, engine.t_api),
        "serving.step_lag_s": steady.lag_seconds(engine.lag, state.tpot),
    }


def _speculative(plan: Plan) -> dict[str, Any]:
    """Tokens a cycle, gain, and the batch from which there is none; that is absent where there always is one."""
    drafting, own = plan.steady.drafting, plan.scenario.serving.speculative
    if drafting is None:
        tokens = speculative.tokens_per_cycle(own.acceptance, own.draft_tokens)
        gain, crossover = speculative.speedup(tokens, own.draft_tokens, own.draft_cost, 1.0), None
    else:
        tokens, gain = drafting.tokens, plan.steady.gain
        crossover = drafting.crossover(plan.steady.context)
    values = {"serving.speculative_tokens_per_cycle": tokens, "serving.speculative_speedup": gain}
    return values if crossover is None else values | {"serving.speculative_crossover_batch": crossover}
