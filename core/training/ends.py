"""Time of the two ends of the model on one rank: embedding on the first stage, head and loss on the last."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.collectives import collective
from ..machine.device import Machine
from ..numeric import Number
from ..sums import add_seconds, total_seconds
from ..terms import formula
from .block import BlockTime
from .layout import Layout
from .overlap import elements, pointwise_bytes, tensor_share


@dataclass(frozen=True)
class EndTime:
    """Seconds for one micro-batch, forward and backward."""

    forward: Number
    backward: Number


@formula("V_p/t", "rows")
def vocabulary_share(vocabulary: Number, tensor_parallel: Number) -> Number:
    """Rows of the vocabulary on one tensor parallel rank."""
    return vocabulary / tensor_parallel


@formula("t_head + n_mtp·(t_head + t_block + t_proj)", "s", "DeepSeek-V3, arXiv 2412.19437, section 2.2")
def head_and_modules(head: Number, modules: Number, block: Number, projection: Number) -> Number:
    """Time of the output head and of modules that predict further tokens: a block, a projection and the head again."""
    return head + modules * (head + block + projection)


def embedding_time(hidden: Number, layout: Layout, machine: Machine, frozen: bool) -> EndTime:
    """Lookup, its gradient unless it is frozen, and the all-reduce that gathers the split vocabulary."""
    tensor = elements(layout.tokens, hidden, 1.0)
    reduce = collective("all-reduce", pointwise_bytes(2.0, tensor), layout.tensor_group, layout.fabric).seconds
    ahead = total_seconds([machine.stream(pointwise_bytes(8.0, tensor), 3), reduce])
    return EndTime(ahead, 0.0 if frozen else machine.stream(pointwise_bytes(10.0, tensor), 3))


def head_time(
    hidden: Number, vocabulary: Number, layout: Layout, machine: Machine, framework: dict, frozen: bool
) -> EndTime:
    """Output head, final norm and loss; bytes per logit by how the framework computes the loss."""
    rows, tokens, kept = vocabulary_share(vocabulary, layout.tensor), layout.tokens, machine.kept
    tensor = elements(tokens, hidden, 1.0)
    logits = elements(tokens, rows, 1.0)
    reduce = collective("all-reduce", pointwise_bytes(2.0, tensor), layout.tensor_group, layout.fabric).seconds
    ahead = [
        kept.matrix(tokens, rows, hidden).seconds,
        machine.stream(pointwise_bytes(4.0, tensor)),
        machine.stream(pointwise_bytes(framework["loss_forward"], logits), 6),
    ]
    back = [
        kept.matrix(tokens, hidden, rows).seconds,
        *([] if frozen else [kept.matrix(hidden, rows, tokens).seconds]),
        machine.stream(pointwise_bytes(8.0, tensor)),
        machine.stream(pointwise_bytes(framework["loss_backward"], logits), 3),
        reduce,
    ]
    return EndTime(total_seconds(ahead), total_seconds(back))


def with_predictions(
    head: EndTime, modules: Number, block: BlockTime, hidden: Number, layout: Layout, machine: Machine
) -> EndTime:
    """The head and the modules behind it that predict further tokens; each merges two hidden vectors into one."""
    share, joined = elements(hidden, tensor_share(layout.tensor), 1.0), elements(hidden, 2.0, 1.0)
    ahead = machine.matrix(layout.tokens, share, joined).seconds
    back = add_seconds(
        machine.matrix(layout.tokens, joined, share).seconds, machine.matrix(joined, share, layout.tokens).seconds
    )
    return EndTime(
        head_and_modules(head.forward, modules, block.forward_seconds, ahead),
        head_and_modules(head.backward, modules, block.backward_seconds, back),
    )
