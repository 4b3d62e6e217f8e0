"""Random legal training plans of every family of layers: layout, schedule, recomputation, formats and habits."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from tests.core.plans import WORDS, plan, with_all
from tests.core.test_kinds_time import FAMILIES, MIXED, spec
from triledger.core.catalogue import catalogue, table
from triledger.core.legality import legal
from triledger.core.model.spec import ModelSpec
from triledger.core.model.traits import traits
from triledger.core.scenario import Scenario

LOW = ("fp8", "mxfp8", "fp8-block", "fp8-row", "nvfp4")
MACHINES = ("a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm-180gb", "gb200-nvl72", "mi300x")


def _families() -> dict[str, ModelSpec]:
    """One model of the catalogue for each set of kinds of layers, and of each family that a published config holds."""
    found = {name: spec(name) for name in (*MIXED, *FAMILIES)}
    kinds = {frozenset[str](): ""}
    for name, each in catalogue().models.items():
        kinds.setdefault(traits(each), name)
    return found | {name: catalogue().models[name] for name in kinds.values() if name}


MODELS = _families()

#: Words of any plan; those of the model stay as it has them.
CHOICES: dict[str, tuple[Any, ...]] = {
    path: words for path, words in WORDS.items() if not path.startswith("model.")
} | {
    "training.precision": ("bf16", "bf16", "fp16", "fp32", *LOW),
    "training.state_precision": ("fp32", "fp32", "bf16"),
    "training.recompute": ("none", "selective", "latent-up", "selective-up", "op-level", "full"),
    "training.framework": tuple(table("frameworks")),
    "training.lora.kernels": ("eager", "fused"),
    "training.projections": ("fused", "separate"),
    "training.pointwise": ("fused", "eager"),
    "training.image_tokens": (0, 0, 1601),
    "training.offload_layers": (0, 0, 0, 1),
    "training.logit_bytes": (None, None, 0, 8),
    "parallelism.stage_balance": ("even", "slots", "by-time", "spread"),
    "parallelism.context_latent": (False, True),
    "parallelism.expert_dispatch": ("all-to-all", "all-gather", "deepep", "rack-domain"),
    "fp8.cache_weights": (False, True),
    "fp8.parameter_gather": (False, True),
    "moe.capture": ("none", "partial", "static", "full"),
    "moe.overlap": (False, True),
    "moe.dispatch_precision": ("bf16", "fp8"),
    "moe.imbalance": (1.0, 1.3),
    "overlap.parameter_gather": (False, True),
}


def random_layout(choose: Random) -> dict[str, float]:
    """Degrees, batch and sequence, legal or not."""
    tensor, context, data = choose.choice((1, 2, 4, 8)), choose.choice((1, 1, 2, 4)), choose.choice((1, 2, 4, 16))
    pipeline, chunks = choose.choice((1, 1, 2, 3, 4, 8)), choose.choice((1, 1, 2, 3))
    micro_batch, micro_batches = choose.choice((1, 2, 4)), choose.choice((1, 2, 5)) * (pipeline if chunks > 1 else 1)
    return {
        "parallelism.tp": tensor,
        "parallelism.pp": pipeline,
        "parallelism.cp": context,
        "parallelism.vpp": chunks,
        "parallelism.ep": choose.choice((1, 1, 2, 4, 8, 16)),
        "parallelism.etp": choose.choice((1, 1, tensor)),
        "parallelism.hsdp_replicas": choose.choice((1, 1, data)),
        "cluster.gpus": tensor * pipeline * context * data,
        "cluster.gpus_per_node": choose.choice((4, 8)),
        "training.micro_batch": micro_batch,
        "training.global_batch": micro_batch * micro_batches * data,
        "training.sequence_length": choose.choice((512, 4096, 32_768)),
        "cluster.network.bandwidth": choose.uniform(5e9, 2e11),
        "cluster.accelerator.memory": choose.uniform(2e10, 3e11),
    }


def random_base(choose: Random) -> Scenario:
    """Any model on any machine with any words."""
    scenario = plan(MODELS[choose.choice(list(MODELS))], choose.choice(MACHINES), "ib-ndr-400")
    return with_all(scenario, {path: choose.choice(words) for path, words in CHOICES.items()})


def legal_layouts(base: Scenario, choose: Random, count: int) -> list[dict[str, float]]:
    """Some layouts with which a plan is legal."""
    found: list[dict[str, float]] = []
    while len(found) < count:
        drawn = random_layout(choose)
        if not base.model.experts:
            drawn |= {"parallelism.ep": 1, "parallelism.etp": 1}
        if legal(with_all(base, drawn)):
            found.append(drawn)
    return found


def random_trained(choose: Random) -> Scenario:
    """A legal plan."""
    base = random_base(choose)
    return with_all(base, legal_layouts(base, choose, 1)[0])


def together(base: Scenario, layouts: list[dict[str, float]]) -> Scenario:
    """Several layouts of a plan as arrays."""
    return with_all(base, {path: np.array([float(each[path]) for each in layouts]) for path in layouts[0]})
