"""Low-rank adapters beside frozen matrices: their parameters, and the copies of inputs that they keep.

Sources: LoRA (arXiv 2106.09685), QLoRA (arXiv 2305.14314), and the public code of PEFT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any, NamedTuple

from ..catalogue import table
from ..model.block import Block
from ..model.kinds.attention import GroupedAttention
from ..model.kinds.feed_forward import Experts, FeedForward, FeedForwardKind
from ..model.kinds.latent import LatentAttention
from ..model.kinds.mixer import Mixer, present
from ..model.kinds.single import SideBySide
from ..model.layers import Model
from ..model.parameters import layers_parameters
from ..numeric import Number
from ..scenario import Training
from ..sums import add_parameters
from ..terms import formula
from ..widths import element_bytes

_LORA = "Hu 2021, arXiv 2106.09685"


class Linear(NamedTuple):
    """A matrix that an adapter may stand beside: `inputs` x `outputs`, before tensor parallelism."""

    name: str
    inputs: Number
    outputs: Number
    #: Split by rows of its input over tensor parallel ranks, not by columns.
    row: bool = False
    #: Of a routed expert; then of so many experts, of which a token meets some.
    routed: bool = False
    copies: Number = 1.0
    used: Number = 1.0


@dataclass(frozen=True)
class Adapters:
    """Adapters of a plan, and how they and their inputs are kept."""

    rank: Number
    #: Names of the adapted matrices.
    targets: frozenset[str]
    dropout: bool
    #: One kernel for a frozen matrix and its adapter.
    fused: bool
    #: Bytes of an element of the copy of its input that an adapter behind dropout keeps.
    copy: Number
    #: One dropout for queries, keys and values together.
    one_dropout: bool
    #: Copies of the inputs of frozen 4-bit matrices that old kernels keep.
    kept_inputs: Number

    def reads(self, *names: str) -> bool:
        """Whether an adapter without dropout reads the input of one of these matrices."""
        return not self.dropout and not self.targets.isdisjoint(names)

    def beside(self, part: Mixer | FeedForwardKind) -> Iterator[Linear]:
        """The adapted matrices of a part of a block."""
        return (each for each in linears(part) if each.name in self.targets)


def adapters_of(training: Training, framework: Mapping[str, Any]) -> Adapters | None:
    """The adapters of a plan; None where the model itself is trained."""
    if training.finetune == "full":
        return None
    lora, wide = training.lora, framework["adapter"] == 4 and not training.autocast
    return Adapters(
        rank=lora.rank,
        targets=frozenset(table("adapters")["targets"][lora.targets]),
        dropout=lora.dropout > 0,
        fused=lora.kernels == "fused",
        copy=4.0 if wide and lora.kernels == "eager" else element_bytes(training),
        one_dropout=bool(framework["qkv_buffer"]),
        kept_inputs=lora.kept_inputs if training.finetune == "qlora" else 0.0,
    )


# ---------------------------------------------------------------- what may be adapted


@singledispatch
def linears(part: Mixer | FeedForwardKind) -> tuple[Linear, ...]:
    """The matrices of a part of a block: the first and the last one, where a kind does not name them."""
    matrices = part.projections(1)
    ends = zip(("q", "o"), (matrices[0], matrices[-1]), strict=True) if len(matrices) > 1 else ()
    return tuple(Linear(name, each.inputs, each.outputs, name == "o") for name, each in ends)


@linears.register
def _(part: GroupedAttention) -> tuple[Linear, ...]:
    queries, keys, values = part.heads * part.head_dim, part.kv_heads * part.head_dim, part.kv_heads * part.value_dim
    return (
        Linear("q", part.hidden, queries),
        Linear("k", part.hidden, keys),
        Linear("v", part.hidden, values),
        Linear("o", part.heads * part.value_dim, part.hidden, True),
    )


@linears.register
def _(part: LatentAttention) -> tuple[Linear, ...]:
    query = part.q_rank if present(part.q_rank) else part.hidden
    return (
        Linear("q", query, part.heads * (part.nope_dim + part.rope_dim)),
        Linear("k", part.hidden, part.kv_rank + part.rope_dim),
        Linear("v", part.kv_rank, part.heads * (part.nope_dim + part.value_dim)),
        Linear("o", part.heads * part.value_dim, part.hidden, True),
    )


@linears.register
def _(part: FeedForward) -> tuple[Linear, ...]:
    gate = (Linear("gate", part.hidden, part.ffn_size),) if part.gated else ()
    return (*gate, Linear("up", part.hidden, part.ffn_size), Linear("down", part.ffn_size, part.hidden, True))


@linears.register
def _(part: Experts) -> tuple[Linear, ...]:
    one = linears(FeedForward(part.width, part.size, part.gated, 0))
    routed = tuple(each._replace(routed=True, copies=part.experts, used=part.per_token) for each in one)
    return routed + (linears(part.shared()) if present(part.shared_size) else ())


@linears.register
def _(part: SideBySide) -> tuple[Linear, ...]:
    return tuple(each for one in part.parts for each in linears(one))


# ---------------------------------------------------------------- parameters


@formula("r·(in + out/t)", "parameters", _LORA)
def column_adapter(rank: Number, inputs: Number, outputs: Number, split: Number, copies: Number) -> Number:
    """Parameters on one rank of adapters beside a matrix that is split by columns."""
    return copies * rank * (inputs + outputs / split)


@formula("r·(in/t + out)", "parameters", _LORA)
def row_adapter(rank: Number, inputs: Number, outputs: Number, split: Number, copies: Number) -> Number:
    """Parameters on one rank of adapters beside a matrix that is split by rows."""
    return copies * rank * (inputs / split + outputs)


def _share(linear: Linear, rank: Number, split: Number, copies: Number) -> Number:
    return (row_adapter if linear.row else column_adapter)(rank, linear.inputs, linear.outputs, split, copies)


def _total(shares: list[Number]) -> Number:
    return reduce(add_parameters, shares) if shares else 0.0


def common_adapters(block: Block, adapters: Adapters, tensor: Number) -> Number:
    """Parameters of the adapters of one block on a rank, those of routed experts apart."""
    beside = [*adapters.beside(block.mixer), *adapters.beside(block.ffn)]
    return _total([_share(each, adapters.rank, tensor, 1.0) for each in beside if not each.routed])


def routed_adapters(block: Block, adapters: Adapters, expert: Number, expert_tensor: Number) -> Number:
    """Parameters of the adapters of routed experts of one block on a rank."""
    beside = [each for each in adapters.beside(block.ffn) if each.routed]
    return _total([_share(each, adapters.rank, expert_tensor, each.copies / expert) for each in beside])


def trained_parameters(model: Model, adapters: Adapters | None) -> Number:
    """Parameters that are trained: all, or those of the adapters beside frozen matrices."""
    if adapters is None:
        return model.parameters
    each = [
        (layers, common_adapters(block, adapters, 1.0), routed_adapters(block, adapters, 1.0, 1.0))
        for layers, block in model.groups
    ]
    blocks = [layers_parameters(layers, add_parameters(*parts)) for layers, *parts in each]
    if "head" in adapters.targets:
        blocks.append(column_adapter(adapters.rank, model.width, model.spec.vocabulary, 1.0, 1.0))
    return _total(blocks)


def active_adapters(model: Model, adapters: Adapters) -> Number:
    """Parameters of the adapters that a token meets in a whole model."""
    blocks = []
    for layers, block in model.groups:
        beside = [*adapters.beside(block.mixer), *adapters.beside(block.ffn)]
        blocks.append(
            layers_parameters(layers, _total([_share(each, adapters.rank, 1.0, each.used) for each in beside]))
        )
    if "head" in adapters.targets:
        blocks.append(column_adapter(adapters.rank, model.width, model.spec.vocabulary, 1.0, 1.0))
    return _total(blocks)


# ---------------------------------------------------------------- activations


@formula("2·r", "B/token", _LORA)
def inner_bytes(rank: Number, used: Number) -> Number:
    """What an adapter keeps between its two matrices."""
    return 2 * rank * used


@formula("(w_c + 1)·d_in", "B/token", "PEFT public code: a copy of the input behind dropout, and its mask")
def dropped_input(inputs: Number, copy: Number, share: Number, used: Number) -> Number:
    """Copy and mask of the input that an adapter keeps."""
    return (copy + 1) * inputs * share * used


@formula("2·d_in", "B/token", "fms-acceleration public code: fused adapter kernels")
def fused_input(inputs: Number, share: Number, used: Number) -> Number:
    """Input that a fused adapter kernel keeps, and once more where several share it."""
    return 2 * inputs * share * used


@formula("2·d_out", "B/token", "LitGPT public code: adapters on some of queries, keys and values are scattered")
def scattered(outputs: Number, tensor: Number) -> Number:
    """Outputs of an adapter that are kept where they are put among others."""
    return 2 * outputs / tensor


@formula("n·2·d_in", "B/token", "bitsandbytes up to 0.42: inputs of frozen 4-bit matrices")
def old_inputs(copies: Number, inputs: Number) -> Number:
    """Inputs that old kernels of frozen matrices keep."""
    return 2 * copies * inputs


_QKV = frozenset("qkv")


def adapter_bytes(block: Block, adapters: Adapters, tensor: Number, share: Number) -> list[Number]:
    """Bytes a token that the adapters of a block keep on one rank, one entry for each tensor."""
    kept: list[Number] = []
    read: set[str] = set()
    for each in (*adapters.beside(block.mixer), *adapters.beside(block.ffn)):
        split = 1 / tensor if each.row else share
        kept.append(inner_bytes(adapters.rank, each.used))
        if not adapters.dropout:
            continue
        together = each.name in _QKV and not read.isdisjoint(_QKV)
        if adapters.fused:
            kept.append(fused_input(each.inputs, split, each.used))
            if each.name in _QKV and not together:
                kept.append(fused_input(each.inputs, split, each.used))
        elif not (together and adapters.one_dropout):
            kept.append(dropped_input(each.inputs, adapters.copy, split, each.used))
        read.add(each.name)
    some = adapters.targets & _QKV
    if adapters.one_dropout and some and some != _QKV:
        kept += [scattered(each.outputs, tensor) for each in adapters.beside(block.mixer) if each.name in some]
    if present(adapters.kept_inputs):
        rows = [each for part in (block.mixer, block.ffn) for each in linears(part) if each.row]
        kept.append(old_inputs(adapters.kept_inputs * block.input_norms, block.hidden * share))
        kept += [old_inputs(adapters.kept_inputs, each.inputs * each.used / tensor) for each in rows]
    return kept
