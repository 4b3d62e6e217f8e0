"""Gradients and weights on their way between the ranks that hold the same parameters, as formulas.

Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer and its bucket rule.
"""

from __future__ import annotations

from ..numeric import Number, floor, maximum, minimum, where
from ..terms import formula


@formula("ψ̄", "parameters")
def mean_stage_parameters(layers: Number, block: Number, pipeline: Number) -> Number:
    """Block parameters a rank reduces, mean over the stages."""
    return layers * block / pipeline


@formula("ψ", "parameters")
def reduced_parameters(blocks: Number, embedding: Number, head: Number, pipeline: Number) -> Number:
    """Parameters that a rank of the first stage reduces: its blocks and the embedding; both ends in a single stage."""
    return blocks + embedding + where(pipeline > 1, 0.0, head)


@formula("w·ψ", "B")
def buffer_bytes(width: Number, parameters: Number) -> Number:
    """Bytes of a gradient or weight buffer."""
    return width * parameters


@formula("buckets", "pieces", "one a model chunk, at least one for each bucket size")
def buckets(virtual: Number, buffer: Number, bucket: Number) -> Number:
    """Pieces in which a gradient buffer is reduced."""
    return maximum(1, floor(maximum(virtual, buffer / bucket)))


@formula("(1 − 1/buckets)·t_bwd", "s", "the last bucket has nothing left to hide behind")
def backward_window(pieces: Number, layers: Number, pipeline: Number, backward: Number) -> Number:
    """Compute behind which the gradient reduction hides; half of the backward pass where there is one bucket."""
    return where(pieces > 1, 1 - 1 / pieces, 0.5) * layers / pipeline * backward


@formula("t_fwd", "s")
def forward_window(layers: Number, pipeline: Number, forward: Number) -> Number:
    """Compute behind which the parameter gathering hides: the next forward pass."""
    return layers / pipeline * forward


@formula("x", "s", "Zhao 2023, arXiv 2304.11277: layer by layer with prefetch; first and last layer have no window")
def sharded_exposed(
    micro_batches: Number,
    reductions: Number,
    layers: Number,
    forward_exposed: Number,
    gather_exposed: Number,
    backward_exposed: Number,
    gather: Number,
    scatter: Number,
    ends: Number,
) -> Number:
    """What ZeRO-3 traffic costs a step without a pipeline; backward passes that reduce nothing only gather."""
    return (
        micro_batches * (layers * forward_exposed + gather + 0.5 * ends)
        + layers * ((micro_batches - reductions) * gather_exposed + reductions * backward_exposed)
        + reductions * scatter
    )


@formula("x", "s", "pipelines over FSDP gather once and reduce once a step")
def sharded_exposed_in_pipeline(
    layers: Number, pipeline: Number, gather: Number, forward: Number, scatter: Number, backward: Number, ends: Number
) -> Number:
    """What ZeRO-3 traffic costs a step with a pipeline."""
    return (
        maximum(0.0, layers / pipeline * (gather - forward))
        + maximum(0.0, layers / pipeline * (scatter - backward))
        + gather
        + scatter
        + ends
    )


@formula("r", "times", "PyTorch FSDP, no_sync; pipelines reduce once a step: MegaScale, arXiv 2402.15627")
def reductions_of_step(micro_batches: Number, pipeline: Number, whole: Number) -> Number:
    """Gradient reductions of a step: one a micro-batch, or one where gradients stay whole until the last."""
    return where(pipeline > 1, 1.0, where(whole > 0, 1.0, micro_batches))


@formula("D > 1", "s")
def only_if_sharded(ranks: Number, seconds: Number) -> Number:
    """Nothing is reduced where there is one rank."""
    return where(ranks > 1, seconds, 0.0)


@formula("w_g·ψ/D_s", "B", "Zhao 2023, arXiv 2304.11277: hybrid sharding")
def replica_bytes(width: Number, parameters: Number, shards: Number) -> Number:
    """Gradient shard of a rank, which is summed over the replicas of the shard group."""
    return width * parameters / shards


@formula("S_embedding + S_head", "B")
def ends_bytes(width: Number, embedding: Number, head: Number, pipeline: Number) -> Number:
    """Bytes of the embedding and, where there is one stage, the head."""
    return width * (embedding + where(pipeline > 1, 0.0, head))


@formula("min", "s")
def at_most(exposed: Number, seconds: Number) -> Number:
    """Exposed time of some traffic, which is no more than all of its time."""
    return minimum(exposed, seconds)


@formula("share", "s")
def in_proportion(exposed: Number, seconds: Number, all_seconds: Number) -> Number:
    """Exposed time of one flow: its share of the time of all flows of the group."""
    return exposed * seconds / maximum(all_seconds, 1e-30)


@formula("n·(L/p·t + t_ends)", "s")
def flow_seconds(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Time of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)


@formula("n·(L/p·S + S_ends)", "B")
def flow_bytes(count: Number, layers: Number, pipeline: Number, block: Number, ends: Number) -> Number:
    """Bytes of a collective over all blocks of a stage and its ends, several times a step."""
    return count * (layers / pipeline * block + ends)
