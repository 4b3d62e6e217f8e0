"""A static batch: all prompts together, then all outputs token by token, in step.

With a pipeline the batch is cut into micro-batches that follow each other; prompts and outputs choose their number
separately. Source: FasterTransformer GPT guide.
"""

from __future__ import annotations

from ..numeric import Number, ceil, smallest
from ..terms import formula
from . import kernels
from .iteration import Pass
from .steady import mean_context

#: Micro-batches of a batch to each pipeline stage that are tried, beside the whole batch.
_PIECES = (1, 2, 4, 8)


@formula("t·(p + n − 1)/p", "s", "Huang 2018, arXiv 1811.06965: n micro-batches through p stages")
def piped_seconds(seconds: Number, pipeline: Number, pieces: Number) -> Number:
    """Time of some micro-batches through a pipeline, from the time of one pass through all stages."""
    return seconds * (pipeline + pieces - 1) / pipeline


@formula("t_batch", "s")
def batch_seconds(prompts: Number, output: Number, step: Number, request: Number) -> Number:
    """Time of a static batch: its prompts, which give the first token, a step for each further token, the request."""
    return prompts + (output - 1) * step + request


@formula("⌈B/n⌉", "sequences")
def piece_size(batch: Number, pieces: Number) -> Number:
    """Sequences of a micro-batch."""
    return ceil(batch / pieces)


def prompt_seconds(passes: Pass, batch: Number, prompt: Number) -> Number:
    """Time of one pass with the prompts of a batch."""
    pairs = kernels.chunk_pairs(prompt, 0.0)
    return passes.prefill(batch, prompt, pairs, prompt).seconds


def step_seconds(passes: Pass, batch: Number, prompt: Number, output: Number) -> Number:
    """Time of one decode step of a batch at the mean context of its outputs."""
    return passes.decode(batch, mean_context(prompt, output)).seconds


def static_batch(passes: Pass, batch: float, prompt: Number, output: Number) -> Number:
    """Time from a static batch of requests to its last token, in seconds."""
    pieces = _pieces(batch, passes.pipeline)
    prompts = smallest(
        piped_seconds(prompt_seconds(passes, size, prompt), passes.pipeline, count) for size, count in pieces
    )
    step = smallest(
        piped_seconds(step_seconds(passes, size, prompt, output), passes.pipeline, count) for size, count in pieces
    )
    return batch_seconds(prompts, output, step, passes.settings.engine.t_request)


def _pieces(batch: float, pipeline: float) -> list[tuple[float, float]]:
    """Sizes and numbers of the micro-batches that are tried; one piece without a pipeline."""
    counts = [1.0] if pipeline == 1 else [1.0, *(times * pipeline for times in _PIECES)]
    sizes = [piece_size(batch, count) for count in counts]
    return [(size, piece_size(batch, size)) for size in sizes]
