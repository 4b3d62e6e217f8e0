"""Queues of requests that come at random: for the engines that take prompts, and for the places of their batches."""

from __future__ import annotations

from dataclasses import dataclass

from ..numeric import Number
from ..scenario import Scenario
from . import queueing, steady
from .requests import VARIATION


@dataclass(frozen=True)
class Queues:
    """What the waits of a plan share at any request rate."""

    #: Engines that take prompts, micro-batches of each, and prompts that are taken side by side.
    engines: Number
    pipeline: Number
    servers: Number
    #: Requests a second of all engines at which the queue grows without end.
    most: Number
    #: How waits compare with those of exponential service.
    variability: Number
    #: Places in the batches of all engines, and seconds that a request holds one when all are taken.
    places: Number
    service: Number

    @staticmethod
    def of(scenario: Scenario, prefill: Number, decoding: Number, sequences: Number, most: Number) -> Queues:
        """The queues of engines that take prompts and of those that decode so many sequences in a micro-batch."""
        pipeline = scenario.parallelism.pp
        places = steady.in_all_micro_batches(sequences, steady.in_all_micro_batches(decoding, pipeline))
        return Queues(
            prefill,
            pipeline,
            queueing.servers(prefill, pipeline, queueing.MOST_SERVERS),
            most,
            queueing.variability(1.0, VARIATION[scenario.serving.lengths]),
            places,
            queueing.place_seconds(places, most),
        )

    def mean_waits(self, rate: Number, service: Number, prompt: Number) -> tuple[Number, Number]:
        """Mean seconds behind other prompts, of which each holds a device for `service` seconds, and for a place."""
        busy = self.busy(steady.answered_rate(rate, self.most, 0.0), service)
        return queueing.mean_wait(*self.of_prompts(busy, prompt)), queueing.mean_wait(*self.of_places(rate))

    def busy(self, rate: Number, service: Number) -> Number:
        """Share of the time that prompts take at a request rate of all engines."""
        return queueing.utilisation(steady.rate_each(rate, self.engines, self.pipeline), service, queueing.FULLEST)

    def of_prompts(self, busy: Number, prompt: Number) -> tuple[Number, Number, Number, Number, Number]:
        """What a wait behind prompts of some seconds hangs on, where they take a share of the time."""
        return prompt, self.servers, busy, queueing.erlang_c(self.servers, busy), self.variability

    def of_places(self, rate: Number) -> tuple[Number, Number, Number, Number, Number]:
        """What a wait for a place hangs on at a request rate of all engines."""
        busy = queueing.taken_share(rate, self.most, queueing.NEARLY_FULL)
        taken = queueing.waiting_share_of_many(self.places, busy)
        return self.service, self.places, busy, taken, self.variability
