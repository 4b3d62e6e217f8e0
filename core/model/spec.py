"""The written description of a decoder model: the sizes and switches that a person or a catalogue states."""

from __future__ import annotations

from dataclasses import dataclass

from ..numeric import Number


@dataclass(frozen=True)
class ModelSpec:
    """A dense decoder of the GPT or Llama family.

    `norm` is rms or layer; `norms` counts norms a block; `positions` are rows of learned positions (0: none).
    Biases: `qkv_bias` on q, k, v; `output_bias` on the attention output; `mlp_bias` on the feed-forward part.
    `qk_norm` normalises queries and keys per head. `head_dim` 0 means hidden_size / heads.
    """

    id: str
    name: str
    layers: Number
    hidden_size: Number
    heads: Number
    kv_heads: Number
    ffn_size: Number
    vocabulary: Number
    head_dim: Number = 0
    gated: bool = True
    norm: str = "rms"
    parallel_block: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied: bool = False
    positions: Number = 0
    vocabulary_multiple: Number = 1
    max_context: Number = 0
    source: str = ""
    note: str = ""
