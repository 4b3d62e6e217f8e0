"""The rules of a layout: what divides what, each written once for one scenario or for arrays of them.

Sources: Megatron-LM (arXiv 1909.08053, 2104.04473) for heads, stages and interleaving; DeepSpeed Ulysses
(arXiv 2309.14509) for heads under context parallelism; DualPipe (arXiv 2412.19437).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .model.consistency import has_heads
from .model.layers import build
from .numeric import Number, both, maximum
from .scenario import Scenario
from .terms import plain

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


def divisors(number: int) -> list[int]:
    """All divisors in ascending order."""
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return low + [number // d for d in reversed(low) if d * d != number]


def _whole(value: Number) -> int:
    return int(plain(value))


def _choice(values: list[int]) -> str:
    """ "1, 2, 4 or 8 do", cut in the middle where there are many."""
    if len(values) > 12:
        values = values[:11] + values[-1:]
    words = [str(value) for value in values]
    return f"{words[0]} does" if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]} do"


def _does_not_divide(value: Number, total: Number, what: str) -> str:
    return f"{_whole(value)} does not divide {_whole(total)} {what} ({_choice(divisors(_whole(total)))})"


def _multiples(value: Number, step: Number) -> str:
    """The multiples of `step` beside a value."""
    step = _whole(step)
    below = _whole(value) // step * step
    return _choice([below, below + step] if below else [step])


def replica_ranks(s: Scenario) -> Number:
    """GPUs of one replica of the model."""
    others = s.parallelism.cp if s.kind == _TRAINING else s.serving.attention_dp
    return s.parallelism.tp * s.parallelism.pp * others


def _replicas(s: Scenario) -> Number:
    """Data parallel degree."""
    return s.cluster.gpus // replica_ranks(s)


def batch_step(s: Scenario) -> Number:
    """Sequences that all replicas compute together in one micro-batch."""
    return s.training.micro_batch * _replicas(s)


def _micro_batches(s: Scenario) -> Number:
    return s.training.global_batch // maximum(batch_step(s), 1)


def _either(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.logical_or(first, second)
    return bool(first) or bool(second)


def _kv_heads_fit(s: Scenario) -> Any:
    tp, heads = s.parallelism.tp, maximum(s.model.kv_heads, 1)
    return _either(heads % tp == 0, tp % heads == 0)


def _kv_heads_message(s: Scenario) -> str:
    tp, heads, kv = _whole(s.parallelism.tp), _whole(s.model.heads), _whole(s.model.kv_heads)
    would_do = [d for d in divisors(heads) if kv % d == 0 or d % kv == 0]
    return f"{tp} neither divides {kv} KV heads nor is a multiple of them ({_choice(would_do)})"


def _gpus_message(s: Scenario) -> str:
    p = s.parallelism
    degrees = {"tp": p.tp, "pp": p.pp} | ({"cp": p.cp} if s.kind == _TRAINING else {})
    if s.kind == _SERVING and s.serving.attention_dp > 1:
        degrees["attention_dp"] = s.serving.attention_dp
    product = "·".join(str(_whole(degree)) for degree in degrees.values())
    gpus, ranks = _whole(s.cluster.gpus), _whole(replica_ranks(s))
    return f"{gpus} is not a multiple of {'·'.join(degrees)} = {product} = {ranks} ({_multiples(gpus, ranks)})"


def _batch_divides(s: Scenario) -> Any:
    return s.training.global_batch % maximum(batch_step(s), 1) == 0


def _batch_message(s: Scenario) -> str:
    batch, micro, replicas = (_whole(v) for v in (s.training.global_batch, s.training.micro_batch, _replicas(s)))
    step = micro * replicas
    return f"{batch} is not a multiple of micro_batch·dp = {micro}·{replicas} = {step} ({_multiples(batch, step)})"


def _interleaving_holds(s: Scenario) -> Any:
    """Asked only of plans whose replicas and micro-batches are whole."""
    whole = both(batch_step(s) > 0, _batch_divides(s))
    return _either(_either(s.parallelism.vpp == 1, whole == 0), _micro_batches(s) % s.parallelism.pp == 0)


def _interleaving_message(s: Scenario) -> str:
    pp, count = _whole(s.parallelism.pp), _whole(_micro_batches(s))
    step = _whole(batch_step(s)) * pp
    batches = _multiples(s.training.global_batch, step)
    return f"interleaving needs pp = {pp} to divide {_count(count, 'micro-batch')} (global batches of {batches})"


def _chunks_message(s: Scenario) -> str:
    pp, vpp, slots = (_whole(v) for v in (s.parallelism.pp, s.parallelism.vpp, _slots(s)))
    what = "layers, embedding and head" if s.parallelism.stage_balance == "slots" else "layers"
    return f"{pp} stages of {vpp} chunks are more than {slots} {what} (vpp of {slots // pp} or less does)"


def _slots(s: Scenario) -> Number:
    """What is dealt to the chunks of a pipeline, none of which may be empty."""
    return s.model.layers + 2 if s.parallelism.stage_balance == "slots" else s.model.layers


def _balance_holds(s: Scenario) -> Any:
    balance = s.parallelism.stage_balance
    if isinstance(balance, str):
        return True
    return both(s.parallelism.pp == len(balance), s.model.layers == sum(balance))


def _balance_message(s: Scenario) -> str:
    balance = s.parallelism.stage_balance
    assert not isinstance(balance, str)
    stages, layers = _whole(s.parallelism.pp), _whole(s.model.layers)
    return (
        f"{len(balance)} numbers with sum {sum(balance)} do not share {layers} layers among {stages} stages "
        f"({_count(stages, 'number')} with sum {layers} would)"
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def _shards(s: Scenario) -> Number:
    """Ranks over which optimizer, gradients or weights may be sharded."""
    return maximum(_replicas(s), 1) * s.parallelism.cp


def _ulysses_holds(s: Scenario) -> Any:
    if s.parallelism.context_scheme != "ulysses":
        return True
    return s.model.heads % (s.parallelism.cp * s.parallelism.tp) == 0


def _stage_ranks(s: Scenario) -> Number:
    """GPUs of one pipeline stage over all replicas; in serving those of one engine."""
    p = s.parallelism
    return p.tp * p.cp * maximum(_replicas(s), 1) if s.kind == _TRAINING else p.tp * s.serving.attention_dp


def _experts_dealt_message(s: Scenario) -> str:
    ep, experts = _whole(s.parallelism.ep), _whole(s.model.experts)
    if not experts:
        return f"{s.model.name} has no routed experts to deal over {ep} ranks (1 does)"
    return _does_not_divide(ep, experts, "experts")


def _expert_ranks_message(s: Scenario) -> str:
    p, ranks = s.parallelism, _whole(_stage_ranks(s))
    etp = _whole(p.etp)
    would_do = [d for d in divisors(ranks) if etp * d <= ranks and ranks % (etp * d) == 0]
    product = f"etp·ep = {etp}·{_whole(p.ep)} = {etp * _whole(p.ep)}"
    would = f"ep of {_choice(would_do)}" if would_do else "etp of 1 does"
    return f"{product} does not divide the {_count(ranks, 'GPU')} of a stage ({would})"


def _experts_need_sequences(s: Scenario) -> Any:
    p = s.parallelism
    if p.sp or not _routed(s):
        return True
    return _either(p.tp == 1, both(p.ep == 1, p.etp == p.tp))


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
    return _does_not_divide(s.parallelism.tp, size, "heads or channels of some layers")


RULES: tuple[Rule, ...] = (
    Rule(
        "model.experts_per_token",
        lambda s: s.model.experts_per_token <= s.model.experts,
        lambda s: (
            f"{_whole(s.model.experts_per_token)} is more than the {_whole(s.model.experts)} experts there are "
            f"({_whole(s.model.experts)} or less does)"
        ),
    ),
    Rule(
        "parallelism.ep",
        lambda s: _either(s.parallelism.ep == 1, both(s.model.experts > 0, s.model.experts % s.parallelism.ep == 0)),
        _experts_dealt_message,
    ),
    Rule(
        "parallelism.etp",
        lambda s: _either(s.parallelism.etp == 1, s.model.experts > 0),
        lambda s: f"{s.model.name} has no routed experts to split over {_whole(s.parallelism.etp)} ranks (1 does)",
        (_TRAINING,),
    ),
    Rule(
        "model.heads",
        lambda s: _either(s.model.heads > 0, not has_heads(s.model)),
        lambda s: "attention needs heads (1 or more does)",
    ),
    Rule(
        "model.kv_heads",
        lambda s: s.model.heads % maximum(s.model.kv_heads, 1) == 0,
        lambda s: _does_not_divide(s.model.kv_heads, s.model.heads, "attention heads"),
    ),
    Rule(
        "model.heads",
        lambda s: _either(s.model.head_dim > 0, s.model.hidden_size % maximum(s.model.heads, 1) == 0),
        lambda s: (
            f"{_whole(s.model.heads)} does not divide hidden size {_whole(s.model.hidden_size)} "
            "(another number of heads, or model.head_dim, would do)"
        ),
    ),
    Rule(
        "parallelism.tp",
        lambda s: s.model.heads % s.parallelism.tp == 0,
        lambda s: _does_not_divide(s.parallelism.tp, s.model.heads, "attention heads"),
    ),
    Rule("parallelism.tp", _kv_heads_fit, _kv_heads_message),
    Rule("parallelism.tp", _splits, _splits_message, (_SERVING,)),
    Rule(
        "serving.attention_dp",
        lambda s: _either(s.serving.attention_dp == 1, s.model.experts > 0),
        lambda s: f"{s.model.name} has no experts to share (attention_dp 1 does)",
        (_SERVING,),
    ),
    Rule(
        "parallelism.ep",
        lambda s: _stage_ranks(s) % s.parallelism.ep == 0,
        lambda s: _does_not_divide(s.parallelism.ep, _stage_ranks(s), "ranks of tp·attention_dp"),
        (_SERVING,),
    ),
    Rule(
        "parallelism.pp",
        lambda s: s.parallelism.pp <= s.model.layers,
        lambda s: (
            f"{_whole(s.parallelism.pp)} stages are more than {_whole(s.model.layers)} layers "
            f"({_whole(s.model.layers)} or less does)"
        ),
    ),
    Rule("cluster.gpus", lambda s: s.cluster.gpus % replica_ranks(s) == 0, _gpus_message),
    Rule(
        "serving.disaggregated",
        lambda s: _either(not s.serving.disaggregated, s.cluster.gpus >= 2 * replica_ranks(s)),
        lambda s: (
            f"separate pools need two engines, and {_whole(s.cluster.gpus)} GPUs hold one "
            f"({2 * _whole(replica_ranks(s))} or more do)"
        ),
        (_SERVING,),
    ),
    Rule(
        "parallelism.ep",
        lambda s: _stage_ranks(s) % (s.parallelism.etp * s.parallelism.ep) == 0,
        _expert_ranks_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.sp",
        _experts_need_sequences,
        lambda s: (
            f"experts on {_whole(s.parallelism.tp)} tensor parallel ranks with ep = {_whole(s.parallelism.ep)} and "
            f"etp = {_whole(s.parallelism.etp)} need sequence parallelism (sp true, or ep 1 with etp = tp, does)"
        ),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: _either(s.parallelism.vpp == 1, s.parallelism.pp > 1),
        lambda s: f"{_whole(s.parallelism.vpp)} chunks a stage need a pipeline (vpp 1, or pp of 2 or more, does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: _either(s.parallelism.vpp == 1, s.parallelism.schedule in _INTERLEAVED),
        lambda s: f"{s.parallelism.schedule} has its own chunks (vpp 1, or schedule interleaved, does)",
        (_TRAINING,),
    ),
    Rule(
        "parallelism.vpp",
        lambda s: _either(s.parallelism.pp > s.model.layers, s.parallelism.pp * s.parallelism.vpp <= _slots(s)),
        _chunks_message,
        (_TRAINING,),
    ),
    Rule(
        "parallelism.schedule",
        lambda s: _either(s.parallelism.schedule != "dualpipe", s.parallelism.pp % 2 == 0),
        lambda s: f"dualpipe needs an even number of stages, not {_whole(s.parallelism.pp)} (an even pp does)",
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
        lambda s: _does_not_divide(s.parallelism.cp, s.training.sequence_length, "tokens of a sequence"),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.cp",
        _ulysses_holds,
        lambda s: (
            f"ulysses splits heads: cp·tp = {_whole(s.parallelism.cp * s.parallelism.tp)} does not divide "
            f"{_whole(s.model.heads)} attention heads ({_choice(divisors(_whole(s.model.heads)))})"
        ),
        (_TRAINING,),
    ),
    Rule(
        "training.offload_layers",
        lambda s: s.training.offload_layers <= s.model.layers,
        lambda s: (
            f"{_whole(s.training.offload_layers)} layers on the host are more than the {_whole(s.model.layers)} there "
            f"are ({_whole(s.model.layers)} or less does)"
        ),
        (_TRAINING,),
    ),
    Rule(
        "parallelism.hsdp_replicas",
        lambda s: _shards(s) % s.parallelism.hsdp_replicas == 0,
        lambda s: _does_not_divide(s.parallelism.hsdp_replicas, _shards(s), "data parallel ranks"),
        (_TRAINING,),
    ),
)
