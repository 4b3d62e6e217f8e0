"""One iteration of an engine: decoding sequences and prompt chunks in one batch, through all layers.

With a pipeline the iteration is one pass of a micro-batch through all stages. The numbers are those of one device: in
a full pipeline it works on as many micro-batches as there are stages, each in its share of the layers, so that one
pass over all layers is also what one device does a step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

from ..ledgers.serving_weights import serving_vocabulary
from ..model.layers import Matrix, Model
from ..numeric import Number, is_array, maximum, minimum, where
from ..scenario import Scenario
from ..sums import add_seconds, total_bytes, total_seconds
from ..terms import formula
from . import experts as routed
from . import kernels
from .collectives import NOTHING, Pipeline, TensorGroup, Transfer, gathered_bytes, hidden_bytes
from .exchange import Exchange
from .expert_ranks import expert_ranks
from .layer import Layer, add, products
from .operators import Operator, Rank, all_flops, merged
from .rates import Rates, expert_format, plain_format, rates_of
from .settings import Settings

HEAD_KERNELS = 4


@formula("V_t", "rows")
def vocabulary_share(vocabulary: Number, tensor_parallel: Number) -> Number:
    """Rows of the output head on one rank."""
    return vocabulary / tensor_parallel


@formula("n_AR", "times")
def allreduces(layers: Number, each: Number) -> Number:
    """All-reduces of some equal layers in a pass: two each, one where both parts stand side by side."""
    return layers * each


@formula("n_a2a", "times")
def exchanges(layers: Number, routed: Number) -> Number:
    """All-to-alls of some equal layers in a pass: tokens go to experts and come back."""
    return 2 * layers * routed


@formula("L·n_k", "kernels")
def kernels_in_layers(layers: Number, each: Number) -> Number:
    """Kernels of some equal layers in a pass."""
    return layers * each


@formula("t_launch", "s")
def launch_seconds(kernels: Number, head_kernels: Number, launch: Number) -> Number:
    """Fixed cost of the kernels of a pass."""
    return (kernels + head_kernels) * launch


@formula("t_gpu", "s", leaves_out="embedding lookup")
def device_seconds(
    kernels: Number, launches: Number, allreduces: Number, gather: Number, exchange: Number, hops: Number
) -> Number:
    """Time of a pass on the device."""
    return kernels + launches + allreduces + gather + exchange + hops


@formula("t_wait", "s", "saturated TensorRT-LLM runs of Qwen3-235B, Llama 4 Maverick and DeepSeek")
def waiting_seconds(device: Number, reached: Number, attention_dp: Number, requests: Number) -> Number:
    """Time that ranks with sequences of their own wait for the one that has a prompt; none for a single one."""
    return where(minimum(attention_dp, requests) > 1, device / reached - device, 0.0)


@formula("t − t_wait", "s")
def working_seconds(seconds: Number, waiting: Number) -> Number:
    """Time of an iteration without waiting for other ranks."""
    return seconds - waiting


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


@formula("L·t_eager", "s")
def eager_layers(layers: Number, eager: Number) -> Number:
    """Time the host needs to launch the kernels of some equal layers one by one."""
    return layers * eager


@formula("t_iter", "s", "an iteration with a prompt is not captured in a graph: the host launches each kernel")
def eager_seconds(seconds: Number, eager: Number, grace: Number) -> Number:
    """Time of an iteration with a prompt, at least what the host needs to launch it."""
    return maximum(seconds, eager * grace)


class Iteration(NamedTuple):
    """One iteration and its parts, in seconds."""

    operators: tuple[Operator, ...]
    launches: Number
    allreduces: Transfer
    gather: Transfer
    exchange: Transfer
    hops: Transfer
    #: Time of the device, and how much of it goes by waiting for other ranks.
    device: Number
    waiting: Number
    seconds: Number

    @property
    def flops(self) -> Number:
        """FLOPs on one device."""
        return all_flops([each.flops for each in self.operators])

    @property
    def cache_bytes(self) -> Number:
        """Bytes of cache and states that it reads and writes on one device."""
        return total_bytes([each.bytes for each in self.operators if each.core] or [0.0])

    @property
    def working(self) -> Number:
        """Seconds without waiting for other ranks."""
        waits = is_array(self.waiting) or self.waiting > 0
        return working_seconds(self.seconds, self.waiting) if waits else self.seconds

    def operator(self, name: str) -> Operator:
        """The operator of a name."""
        return next(each for each in self.operators if each.name == name)


class Pass:
    """Times passes of batches through the layers of a serving scenario. Rows are those of one rank of an engine."""

    def __init__(self, scenario: Scenario, model: Model, settings: Settings) -> None:
        parallel, accelerator = scenario.parallelism, scenario.cluster.accelerator
        self.model, self.settings = model, settings
        self.pipeline = parallel.pp
        self.rates: Rates = rates_of(scenario, settings)
        self.group = TensorGroup.of(scenario, settings)
        self.stages = Pipeline.of(scenario, settings)
        self.attention_dp, self.requests = scenario.serving.attention_dp, scenario.serving.concurrency
        shared = is_array(self.attention_dp) or self.attention_dp > 1
        self.exchange = Exchange.of(scenario, settings) if shared else None
        self.grace = settings.engine.grace if settings.device.grace else 1.0
        experts, has_experts = expert_ranks(scenario), any(block.experts for _, block in model.groups)
        self.rank = Rank(
            parallel.tp,
            experts.groups,
            experts.split,
            experts.sharing,
            settings,
            self.rates,
            accelerator.units,
            expert_format(scenario, settings) if has_experts else self.rates.blocks,
            plain_format(scenario, settings) if has_experts or settings.weights.leaves else self.rates.blocks,
            scenario.serving.prompt_tokens,
        )
        #: Iterations of prompts alone by their numbers.
        self._prompts: dict[tuple[Number, ...], Iteration] = {}
        self.groups = [(layers, Layer(block, self.rank)) for layers, block in model.groups]
        self.products = products(self.groups)
        self.kernels = self._sum(kernels_in_layers, [each.kernels for _, each in self.groups])
        self.eager = total_seconds([eager_layers(layers, each.eager) for layers, each in self.groups])
        self.reductions = self._sum(allreduces, [each.block.reductions for _, each in self.groups])
        self.exchanges = self._sum(exchanges, [float(each.routed is not None) for _, each in self.groups])
        self.vocabulary = serving_vocabulary(model, parallel.tp)
        self.output_head = Matrix("head", model.width, vocabulary_share(self.vocabulary, parallel.tp))
        self.head_weights = kernels.weight_bytes(model.width, self.output_head.outputs, self.rates.head.bits)

    def _sum(self, times: Callable[[Number, Number], Number], each: list[Number]) -> Number:
        """A count that each layer has, over all layers."""
        return reduce(add, [times(layers, one) for (layers, _), one in zip(self.groups, each, strict=True)])

    def decode(self, sequences: Number, context: Number, ranks: Number | None = None) -> Iteration:
        """An iteration that only decodes: sequences with a mean context in tokens; `ranks` as of `mixed`."""
        return self._iteration(
            sequences, sequences, lambda layer: layer.mixing.decode(sequences, context), False, ranks
        )

    def check(self, sequences: Number, context: Number, tokens: Number) -> Iteration:
        """An iteration that decodes several tokens of each sequence at once, whose cache is read once for all."""
        rows = kernels.batch_rows(0.0, sequences, tokens)

        def core(layer: Layer) -> tuple[Operator, ...]:
            return tuple(each.several_queries(tokens) for each in layer.mixing.decode(sequences, context))

        return self._iteration(rows, rows, core, eager=False)

    def prefill(self, prompts: Number, tokens: Number, pairs: Number, keys: Number) -> Iteration:
        """An iteration of prompt chunks alone: new tokens of each, the pairs they attend, keys of the last token."""
        key = prompts, tokens, pairs, keys
        known = None if is_array(*key) else self._prompts.get(key)
        if known is None:
            rows, answered = kernels.batch_rows(0.0, prompts, tokens), kernels.logit_rows(0.0, prompts)
            known = self._iteration(rows, answered, lambda layer: layer.mixing.prompt(prompts, tokens, pairs, keys))
            if not is_array(*key):
                self._prompts[key] = known
        return known

    def mixed(
        self,
        sequences: Number,
        context: Number,
        prompts: Number,
        tokens: Number,
        pairs: Number,
        keys: Number,
        ranks: Number | None = None,
    ) -> Iteration:
        """An iteration with decoding sequences and prompt chunks together.

        `ranks` are the mean rows of the ranks that share experts, where this one has most of them: it waits for none.
        """
        rows = kernels.batch_rows(sequences, prompts, tokens)
        return self._iteration(
            rows,
            kernels.logit_rows(sequences, prompts),
            lambda layer: (
                *layer.mixing.decode(sequences, context),
                *layer.mixing.prompt(prompts, tokens, pairs, keys),
            ),
            ranks=ranks,
        )

    def _iteration(
        self,
        rows: Number,
        answered: Number,
        core: Callable[[Layer], tuple[Operator, ...]],
        eager: bool = True,
        ranks: Number | None = None,
    ) -> Iteration:
        engine, model = self.settings.engine, self.model
        shared = rows if ranks is None else ranks
        matrices = [self.rank.matrix(*product, rows).times(layers) for layers, product in self.products]
        others = [
            each.times(layers)
            for layers, layer in self.groups
            for each in (*layer.experts(shared), *core(layer), layer.pointwise(rows))
        ]
        operators = merged((*matrices, *others))
        head = self.rank.matrix(self.output_head, self.rates.head, self.head_weights, answered)
        sampling = self.rank.streaming("sampling", kernels.logit_bytes(answered, self.vocabulary))
        operators = (*operators, head, sampling)
        launches = launch_seconds(self.kernels, HEAD_KERNELS, engine.t_k)
        buffer, logits = (
            hidden_bytes(rows, model.hidden),
            gathered_bytes(answered, self.vocabulary, self.group.ranks),
        )
        reduced, gather = self.group.reduce(buffer).times(self.reductions), self.group.reduce(logits)
        exchange, hop = self._exchange(rows), self.stages.send(buffer)
        busy = total_seconds([each.seconds for each in operators])
        device = device_seconds(busy, launches, reduced.seconds, gather.seconds, exchange.seconds, hop.seconds)
        waiting = 0.0
        if self.exchange and ranks is None:
            waiting = waiting_seconds(device, engine.waiting, self.attention_dp, self.requests)
            device = add_seconds(device, waiting)
        host = host_seconds(engine.t_host, engine.t_seq, answered, self.grace)
        seconds = side_by_side(device, host) if engine.overlapped else one_after_the_other(device, host)
        if eager:
            seconds = eager_seconds(seconds, self.eager, self.grace)
        return Iteration(operators, launches, reduced, gather, exchange, hop, device, waiting, seconds)

    def _exchange(self, rows: Number) -> Transfer:
        """Tokens on their way to experts and back in all layers that have some."""
        moved = [
            self.exchange.send(rows, layer.block.hidden, layer.routed.experts.per_token).times(layers)
            for layers, layer in self.groups
            if self.exchange and layer.routed
        ]
        return reduce(Transfer.and_, moved) if moved else NOTHING

    def read_weights(self, weights: Number, rows: Number) -> Number:
        """Weights of all layers that a batch of some rows has to read, of those that there are."""
        for layers, layer in self.groups:
            if layer.routed:
                weights = routed.read_bytes(weights, layer.routed.unread(layers, rows))
        return weights
