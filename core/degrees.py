"""Ranks and batches that the degrees of a plan come to, as its rules ask for them."""

from __future__ import annotations

from .numeric import Number, maximum
from .scenario import Scenario

TRAINING = "training"


def replica_ranks(s: Scenario) -> Number:
    """GPUs of one replica of the model."""
    others = s.parallelism.cp if s.kind == TRAINING else s.serving.attention_dp
    return s.parallelism.tp * s.parallelism.pp * others


def replicas(s: Scenario) -> Number:
    """Data parallel degree."""
    return s.cluster.gpus // replica_ranks(s)


def batch_step(s: Scenario) -> Number:
    """Sequences that all replicas compute together in one micro-batch."""
    return s.training.micro_batch * replicas(s)


def micro_batches(s: Scenario) -> Number:
    return s.training.global_batch // maximum(batch_step(s), 1)


def shards(s: Scenario) -> Number:
    """Ranks over which optimizer, gradients or weights may be sharded."""
    return maximum(replicas(s), 1) * s.parallelism.cp


def stage_ranks(s: Scenario) -> Number:
    """GPUs of one pipeline stage over all replicas; in serving those of one engine."""
    p = s.parallelism
    return p.tp * p.cp * maximum(replicas(s), 1) if s.kind == TRAINING else p.tp * s.serving.attention_dp
