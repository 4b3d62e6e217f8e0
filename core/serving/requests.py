"""The requests of a benchmark: tokens of their prompts and outputs, the same ones at every run.

fixed: every request has the nominal lengths. drawn: evenly between 0.8 and 1 of them, as the serving benchmarks of
vLLM and SGLang draw. log-normal: with the nominal means, as requests of people are spread (MLPerf Inference, Llama 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from statistics import NormalDist

import numpy as np

#: Shortest drawn length as a share of the nominal one.
LEAST_DRAWN = 0.8
#: Mean length as a share of the nominal one.
MEAN = {"fixed": 1.0, "drawn": (1 + LEAST_DRAWN) / 2, "log-normal": 1.0}
#: Standard deviation of the logarithm of log-normal lengths.
SIGMA = 0.6
#: Length that one in a hundred exceeds as a share of the nominal one, and squared coefficient of variation.
LONG = {"fixed": 1.0, "drawn": 1.0, "log-normal": exp(2.326 * SIGMA - SIGMA**2 / 2)}
VARIATION = {
    "fixed": 0.0,
    "drawn": (1 - LEAST_DRAWN) ** 2 / 12 / MEAN["drawn"] ** 2,
    "log-normal": exp(SIGMA**2) - 1,
}
_SEED = 1


@dataclass(frozen=True)
class Requests:
    """Tokens of prompts and outputs, in the order in which they are sent."""

    prompts: tuple[int, ...]
    outputs: tuple[int, ...]

    @staticmethod
    def of(prompt: float, output: float, count: int, lengths: str = "fixed") -> Requests:
        """A number of requests of nominal lengths; `lengths` is a name of LENGTHS."""
        shares = np.random.Generator(np.random.PCG64(_SEED)).random((2, count))
        spread = LENGTHS[lengths]
        return Requests(*(spread(nominal, each) for nominal, each in zip((prompt, output), shares, strict=True)))

    def beyond(self, shared: int) -> Requests:
        """The requests with what is new of their prompts."""
        return Requests(tuple(max(1, prompt - shared) for prompt in self.prompts), self.outputs) if shared else self


def _fixed(nominal: float, shares: np.ndarray) -> tuple[int, ...]:
    return (max(1, round(nominal)),) * len(shares)


def _drawn(nominal: float, shares: np.ndarray) -> tuple[int, ...]:
    return _whole(nominal * (LEAST_DRAWN + (1 - LEAST_DRAWN) * shares))


def _log_normal(nominal: float, shares: np.ndarray) -> tuple[int, ...]:
    quantile = NormalDist(0, SIGMA).inv_cdf
    lengths = np.exp([quantile(share) for share in shares.tolist()])
    return _whole(nominal * lengths / lengths.mean())


def _whole(lengths: np.ndarray) -> tuple[int, ...]:
    return tuple(np.maximum(1, np.rint(lengths)).astype(int).tolist())


#: How lengths are spread -> tokens of each request from the nominal length and shares between 0 and 1.
LENGTHS: dict[str, Callable[[float, np.ndarray], tuple[int, ...]]] = {
    "fixed": _fixed,
    "drawn": _drawn,
    "log-normal": _log_normal,
}
