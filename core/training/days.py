"""From a step to days: steps, utilisation, the physical bound, the whiteboard figure."""

from __future__ import annotations

from ..numeric import Number, ceil, largest, maximum
from ..terms import formula


@formula("MFU", "share", "PaLM, arXiv 2204.02311, appendix B; exact causal FLOPs against the dense peak")
def utilisation(flops: Number, gpus: Number, peak: Number, seconds: Number) -> Number:
    """Share of the dense peak that some FLOPs a step amount to."""
    return flops / (gpus * peak * seconds)


@formula("tok/s", "tokens/s")
def throughput(tokens: Number, seconds: Number) -> Number:
    """Tokens a second."""
    return tokens / seconds


@formula("tok/s/GPU", "tokens/s")
def throughput_per_gpu(tokens_per_second: Number, gpus: Number) -> Number:
    """Tokens a second of one GPU."""
    return tokens_per_second / gpus


@formula("steps", "steps")
def step_count(tokens: Number, tokens_per_step: Number) -> Number:
    """Optimizer steps of the training."""
    return ceil(tokens / tokens_per_step)


@formula("days", "d", leaves_out="queueing, evaluation runs, restarts by hand")
def training_days(steps: Number, step: Number, effective_ratio: Number) -> Number:
    """Days of the training, failures and checkpoints included."""
    return steps * step / 86400 / effective_ratio


@formula(
    "6·N·T/(n·Π·MFU)",
    "d",
    "rule of thumb: Kaplan 2020, arXiv 2001.08361",
    "attention, failures, everything the MFU hides",
)
def whiteboard_days(parameters: Number, tokens: Number, gpus: Number, peak: Number, mfu: Number) -> Number:
    """The hand calculation with the label's parameters and a stated MFU."""
    return 6 * parameters * tokens / (gpus * peak * mfu) / 86400


@formula("bytes·N", "B", "16 bytes a parameter with 16-bit gradients, 18 with 32-bit ones")
def whiteboard_static(parameters: Number, bytes_per_parameter: Number, shards: Number) -> Number:
    """The hand calculation of weights, gradients and AdamW state, over the tensor and pipeline shards."""
    return parameters * bytes_per_parameter / shards


@formula("F/(n·Π)", "s", "data-sheet peak")
def compute_floor(flops: Number, gpus: Number, peak: Number) -> Number:
    """Least time of the FLOPs of a step."""
    return flops / (gpus * peak)


@formula(
    "R", "B", "weights read forward and backward, gradients written, optimizer state read and written", "activations"
)
def unavoidable_bytes(
    parameters: Number, weight_width: Number, gradient_width: Number, optimizer_width: Number, owned: Number
) -> Number:
    """Bytes that no schedule can avoid moving in a step on one GPU."""
    return parameters * (2 * weight_width + gradient_width) + 2 * optimizer_width * owned


@formula("R/β", "s", "data-sheet bandwidth")
def memory_floor(moved: Number, bandwidth: Number) -> Number:
    """Least time of the bytes of a step."""
    return moved / bandwidth


@formula("C/W", "s", "data-sheet link rate, one way")
def link_floor(sent: Number, link_rate: Number) -> Number:
    """Least time of the bytes sent over one class of links."""
    return sent / maximum(link_rate, 1.0)


@formula("T_lower", "s", "max(F/Π, R/β, C/W): full overlap")
def bound_seconds(compute: Number, memory: Number, scale_up: Number, scale_out: Number) -> Number:
    """The physical floor of a step that no software can beat."""
    return largest((compute, memory, scale_up, scale_out))


@formula("band", "s", "errors of published rows of dense training with known settings")
def band_end(seconds: Number, relative: Number) -> Number:
    """One end of the prediction's band."""
    return seconds * (1 + relative)


@formula("ψ̄", "parameters")
def mean_parameters(parameters: Number, tensor: Number, pipeline: Number) -> Number:
    """Parameters of a rank, mean over the stages."""
    return parameters / (tensor * pipeline)


@formula("ψ̄/D", "parameters")
def owned_mean(parameters: Number, shards: Number) -> Number:
    """Parameters whose optimizer state a rank holds, mean over the stages."""
    return parameters / shards


@formula("t_meas/t", "ratio")
def over(measured: Number, reference: Number) -> Number:
    """A measured time over another one."""
    return measured / reference


@formula("t", "s")
def step_of_throughput(tokens: Number, tokens_per_s: Number) -> Number:
    """Step time that a measured throughput stands for."""
    return tokens / tokens_per_s


@formula("t", "s")
def seconds_of_days(days: Number) -> Number:
    """Days in seconds."""
    return 86400 * days


@formula("t·p", "ranks")
def whiteboard_shards(tensor: Number, pipeline: Number) -> Number:
    """Ranks over which a replica is split."""
    return tensor * pipeline


@formula("W*", "tokens", "gradients hide behind backward when tokens a rank ≥ w_g·Π·η/(2·W)·(D−1)/D; derived")
def hiding_point_gradients(width: Number, rate: Number, bandwidth: Number, ranks: Number) -> Number:
    """Tokens of a rank in a step above which the gradient reduction hides behind the backward pass."""
    return width * rate / (2 * bandwidth) * (ranks - 1) / ranks


@formula("W*", "tokens", "forward w_w·Π·η/(2·W); backward (w_w + w_g)·Π·η/(k·W), k = 4, 6 with full recompute; derived")
def hiding_point_sharded(
    weight_width: Number, gradient_width: Number, rate: Number, bandwidth: Number, backward_products: Number
) -> Number:
    """Tokens of a rank in a micro-batch above which ZeRO-3 traffic hides, forward and backward."""
    return maximum(
        weight_width * rate / (2 * bandwidth), (weight_width + gradient_width) * rate / (backward_products * bandwidth)
    )
