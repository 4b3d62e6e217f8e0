"""Bytes of each thing a GPU holds while it trains, one formula an item.

Sources: ZeRO (arXiv 1910.02054), FSDP (arXiv 2304.11277), Megatron-LM's distributed optimizer.
"""

from __future__ import annotations

from ..numeric import Number, maximum, where
from ..terms import formula

_ZERO = "Rajbhandari 2020, arXiv 1910.02054, section 5"


@formula("w·ψ", "B")
def resident_bytes(bytes_per_parameter: Number, parameters: Number) -> Number:
    """Bytes of a state that every data parallel rank keeps whole."""
    return bytes_per_parameter * parameters


@formula("w·ψ/D", "B", _ZERO)
def sharded_bytes(bytes_per_parameter: Number, parameters: Number, shards: Number) -> Number:
    """Bytes of a state that is sharded over the data parallel ranks."""
    return bytes_per_parameter * parameters / shards


@formula("H", "B")
def held_bytes(flight: Number, layers: Number, tokens: Number, embedding: Number) -> Number:
    """Activations of the micro-batches in flight: the layers of a stage, and the embedding output on the first."""
    return flight * tokens * (layers + embedding)


@formula("L_i·A", "B/token")
def layers_held(layers: Number, held: Number) -> Number:
    """What some equal layers of a stage keep."""
    return layers * held


@formula("n/L", "share")
def offloaded_share(offloaded: Number, layers: Number) -> Number:
    """Share of the layers whose activations are kept on the host, the same on every stage."""
    return offloaded / layers


@formula("A·(1 − n/L)", "B/token")
def on_device(kept: Number, share: Number) -> Number:
    """What the layers of a stage keep on the device."""
    return kept * (1 - share)


@formula("H_host", "B")
def offloaded_bytes(flight: Number, kept: Number, tokens: Number, share: Number) -> Number:
    """Activations of the micro-batches in flight that are kept on the host."""
    return flight * kept * tokens * share


@formula("2·A·T", "B", "one layer on its way to the host or back, and the next")
def transit_bytes(kept: Number, tokens: Number, offloaded: Number) -> Number:
    """Activations on their way between device and host."""
    return where(offloaded > 0, 2 * kept * tokens, 0.0)


@formula("max W", "B/token", "of the kinds of layer on the stage")
def larger_working_set(largest: Number, layers: Number, working: Number) -> Number:
    """The larger of two working sets, the second only where the stage has such layers."""
    return maximum(largest, where(layers > 0, working, 0.0))


@formula("L_i + n_mtp", "layers", "modules behind the last stage, of the kind of the last layer: arXiv 2412.19437")
def layers_and_modules(layers: Number, last: Number, modules: Number) -> Number:
    """Layers of a stage with the blocks of modules that predict further tokens."""
    return layers + last * modules


@formula("1 + n_mtp", "losses", "each module has logits and a loss of its own: arXiv 2412.19437, section 2.2")
def losses(last: Number, modules: Number) -> Number:
    """Losses whose logits a stage holds."""
    return last * (1 + modules)


@formula("first·2h", "B/token")
def embedding_output_bytes(first: Number, hidden: Number, share: Number, element: Number) -> Number:
    """Output of the embedding that the first stage keeps."""
    return first * element * hidden * share


@formula("H + W·T", "B")
def activation_peak(held: Number, during_backward: Number, tokens: Number) -> Number:
    """Activations at the backward pass of one block."""
    return held + during_backward * tokens


@formula("T·(ℓ·V/t + n_f·h)", "B", "bytes per logit by how the loss is computed (presets/frameworks.yaml)")
def loss_bytes(
    last: Number, tokens: Number, vocabulary: Number, tensor: Number, logit: Number, final_norm: Number, hidden: Number
) -> Number:
    """Logits, loss and final norm on the last stage."""
    return last * tokens * (logit * vocabulary / tensor + final_norm * hidden)


@formula("6·T·h + 2·V·h/t", "B", "Liger kernels: logits of a chunk at a time, input and head gradients")
def fused_loss_bytes(
    last: Number, tokens: Number, vocabulary: Number, tensor: Number, final_norm: Number, hidden: Number
) -> Number:
    """Chunks and gradients of a loss fused with the output head, and final norm, on the last stage."""
    return last * (tokens * (6 + final_norm) * hidden + 2 * vocabulary * hidden / tensor)


@formula("6·T·h", "B", "Liger kernels: logits of a chunk at a time, input gradients")
def frozen_fused_loss_bytes(last: Number, tokens: Number, final_norm: Number, hidden: Number) -> Number:
    """Chunks of a loss fused with a frozen output head, and final norm, on the last stage."""
    return last * tokens * (6 + final_norm) * hidden


@formula("root", "B", "Zhao 2023, arXiv 2304.11277")
def gathered_root_bytes(width: Number, first: Number, last: Number, embedding: Number, head: Number) -> Number:
    """Embedding and head gathered from the first forward to the last backward under ZeRO-3."""
    return width * (first * embedding + last * head)


@formula(
    "2·w·P + w·(P + V·h/t)",
    "B",
    "current and prefetched block; gradients of one block and of the head before they are reduced or, in a pipeline, "
    "added to those that are kept whole until the end of the step",
)
def gathered_block_bytes(
    width: Number, gathered: Number, block: Number, last: Number, embedding: Number, held_blocks: Number
) -> Number:
    """Gathered blocks and unreduced unit gradients at the backward pass under ZeRO-3."""
    return width * (held_blocks * gathered + block + last * embedding)


@formula("w·Σ L_i·P", "B", "pipelines over FSDP gather once a step: torchtitan")
def kept_blocks_bytes(width: Number, pipeline: Number, blocks: Number) -> Number:
    """Blocks that a pipeline over ZeRO-3 keeps gathered for the whole step."""
    return where(pipeline > 1, width * blocks, 0.0)


@formula("4·T·h·w", "B", "two outstanding sends and receives")
def pipeline_buffer_bytes(tokens: Number, hidden: Number, share: Number, element: Number, pipeline: Number) -> Number:
    """Send and receive buffers of a pipeline stage."""
    return where(pipeline > 1, 4 * tokens * hidden * share * element, 0.0)


@formula("2·KV", "B", "Liu 2023, arXiv 2310.01889")
def ring_buffer_bytes(tokens: Number, passed_on: Number, element: Number, context: Number) -> Number:
    """Two chunks of keys and values under way in a context parallel ring."""
    return where(context > 1, 2 * tokens * passed_on * element, 0.0)


@formula("2·k·T·σ·h·w", "B", "copies of tokens sent and received")
def dispatch_buffer_bytes(
    per_token: Number, tokens: Number, share: Number, width: Number, element: Number, imbalance: Number, expert: Number
) -> Number:
    """Buffers of tokens on their way to experts of other ranks and back."""
    return where(expert > 1, 2 * per_token * tokens * share * width * element * imbalance, 0.0)


@formula("4·E", "B", "32-bit biases that steer routing, whole on every rank: arXiv 2412.19437, section 2.1.2")
def steering_bytes(biases: Number) -> Number:
    """Biases that steer routing on a stage."""
    return 4 * biases


@formula("buckets", "B", "PyTorch DDP: two buckets of 25 MB")
def bucket_bytes(bucket: Number, data_parallel: Number) -> Number:
    """Gradient buckets under reduction where gradients are not one resident buffer."""
    return where(data_parallel > 1, 2 * bucket, 0.0)


@formula("w_tmp·ψ/D", "B", "unfused multi-tensor AdamW holds one copy of the local shard")
def step_copy_bytes(shard: Number) -> Number:
    """Temporaries of an unfused optimizer step."""
    return shard


@formula("0", "B", "not alive at this instant, or not kept by this plan")
def nothing_held() -> Number:
    """Nothing of this item at the instant of the peak."""
    return 0.0


@formula("peak", "B")
def total_bytes(
    weights: Number,
    low_precision_weights: Number,
    gradients: Number,
    master_weights: Number,
    momentum: Number,
    variance: Number,
    activations: Number,
    logits: Number,
    gathered: Number,
    workspace: Number,
) -> Number:
    """Allocator peak: sum of the items at one instant."""
    return (
        weights
        + low_precision_weights
        + gradients
        + master_weights
        + momentum
        + variance
        + activations
        + logits
        + gathered
        + workspace
    )


@formula("optimizer", "B", leaves_out="gradients and the 16-bit weights")
def optimizer_bytes(master_weights: Number, momentum: Number, variance: Number) -> Number:
    """Optimizer state: 32-bit master copy and moments (AdamW: 12 bytes a parameter)."""
    return master_weights + momentum + variance


@formula("static", "B")
def static_bytes(
    weights: Number,
    low_precision_weights: Number,
    gradients: Number,
    master_weights: Number,
    momentum: Number,
    variance: Number,
) -> Number:
    """Weights, gradients and optimizer state of the first stage between steps."""
    return weights + low_precision_weights + gradients + master_weights + momentum + variance
