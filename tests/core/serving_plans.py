"""Builders of serving plans."""

from __future__ import annotations

from typing import Any

from tests.core.plans import with_all
from triledger.core.catalogue import catalogue
from triledger.core.ledgers.serving_memory import ServingMemory, serving_memory
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Cluster, Scenario
from triledger.core.scenario_model import model_of
from triledger.core.serving import kernels
from triledger.core.serving.iteration import Iteration, Pass
from triledger.core.serving.settings import settings_of

GIB = 2.0**30


def serving(
    model: str | ModelSpec, accelerator: str = "h100-sxm-80gb", tp: float = 1, pp: float = 1, **changes: Any
) -> Scenario:
    """A serving plan on as many GPUs as it needs; `concurrency=8` sets `serving.concurrency`, `a__b=1` the path a.b."""
    known = catalogue()
    spec = known.models[model] if isinstance(model, str) else model
    cluster = Cluster(known.accelerators[accelerator], known.networks["ib-ndr-400"], tp * pp)
    paths = {name.replace("__", ".") if "__" in name else f"serving.{name}": v for name, v in changes.items()}
    return with_all(Scenario(spec, cluster, kind="serving"), {"parallelism.tp": tp, "parallelism.pp": pp, **paths})


def memory(scenario: Scenario) -> ServingMemory:
    return serving_memory(scenario, model_of(scenario), settings_of(scenario))


def passes(scenario: Scenario) -> Pass:
    return Pass(scenario, model_of(scenario), settings_of(scenario))


def prefill(timer: Pass, prompts: float, tokens: float) -> Iteration:
    """Whole prompts in one iteration of their own."""
    return timer.prefill(prompts, tokens, kernels.chunk_pairs(tokens, 0.0), tokens)
