"""What drafts do to the decoding of a plan: tokens a cycle, the pass that checks them, gain and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.kinds.mixer import present
from ..numeric import Number, is_array
from ..scenario import Scenario
from ..sums import total_seconds
from ..terms import unrecorded
from . import speculative, steady
from .iteration import Iteration, Pass

if TYPE_CHECKING:
    from .plan import Plan

#: Most draft tokens that are tried.
_MOST_DRAFTS = 16
#: Batches between which the end of the gain is looked for.
_BATCHES = tuple(float(2**power) for power in range(13))


@dataclass(frozen=True)
class Drafting:
    """Speculative decoding of a plan: drafts of a cycle, tokens that come of them, and the passes it is made of."""

    drafts: Number
    tokens: Number
    scenario: Scenario
    passes: Pass

    @staticmethod
    def of(scenario: Scenario, passes: Pass) -> Drafting | None:
        """The drafting of a scenario; None without drafts."""
        own = scenario.serving.speculative
        if not present(own.draft_tokens):
            return None
        tokens = speculative.tokens_per_cycle(own.acceptance, own.draft_tokens)
        return Drafting(own.draft_tokens, tokens, scenario, passes)

    def gain(self, sequences: Number, context: Number, step: Iteration) -> Number:
        """How many times faster tokens come than by the decode step of these sequences."""
        check = self.passes.check(sequences, context, speculative.checked_tokens(self.drafts))
        ratio = speculative.check_ratio(check.seconds, step.seconds)
        return speculative.speedup(self.tokens, self.drafts, self.cost(step), ratio)

    def cost(self, step: Iteration) -> Number:
        """Time of one draft over that of a decode step."""
        own = self.scenario.serving.speculative
        if own.drafter == "model":
            return own.draft_cost
        head = total_seconds([step.operator("head").seconds, step.operator("sampling").seconds, step.gather.seconds])
        return speculative.head_cost(step.seconds, head, self.passes.model.layers)

    def crossover(self, context: Number) -> Number | None:
        """Sequences from which drafts gain nothing; None for a single plan whose drafts gain at any of them.

        Of arrays the plans without an end have the largest batch that is tried.
        """
        batches = np.array(_BATCHES)
        with unrecorded():
            if is_array(self.gain(1.0, context, self.passes.decode(1.0, context))):
                batches = batches[:, None]
            gains = self.gain(batches, context, self.passes.decode(batches, context))
        found = _crossing(np.array(_BATCHES), np.asarray(gains))
        if is_array(found):
            return speculative.crossover_batch(np.where(np.isnan(found), _BATCHES[-1], found))
        return None if np.isnan(found) else speculative.crossover_batch(float(found))


def best_drafts(plan: Plan) -> tuple[int, float]:
    """The number of draft tokens with the largest gain at the load of a plan, and that gain."""
    counts = np.arange(_MOST_DRAFTS + 1, dtype=float)
    state, scenario = plan.steady, plan.mean.with_("serving.speculative.draft_tokens", counts)
    drafting = Drafting.of(scenario, plan.passes)
    assert drafting is not None
    with unrecorded():
        micro = steady.micro_batch(state.running, scenario.parallelism.pp)
        gains = drafting.gain(micro, state.context, state.decode)
    best = int(np.argmax(gains))
    return best, float(gains[best])


def _crossing(batches: np.ndarray, gains: np.ndarray) -> Any:
    """Where gains, a row for each batch, first fall below 1; not a number where they never do."""
    below = gains < 1
    place = np.argmax(below, axis=0)
    before = np.maximum(place - 1, 0)
    low, high = (np.take_along_axis(gains, np.expand_dims(each, 0), 0)[0] for each in (before, place))
    share = np.where(place > 0, (low - 1) / np.where(low > high, low - high, 1.0), 0.0)
    found = batches[before] + share * (batches[place] - batches[before])
    return np.where(below.any(axis=0), found, np.nan)[()]
