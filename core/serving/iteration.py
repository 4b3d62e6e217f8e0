"""One iteration of an engine: decoding sequences and prompt chunks in one batch, through all layers.

With a pipeline the iteration is one pass of a micro-batch through all stages. The numbers are those of one device: in
a full pipeline it works on as many micro-batches as there are stages, each in its share of the layers, so that one
pass over all layers is also what one device does a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ledgers.serving_memory import element_width
from ..ledgers.serving_weights import serving_vocabulary
from ..model.kinds.feed_forward import Experts, ffn_width
from ..model.layers import Matrix, Model
from ..numeric import Number, is_array, maximum
from ..scenario import Scenario
from ..sums import times_bytes, times_seconds, total_seconds
from ..terms import formula
from . import experts as routed
from . import kernels
from .collectives import Pipeline, TensorGroup, Transfer, gathered_bytes, hidden_bytes
from .rates import Format, Rates, expert_format, plain_format, rates_of
from .settings import Settings, tiles, tuned_sizes

HEAD_KERNELS = 4


@formula("V_t", "rows")
def vocabulary_share(vocabulary: Number, tensor_parallel: Number) -> Number:
    """Rows of the output head on one rank."""
    return vocabulary / tensor_parallel


@formula("a/g", "heads")
def heads_a_group(heads: Number, kv_heads: Number) -> Number:
    """Query heads that share a key and value head."""
    return heads / kv_heads


@formula("n_AR", "times")
def allreduces(layers: Number, each: Number) -> Number:
    """All-reduces of a pass: two a layer, one where attention and feed-forward part stand side by side."""
    return layers * each


@formula("t_launch", "s")
def launch_seconds(layers: Number, kernels: Number, head_kernels: Number, launch: Number) -> Number:
    """Fixed cost of the kernels of a pass."""
    return (layers * kernels + head_kernels) * launch


@formula("t_gpu", "s", leaves_out="embedding lookup")
def device_seconds(kernels: Number, launches: Number, allreduces: Number, gather: Number, hops: Number) -> Number:
    """Time of a pass on the device."""
    return kernels + launches + allreduces + gather + hops


@formula("t_host", "s")
def host_seconds(fixed: Number, each: Number, rows: Number, grace: Number) -> Number:
    """Time the host takes to schedule an iteration, sample and answer."""
    return fixed + each * grace * rows


@formula("t_iter", "s")
def one_after_the_other(device: Number, host: Number) -> Number:
    """Time of an iteration whose host work waits for the device."""
    return device + host


@formula("t_iter", "s")
def side_by_side(device: Number, host: Number) -> Number:
    """Time of an iteration whose host works ahead."""
    return maximum(device, host)


@formula("t_iter", "s", "an iteration with a prompt is not captured in a graph: the host launches each kernel")
def eager_seconds(seconds: Number, layers: Number, eager: Number, grace: Number) -> Number:
    """Time of an iteration with a prompt, at least what the host needs to launch it."""
    return maximum(seconds, layers * eager * grace)


@formula("n_k", "kernels")
def all_kernels(usual: Number, expert: Number) -> Number:
    """Kernels of a layer with experts."""
    return usual + expert


@formula("Σ F", "FLOP")
def all_flops(parts: list[Number]) -> Number:
    """FLOPs of several operators."""
    return sum(parts)


@dataclass(frozen=True)
class Operator:
    """One kind of kernel of a pass, over all layers; seconds of its mathematics, its bytes, and as it runs."""

    name: str
    flops: Number
    bytes: Number
    math: Number
    memory: Number
    seconds: Number
    peak: Number


@dataclass(frozen=True)
class Iteration:
    """One iteration and its parts, in seconds."""

    operators: tuple[Operator, ...]
    launches: Number
    allreduces: Transfer
    gather: Transfer
    hops: Transfer
    device: Number
    seconds: Number

    @property
    def flops(self) -> Number:
        """FLOPs on one device."""
        return all_flops([each.flops for each in self.operators])

    def operator(self, name: str) -> Operator:
        """The operator of a name."""
        return next(each for each in self.operators if each.name == name)


class Pass:
    """Times passes of batches through the layers of a serving scenario."""

    def __init__(self, scenario: Scenario, model: Model, settings: Settings) -> None:
        parallel, accelerator = scenario.parallelism, scenario.cluster.accelerator
        self.model, self.settings = model, settings
        self.layers, self.pipeline, self.units = model.layers, parallel.pp, accelerator.units
        self.rates: Rates = rates_of(scenario, settings)
        self.group = TensorGroup.of(scenario, settings)
        self.stages = Pipeline.of(scenario, settings)
        self.grace = settings.engine.grace if settings.device.grace else 1.0
        block, tensor = model.block, parallel.tp
        self.projections = block.projections(tensor)
        self.formats = {matrix.name: self.rates.blocks for matrix in self.projections}
        self.experts, self.kernels, self.eager = block.experts, settings.engine.kernels, settings.engine.t_eager
        dense = block.feed_forward if self.experts is None else self.experts.shared()
        self.ffn_matrices, self.ffn_size = dense.matrix_count, dense.local_size(tensor)
        if self.experts is not None:
            self.expert_format, self.formats["router"] = (
                expert_format(scenario, settings),
                plain_format(scenario, settings),
            )
            self.expert_size = ffn_width(self.experts.size, tensor, 1)
            self.kernels = all_kernels(settings.engine.kernels, settings.engine.moe_kernels)
            self.eager = settings.engine.t_eager_moe
        attention = block.attention
        self.heads, self.kv_heads = attention.local_heads(tensor), attention.local_kv_heads(tensor)
        self.head_dim, self.query_group = attention.head_dim, heads_a_group(attention.heads, attention.kv_heads)
        self.kv_width = element_width(settings.kv.bytes, settings.kv.head_bytes, attention.head_dim)
        self.vocabulary = serving_vocabulary(model, tensor)
        self.output_head = Matrix("head", model.hidden, vocabulary_share(self.vocabulary, tensor))
        self.weights = {
            matrix.name: kernels.weight_bytes(matrix.inputs, matrix.outputs, self.formats[matrix.name].bits)
            for matrix in self.projections
        }
        self.head_weights = kernels.weight_bytes(model.hidden, self.output_head.outputs, self.rates.head.bits)

    def decode(self, sequences: Number, context: Number) -> Iteration:
        """An iteration that only decodes: sequences with a mean context in tokens."""
        return self._iteration(sequences, sequences, (self._decode_attention(sequences, context),), False)

    def check(self, sequences: Number, context: Number, tokens: Number) -> Iteration:
        """An iteration that decodes several tokens of each sequence at once, whose cache is read once for all."""
        rows = kernels.batch_rows(0.0, sequences, tokens)
        core = self._decode_attention(sequences, context)
        return self._iteration(rows, rows, (several_queries(core, tokens),), False)

    def prefill(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> Iteration:
        """An iteration of prompt chunks alone: new tokens of each, the pairs they attend, keys of the last token."""
        rows = kernels.batch_rows(0.0, prompts, tokens)
        attention = self._prefill_attention(prompts, tokens, pairs, keys)
        return self._iteration(rows, kernels.logit_rows(0.0, prompts), (attention,), True)

    def mixed(
        self, sequences: Number, context: Number, prompts: Number, tokens: Number, pairs: Number, keys: Number
    ) -> Iteration:
        """An iteration with decoding sequences and prompt chunks together."""
        rows = kernels.batch_rows(sequences, prompts, tokens)
        attention = (
            self._decode_attention(sequences, context),
            self._prefill_attention(prompts, tokens, pairs, keys),
        )
        return self._iteration(rows, kernels.logit_rows(sequences, prompts), attention, True)

    def _iteration(self, rows: Number, answered: Number, attention: tuple[Operator, ...], eager: bool) -> Iteration:
        engine, hidden = self.settings.engine, self.model.hidden
        matrices = [
            self._matrix(matrix, self.formats[matrix.name], self.weights[matrix.name], rows)
            for matrix in self.projections
        ]
        if self.experts is not None:
            matrices.append(self._routed(self.experts, rows))
        operators = tuple(self._in_all_layers(each) for each in (*matrices, *attention, self._pointwise(rows)))
        head = self._matrix(self.output_head, self.rates.head, self.head_weights, answered)
        operators = (*operators, head, self._sampling(answered))
        launches = launch_seconds(self.layers, self.kernels, HEAD_KERNELS, engine.t_k)
        count = allreduces(self.layers, self.model.block.norms)
        buffer, logits = hidden_bytes(rows, hidden), gathered_bytes(answered, self.vocabulary, self.group.ranks)
        reduce, gather = self.group.reduce(buffer).times(count), self.group.reduce(logits)
        hop = self.stages.send(buffer)
        busy = total_seconds([each.seconds for each in operators])
        device = device_seconds(busy, launches, reduce.seconds, gather.seconds, hop.seconds)
        host = host_seconds(engine.t_host, engine.t_seq, answered, self.grace)
        seconds = side_by_side(device, host) if engine.overlapped else one_after_the_other(device, host)
        if eager:
            seconds = eager_seconds(seconds, self.layers, self.eager, self.grace)
        return Iteration(operators, launches, reduce, gather, hop, device, seconds)

    def _in_all_layers(self, each: Operator) -> Operator:
        layers = self.layers
        return Operator(
            each.name,
            kernels.flops_in_all(layers, each.flops),
            times_bytes(layers, each.bytes),
            times_seconds(layers, each.math),
            times_seconds(layers, each.memory),
            times_seconds(layers, each.seconds),
            each.peak,
        )

    def _matrix(self, matrix: Matrix, number: Format, weights: Number, rows: Number) -> Operator:
        """A matrix product in one layer, on the line between the tuned batch sizes around its rows."""
        below, above = tuned_sizes(rows)
        math_below, time_below = self._at_size(matrix, number, weights, below)
        if is_array(rows) or below != above:
            math_above, time_above = self._at_size(matrix, number, weights, above)
        else:
            math_above, time_above = math_below, time_below
        operands = kernels.operand_bytes(rows, matrix.inputs, matrix.outputs, number.activation_bytes)
        return Operator(
            matrix.name,
            kernels.matrix_flops(rows, matrix.outputs, matrix.inputs),
            total_bytes(weights, operands),
            kernels.between_sizes(rows, below, above, math_below, math_above),
            kernels.matrix_memory_seconds(weights, operands, number.streaming, self.rates.memory),
            kernels.between_sizes(rows, below, above, time_below, time_above),
            number.peak,
        )

    def _at_size(self, matrix: Matrix, number: Format, weights: Number, rows: Number) -> tuple[Number, Number]:
        """Seconds of the mathematics and of the kernel at a tuned batch size."""
        inner, columns = matrix.inputs, matrix.outputs
        tiled = kernels.tile_seconds(
            rows, columns, inner, self.units, number.rate, self.settings.device.k_half, tiles()
        )
        narrow = kernels.narrow_seconds(rows, columns, inner, number.rate)
        math = kernels.matrix_math_seconds(rows, tiled, narrow)
        operands = kernels.operand_bytes(rows, inner, columns, number.activation_bytes)
        memory = kernels.matrix_memory_seconds(weights, operands, number.streaming, self.rates.memory)
        return math, kernels.soft_maximum(math, memory)

    def _routed(self, experts: Experts, rows: Number) -> Operator:
        """Routed experts of one layer, on the line between the tuned batch sizes around the rows."""
        below, above = tuned_sizes(rows)
        at_below, at_above = self._routed_at(experts, below), self._routed_at(experts, above)
        own = self._routed_at(experts, rows)
        math, seconds = (
            kernels.between_sizes(rows, below, above, getattr(at_below, name), getattr(at_above, name))
            for name in ("math", "seconds")
        )
        return replace(own, math=math, seconds=seconds)

    def _routed_at(self, experts: Experts, rows: Number) -> Operator:
        """Routed experts of one layer with exactly these rows."""
        number, engine, size = self.expert_format, self.settings.engine, self.expert_size
        touched = routed.touched_experts(experts.experts, experts.per_token, rows)
        sent = routed.routed_rows(rows, experts.per_token)
        weights = routed.touched_bytes(touched, experts.matrix_count, experts.width, size, number.bits)
        moved = routed.routed_bytes(sent, engine.moe_bytes, experts.width, size)
        k_half = routed.half_rate_inner(self.settings.device.k_half, number.peak, self.rates.attention_peak)
        inputs = 1 + experts.gated
        math = routed.expert_math_seconds(touched, sent, inputs, experts.width, size, k_half, number.rate)
        memory = routed.expert_memory_seconds(weights, number.streaming, engine.moe_memory, moved, self.rates.memory)
        flops = routed.expert_flops(sent, experts.matrix_count, experts.width, size)
        seconds = kernels.soft_maximum(math, memory)
        return Operator("experts", flops, total_bytes(weights, moved), math, memory, seconds, number.peak)

    def read_weights(self, weights: Number, rows: Number) -> Number:
        """Weights of all layers that a batch of some rows has to read, of those that there are."""
        experts = self.experts
        if experts is None:
            return weights
        touched = routed.touched_experts(experts.experts, experts.per_token, rows)
        each = routed.touched_bytes(1.0, experts.matrix_count, experts.width, self.expert_size, self.expert_format.bits)
        return routed.read_bytes(weights, self.layers, experts.experts, touched, each)

    def _pointwise(self, rows: Number) -> Operator:
        moved = kernels.pointwise_bytes(
            rows, self.model.hidden, self.settings.engine.hidden_bytes, self.ffn_matrices, self.ffn_size
        )
        return _streaming("norms and activation", moved, self.rates)

    def _sampling(self, rows: Number) -> Operator:
        return _streaming("sampling", kernels.logit_bytes(rows, self.vocabulary), self.rates)

    def _decode_attention(self, sequences: Number, context: Number) -> Operator:
        moved = kernels.cache_bytes(sequences, context, self.kv_heads, self.head_dim, self.kv_width)
        flops = kernels.decode_flops(sequences, context, self.heads, self.head_dim)
        groups = self.settings.engine.tensor_groups
        vector = kernels.vector_seconds(flops, self.query_group, self.rates.vector, groups)
        memory = kernels.streaming_seconds(moved, self.rates.kv)
        seconds = kernels.decode_attention_seconds(moved, self.rates.kv, vector)
        return Operator("attention core", flops, moved, vector, memory, seconds, self.rates.attention_peak)

    def _prefill_attention(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> Operator:
        device, engine = self.settings.device, self.settings.engine
        flops = kernels.prefill_flops(prompts, pairs, self.heads, self.head_dim)
        math = kernels.prefill_attention_seconds(
            flops, keys, self.head_dim, self.rates.attention, device.s_half, device.small_head
        )
        scores = kernels.score_traffic(prompts, self.heads, tokens, keys, engine.score_bytes)
        cached = kernels.cache_bytes(prompts, keys, self.kv_heads, self.head_dim, self.kv_width)
        memory = kernels.streaming_seconds(scores, self.rates.memory)
        return Operator(
            "attention",
            flops,
            total_bytes(cached, scores),
            math,
            memory,
            one_after_the_other(math, memory),
            self.rates.attention_peak,
        )


def several_queries(core: Operator, tokens: Number) -> Operator:
    """The core of a decode step for several tokens of each sequence: more mathematics over the same cache."""
    math = times_seconds(tokens, core.math)
    seconds = longer_of(core.seconds, math)
    return replace(core, flops=kernels.flops_in_all(tokens, core.flops), math=math, seconds=seconds)


@formula("max", "s")
def longer_of(first: Number, second: Number) -> Number:
    """The longer of two times."""
    return maximum(first, second)


@formula("Σ", "B")
def total_bytes(first: Number, second: Number) -> Number:
    """Bytes of two streams together."""
    return first + second


def _streaming(name: str, moved: Number, rates: Rates) -> Operator:
    """An operator without counted FLOPs."""
    seconds = kernels.streaming_seconds(moved, rates.memory)
    return Operator(name, 0.0, moved, 0.0, seconds, seconds, rates.attention_peak)
