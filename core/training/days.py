"""From a step to days: steps, utilisation, the physical bound, the whiteboard figure."""

from __future__ import annotations

from ..numeric import Number, ceil, largest, maximum, minimum, where
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


@formula(
    "16·N", "B", "weights, gradients and AdamW state: 16 bytes a parameter with 16-bit gradients, 18 with 32-bit ones"
)
def whiteboard_replica(parameters: Number, gradient_bytes: Number) -> Number:
    """The hand calculation of what one replica holds between steps."""
    return parameters * (2 + gradient_bytes + 12)


@formula("static", "B", "Rajbhandari 2020, arXiv 1910.02054, section 5")
def whiteboard_static(
    parameters: Number, tensor: Number, pipeline: Number, gradient_bytes: Number, shards: Number, zero: Number
) -> Number:
    """The hand calculation of what one GPU holds between steps, over the shards of the plan."""
    return (
        parameters
        / (tensor * pipeline)
        * (
            2 / where(zero >= 3, shards, 1)
            + gradient_bytes / where(zero >= 2, shards, 1)
            + 12 / where(zero >= 1, shards, 1)
        )
    )


@formula("tok/s", "tokens/s", "Kaplan 2020, arXiv 2001.08361")
def whiteboard_throughput(flops_per_token: Number, gpus: Number, peak: Number, mfu: Number) -> Number:
    """Tokens a second at a stated MFU."""
    return gpus * peak * mfu / flops_per_token


@formula("30/days", "share")
def whiteboard_progress(days: Number) -> Number:
    """Share of the training that the hand calculation finishes in a month of 30 days."""
    return 30 / days


@formula("days/deadline", "ratio")
def over_deadline(days: Number, deadline: Number) -> Number:
    """Days of the training over the days there are."""
    return days * 86400 / deadline


@formula("n", "GPUs", leaves_out="what the MFU loses at a larger scale")
def gpus_for_deadline(gpus: Number, over: Number) -> Number:
    """GPUs with which the hand calculation meets the deadline."""
    return ceil(gpus * over)


@formula("MBU", "share", "bytes that must move over what the bandwidth could move in the time")
def bandwidth_utilisation(moved: Number, bandwidth: Number, seconds: Number) -> Number:
    """Share of the memory bandwidth that the unavoidable bytes of a step amount to."""
    return moved / (bandwidth * seconds)


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


@formula("f", "share")
def share_of_step(seconds: Number, step: Number) -> Number:
    """Share of a step that something takes, less than all of it."""
    return minimum(seconds / step, 0.999)


@formula("1/((1−f) + f/s)", "ratio", "Amdahl 1967, AFIPS 30")
def speedup(share: Number, factor: Number) -> Number:
    """How much faster a step becomes when a share of it becomes some times as fast."""
    return 1 / ((1 - share) + share / factor)


@formula("1/(1−f)", "ratio", "Amdahl 1967, AFIPS 30")
def speedup_bound(share: Number) -> Number:
    """How much faster a step becomes at most, when a share of it takes no time at all."""
    return 1 / (1 - share)


@formula("T_lower", "s", "max(F/Π, R/β, C/W): full overlap")
def bound_seconds(compute: Number, memory: Number, scale_up: Number, scale_out: Number) -> Number:
    """The physical floor of a step that no software can beat."""
    return largest((compute, memory, scale_up, scale_out))


@formula("band", "s", "errors of the predictions of published runs like the plan")
def slow_end(seconds: Number, relative: Number) -> Number:
    """The slow end of a prediction's band."""
    return seconds * (1 + relative)


@formula("band", "s", "errors of the predictions of published runs like the plan")
def fast_end(seconds: Number, relative: Number, bound: Number) -> Number:
    """The fast end of a prediction's band, at least the physical bound."""
    return maximum(bound, seconds * (1 + relative))


@formula("ψ̄", "parameters")
def mean_parameters(parameters: Number, tensor: Number, pipeline: Number) -> Number:
    """Parameters of a rank, mean over the stages."""
    return parameters / (tensor * pipeline)


@formula("ψ_E", "parameters")
def mean_routed(block: Number, layers: Number, pipeline: Number) -> Number:
    """Parameters of routed experts that a rank holds, mean over the stages."""
    return block * layers / pipeline


@formula("N_E", "parameters")
def routed_everywhere(share: Number, pipeline: Number, expert: Number, expert_tensor: Number) -> Number:
    """Parameters of the routed experts of the whole model."""
    return share * pipeline * expert * expert_tensor


@formula("N − N_E", "parameters")
def without(parameters: Number, routed: Number) -> Number:
    """Parameters that every token meets."""
    return parameters - routed


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
