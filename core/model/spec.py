"""The written description of a decoder model: the sizes and switches that a person or a catalogue states."""

from __future__ import annotations

from dataclasses import dataclass

from ..numeric import Number

#: What mixes tokens in a layer: all of them, a window or a chunk, a latent cache, image tokens, or a state.
MIXERS = (
    *("attention", "window", "chunk", "latent", "cross", "lightning", "delta", "mamba", "mamba2", "conv"),
    *("attention+mamba2", "matrix", "none"),
)
#: What follows it: one feed-forward part, routed experts, a single matrix, or nothing.
FEED_FORWARDS = ("dense", "experts", "matrix", "none")
NORMS = ("rms", "layer", "layer-no-bias", "none")
#: Who keeps a bias of the router: nobody, training (a parameter), or the balancing of experts (a buffer).
ROUTER_BIASES = ("none", "trained", "steering")


@dataclass(frozen=True)
class LayerRun:
    """Some equal layers in a row.

    `mixer` is one of MIXERS and `feed_forward` one of FEED_FORWARDS; "" is what the model's sizes tell: latent where
    there is a kv_rank, experts where there are any. A size or switch that is None is the model's.
    """

    count: int = 1
    mixer: str = ""
    feed_forward: str = ""
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    value_dim: int | None = None
    ffn_size: int | None = None
    window: int | None = None
    sinks: bool | None = None
    indexer: bool | None = None


@dataclass(frozen=True)
class ModelSpec:
    """A decoder. Sizes that are 0 are absent; what a size or switch means is said by its field.

    `head_dim` 0 means hidden_size / heads, `value_dim` 0 the same as head_dim, `embedding_size` 0 hidden_size, and
    `norms` 0 two a layer, or one in a parallel block. `runs` lists the layers where they are not all alike; its last
    `repeat` layers repeat until there are `layers` of them.
    Numbers may be arrays, words and switches are single.
    """

    id: str
    name: str
    layers: Number
    hidden_size: Number
    heads: Number = 0
    kv_heads: Number = 0
    ffn_size: Number = 0
    vocabulary: Number = 0
    head_dim: Number = 0
    value_dim: Number = 0
    window: Number = 0
    # experts
    experts: Number = 0
    experts_per_token: Number = 0
    expert_size: Number = 0
    shared_size: Number = 0
    shared_gate: bool = False
    router_bias: str = "none"
    expert_bias: bool = False
    expert_latent: Number = 0
    # latent attention and its indexer
    q_rank: Number = 0
    kv_rank: Number = 0
    nope_dim: Number = 0
    rope_dim: Number = 0
    index_heads: Number = 0
    index_dim: Number = 0
    index_topk: Number = 0
    # layers with a state
    linear_key_heads: Number = 0
    linear_value_heads: Number = 0
    linear_key_dim: Number = 0
    linear_value_dim: Number = 0
    state_size: Number = 0
    ssm_size: Number = 0
    ssm_heads: Number = 0
    ssm_groups: Number = 1
    ssm_rank: Number = 0
    ssm_norm: bool = False
    ssm_bias: bool = False
    conv_size: Number = 0
    conv_bias: bool = False
    scan_chunk: Number = 64
    # switches
    gated: bool = True
    norm: str = "rms"
    norms: int = 0
    final_norm: bool = True
    embedding_norm: bool = False
    inner_norms: bool = False
    parallel_block: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    qk_norm: bool = False
    qk_norm_over: str = "head"
    qk_norm_bias: bool = False
    sinks: bool = False
    output_gate: bool = False
    activation_parameters: Number = 0
    tied: bool = False
    # outside the layers
    positions: Number = 0
    embedding_size: Number = 0
    extra_rows: Number = 0
    mtp_modules: Number = 0
    vision_parameters: Number = 0
    vocabulary_multiple: Number = 1
    max_context: Number = 0
    runs: tuple[LayerRun, ...] = ()
    repeat: int = 1
    source: str = ""
    note: str = ""
