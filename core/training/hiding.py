"""Hiding points: how much work a GPU needs for its communication to disappear behind compute.

Closed forms derived from the rates: dense matrices need 2 FLOPs a parameter and token forward and 4 backward, so the
point depends on tokens and machine balance only, not on the size of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ..machine.collectives import fabric_bandwidth
from ..machine.device import Machine
from ..model.layers import Block, Model
from ..model.parameters import layers_parameters
from ..numeric import Number, maximum
from ..scenario import Scenario
from ..sums import add_parameters, add_times, times_count
from ..terms import formula
from .block import mean_of_blocks
from .layout import Layout

_Sum = Callable[[Number, Number], Number]


@formula("T*", "tokens", "gradients hide behind backward when tokens a rank ≥ w_g·Π·η/(2·W)·(D−1)/D; derived")
def hiding_point_gradients(width: Number, rate: Number, bandwidth: Number, ranks: Number) -> Number:
    """Tokens of a rank in a step above which the gradient reduction hides behind the backward pass."""
    return width * rate / (2 * bandwidth) * (ranks - 1) / ranks


@formula("T*", "tokens", "forward w_w·Π·η/(2·W); backward (w_w + w_g)·Π·η/(k·W), k = 4, 6 with full recompute; derived")
def hiding_point_sharded(
    weight_width: Number, gradient_width: Number, rate: Number, bandwidth: Number, backward_products: Number
) -> Number:
    """Tokens of a rank in a micro-batch above which ZeRO-3 traffic hides, forward and backward."""
    return maximum(
        weight_width * rate / (2 * bandwidth), (weight_width + gradient_width) * rate / (backward_products * bandwidth)
    )


@formula("s*/c", "tokens", "ring step behind causal attention on the chunk before: s/c ≥ 2·(g/a)·Π·η/W; derived")
def hiding_point_context(kv_heads: Number, heads: Number, rate: Number, bandwidth: Number) -> Number:
    """Tokens of a context parallel rank above which the ring of keys and values hides behind attention."""
    return 2 * kv_heads / heads * rate / bandwidth


@formula("t_comm/t_gemm", "ratio", "4·(t−1)·h·Π·η/(P_blk·W), 16-bit activations; derived")
def tensor_parallel_share(
    tensor: Number, hidden: Number, rate: Number, block_matrices: Number, bandwidth: Number, norms: Number
) -> Number:
    """Tensor parallel traffic of a forward pass over its matrix products when nothing hides it."""
    return 2 * norms * (tensor - 1) * hidden * rate / (block_matrices * bandwidth)


@formula("T*·N/N_act", "tokens", "traffic goes with all parameters, compute with those that a token meets; derived")
def with_idle_experts(tokens: Number, parameters: Number, met: Number) -> Number:
    """A hiding point of a model with routed experts, from that of dense matrices."""
    return tokens * parameters / met


@formula("f_e*", "elements", "w·Π·η·(e−1)/e/(6·W), gated experts, whatever k and h are; derived")
def hiding_point_experts(width: Number, rate: Number, ranks: Number, bandwidth: Number) -> Number:
    """Inner width of an expert above which the exchange of its tokens takes less than its products."""
    return width * rate * (ranks - 1) / ranks / (6 * bandwidth)


def hiding_points(
    scenario: Scenario, model: Model, layout: Layout, machine: Machine, gathered_width: Number
) -> dict[str, Any]:
    """The hiding points of a plan by result key; those of what a model does not have are left out."""
    fabric = layout.fabric
    rate = machine.rate

    def bandwidth(group: Any) -> Number:
        return fabric_bandwidth(group, fabric)

    data = bandwidth(layout.data_group)
    products = {"full": 6, "op-level": 5}.get(scenario.training.recompute, 4)
    gradients = hiding_point_gradients(machine.gradient_bytes, rate, data, layout.data_group.ranks)
    sharded = hiding_point_sharded(gathered_width, machine.gradient_bytes, rate, data, products)
    points: dict[str, Any] = {}
    if any(block.experts for _, block in model.groups):
        gradients, sharded = (
            with_idle_experts(each, model.parameters, model.met_parameters) for each in (gradients, sharded)
        )
        points["hiding.expert_size"] = hiding_point_experts(2.0, rate, layout.expert, bandwidth(layout.expert_group))
    points |= {
        "hiding.gradients_tokens_per_gpu": gradients,
        "hiding.zero3_tokens_per_micro_batch": sharded,
        "hiding.tensor_parallel_share": tensor_parallel_share(
            layout.tensor,
            model.hidden,
            rate,
            _mean(model, lambda block: block.matrix_parameters(), layers_parameters, add_parameters),
            bandwidth(layout.tensor_group),
            _mean(model, lambda block: float(block.joins), times_count, add_times),
        ),
    }
    heads = next(filter(None, (block.mixer.heads_on(1.0) for _, block in model.groups)), None)
    if heads:
        points["hiding.context_tokens_per_gpu"] = hiding_point_context(
            heads.keys, heads.queries, rate, bandwidth(layout.context_group)
        )
    return points


def _mean(model: Model, of: Callable[[Block], Number], times: _Sum, add: _Sum) -> Number:
    """Something that each block has, mean over the layers of a model."""
    if len(model.groups) == 1:
        return of(model.block)
    return mean_of_blocks(reduce(add, [times(layers, of(block)) for layers, block in model.groups]), model.layers)
