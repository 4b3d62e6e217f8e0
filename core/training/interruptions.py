"""What failures and checkpoints cost a training, by result key."""

from __future__ import annotations

from typing import Any

from .. import reliability as of
from ..catalogue import table
from ..ledgers.adapters import adapters_of, trained_parameters
from ..ledgers.states import state_widths
from ..model.layers import Model
from ..scenario import Scenario


def interruptions(scenario: Scenario, model: Model) -> dict[str, Any]:
    """Checkpoints and their interval, time between failures, and the share of the time that trains."""
    cluster, stated = scenario.cluster, scenario.reliability
    framework = table("frameworks")[scenario.training.framework]
    widths = state_widths(scenario, framework)
    trained = trained_parameters(model, adapters_of(scenario.training, framework))
    size = of.checkpoint_bytes(trained, widths.weights, widths.master, widths.momentum, widths.variance)
    write = of.write_seconds(size, stated.storage_bandwidth)
    copy = of.copy_seconds(size, cluster.gpus, cluster.accelerator.pcie)
    block = {"stated": stated.checkpoint_seconds, "synchronous": write, "asynchronous": copy}[stated.checkpointing]
    nodes = of.node_count(cluster.gpus, cluster.gpus_per_node)
    mtbf = of.mean_time_between_failures(nodes, stated.node_failures_per_1000_days)
    interval = of.checkpoint_interval(block, mtbf)
    return {
        "training.effective_ratio": of.effective_ratio(block, interval, stated.restart_seconds, mtbf),
        "training.mean_time_between_failures_s": mtbf,
        "training.checkpoint_interval_s": interval,
        "reliability.checkpoint_bytes": size,
        "reliability.checkpoint_write_s": write,
        "reliability.checkpoint_copy_s": copy,
        "reliability.checkpoint_s": block,
        "reliability.young_interval_s": of.young_interval(block, mtbf),
        "reliability.checkpoint_share": of.checkpoint_share(block, interval),
        "reliability.lost_share": of.lost_share(interval, mtbf),
        "reliability.restart_share": of.restart_share(stated.restart_seconds, mtbf),
    }
