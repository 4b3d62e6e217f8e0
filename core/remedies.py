"""Changes that would make a training plan fit into memory or meet its deadline, each tried before it is offered."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .ledgers import fit
from .ledgers import training_memory as held
from .ledgers.usable import usable_memory
from .legality import allowed, legal
from .machine.device import machine_of
from .machine.rates import rates
from .node_edits import over_nodes, usual_node
from .numeric import Number
from .report import Edit, Report
from .scenario import Scenario
from .scenario_model import model_of
from .training.layout import layout_of
from .training.step import balanced, time_parts
from .traits import traits
from .units import format_quantity

MOST_EDITS = 3
#: Most changes that one edit combines, and most that are tried as its last.
_MOST_COMBINED, _MOST_TRIED = 3, 5
#: Pipeline stages to try where no change on the GPUs there are is enough.
_STAGES = (1, 2, 4, 8, 16, 32)
#: How far the number of GPUs may move.
_REACH = 16


def nearby_gpus(scenario: Scenario) -> tuple[int, ...]:
    """The numbers of GPUs on which the plan is legal, from a sixteenth of its own to sixteen times as many."""
    own = scenario.cluster.gpus
    return tuple(n for n in allowed(scenario, "cluster.gpus") if own <= n * _REACH and n <= own * _REACH)


def memory_edits(scenario: Scenario, tight: bool) -> tuple[Edit, ...]:
    """Changes after which the plan fits (a tight one: with room), cheapest in time first.

    Where none does alone, the first combination that does; where there is none, the largest savings, labelled so.
    """
    short = _shortage(scenario, tight)
    enough: dict[str, Edit] = {}
    tried = []
    for edit in _candidates(scenario):
        path = edit.changes[0][0]
        if path in enough or len(enough) == MOST_EDITS:
            continue  # of the changes of one field the first that is enough will do
        after = _after(scenario, edit, tight)
        if after <= 0:
            enough[path] = edit
        elif after < short:
            tried.append((edit, after))
    if enough:
        return tuple(enough.values())
    tried.sort(key=lambda pair: pair[1])
    if combined := _combined(scenario, [edit for edit, _ in tried], tight) or _more_nodes(scenario, tight):
        return (combined,)
    savings = ((edit, format_quantity(short - after, "bytes")) for edit, after in tried[:MOST_EDITS])
    return tuple(Edit(f"{edit.label}: −{saved}", edit.changes) for edit, saved in savings)


def deadline_edits(
    scenario: Scenario, values: dict[str, Any], evaluate: Callable[[Scenario], Report]
) -> Iterator[Edit]:
    """The least legal number of GPUs that meets the deadline, and the tokens that the present ones train on in it."""
    more = np.array([n for n in nearby_gpus(scenario) if n > scenario.cluster.gpus], dtype=float)
    if more.size:
        report = evaluate(scenario.with_("cluster.gpus", more))
        enough = more[np.broadcast_to((report["training.over_deadline"] <= 1) & report["memory.fits"], more.shape)]
        if enough.size:
            yield _more_gpus(int(enough[0]))
    tokens = math.floor(values["training.steps"] / values["training.over_deadline"]) * values["compute.tokens_per_step"]
    if not tokens:
        return
    unit = 10.0 ** (math.floor(math.log10(tokens)) - 1)
    fewer = math.floor(tokens / unit) * unit
    yield Edit(f"{format_quantity(fewer, 'tokens', 2)} tokens", (("training.tokens", fewer),))


def _candidates(scenario: Scenario) -> Iterator[Edit]:
    """Single changes that may save memory, cheapest in time first."""
    training, parallel = scenario.training, scenario.parallelism
    if parallel.tp > 1 and not parallel.sp:
        yield Edit("Sequence parallel", (("parallelism.sp", True),))
    if training.attention != "flash":
        yield Edit("Flash attention", (("training.attention", "flash"),))
    elif training.recompute == "none":
        yield Edit("Selective recompute", (("training.recompute", "selective"),))
    yield from _of_kinds(scenario)
    for size in sorted({int(training.micro_batch) // 2, 1}, reverse=True):
        if 0 < size < training.micro_batch:
            yield Edit(f"Micro-batch {size}", (("training.micro_batch", size),))
    if scenario.fp8.cache_weights and "low precision" in traits(scenario):
        yield Edit("No 8-bit weights kept", (("fp8.cache_weights", False),))
    if training.recompute != "full":
        yield Edit("Full recompute", (("training.recompute", "full"),))
    # a pipeline keeps its gradients whole and its weights gathered until the end of the step
    highest = 1 if parallel.pp > 1 else 3
    for stage in sorted({parallel.zero + 1, highest}):
        if parallel.zero < stage <= highest:
            yield Edit(f"ZeRO-{stage}", (("parallelism.zero", stage),))
    node = int(scenario.cluster.gpus_per_node)
    for wider in sorted({2 * int(parallel.tp), node}):
        if parallel.tp < wider <= node:
            yield Edit(f"TP {wider}", (("parallelism.tp", wider),))


def _of_kinds(scenario: Scenario) -> Iterator[Edit]:
    """Changes that only layers of some kinds know."""
    experts, ep = int(scenario.model.experts), int(scenario.parallelism.ep)
    if scenario.training.recompute in ("none", "selective") and "latent" in traits(scenario):
        yield Edit("Recompute what latents expand to", (("training.recompute", "selective-up"),))
    for wider in (2 * ep, 4 * ep):
        if experts and experts % wider == 0:
            yield Edit(f"EP {wider}", (("parallelism.ep", wider),))


def _after(scenario: Scenario, edit: Edit, tight: bool) -> float:
    """Bytes that the plan is still short of after an edit; infinite where that is not legal."""
    changed = edit.applied(scenario)
    return _shortage(changed, tight) if legal(changed) else math.inf


def _combined(scenario: Scenario, edits: list[Edit], tight: bool) -> Edit | None:
    """The edits that save most together, at most three, as one; with more GPUs where they need them.

    `edits` come by what they save alone. A third change is one of those that did best as the second.
    """
    best = edits[0] if edits else Edit("", ())
    for _ in range(_MOST_COMBINED - 1):
        tried = [(_after(scenario, joined, tight), joined, edit) for edit, joined in _joined(best, edits)]
        if enough := [joined for after, joined, _ in tried if after <= 0]:
            return enough[0]
        tried.sort(key=lambda entry: entry[0])
        best = tried[0][1] if tried else best
        edits = [edit for _, _, edit in tried[:_MOST_TRIED]]
    changed = best.applied(scenario)
    more = np.array([n for n in nearby_gpus(changed) if n > scenario.cluster.gpus], dtype=float)
    if not more.size:
        return None
    short = np.broadcast_to(_shortage(changed.with_("cluster.gpus", more), tight), more.shape)
    if not (short <= 0).any():
        return None
    return _join(best, _more_gpus(int(more[short <= 0][0])))


def _more_nodes(scenario: Scenario, tight: bool) -> Edit | None:
    """Tensor parallel over all of a node and a stage on each of the fewest nodes that hold the plan."""
    node = int(min(scenario.cluster.accelerator.link.domain, usual_node()))
    edits = over_nodes(scenario.cluster, node, _STAGES, (("parallelism.sp", True),))
    return next((edit for edit in edits if _after(scenario, edit, tight) <= 0), None)


def _joined(first: Edit, edits: list[Edit]) -> Iterator[tuple[Edit, Edit]]:
    """Each edit that changes something else, alone and together with the first."""
    taken = {path for path, _ in first.changes}
    return ((edit, _join(first, edit)) for edit in edits if not taken & {path for path, _ in edit.changes})


def _join(first: Edit, second: Edit) -> Edit:
    return Edit(" + ".join(filter(None, (first.label, second.label))), (*first.changes, *second.changes))


def _more_gpus(gpus: int) -> Edit:
    return Edit(f"{format_quantity(gpus, 'count')} GPUs", (("cluster.gpus", gpus),))


def _shortage(scenario: Scenario, tight: bool) -> Any:
    """Bytes that a plan needs beyond what a device has, or beyond the share of it that leaves room."""
    constants, model, device = rates(scenario), model_of(scenario), scenario.cluster.accelerator
    layout = layout_of(scenario, constants)
    if scenario.parallelism.stage_balance == "by-time":
        layout = balanced(scenario, layout, time_parts(scenario, model, layout, machine_of(scenario, constants)))
    peak = held.peak_memory(held.TrainingMemory(scenario, model, layout)).total
    margins = constants.peak_margin, constants.context_bytes, constants.communicator_bytes
    need: Number = fit.needed_bytes(peak, *margins, scenario.cluster.gpus)
    return need - usable_memory(device) * (constants.tight if tight else 1.0)
