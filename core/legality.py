"""Which layouts are possible at all: what divides what, before anything is computed.

Each rule is written once and answers for one scenario or for arrays of them. That a plan does not fit into memory is
not a question of legality: it is a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .degrees import batch_step, replica_ranks
from .errors import ScenarioError
from .layout_rules import RULES
from .model.consistency import absent, consistent, faults
from .numeric import both
from .rule_words import divisors
from .scenario import Scenario


@dataclass(frozen=True)
class Violation:
    """A rule that the plan breaks: the field to change, and a message that says what would do."""

    field: str
    message: str


def violations(scenario: Scenario) -> list[Violation]:
    """The rules that one scenario breaks, in the order in which to mend them."""
    contradictions = [Violation(field, message) for field, message in faults(scenario.model)]
    if absent(scenario.model):
        return contradictions
    return contradictions + [
        Violation(rule.field, rule.message(scenario))
        for rule in RULES
        if scenario.kind in rule.kinds and not rule.holds(scenario)
    ]


def legal(scenario: Scenario) -> Any:
    """Whether the plan breaks no rule: a bool, or an array of them where the scenario holds arrays."""
    result: Any = consistent(scenario.model)
    if result is False:
        return False
    for rule in RULES:
        if scenario.kind in rule.kinds:
            result = both(result, rule.holds(scenario))
    return result


def require_legal(scenario: Scenario, file: str = "", lines: dict[str, int] | None = None) -> None:
    """Raises ScenarioError for the first rule that is broken, with the line of its field, else of the section."""
    for violation in violations(scenario):
        path, known = violation.field, lines or {}
        while path and path not in known:
            path = path.rpartition(".")[0]
        raise ScenarioError(file, known.get(path, 0), violation.field, violation.message)


def refusal(scenario: Scenario, path: str, value: Any) -> str:
    """Why a value at a path makes the plan illegal, in words; empty where it does not."""
    broken = violations(scenario.with_(path, value))
    return broken[0].message if broken else ""


def allowed(scenario: Scenario, path: str) -> tuple[int, ...]:
    """The whole numbers at a path with which the plan as it stands is legal, in ascending order.

    Meant for counts that divide something: degrees, chunks, micro-batch, global batch and GPUs.
    """
    values = np.array(_candidates(scenario, path))
    holds = np.broadcast_to(legal(scenario.with_(path, values)), values.shape)
    return tuple(values[holds].tolist())


def _micro_batches(scenario: Scenario) -> int:
    """Micro-batches of a step over all replicas."""
    return int(scenario.training.global_batch // scenario.training.micro_batch)


def _candidates(scenario: Scenario, path: str) -> Iterable[int]:
    if path == "parallelism.vpp":
        return range(1, int(scenario.model.layers) + 1)
    if path == "training.micro_batch":
        return divisors(int(scenario.training.global_batch))
    if path == "cluster.gpus" and scenario.kind == "training":
        ranks, micro_batches = int(replica_ranks(scenario)), _micro_batches(scenario)
        return [ranks * replicas for replicas in divisors(max(1, micro_batches))]
    if path in ("training.global_batch", "cluster.gpus"):
        step = max(1, int(replica_ranks(scenario) if path == "cluster.gpus" else batch_step(scenario)))
        return [step * count for count in range(1, 1025)]
    return divisors(int(scenario.cluster.gpus))
