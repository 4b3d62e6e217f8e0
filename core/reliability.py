"""Failures, checkpoints and the share of time that trains.

Sources: Young 1974 (CACM 17-9); Daly 2006 (FGCS 22-3); Llama 3, arXiv 2407.21783 section 3.3.
"""

from __future__ import annotations

from .numeric import Number, ceil, maximum, minimum, sqrt, where
from .terms import formula


@formula("nodes", "nodes")
def node_count(gpus: Number, gpus_per_node: Number) -> Number:
    """Servers of a cluster."""
    return ceil(gpus / gpus_per_node)


@formula("M", "s", "419 unexpected interruptions in 54 days on 16 384 H100: 3.8 per 1000 node-days (arXiv 2407.21783)")
def mean_time_between_failures(nodes: Number, failures_per_1000_days: Number) -> Number:
    """Mean time between unexpected failures of a job; a job without failures gets 10^12 s."""
    return 86400 * 1000 / maximum(nodes * failures_per_1000_days, 8.64e-5)


@formula("τ*", "s", "Daly 2006, higher-order estimate")
def checkpoint_interval(checkpoint: Number, mtbf: Number) -> Number:
    """Best time between checkpoints; an hour for a job without failures."""
    return where(
        mtbf >= 1e12,
        3600.0,
        where(
            checkpoint < 2 * mtbf,
            sqrt(2 * checkpoint * mtbf) * (1 + sqrt(checkpoint / (2 * mtbf)) / 3 + checkpoint / (2 * mtbf) / 9)
            - checkpoint,
            mtbf,
        ),
    )


@formula("τ_Y", "s", "Young 1974, first order")
def young_interval(checkpoint: Number, mtbf: Number) -> Number:
    """Best time between checkpoints to first order; the higher-order estimate is used."""
    return sqrt(2 * checkpoint * mtbf)


@formula("N·(w + K)", "B", leaves_out="states of the data loader and of random numbers")
def checkpoint_bytes(parameters: Number, weights: Number, master: Number, momentum: Number, variance: Number) -> Number:
    """One checkpoint: weights, their master copy and the moments of the optimizer."""
    return parameters * (weights + master + momentum + variance)


@formula("t_write", "s", leaves_out="metadata; the slowest writer")
def write_seconds(size: Number, storage: Number) -> Number:
    """Time to write a checkpoint to storage."""
    return size / storage


@formula("δ", "s", "the copy blocks, writing goes on beside the training", "pinned buffers that are too small")
def copy_seconds(size: Number, gpus: Number, host_link: Number) -> Number:
    """Time to copy a GPU's share of a checkpoint to its host."""
    return size / gpus / host_link


@formula("δ/τ", "share")
def checkpoint_share(checkpoint: Number, interval: Number) -> Number:
    """Share of the time that checkpoints block."""
    return checkpoint / maximum(interval, 1e-9)


@formula("τ/2M", "share")
def lost_share(interval: Number, mtbf: Number) -> Number:
    """Share of the time whose work is lost: half an interval a failure."""
    return minimum(interval, 1e12) / 2 / mtbf


@formula("R/M", "share")
def restart_share(restart: Number, mtbf: Number) -> Number:
    """Share of the time that restarts take."""
    return restart / mtbf


@formula("ETTR", "share", "Young 1974; Daly 2006", "overlapping failures")
def effective_ratio(checkpoint: Number, interval: Number, restart: Number, mtbf: Number) -> Number:
    """Share of wall time that makes progress: less checkpoints, lost work and restarts; 0 where they take all of it."""
    return maximum(0.0, 1 - checkpoint / maximum(interval, 1e-9) - (minimum(interval, 1e12) / 2 + restart) / mtbf)
