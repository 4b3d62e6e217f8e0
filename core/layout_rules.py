"""The rules of a layout: what divides what, each written once for one scenario or for arrays of them.

That its model contradicts itself nowhere is asked by `model.consistency`.

Sources: Megatron-LM (arXiv 1909.08053, 2104.04473) for heads, stages and interleaving; DeepSpeed Ulysses
(arXiv 2309.14509) for heads under context parallelism; DualPipe (arXiv 2412.19437).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .degrees import batch_step, micro_batches, replica_ranks, replicas, shards, stage_ranks
from .model.layers import build
from .numeric import Number, both, maximum
from .rule_words import choice, divisors, does_not_divide, either, multiples, whole
from .scenario import Scenario
from .words import plural

_TRAINING, _SERVING = "training", "serving"
#: Schedules that take the chunks of an interleaved pipeline.
_INTERLEAVED = ("1f1b", "interleaved")


@dataclass(frozen=True)
class Rule:
    """`holds` gives a truth or an array of them; `message` speaks of one scenario that breaks the rule."""

    field: str
    holds: Callable[[Scenario], Any]
    message: Callable[[Scenario], str]
    kinds: tuple[str, ...] = (_TRAINING, _SERVING)


def _kv_heads_fit(s: Scenario) -> Any:
    tp, heads = s.parallelism.tp, maximum(s.model.kv_heads, 1)
    return either(heads % tp == 0, tp % heads == 0)


def _kv_heads_message(s: Scenario) -> str:
    tp, heads, kv = whole(s.parallelism.tp), whole(s.model.heads), whole(s.model.kv_heads)
    would_do = [d for d in divisors(heads) if kv % d == 0 or d % kv == 0]
    return f"{tp} neither divides {kv} KV heads nor is a multiple of them ({choice(would_do)})"


def _gpus_message(s: Scenario) -> str:
    p = s.parallelism
    degrees = {"tp": p.tp, "pp": p.pp} | ({"cp": p.cp} if s.kind == _TRAINING else {})
    if s.kind == _SERVING and s.serving.attention_dp > 1:
        degrees["attention_dp"] = s.serving.attention_dp
    product = "·".join(str(whole(degree)) for degree in degrees.values())
    gpus, ranks = whole(s.cluster.gpus), whole(replica_ranks(s))
    return f"{gpus} is not a multiple of {'·'.join(degrees)} = {product} = {ranks} ({multiples(gpus, ranks)})"


def _batch_divides(s: Scenario) -> Any:
    return s.training.global_batch % maximum(batch_step(s), 1) == 0


def _batch_message(s: Scenario) -> str:
    batch, micro, data = (whole(v) for v in (s.training.global_batch, s.training.micro_batch, replicas(s)))
    step = micro * data
    return f"{batch} is not a multiple of micro_batch·dp = {micro}·{data} = {step} ({multiples(batch, step)})"


def _interleaving_holds(s: Scenario) -> Any:
    """Asked only of plans whose replicas and micro-batches are whole."""
    divided = both(batch_step(s) > 0, _batch_divides(s))
    return either(either(s.parallelism.vpp == 1, divided == 0), micro_batches(s) % s.parallelism.pp == 0)


def _interleaving_message(s: Scenario) -> str:
    pp, batches_each = whole(s.parallelism.pp), whole(micro_batches(s))
    step = whole(batch_step(s)) * pp
    batches = multiples(s.training.global_batch, step)
    return f"interleaving needs pp = {pp} to divide {plural(batches_each, 'micro-batch')} (global batches of {batches})"


def _chunks_message(s: Scenario) -> str:
    pp, vpp, slots = (whole(v) for v in (s.parallelism.pp, s.parallelism.vpp, _slots(s)))
    what = "layers, embedding and head" if s.parallelism.stage_balance == "slots" else "layers"
    return f"{pp} stages of {vpp} chunks are more than {slots} {what} (vpp of {slots // pp} or less does)"


def _slots(s: Scenario) -> Number:
    """What is dealt to the chunks of a pipeline, none of which may be empty."""
    return s.model.layers + 2 if s.parallelism.stage_balance == "slots" else s.model.layers


def _turns(s: Scenario) -> Any:
    """Whether a pipeline that runs there and back has a layer for each of its chunks."""
    if s.parallelism.schedule != "zero-bubble-v":
        return True
    return either(s.parallelism.pp == 1, 2 * s.parallelism.pp <= _slots(s))


def _balance_holds(s: Scenario) -> Any:
    balance = s.parallelism.stage_balance
    if isinstance(balance, str):
        return True
    return both(s.parallelism.pp == len(balance), s.model.layers == sum(balance))


def _balance_message(s: Scenario) -> str:
    balance = s.parallelism.stage_balance
    assert not isinstance(balance, str)
    stages, layers = whole(s.parallelism.pp), whole(s.model.layers)
    return (
        f"{len(balance)} numbers with sum {sum(balance)} do not share {layers} layers among {stages} stages "
        f"({plural(stages, 'number')} with sum {layers} would)"
    )


def _ulysses_holds(s: Scenario) -> Any:
    if s.parallelism.context_scheme != "ulysses":
        return True
    return s.model.heads % (s.parallelism.cp * s.parallelism.tp) == 0


def _experts_dealt_message(s: Scenario) -> str:
    ep, experts = whole(s.parallelism.ep), whole(s.model.experts)
    if not experts:
        return f"{s.model.name} has no routed experts to deal over {ep} ranks (1 does)"
    return does_not_divide(ep, experts, "experts")


def _expert_ranks_message(s: Scenario) -> str:
    p, ranks = s.parallelism, whole(stage_ranks(s))
    etp = whole(p.etp)
    would_do = [d for d in divisors(ranks) if etp * d <= ranks and ranks % (etp * d) == 0]
    product = f"etp·ep = {etp}·{whole(p.ep)} = {etp * whole(p.ep)}"
    would = f"ep of {choice(would_do)}" if would_do else "etp of 1 does"
    return f"{product} does not divide the {plural(ranks, 'GPU')} of a stage ({would})"


def _experts_need_sequences(s: Scenario) -> Any:
    p = s.parallelism
    if p.sp or not _routed(s):
        return True
    return either(p.tp == 1, both(p.ep == 1, p.etp == p.tp))


def _routed(s: Scenario) -> bool:
    """Whether a model has routed experts; many at once are asked for any."""
    return bool(np.any(s.model.experts > 0))


def _split_sizes(s: Scenario) -> list[Number]:
    """Heads and channels of all kinds of layers that tensor parallel ranks share out."""
    return [size for _, block in build(s.model).groups for size in block.mixer.split_sizes()]


def _splits(s: Scenario) -> Any:
    return reduce(both, [size % s.parallelism.tp == 0 for size in _split_sizes(s)], True)


def _splits_message(s: Scenario) -> str:
    size = next(size for size in _split_sizes(s) if size % s.parallelism.tp)
    return does_not_divide(s.parallelism.tp, size, "heads or channels of some layers")


RULES: tuple[Rule, ...] = (
    Rule(
        "parallelism.ep",
        lambda s: either(s.parallelism.ep == 1, both(s.model.experts > 0, s.model.experts % s.parallelism.ep == 0)),
        _experts_dealt_message,
    ),
    Rule(
        "parallelism.etp",
        lambda s: either(s.parallelism.etp == 1, s.model.experts > 0),
        lambda s: f"{s.model.name} has no routed experts to split over {whole(s.parallelism.etp)} ranks (1 does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.tp",
        lambda s: s.model.heads % s.parallelism.tp == 0,
        lambda s: does_not_divide(s.parallelism.tp, s.model.heads, "attention heads"),
    ),
    Rule("parallelism.tp", _kv_heads_fit, _kv_heads_message),
    Rule("parallelism.tp", _splits, _splits_message, (_SERVING,)),
    Rule(
        "serving.attention_dp",
        lambda s: either(s.serving.attention_dp == 1, s.model.experts > 0),
        lambda s: f"{s.model.name} has no experts to share (attention_dp 1 does)",
        (_SERVING,),
    ),
    Rule(
        "parallelism.ep",
        lambda s: stage_ranks(s) % s.parallelism.ep == 0,
        lambda s: does_not_divide(s.parallelism.ep, stage_ranks(s), "ranks of tp·attention_dp"),
        (_SERVING,),
    ),
    Rule(
        "parallelism.pp",
        lambda s: s.parallelism.pp <= s.model.layers,
        lambda s: (
            f"{whole(s.parallelism.pp)} stages are more than {whole(s.model.layers)} layers "
            f"({whole(s.model.layers)} or less does)"
        ),
    ),
    Rule("cluster.gpus", lambda s: s.cluster.gpus % replica_ranks(s) == 0, _gpus_message),
    Rule(
        "serving.disaggregated",
        lambda s: either(not s.serving.disaggregated, s.cluster.gpus >= 2 * replica_ranks(s)),
        lambda s: (
            f"separate pools need two engines, and {whole(s.cluster.gpus)} GPUs hold one "
            f"({2 * whole(replica_ranks(s))} or more do)"
        ),
        (_SERVING,),
    ),
    Rule(
        "parallelism.ep",
        lambda s: stage_ranks(s) % (s.parallelism.etp * s.parallelism.ep) == 0,
        _expert_ranks_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.sp",
        _experts_need_sequences,
        lambda s: (
            f"experts on {whole(s.parallelism.tp)} tensor parallel ranks with ep = {whole(s.parallelism.ep)} and "
            f"etp = {whole(s.parallelism.etp)} need sequence parallelism (sp true, or ep 1 with etp = tp, does)"
        ),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: either(s.parallelism.vpp == 1, s.parallelism.pp > 1),
        lambda s: f"{whole(s.parallelism.vpp)} chunks a stage need a pipeline (vpp 1, or pp of 2 or more, does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: either(s.parallelism.vpp == 1, s.parallelism.schedule in _INTERLEAVED),
        lambda s: f"{s.parallelism.schedule} has its own chunks (vpp 1, or schedule interleaved, does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: either(s.parallelism.pp > s.model.layers, s.parallelism.pp * s.parallelism.vpp <= _slots(s)),
        _chunks_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.schedule",
        lambda s: either(s.parallelism.schedule != "dualpipe", s.parallelism.pp % 2 == 0),
        lambda s: f"dualpipe needs an even number of stages, not {whole(s.parallelism.pp)} (an even pp does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.schedule",
        _turns,
        lambda s: (
            f"zero-bubble-v has two chunks a stage: {2 * whole(s.parallelism.pp)} are more than {whole(_slots(s))} "
            f"layers (pp of {whole(_slots(s)) // 2} or less does)"
        ),
        (_TRAINING,),
    ),
    Rule("parallelism.stage_balance", _balance_holds, _balance_message, (_TRAINING,)),
    Rule(
        "training.global_batch",
        _batch_divides,
        _batch_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        _interleaving_holds,
        _interleaving_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.cp",
        lambda s: s.training.sequence_length % s.parallelism.cp == 0,
        lambda s: does_not_divide(s.parallelism.cp, s.training.sequence_length, "tokens of a sequence"),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.cp",
        _ulysses_holds,
        lambda s: (
            f"ulysses splits heads: cp·tp = {whole(s.parallelism.cp * s.parallelism.tp)} does not divide "
            f"{whole(s.model.heads)} attention heads ({choice(divisors(whole(s.model.heads)))})"
        ),
        (_TRAINING,),
    ),
    Rule(
        "training.offload_layers",
        lambda s: s.training.offload_layers <= s.model.layers,
        lambda s: (
            f"{whole(s.training.offload_layers)} layers on the host are more than the {whole(s.model.layers)} there "
            f"are ({whole(s.model.layers)} or less does)"
        ),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.hsdp_replicas",
        lambda s: shards(s) % s.parallelism.hsdp_replicas == 0,
        lambda s: does_not_divide(s.parallelism.hsdp_replicas, shards(s), "data parallel ranks"),
        (_TRAINING,),
    ),
)
