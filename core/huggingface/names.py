"""The names under which config.json files say the same thing, most usual first."""

from __future__ import annotations

from ..fields import FACTS, FIELDS

#: Objects in which the language model of a larger one is described.
TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config.text_config")
#: What may be said of the whole model rather than of the language model.
FROM_THE_TOP = ("tie_word_embeddings", "vocab_size", "quantization_config", "torch_dtype", "dtype")

#: Fields in which null says that there is none, where a missing field takes the default.
NULL_IS_NONE = ("sliding_window", "q_lora_rank", "n_shared_experts")

HIDDEN = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
LAYER_LISTS = ("hybrid_override_pattern", "layers_block_type", "layer_types")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads", "n_kv_heads")
HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels", "d_kv")
FFN = ("intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "d_ff", "inner_size")
VOCABULARY = ("vocab_size", "n_vocab")
#: The rows there are, where the vocabulary is smaller.
PADDED_VOCABULARY = "padded_vocab_size"
POSITIONS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length"),
    "model_max_length",
)
EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "ffn_config.moe_num_experts")
PER_TOKEN = (
    *("num_experts_per_tok", "moe_top_k", "moe_topk", "moe_k", "experts_per_token", "num_experts_per_token"),
    "ffn_config.moe_top_k",
)
EXPERT_SIZE = (
    *("moe_intermediate_size", "moe_ffn_hidden_size", "ffn_config.ffn_hidden_size", "expert_intermediate_size"),
)
SHARED_EXPERTS = ("n_shared_experts", "moe_num_shared_experts", "num_shared_experts", "num_shared_expert")
SHARED_SIZE = (*("shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size"),)
ACTIVATION = (
    *("hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act", "ffn_config.ffn_act_fn.name"),
    "ffn_act_fn.name",
)
PREDICTION = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers")

#: Names of sizes and the field of a model whose greatest value bounds them.
_BOUNDED = {
    "layers": LAYERS,
    "hidden_size": HIDDEN,
    "heads": HEADS,
    "kv_heads": (*KV_HEADS, "multi_query_group_num", "num_query_groups"),
    "head_dim": HEAD_DIM,
    "ffn_size": (*FFN, *EXPERT_SIZE, *SHARED_SIZE, "hidden_dim", "intermediate_size_mlp"),
    "experts": EXPERTS,
    "experts_per_token": PER_TOKEN,
    "max_context": POSITIONS,
    "vocabulary": (*VOCABULARY, PADDED_VOCABULARY),
    "embedding_size": ("word_embed_proj_dim",),
    "window": ("sliding_window", "window_size", "attention_chunk_size"),
    "kv_rank": ("kv_lora_rank",),
    "q_rank": ("q_lora_rank",),
    "nope_dim": ("qk_nope_head_dim",),
    "rope_dim": ("qk_rope_head_dim",),
    "value_dim": ("v_head_dim",),
    "index_heads": ("index_n_heads",),
    "index_dim": ("index_head_dim",),
    "index_topk": ("index_topk",),
    "expert_latent": ("moe_latent_size",),
    "linear_key_heads": ("linear_num_key_heads",),
    "linear_key_dim": ("linear_key_head_dim",),
    "linear_value_heads": ("linear_num_value_heads",),
    "linear_value_dim": ("linear_value_head_dim",),
    "conv_size": ("linear_conv_kernel_dim", "conv_L_cache", "conv_kernel", "mamba_d_conv", "mamba_conv_kernel"),
    "state_size": ("state_size", "mamba_d_state", "ssm_state_size"),
    "ssm_size": ("d_inner", "mamba_d_ssm"),
    "ssm_rank": ("time_step_rank", "mamba_dt_rank"),
    "ssm_heads": ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"),
    "ssm_groups": ("n_groups", "mamba_n_groups", "mamba_ngroups"),
    "scan_chunk": ("chunk_size", "mamba_chunk_size"),
    "mtp_modules": PREDICTION,
}
_MOST = {path: field.maximum for path, field in (FIELDS | FACTS).items()}
_LIMITS = {name: int(_MOST[f"model.{field}"]) for field, names in _BOUNDED.items() for name in names}


def limit(name: str) -> int:
    """The greatest value that a size may have under a name of the file."""
    return _LIMITS.get(name, 10**9)
