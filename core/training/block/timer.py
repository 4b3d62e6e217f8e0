"""Time of one block for one micro-batch on one rank, forward and backward, kernel by kernel.

Left out: host launch gaps of dense kernels, residency in the second-level cache.
"""

from __future__ import annotations

from dataclasses import replace

from ...machine.device import Machine
from ...model.layers import Block
from ...numeric import Number
from ...scenario import Scenario
from ...sums import add_seconds, total_seconds
from ..layout import Layout
from ..overlap import half
from .adapted import with_adapter_kernels
from .cores import cores
from .exchange import context_sent, tensor_pairs, with_context_traffic, with_tensor_traffic
from .experts import RoutedWork
from .matrices import matrices
from .offload import with_host_traffic
from .passes import BlockTime, Pass, Product
from .pointwise import pointwise
from .work import Work


class BlockTimer:
    """Times one block of a plan."""

    def __init__(self, block: Block, layout: Layout, machine: Machine, scenario: Scenario) -> None:
        self.work = Work(block, layout, machine, scenario)

    def time(self) -> BlockTime:
        """Forward, backward and recomputation of the block."""
        work, experts = self.work, self.work.block.experts
        routed = RoutedWork(work, experts) if experts else None
        products, streams = matrices(work), with_adapter_kernels(work, pointwise(work))
        found = cores(work)
        core, core_back = (total_seconds([getattr(each, way) for each in found]) for way in ("forward", "backward"))
        if routed:
            products, streams = routed.added_to(products), routed.activated(streams)
        forward = Pass(products.forward, core, streams.forward, casts=products.cast_forward, cheap=streams.cheap)
        backward = Pass(
            products.backward,
            core_back,
            streams.backward,
            accumulation=products.accumulation,
            casts=products.cast_backward,
        )
        if routed:
            routing, launches = routed.routing(), routed.launches()
            forward = replace(forward, routing=routing[0], launches=launches[0])
            backward = replace(backward, routing=routing[1], launches=launches[1])
        forward, backward = with_tensor_traffic(work, forward, backward)
        forward, backward = with_context_traffic(work, forward, backward)
        traffic = None
        if routed:
            traffic = routed.traffic()
            forward, backward = routed.exchanged(traffic, forward), routed.exchanged(traffic, backward)
        ahead = forward.seconds
        recompute = self._recompute(forward, ahead, products.products)
        forward, backward = with_host_traffic(work, forward, backward)
        return BlockTime(
            forward,
            backward,
            forward.seconds,
            add_seconds(backward.seconds, recompute),
            recompute,
            products.weight_gradients,
            products.products,
            found,
            tensor_pairs(work),
            context_sent(work),
            traffic,
        )

    def _recompute(self, forward: Pass, ahead: Number, products: tuple[Product, ...]) -> Number:
        training = self.work.training
        if training.recompute == "full":
            return ahead
        if training.recompute == "op-level":
            return add_seconds(half(add_seconds(forward.matrices, forward.casts)), forward.pointwise)
        again = []
        if training.recompute in ("selective", "selective-up"):
            again.append(forward.cheap if training.attention == "flash" else forward.attention)
        if training.recompute in ("latent-up", "selective-up"):
            again += [product.forward.seconds for product in products if product.expands]
        return total_seconds(again)
