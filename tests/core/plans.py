"""Builders of the plans that several tests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from triledger.core.catalogue import catalogue
from triledger.core.machine.device import machine_of
from triledger.core.machine.rates import rates
from triledger.core.model.layers import build
from triledger.core.model.spec import ModelSpec
from triledger.core.scenario import Cluster, Scenario
from triledger.core.training.block import BlockTime, BlockTimer
from triledger.core.training.layout import layout_of


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
    usual: dict[str, Any] = {
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
    usual: dict[str, Any] = {
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


def block_time(scenario: Scenario) -> BlockTime:
    """Seconds of one block of a plan for one micro-batch."""
    return kind_time(scenario, 0)


def kind_time(scenario: Scenario, group: int) -> BlockTime:
    """The same of a block of one group of equal layers."""
    constants = rates(scenario)
    layout, device = layout_of(scenario, constants), machine_of(scenario, constants)
    return BlockTimer(build(scenario.model).groups[group][1], layout, device, scenario).time()


# ---------------------------------------------------------------- random legal plans

WORDS: dict[str, tuple[Any, ...]] = {
    "parallelism.zero": (0, 1, 2, 3),
    "parallelism.sp": (False, True),
    "parallelism.schedule": ("1f1b", "interleaved", "gpipe", "zero-bubble", "zero-bubble-v", "dualpipe"),
    "parallelism.context_scheme": ("ring", "all-gather", "ulysses"),
    "parallelism.stage_balance": ("even", "slots", "by-time"),
    "training.recompute": ("none", "selective", "full"),
    "training.attention": ("flash", "unfused"),
    "training.framework": ("megatron", "megatron-2022", "torchtitan", "hf-trainer", "litgpt"),
    "training.precision": ("bf16", "fp16", "fp32", "fp8"),
    "training.gradient_precision": ("bf16", "fp32"),
    "training.optimizer": ("adamw", "adamw-8bit", "adafactor", "muon", "sgd"),
    "training.finetune": ("full", "full", "lora", "qlora"),
    "training.lora.targets": ("q-v", "attention", "all-and-head"),
    "training.offload_optimizer": (False, False, True),
    "training.residual_precision": ("bf16", "bf16", "fp32"),
    "training.fused_optimizer": (False, True),
    "training.fused_gradient_accumulation": (False, True),
    "training.dropout": (False, True),
    "pipeline.async_transfer": ("auto", "never", "always"),
    "overlap.dp": (False, True),
    "overlap.tp_forward": (False, True),
    "overlap.tp_backward": (False, True),
    "model.gated": (False, True),
    "model.tied": (False, True),
    "model.qk_norm": (False, True),
    "model.parallel_block": (False, True),
}
MACHINES = ("a100-sxm-80gb", "h100-sxm-80gb", "gb200-nvl72", "mi300x")


def random_words(choose: Random) -> dict[str, Any]:
    """Words of a training plan: schedules, precisions, switches."""
    return {path: choose.choice(values) for path, values in WORDS.items()}


def random_numbers(choose: Random, schedule: str) -> dict[str, float]:
    """Numbers of one legal plan with 64 query heads."""
    tensor, context, data = choose.choice((1, 2, 4, 8)), choose.choice((1, 2, 4)), choose.choice((1, 2, 8, 16))
    pipeline = choose.choice((2, 4, 8) if schedule == "dualpipe" else (1, 2, 3, 4, 8))
    chunks = choose.choice((1, 2, 3)) if pipeline > 1 and schedule in ("1f1b", "interleaved") else 1
    on_rank = 2 if schedule == "zero-bubble-v" and pipeline > 1 else chunks
    micro_batch, micro_batches = choose.choice((1, 2, 4)), choose.choice((1, 2, 5)) * (pipeline if chunks > 1 else 1)
    return {
        "parallelism.tp": tensor,
        "parallelism.pp": pipeline,
        "parallelism.cp": context,
        "parallelism.vpp": chunks,
        "parallelism.hsdp_replicas": choose.choice((1, data)),
        "cluster.gpus": tensor * pipeline * context * data,
        "cluster.gpus_per_node": choose.choice((4, 8)),
        "training.micro_batch": micro_batch,
        "training.global_batch": micro_batch * micro_batches * data,
        "training.sequence_length": choose.choice((512, 1024, 8192, 65536)),
        "training.tokens": choose.uniform(1e9, 1e13),
        "model.layers": choose.randint(pipeline * on_rank, 100),
        "model.hidden_size": 64 * choose.choice((24, 64, 90, 128)),
        "model.kv_heads": choose.choice((4, 8, 16, 64)),
        "model.ffn_size": 256 * choose.randint(8, 128),
        "model.vocabulary": choose.randint(1000, 200_000),
        "cluster.network.bandwidth": choose.uniform(1e9, 2e11),
        "cluster.accelerator.link.bandwidth": choose.uniform(1e10, 1e12),
        "cluster.accelerator.memory_bandwidth": choose.uniform(5e11, 1e13),
        "cluster.accelerator.memory": choose.uniform(2e10, 3e11),
        "economics.gpu_price": choose.uniform(0, 10),
        "economics.grid_intensity": choose.uniform(0, 1),
        "reliability.node_failures_per_1000_days": choose.choice((0.0, 3.8, 50.0)),
        "reliability.checkpoint_seconds": choose.choice((0.0, 10.0, 300.0)),
        "measured.step_time": choose.uniform(0.1, 100),
        "whiteboard.parameters": choose.uniform(1e9, 1e12),
        "assumptions.e_gemm": choose.uniform(0.3, 0.9),
    }
