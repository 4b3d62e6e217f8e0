"""What is refused, and what is done about fields that nobody asked for."""

from __future__ import annotations

from typing import Any

from ..errors import ScenarioError
from .config import Config
from .family import Family

#: Marks of a field that may change the shape of a tensor.
_SHAPE = (
    *("_size", "_dim", "_rank", "_heads", "_groups", "_experts", "_layers", "_types", "_pattern", "_period", "_ratio"),
    *("_interval", "_config"),
)
#: Marks of fields that change no shape, whatever else their names say.
_HARMLESS_MARKS = ("dropout", "rope_", "_token", "softcapping", "_multiplier", "no_rope_", "time_step_", "_kernels")
#: Fields that change no shape although their names read so.
_HARMLESS = frozenset(
    (
        *("attention_chunk_size", "attention_softmax_in_fp32", "audio_config", "block_size", "cache_config"),
        *("calc_logits_for_entire_prompt", "capacity_factor", "chunk_size", "chunk_size_feed_forward"),
        *("compression_config", "ep_size", "exllama_config", "expert_capacity", "generation_config", "index_topk"),
        *("initial_context_length", "initializer_range", "mamba_chunk_size", "mamba_hidden_act", "max_batch_size"),
        *("max_position_embeddings", "max_window_layers", "moe_jitter_eps", "mtp_layers_block_type"),
        *("mtp_transformer_layers", "n_group", "num_logits_to_keep", "num_nextn_predict_layers"),
        *("original_max_position_embeddings", "partial_rotary_factor", "pretraining_tp", "quantization_config"),
        *("rms_norm_eps", "rope_theta", "rotary_dim", "rotary_ndims", "scale_attention_softmax_in_fp32"),
        *("sliding_window_size", "ssm_cfg", "text_config", "topk_group", "vision_config"),
    )
)
#: Switches that change how many norms or matrices a layer has, in a way that only a family tells.
_TELLING = ("parallel_attn", "use_parallel_residual", "parallel_residual", "use_parallel_block", "qk_layernorm")


def refuse_what_is_no_decoder(top: Config, family: Family) -> None:
    """Raises ScenarioError, one sentence, for files that describe something else than a decoder."""
    if top.has("peft_type"):
        raise top.refusal("peft_type", "is an adapter, not a model: give the config.json of the base model")
    if top.has("_diffusers_version") or top.has("_class_name"):
        raise ScenarioError(top.file, 0, "", "is part of a diffusion pipeline, not a decoder; it is not modelled")
    if top.flag("is_encoder_decoder") or top.has("num_decoder_layers") or _both_sides(top):
        name = "is_encoder_decoder" if top.has("is_encoder_decoder") else "decoder_layers"
        raise top.refusal(name, "is an encoder-decoder; only decoders are modelled")
    if family.refuse:
        raise top.refusal("model_type", f"{family.name} is {family.refuse}")
    architectures = top.value("architectures")
    masked = isinstance(architectures, list) and any(str(a).endswith("MaskedLM") for a in architectures)
    absolute = top.has("type_vocab_size") and top.value("position_embedding_type") == "absolute"
    if masked or (absolute and not top.flag("is_decoder")):
        raise top.refusal("architectures", "is an encoder (it fills masked tokens); only decoders are modelled")
    if top.has("attention_hidden_size") and top.has("rescale_every"):
        reason = "is of a recurrent model with no attention and no cache per token; its layers are not modelled"
        raise top.refusal("attention_hidden_size", reason)


def _both_sides(top: Config) -> bool:
    return top.has("encoder_layers") and top.has("decoder_layers")


def unexplained(config: Config) -> list[str]:
    """Fields that may change the shape of a tensor and that nobody asked for."""
    return [path for path, value in config.unread() if _shape_like(path.rpartition(".")[2], value)]


def _shape_like(name: str, value: Any) -> bool:
    if name in _HARMLESS or any(mark in name for mark in _HARMLESS_MARKS):
        return False
    counts = not isinstance(value, (bool, str)) and value not in (None, 0, [], {})
    return counts and any(mark in name for mark in _SHAPE)


def refuse_what_only_a_family_tells(config: Config) -> None:
    """Raises ScenarioError for a field of a file of no known family that leaves its layers open."""
    for name in _TELLING:
        if config.flag(name):
            raise config.refusal(name, "is set, but which norms the layers then have is known for known families only")
    for path in unexplained(config):
        raise ScenarioError(config.file, 0, path, "is not understood, and the model_type is not known")
