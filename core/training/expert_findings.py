"""What a training plan should know of its routed experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalogue import table
from ..machine.rates import rates
from ..report import Edit, Finding
from ..scenario import Scenario
from ..units import format_quantity
from ..words import plural
from .layout import layout_of

#: Ways to launch less, from the easiest on.
_CAPTURES = (("partial", "Capture all but the experts"), ("full", "Capture the whole iteration"))


def expert_launches(scenario: Scenario, values: dict[str, Any]) -> Iterator[Finding]:
    """The host launches the kernels of many small experts one by one."""
    share = values.get("time.expert_launches_s", 0.0) / values["time.step_s"]
    if share < 0.15:
        return
    edits = [Edit(words, (("moe.capture", word),)) for word, words in _CAPTURES if word != scenario.moe.capture]
    message = (
        f"Launching the kernels of experts one by one takes {format_quantity(share, 'ratio', 2)} of the step: "
        "graphs that capture them, larger micro-batches or fewer experts a rank spare it."
    )
    yield Finding("expert-launches", "warning", message, "moe.capture", tuple(edits))


def idle_routing_limit(scenario: Scenario, _values: dict[str, Any]) -> Iterator[Finding]:
    """A limit on the domains that a token may reach where it bars none, or where kernels do not profit from it."""
    limit, dispatch = scenario.moe.route_groups, scenario.parallelism.expert_dispatch
    if limit is None or not scenario.model.experts:
        return
    domains = layout_of(scenario, rates(scenario)).expert_group.nodes
    if domains > 1 and not table("dispatchers")[dispatch]["once_a_node"]:
        message = f"A routing limit spares {dispatch} dispatch nothing: it does not send a token once a domain."
        edits = (Edit("deepep", (("parallelism.expert_dispatch", "deepep"),)),)
        yield Finding("routing-limit-idle", "hint", message, "parallelism.expert_dispatch", edits)
    elif limit >= domains:
        ranks = f"the {plural(scenario.parallelism.ep, 'rank')} of the experts span"
        where = f"{ranks} {plural(domains, 'scale-up domain')}"
        message = f"A routing limit of {format_quantity(limit, 'count')} bars nothing: {where}."
        yield Finding("routing-limit-idle", "hint", message, "moe.route_groups")
