"""What a scheduler runs in which iteration: prompts, decoding sequences and their context, and who finishes.

Clients of a closed loop ask again as soon as they are answered, so nothing there depends on how long an iteration
takes: the schedule is counted first, and a clock put to it afterwards (`simulation`). Requests that come at random need
the clock at every iteration (`open_loop`). Between two events the decode iterations are one row.
Left out: preemption. An engine that lets sequences grow stops admitting when its cache is full.
Sources: Yu 2022 (Orca) for iterations, Agrawal 2024 (Sarathi-Serve, arXiv 2403.02310) for prompts cut into chunks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from .requests import Requests


@dataclass(frozen=True)
class Limits:
    """What holds an engine back: tokens of an iteration, sequences, tokens of cache, and the ways of its scheduler."""

    tokens: int
    sequences: int
    pool: int
    #: A request is admitted only if its whole output fits into the cache, else if its prompt does.
    reserve: bool
    #: Prompts run alone and before decoding, else together with it.
    prefill_first: bool
    #: Tokens in the cache that all prompts begin with; `pool` is what is left beside them.
    shared: int = 0


@dataclass(frozen=True)
class Schedule:
    """Rows of iterations in their order, and for each request the number of rows done when it came and was answered.

    repeats: equal iterations of the row; sequences, context: those that decode, and their mean tokens; prompts: chunks
    of prompts, all tokens and (query, key) pairs of them, and keys of the last token of a chunk in the mean.
    """

    repeats: np.ndarray
    sequences: np.ndarray
    context: np.ndarray
    prompts: np.ndarray
    tokens: np.ndarray
    pairs: np.ndarray
    keys: np.ndarray
    came: np.ndarray
    first: np.ndarray
    last: np.ndarray
    outputs: np.ndarray


@lru_cache(maxsize=32)
def schedule(requests: Requests, clients: int, limits: Limits) -> Schedule:
    """The iterations of one engine until all requests are answered; clients have one request each at a time."""
    loop = Loop(requests, clients, limits)
    while loop.unanswered:
        loop.iterate()
    return loop.schedule()


class Loop:
    """The scheduler of one engine: requests that are sent wait, are admitted, decode together and are answered."""

    def __init__(self, requests: Requests, clients: int, limits: Limits) -> None:
        self.requests, self.limits = requests, limits
        count = len(requests.prompts)
        self.rows: list[tuple[float, ...]] = []
        self.came, self.first, self.last = [0] * count, [0] * count, [0] * count
        self.waiting = deque(range(min(clients, count)))
        #: The request that the next answer sends; none where no clients ask again.
        self.next = len(self.waiting) if clients else count
        self.unanswered = count
        #: The prompt of which a part has run: request and tokens done.
        self.partial: tuple[int, int] | None = None
        #: Decoding requests by the decode step that ends them, of which `step` are done.
        self.running: list[tuple[int, int]] = []
        self.step = self.context = self.cached = 0
        #: What was admitted: chunks of prompts as tokens and tokens before them, and the prompts they complete.
        self.chunks: list[tuple[int, int]] = []
        self.complete: list[int] = []

    @property
    def held(self) -> int:
        """Requests that wait or run."""
        return len(self.waiting) + len(self.running) + (self.partial is not None)

    def send(self, request: int) -> None:
        """A request comes."""
        self.came[request] = len(self.rows)
        self.waiting.append(request)

    def schedule(self) -> Schedule:
        """What was run until now."""
        ends = (np.array(each) for each in (self.came, self.first, self.last, self.requests.outputs))
        return Schedule(*np.array(self.rows).T, *ends)

    def iterate(self) -> None:
        """One iteration with prompts where some may run, else decode iterations until a request is answered."""
        self.admit()
        self.work(self.steps)

    def admit(self) -> None:
        """Take up the prompts, or parts of them, of the next iteration."""
        self.chunks, self.complete = self._admit()

    @property
    def steps(self) -> int:
        """Equal iterations until something else is to be done; 0 where there is nothing to do."""
        if self.chunks:
            return 1
        return self.running[0][0] - self.step if self.running else 0

    def numbers(self, steps: int) -> tuple[float, ...]:
        """The next row beside its repeats: decoding sequences, their mean context, and chunks of prompts."""
        decoding = 0 if self.chunks and self.limits.prefill_first else len(self.running)
        mean = self.limits.shared + self.context / decoding + (steps - 1) / 2 if decoding else 0.0
        return (decoding, mean, *_together(self.chunks))

    def work(self, steps: int) -> None:
        """Equal iterations of what was admitted and what decodes."""
        row, complete = self.numbers(steps), self.complete
        self.rows.append((steps, *row))
        if row[0]:
            self._decode(steps)
        for request in complete:
            self._answered_first(request)

    def _admit(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Chunks of prompts for the next iteration, as tokens and tokens before them, and the prompts they complete."""
        limits, prompts = self.limits, self.requests.prompts
        budget = limits.tokens - (0 if limits.prefill_first else len(self.running))
        chunks: list[tuple[int, int]] = []
        complete: list[int] = []
        while budget > 0 and (self.partial or self.waiting):
            if self.partial:
                request, done = self.partial
            elif self._has_place(self.waiting[0], len(complete)):
                request, done = self.waiting.popleft(), 0
                self.cached += self._claim(request)
            else:
                break
            tokens = min(prompts[request] - done, budget)
            chunks.append((tokens, limits.shared + done))
            budget -= tokens
            whole = done + tokens == prompts[request]
            self.partial = None if whole else (request, done + tokens)
            if whole:
                complete.append(request)
        return chunks, complete

    def _has_place(self, request: int, admitted: int) -> bool:
        """Whether sequences and cache have room; an empty engine takes any request."""
        taken = len(self.running) + admitted
        room = self.cached + self._claim(request) <= self.limits.pool
        return not taken or (taken < self.limits.sequences and room)

    def _claim(self, request: int) -> int:
        """Tokens of cache that a request takes when it is admitted."""
        return self.requests.prompts[request] + (self.requests.outputs[request] if self.limits.reserve else 1)

    def _decode(self, steps: int) -> None:
        grown = steps * len(self.running)
        self.step += steps
        self.context += grown
        if not self.limits.reserve:
            self.cached += grown
        while self.running and self.running[0][0] <= self.step:
            _, request = heappop(self.running)
            length = self.requests.prompts[request] + self.requests.outputs[request]
            self.context -= length
            self._answered(request, length)

    def _answered_first(self, request: int) -> None:
        self.first[request] = len(self.rows)
        output = self.requests.outputs[request]
        if output > 1:
            heappush(self.running, (self.step + output - 1, request))
            self.context += self.requests.prompts[request] + 1
        else:
            self._answered(request, self._claim(request))

    def _answered(self, request: int, held: int) -> None:
        """The last token is there: its cache is free, and the client asks again."""
        self.last[request] = len(self.rows)
        self.cached -= held
        self.unanswered -= 1
        if self.next < len(self.came):
            self.send(self.next)
            self.next += 1


def _together(chunks: list[tuple[int, int]]) -> tuple[float, ...]:
    """Number, tokens and pairs of the chunks of an iteration, and the keys that stand for all of them.

    The time of attention goes with pairs · (1 + s/keys): the harmonic mean over pairs keeps it.
    """
    if not chunks:
        return 0, 0, 0.0, 1.0
    pairs = [tokens * done + tokens * (tokens + 1) / 2 for tokens, done in chunks]
    total = sum(pairs)
    keys = total / sum(each / (done + tokens) for each, (tokens, done) in zip(pairs, chunks, strict=True))
    return len(chunks), sum(tokens for tokens, _ in chunks), total, keys
