"""Builders of the plans that several tests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from triledger.core.catalogue import catalogue
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Cluster, Scenario


def with_all(scenario: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """A copy with the values at some paths changed."""
    for path, value in changes.items():
        scenario = scenario.with_(path, value)
    return scenario


def plan(
    model: str | ModelSpec, accelerator: str = "a100-sxm-80gb", network: str = "ib-hdr-200", **changes: Any
) -> Scenario:
    """A training plan; keyword `parallelism__tp=2` sets the path `parallelism.tp`."""
    known = catalogue()
    spec = known.models[model] if isinstance(model, str) else model
    cluster = Cluster(known.accelerators[accelerator], known.networks[network])
    return with_all(Scenario(spec, cluster), {path.replace("__", "."): value for path, value in changes.items()})


def gpt(layers: int, hidden: int, heads: int, vocabulary: int = 51200, positions: int = 2048) -> ModelSpec:
    """A GPT-2/3 model: plain FFN of four times the width, LayerNorm, biases, tied embedding, learned positions."""
    return replace(
        catalogue().models["gpt-3-175b"],
        id="gpt",
        name="GPT",
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=heads,
        ffn_size=4 * hidden,
        vocabulary=vocabulary,
        positions=positions,
    )


def seed_7b(**changes: Any) -> Scenario:
    """Llama-2-7B on one server of 8 A100-80GB: ZeRO-2, 16-bit gradients, the label 7e9 on the whiteboard."""
    usual = {
        "cluster__gpus": 8,
        "parallelism__zero": 2,
        "training__gradient_precision": "bf16",
        "training__sequence_length": 4096,
        "training__global_batch": 256,
        "whiteboard__parameters": 7e9,
    }
    return plan("llama-2-7b", **(usual | changes))


def megatron_2021(model: ModelSpec, **changes: Any) -> Scenario:
    """Megatron-LM as measured in 2021 and 2022 on DGX A100 (arXiv 2104.04473, 2205.05198).

    fp16, unfused attention with dropout, optimizer unfused and whole on every rank, transfers that a stage waits for.
    """
    usual = {
        "training__precision": "fp16",
        "training__attention": "unfused",
        "training__dropout": True,
        "training__framework": "megatron-2022",
        "training__fused_optimizer": False,
        "training__sequence_length": 2048,
        "parallelism__zero": 0,
        "pipeline__async_transfer": "never",
    }
    return plan(model, **(usual | changes))
