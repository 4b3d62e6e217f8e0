"""Time of one block for one micro-batch on one rank, forward and backward, kernel by kernel.

Left out: host launch gaps, residency in the second-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..machine import kernels
from ..machine.collectives import collective
from ..machine.device import Kernel, Machine
from ..model.layers import Block
from ..numeric import Number, is_array
from ..scenario import Scenario
from ..sums import add_seconds, times_seconds, total_seconds
from .layout import Layout
from .overlap import (
    elements,
    exchanged_kv_heads,
    exposed_behind,
    exposed_in_chunks,
    exposed_ring,
    half,
    heads_width,
    keys_of_chunk,
    pass_seconds,
    per_micro_batch,
    pointwise_bytes,
    ring_seconds,
    tensor_share,
)
from .projections import projections


@dataclass(frozen=True)
class Pass:
    """Seconds of one pass over one block, by kind of work; communication as it is exposed."""

    matrices: Number
    attention: Number
    pointwise: Number
    tensor: Number = 0.0
    context: Number = 0.0
    accumulation: Number = 0.0
    casts: Number = 0.0
    #: Norms and activation, which selective recomputation repeats.
    cheap: Number = 0.0
    #: Tensor and context parallel traffic before overlap.
    tensor_traffic: Number = 0.0
    context_traffic: Number = 0.0

    @property
    def seconds(self) -> Number:
        return pass_seconds(
            self.matrices, self.attention, self.pointwise, self.tensor, self.context, self.accumulation, self.casts
        )


@dataclass(frozen=True)
class BlockTime:
    """One block: forward, backward and what is computed again, in seconds."""

    forward: Pass
    backward: Pass
    forward_seconds: Number
    backward_seconds: Number
    recompute_seconds: Number
    weight_gradient_seconds: Number
    #: Kernels of each matrix: forward, input gradient, weight gradient.
    operators: dict[str, tuple[Kernel, ...]]


@dataclass(frozen=True)
class Matrices:
    """Seconds of the matrix products of a block and of what belongs to them."""

    forward: Number
    backward: Number
    weight_gradients: Number
    accumulation: Number
    cast_forward: Number
    cast_backward: Number


class BlockTimer:
    """Times one block of a plan."""

    def __init__(self, block: Block, layout: Layout, machine: Machine, scenario: Scenario) -> None:
        self.block, self.layout, self.machine = block, layout, machine
        self.training, self.overlap = scenario.training, scenario.overlap
        self.cast_times = layout.micro_batches if scenario.fp8.cache_weights else 1.0
        self.operators: dict[str, tuple[Kernel, ...]] = {}

    def time(self) -> BlockTime:
        """Forward, backward and recomputation of the block."""
        matrices = self._matrices()
        attention = self._attention()
        pointwise = self._pointwise()
        forward = Pass(matrices.forward, attention[0], pointwise[0], casts=matrices.cast_forward, cheap=pointwise[2])
        backward = Pass(
            matrices.backward,
            attention[1],
            pointwise[1],
            accumulation=matrices.accumulation,
            casts=matrices.cast_backward,
        )
        forward, backward = self._with_tensor_traffic(forward, backward)
        forward, backward = self._with_context_traffic(forward, backward)
        ahead = forward.seconds
        recompute = self._recompute(forward, ahead)
        return BlockTime(
            forward,
            backward,
            ahead,
            add_seconds(backward.seconds, recompute),
            recompute,
            matrices.weight_gradients,
            dict(self.operators),
        )

    def _recompute(self, forward: Pass, ahead: Number) -> Number:
        if self.training.recompute == "full":
            return ahead
        if self.training.recompute == "op-level":
            return add_seconds(half(add_seconds(forward.matrices, forward.casts)), forward.pointwise)
        if self.training.recompute == "selective":
            return forward.cheap if self.training.attention == "flash" else forward.attention
        return 0.0

    def _matrices(self) -> Matrices:
        machine, layout = self.machine, self.layout
        fused = self.training.fused_gradient_accumulation
        ahead, back, weight, accumulate, cast_ahead, cast_back = [], [], [], [], [], []
        for matrix, first in projections(self.block, layout.tensor, self.training.projections == "separate"):
            inputs, outputs, tokens = matrix.inputs, matrix.outputs, layout.tokens
            kernels_of_matrix = (
                machine.matrix(tokens, outputs, inputs),
                machine.matrix(tokens, inputs, outputs),
                machine.matrix(inputs, outputs, tokens, output=2.0 * machine.gradient_bytes if fused else 2.0),
            )
            self.operators[matrix.name] = kernels_of_matrix
            for passes, kernel in zip((ahead, back, weight), kernels_of_matrix, strict=True):
                passes.append(kernel.seconds)
            if not fused:
                moved = pointwise_bytes(2 + 2 * machine.gradient_bytes, elements(inputs, outputs, 1.0))
                accumulate.append(machine.stream(moved))
            if machine.cast_bytes:
                cast_ahead.append(self._cast(tokens, inputs, outputs, first))
                cast_back.append(machine.stream(pointwise_bytes(machine.cast_bytes, elements(tokens, outputs, 1.0))))
        weights = total_seconds(weight)
        return Matrices(
            total_seconds(ahead),
            add_seconds(total_seconds(back), weights),
            weights,
            total_seconds(accumulate) if accumulate else 0.0,
            total_seconds(cast_ahead) if cast_ahead else 0.0,
            total_seconds(cast_back) if cast_back else 0.0,
        )

    def _cast(self, tokens: Number, inputs: Number, outputs: Number, first: bool) -> Number:
        """Casts to 8 bits: of an input that no other matrix has read, and of the weight once a step or micro-batch."""
        machine = self.machine
        weight = machine.stream(pointwise_bytes(4.0, elements(inputs, outputs, 1.0)))
        weight = per_micro_batch(weight, self.cast_times)
        if not first:
            return weight
        activation = machine.stream(pointwise_bytes(machine.cast_bytes, elements(tokens, inputs, 1.0)))
        return add_seconds(activation, weight)

    def _attention(self) -> tuple[Number, Number]:
        layout, machine, training = self.layout, self.machine, self.training
        attention = self.block.attention
        heads = attention.local_heads(layout.tensor)
        if training.attention == "unfused":
            return self._unfused(heads, attention.head_dim)
        pairs = kernels.causal_pairs(layout.micro_batch, layout.sequence, layout.context)
        flops = kernels.attention_flops(heads, attention.head_dim, pairs)
        kv_heads = attention.local_kv_heads(layout.tensor)
        rates = machine.rates
        head_rate = kernels.head_rate(attention.head_dim, rates.head_step, rates.small_head)
        keys = keys_of_chunk(layout.sequence, layout.context)

        def seconds(fraction: Number, passes: float, tensors: float, launches: int) -> Number:
            moved = kernels.flash_bytes(layout.tokens, heads, kv_heads, attention.head_dim, tensors, 1.0)
            peak, memory = machine.attention_peak, machine.memory_rate
            shape = (head_rate, rates.s_half, keys, passes, moved, memory, launches, rates.t_k)
            return kernels.flash_seconds(flops, peak, fraction, *shape)

        return seconds(rates.e_fa_forward, 1.0, 1.0, 1), seconds(rates.e_fa_backward, 2.5, 2.0, 3)

    def _unfused(self, heads: Number, head_dim: Number) -> tuple[Number, Number]:
        """Two batched products and byte-bound softmax and dropout over the score matrix; Megatron-LM kernels."""
        layout, machine, kept = self.layout, self.machine, self.machine.kept
        rows = keys_of_chunk(layout.sequence, layout.context)
        batch = elements(layout.micro_batch, heads, 1.0)
        aligned = machine.alignment(head_dim, head_dim) if machine.rates.alignment else None
        scores = kept.matrix(rows, layout.sequence, head_dim, batch, aligned=aligned).seconds
        values = kept.matrix(rows, head_dim, layout.sequence, batch, aligned=aligned).seconds
        size = elements(batch, rows, layout.sequence)
        softmax, softmax_back = machine.stream(pointwise_bytes(4.0, size)), machine.stream(pointwise_bytes(6.0, size))
        ahead, back = [scores, values, softmax], [scores, times_seconds(3.0, values), softmax_back]
        if self.training.dropout:
            mask = machine.stream(pointwise_bytes(5.0, size))
            ahead.append(mask)
            back.append(mask)
        return total_seconds(ahead), total_seconds(back)

    def _passes(self, fused: Number) -> Number:
        """Seconds of norms or activation from those of one fused pass; an eager framework runs them step by step."""
        return times_seconds(self.machine.rates.eager_passes, fused) if self.training.pointwise == "eager" else fused

    def _pointwise(self) -> tuple[Number, Number, Number]:
        """Seconds forward, backward, and of the forward part that selective recomputation repeats."""
        layout, machine, block = self.layout, self.machine, self.block
        attention, ffn = block.attention, block.feed_forward
        residual = elements(layout.tokens, block.hidden, layout.sequence_share)
        local = elements(layout.tokens, block.hidden, tensor_share(layout.tensor))
        inner = elements(layout.tokens, ffn.local_size(layout.tensor), 1.0)
        mask = int(self.training.dropout)
        norms = self._passes(times_seconds(block.norms, machine.stream(pointwise_bytes(4.0, residual))))
        residuals = times_seconds(block.norms, machine.stream(pointwise_bytes(6.0 + mask, residual)))
        relayout = machine.stream(pointwise_bytes(4.0, local))
        activation = self._passes(machine.stream(pointwise_bytes(6.0 if ffn.gated else 4.0, inner)))
        ahead = [norms, residuals, relayout, activation]
        back = [
            self._passes(times_seconds(block.norms, machine.stream(pointwise_bytes(10.0, residual), 2))),
            residuals,
            times_seconds(block.norms, machine.stream(pointwise_bytes(6.0, residual))),
            relayout,
            self._passes(machine.stream(pointwise_bytes(10.0 if ffn.gated else 6.0, inner))),
        ]
        if self.training.projections == "separate":
            # the input gradients of matrices that read the same input are added up
            added = machine.stream(pointwise_bytes(6.0, elements(layout.tokens, block.hidden, 1.0)))
            back.append(times_seconds(3.0 if ffn.gated else 2.0, added))
        if ffn.mlp_bias:
            back.append(machine.stream(pointwise_bytes(2.0, inner)))
        width = heads_width(
            attention.local_heads(layout.tensor), attention.local_kv_heads(layout.tensor), attention.head_dim
        )
        queries = elements(layout.tokens, width, 1.0)
        if attention.rotary:
            rope = machine.stream(pointwise_bytes(4.0, queries))
            ahead.append(rope)
            back.append(rope)
        if attention.qk_norm:
            ahead.append(machine.stream(pointwise_bytes(4.0, queries), 2))
            back.append(machine.stream(pointwise_bytes(10.0, queries), 2))
        return total_seconds(ahead), total_seconds(back), add_seconds(norms, activation)

    def _with_tensor_traffic(self, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
        """Exposed tensor parallel collectives: two pairs a block and pass, one where the block is parallel."""
        layout, overlap = self.layout, self.overlap
        if not is_array(layout.tensor) and layout.tensor == 1:
            return forward, backward
        kappa = self.machine.rates.kappa
        buffer = pointwise_bytes(2.0, elements(layout.tokens, self.block.hidden, 1.0))
        count = float(self.block.norms)
        if layout.sp:
            gather = collective("all-gather", buffer, layout.tensor_group, layout.fabric).seconds
            scatter = collective("reduce-scatter", buffer, layout.tensor_group, layout.fabric).seconds
            ahead = back = times_seconds(count, add_seconds(gather, scatter))
            hidden = times_seconds(count, gather)
        else:
            ahead = times_seconds(count, collective("all-reduce", buffer, layout.tensor_group, layout.fabric).seconds)
            back, hidden = (0.0, ahead) if overlap.tp_backward else (ahead, 0.0)
        traffic_back = add_seconds(back, hidden)
        traffic = ahead
        if overlap.tp_forward and layout.sp:
            ahead = exposed_in_chunks(ahead, forward.matrices, layout.tensor, kappa)
            back = exposed_in_chunks(back, backward.matrices, layout.tensor, kappa)
        back = add_seconds(back, exposed_behind(hidden, half(backward.matrices), kappa))
        return (
            replace(forward, tensor=ahead, tensor_traffic=traffic),
            replace(backward, tensor=back, tensor_traffic=traffic_back),
        )

    def _exchange(self, heads: Number) -> Number:
        """Seconds of an all-to-all that turns a chunk of the sequence of some heads into whole sequences of fewer."""
        layout = self.layout
        local = pointwise_bytes(2.0, elements(layout.tokens, heads, self.block.attention.head_dim))
        return collective("all-to-all", local, layout.context_group, layout.fabric).seconds

    def _with_context_traffic(self, forward: Pass, backward: Pass) -> tuple[Pass, Pass]:
        layout, rates = self.layout, self.machine.rates
        if not is_array(layout.context) and layout.context == 1:
            return forward, backward
        attention = self.block.attention
        scheme = layout.context_scheme
        keys = heads_width(
            attention.local_kv_heads(layout.tensor), attention.local_kv_heads(layout.tensor), attention.head_dim
        )
        buffer = pointwise_bytes(2.0, elements(layout.micro_batch, layout.sequence, keys))
        if scheme == "ulysses":
            heads = attention.local_heads(layout.tensor)
            exchanged = exchanged_kv_heads(attention.local_kv_heads(layout.tensor), layout.context)
            cost = times_seconds(2.0, add_seconds(self._exchange(heads), self._exchange(exchanged)))
            return replace(forward, context=cost, context_traffic=cost), replace(
                backward, context=cost, context_traffic=cost
            )
        ahead = collective("all-gather", buffer, layout.context_group, layout.fabric).seconds
        back = times_seconds(2.0, ahead)
        if scheme == "all-gather":
            return replace(forward, context=ahead, context_traffic=ahead), replace(
                backward, context=back, context_traffic=back
            )
        context, kappa, launch = layout.context, rates.kappa, rates.t_k
        return (
            replace(
                forward,
                context=exposed_ring(ahead, forward.attention, context, kappa, 4, launch),
                context_traffic=ring_seconds(ahead, context, 4, launch),
            ),
            replace(
                backward,
                context=exposed_ring(back, backward.attention, context, kappa, 8, launch),
                context_traffic=ring_seconds(back, context, 8, launch),
            ),
        )
