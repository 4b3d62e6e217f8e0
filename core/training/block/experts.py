"""Routed experts of a block: router, grouped products, rewriting of token copies, launches, and their traffic."""

from __future__ import annotations

from dataclasses import replace

from ...catalogue import table
from ...machine.collectives import collective
from ...model.kinds.feed_forward import Experts
from ...numeric import Number, both, is_array, minimum, where
from ...sums import add_seconds, times_bytes, times_seconds, total_seconds
from ...terms import Datum, formula, traced
from ..overlap import elements, exposed_behind, pointwise_bytes
from .dispatch import Dispatcher, Exchange, ExpertTraffic
from .matrices import Matrices, weight_cast
from .passes import Pass, Product
from .pointwise import Pointwise
from .work import Work

#: Bytes of an element of the inner width that an activation moves, forward and backward: gated, plain, and a clamped
#: activation with offset and biases whose kernels are not fused.
GATED, PLAIN, EAGER = (6.0, 10.0), (4.0, 6.0), (60.0, 120.0)
#: Bytes of each logit of the router, and small kernels, each way: top-k, normalisation, counts, sorting.
ROUTER_BYTES, ROUTER_KERNELS = 40.0, 12
#: Share of the compute of a layer behind which another micro-batch's exchange of tokens hides.
HIDING_SHARE = traced(0.8, Datum("experts.hiding_share", "an estimate"))


@formula("E/e", "experts")
def local_experts(experts: Number, expert_parallel: Number) -> Number:
    """Routed experts on one rank."""
    return experts / expert_parallel


@formula("t_e", "ranks", "under tensor parallelism alone every rank already has all tokens")
def gathering_ranks(tensor: Number, expert_tensor: Number, sequences_split: Number) -> Number:
    """Ranks that bring their tokens together to split each expert."""
    return where(both(tensor > 1, sequences_split == 0), 1.0, expert_tensor)


@formula("R", "rows", "k·T·t_e/t, experts dealt evenly", "tokens dropped at a capacity")
def routed_rows(
    tokens: Number, experts_per_token: Number, gathering: Number, imbalance: Number, capacity: Number
) -> Number:
    """Rows that the experts of the busiest rank multiply."""
    return tokens * experts_per_token * gathering * imbalance * capacity


@formula("R/E_loc", "rows")
def rows_of_expert(rows: Number, local: Number) -> Number:
    """Rows of one expert."""
    return rows / local


@formula("n", "passes", "one expert a rank needs no sorting by expert")
def permutation_passes(expert_parallel: Number, local: Number, passes: Number) -> Number:
    """Rewrites of the token copies in device memory, each way."""
    return where(expert_parallel > 1, where(local > 1, passes, minimum(passes, 2.0)), 2.0)


@formula("E_loc·n_exp·t_host", "s", "kernels of each expert that the host launches; none waits for one expert a rank")
def launch_seconds(local: Number, kernels: Number, host: Number) -> Number:
    """Time that launches of expert kernels cost a layer and micro-batch, forward and backward."""
    return where(local > 1, local * kernels * host, 0.0)


@formula("t/3", "s", "a third of the kernels are forward")
def third(seconds: Number) -> Number:
    """The forward share of launches."""
    return seconds / 3


@formula("0.8·t", "s", "DualPipe and dual-batch schedules")
def hiding_window(share: Number, seconds: Number) -> Number:
    """Compute of another micro-batch behind which tokens are exchanged."""
    return share * seconds


class RoutedWork:
    """The routed experts of one block of a plan."""

    def __init__(self, work: Work, experts: Experts) -> None:
        self.work, self.experts = work, experts
        layout, moe = work.layout, work.scenario.moe
        self.tokens = elements(layout.tokens, layout.sequence_share, 1.0)
        self.local = local_experts(experts.experts, layout.expert)
        self.gathering = gathering_ranks(layout.tensor, layout.expert_tensor, float(layout.sp))
        capacity = 1.0 if moe.capacity is None else moe.capacity
        self.rows = routed_rows(self.tokens, experts.per_token, self.gathering, moe.imbalance, capacity)
        rates = work.machine.rates
        self.dispatcher = Dispatcher.of(work.scenario, layout, rates.e_nv, rates.e_nic)

    def added_to(self, found: Matrices) -> Matrices:
        """The products of a block with those of its experts."""
        work, machine = self.work, self.work.machine
        fused = work.training.fused_gradient_accumulation
        products = self.products()
        ahead, back, accumulated = [found.cast_forward], [found.cast_backward], [found.accumulation]
        for each in products:
            weights = elements(each.inputs, each.outputs, self.local)
            if not (fused or work.frozen):
                accumulated.append(machine.stream(pointwise_bytes(2 + 2 * machine.gradient_bytes, weights)))
            if machine.cast_bytes:
                activation = machine.stream(pointwise_bytes(machine.cast_bytes, elements(self.rows, each.inputs, 1.0)))
                ahead.append(add_seconds(activation, weight_cast(work, machine, weights)))
                back.append(machine.stream(pointwise_bytes(machine.cast_bytes, elements(self.rows, each.outputs, 1.0))))
        weight = total_seconds([each.weight_gradient.seconds for each in products])
        return Matrices(
            found.products + products,
            total_seconds([found.forward, *(each.forward.seconds for each in products)]),
            total_seconds([found.backward, *(each.input_gradient.seconds for each in products), weight]),
            add_seconds(found.weight_gradients, weight),
            total_seconds(accumulated),
            total_seconds(ahead),
            total_seconds(back),
        )

    def products(self) -> tuple[Product, ...]:
        """Grouped products: one launch multiplies the rows of all local experts."""
        layout, local = self.work.layout, self.local
        machine = self.work.machine.grouped(local)
        rows = rows_of_expert(self.rows, local)
        products = []
        for matrix in self.experts.expert_projections(layout.expert_tensor):
            inputs, outputs = matrix.inputs, matrix.outputs
            aligned = machine.alignment(outputs, inputs) if machine.rates.alignment else None
            kernels = (
                machine.matrix(rows, outputs, inputs, local, aligned=aligned),
                machine.matrix(rows, inputs, outputs, local, aligned=aligned),
                self.work.weight_gradient(machine, inputs, outputs, rows, batch=local, aligned=aligned),
            )
            products.append(Product("experts", self.rows, inputs, outputs, *kernels))
        return tuple(products)

    def router(self) -> tuple[Number, Number]:
        """Seconds of scoring, choosing and sorting, forward and backward."""
        machine = self.work.machine.kept
        matrix, tokens = self.experts.router(), self.tokens
        kernels = (
            machine.matrix(tokens, matrix.outputs, matrix.inputs),
            machine.matrix(tokens, matrix.inputs, matrix.outputs),
            self.work.weight_gradient(machine, matrix.inputs, matrix.outputs, tokens),
        )
        logits = elements(tokens, matrix.outputs, 1.0)
        small = machine.stream(pointwise_bytes(ROUTER_BYTES, logits), ROUTER_KERNELS)
        ahead, back, weight = (kernel.seconds for kernel in kernels)
        return add_seconds(ahead, small), total_seconds([back, weight, small])

    def routing(self) -> tuple[Number, Number]:
        """Seconds of router and rewriting of copies, forward and backward."""
        work, layout = self.work, self.work.layout
        ahead, back = self.router()
        copies = elements(self.tokens, self.experts.width, self.experts.per_token)
        passes = permutation_passes(layout.expert, self.local, float(self.dispatcher.facts["passes"]))
        rewriting = times_seconds(passes, work.machine.stream(pointwise_bytes(4.0, copies)))
        return add_seconds(ahead, rewriting), add_seconds(back, rewriting)

    def launches(self) -> tuple[Number, Number]:
        """Seconds that the host takes for the kernels of experts, forward and backward."""
        recipe = table("precisions")[self.work.training.precision]
        host = table("rates")["capture"][self.work.scenario.moe.capture]
        first = third(launch_seconds(self.local, recipe["expert_kernels"], host))
        return first, times_seconds(2.0, first)

    def activated(self, found: Pointwise) -> Pointwise:
        """Pointwise kernels of a block with the activation of its experts."""
        work = self.work
        matrix = self.experts.expert_projections(work.layout.expert_tensor)[-1]
        inner = elements(self.rows, matrix.inputs, 1.0)
        moved = GATED if self.experts.gated else PLAIN
        eager = work.training.pointwise == "eager"
        if work.scenario.moe.activation == "eager":
            moved, eager = EAGER, False
        seconds = [work.machine.stream(pointwise_bytes(each, inner)) for each in moved]
        if eager:
            seconds = [times_seconds(work.machine.rates.eager_passes, each) for each in seconds]
        return Pointwise(
            add_seconds(found.forward, seconds[0]),
            add_seconds(found.backward, seconds[1]),
            add_seconds(found.cheap, seconds[0]),
        )

    def traffic(self) -> ExpertTraffic:
        """Exchanges of one pass; backward exchanges the gradients the same way."""
        experts, moe = self.experts, self.work.scenario.moe
        capacity = 1.0 if moe.capacity is None else moe.capacity
        sent = routed_rows(self.tokens, 1.0, 1.0, moe.imbalance, capacity)
        low = 1.0 if moe.dispatch_precision == "fp8" else 2.0
        dispatch, combine = (
            self.dispatcher.exchange(sent, experts.width, element, experts.per_token) for element in (low, 2.0)
        )
        return ExpertTraffic(dispatch, combine, self._split(), self.gathering)

    def _split(self) -> Exchange:
        """Rows brought together inside the group that splits each expert, and results summed back."""
        layout = self.work.layout
        group = layout.expert_tensor_group
        if not is_array(self.gathering) and self.gathering == 1:
            return Exchange(0.0, 0.0, 0.0)
        buffer = pointwise_bytes(2.0, elements(self.rows, self.experts.width, 1.0))
        gather = collective("all-gather", buffer, group, layout.fabric)
        sent, seconds = times_bytes(2.0, gather.sent), times_seconds(2.0, gather.seconds)
        several = self.gathering > 1
        return Exchange(where(several, sent, 0.0), group.outside, where(several, seconds, 0.0))

    def exchanged(self, traffic: ExpertTraffic, one: Pass) -> Pass:
        """A pass with the exchange of tokens that it waits for."""
        seconds = traffic.seconds
        if not self.work.scenario.moe.overlap:
            return replace(one, expert=seconds, expert_traffic=seconds)
        window = hiding_window(HIDING_SHARE, one.compute)
        exposed = exposed_behind(seconds, window, self.work.machine.rates.kappa)
        return replace(one, expert=exposed, expert_traffic=seconds)
