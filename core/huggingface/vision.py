"""Parameters of vision towers and of what joins them to the language model, counted apart.

Counts are those of the tensor shapes of the published models.
"""

from __future__ import annotations

from collections.abc import Callable

from .config import Config
from .family import Family

_DEPTH = ("num_hidden_layers", "depth")
#: Defaults of the configuration class of SigLIP.
_SIGLIP = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "patch_size": 16, "image_size": 224}
_CHANNELS = ("num_channels", "in_channels", "in_chans")


def vision_parameters(vision: Config, family: Family, text_hidden: int) -> int | None:
    """Parameters of the tower and its projector, or None where the kind of tower is not known.

    Raises ScenarioError where a size is missing.
    """
    tower = TOWERS.get(vision.word("model_type") or family.tower)
    return tower(vision, text_hidden) if tower else None


def _linear(inputs: int, outputs: int) -> int:
    """A matrix with bias."""
    return inputs * outputs + outputs


def _plain_block(width: int, inner: int) -> int:
    """Attention and two matrices, all with bias, behind two LayerNorms."""
    return 4 * _linear(width, width) + _linear(width, inner) + _linear(inner, width) + 4 * width


def _patch(vision: Config, width: int, usual_frames: int = 1) -> int:
    """The convolution that makes tokens of patches, without bias."""
    size, frames = vision.size("patch_size"), vision.optional_size("temporal_patch_size") or usual_frames
    return (vision.optional_size(*_CHANNELS) or 3) * frames * size**2 * width


def _siglip(vision: Config, text_hidden: int) -> int:
    """SigLIP (arXiv 2303.15343) with the projector of Gemma 3 (arXiv 2503.19786)."""
    vision.defaults = _SIGLIP
    width, inner = vision.size("hidden_size"), vision.size("intermediate_size")
    positions = (vision.size("image_size") // vision.size("patch_size")) ** 2
    blocks = vision.size(*_DEPTH) * _plain_block(width, inner)
    embedding = _patch(vision, width) + width + positions * width
    head = 0 if vision.flag("vision_use_head") is False else _pooling_head(width, inner)
    return embedding + blocks + 2 * width + head + width * text_hidden + width


def _pooling_head(width: int, inner: int) -> int:
    """A probe that attends to all patches, and a feed-forward part."""
    return width + 4 * _linear(width, width) + 2 * width + _linear(width, inner) + _linear(inner, width)


def _merger(width: int, vision: Config, out: int, norm: int) -> int:
    """A norm and two matrices over neighbouring patches side by side."""
    merged = width * (vision.optional_size("spatial_merge_size") or 2) ** 2
    return norm + _linear(merged, merged) + _linear(merged, out)


def _qwen2_5(vision: Config, text_hidden: int) -> int:
    """Qwen2.5-VL, arXiv 2502.13923: RMSNorm, gated feed-forward parts with bias."""
    width, inner = vision.size("hidden_size"), vision.size("intermediate_size")
    out = vision.optional_size("out_hidden_size") or text_hidden
    block = 4 * _linear(width, width) + 2 * _linear(width, inner) + _linear(inner, width) + 2 * width
    return _patch(vision, width, 2) + vision.size(*_DEPTH) * block + _merger(width, vision, out, width)


def _qwen2(vision: Config, text_hidden: int) -> int:
    """Qwen2-VL, arXiv 2409.12191; hidden_size is the width of the language model."""
    width = vision.size("embed_dim")
    out = vision.optional_size("hidden_size") or text_hidden
    inner = int((vision.number("mlp_ratio") or 4) * width)
    blocks = vision.size(*_DEPTH) * _plain_block(width, inner)
    return _patch(vision, width, 2) + blocks + _merger(width, vision, out, 2 * width)


def _qwen3_vl(vision: Config, text_hidden: int) -> int:
    """Qwen3-VL (arXiv 2511.21631): a merger after some of the blocks too."""
    listed = vision.entries("deepstack_visual_indexes")
    if listed is None:
        raise vision.refusal("deepstack_visual_indexes", "is missing")
    width = vision.size("hidden_size")
    merged = width * (vision.optional_size("spatial_merge_size") or 2) ** 2
    out = vision.optional_size("out_hidden_size") or text_hidden
    return _qwen3_5(vision, text_hidden) + len(listed) * _merger(width, vision, out, 2 * merged)


def _qwen3_5(vision: Config, text_hidden: int) -> int:
    """Qwen3.5: learned positions, a merger after the last block."""
    width = vision.size("hidden_size")
    out = vision.optional_size("out_hidden_size") or text_hidden
    blocks = vision.size(*_DEPTH) * _plain_block(width, vision.size("intermediate_size"))
    embedding = _patch(vision, width, 2) + width + vision.size("num_position_embeddings") * width
    return embedding + blocks + _merger(width, vision, out, 2 * width)


def _llama4(vision: Config, text_hidden: int) -> int:
    """Llama 4: class token, learned positions, pixel shuffle, projector without biases."""
    width = vision.size("hidden_size")
    tokens = (vision.size("image_size") // vision.size("patch_size")) ** 2 + 1
    blocks = vision.size(*_DEPTH) * _plain_block(width, vision.size("intermediate_size"))
    shuffled = int(width / (vision.number("pixel_shuffle_ratio") or 0.5) ** 2)
    between, last = vision.size("projector_input_dim"), vision.size("projector_output_dim")
    shuffle = shuffled * between + between * last
    projector = vision.size("vision_output_dim") * text_hidden
    return _patch(vision, width) + width + tokens * width + 4 * width + blocks + shuffle + projector


def _mllama(vision: Config, text_hidden: int) -> int:
    """Llama 3.2 Vision (arXiv 2407.21783, section 7): tiles, local and gated global blocks."""
    width, inner = vision.size("hidden_size"), vision.size("intermediate_size")
    tokens = (vision.size("image_size") // vision.size("patch_size")) ** 2 + 1
    ratios, tiles = len(vision.entries("supported_aspect_ratios") or ()), vision.size("max_num_tiles")
    if not ratios:
        raise vision.refusal("supported_aspect_ratios", "is missing")
    positions = tokens * width + (ratios + 1) * tiles * tokens * width + 1
    around_tiles = 2 * ((ratios + 1) * tiles * width + 1)
    block = 4 * width**2 + _linear(width, inner) + _linear(inner, width) + 4 * width
    last = vision.size("num_global_layers")
    blocks = (vision.size(*_DEPTH) + last) * block + 2 * last
    projector = _linear(vision.size("vision_output_dim"), text_hidden)
    return _patch(vision, width) + width + positions + around_tiles + 4 * width + blocks + projector


def _glm4v(vision: Config, text_hidden: int) -> int:
    """GLM-4.5V (arXiv 2507.01006): blocks without biases, as wide inside as what they give to the language model."""
    width, out = vision.size("hidden_size"), vision.size("out_hidden_size")
    positions = (vision.size("image_size") // vision.size("patch_size")) ** 2 * width
    blocks = vision.size(*_DEPTH) * (2 * width + 4 * width**2 + 3 * width * out)
    merge = vision.optional_size("spatial_merge_size") or 2
    downsample = out * width * merge**2 + out
    merger = out**2 + 2 * out + 3 * out * vision.size("intermediate_size")
    return _patch(vision, width, 2) + width + positions + blocks + 2 * width + downsample + merger


#: Towers by the kind that a vision_config or a family names.
TOWERS: dict[str, Callable[[Config, int], int]] = {
    "siglip_vision_model": _siglip,
    "qwen2_vl": _qwen2,
    "qwen2_5_vl": _qwen2_5,
    "qwen3_vl": _qwen3_vl,
    "qwen3_vl_moe": _qwen3_vl,
    "qwen3_5": _qwen3_5,
    "qwen3_5_moe": _qwen3_5,
    "llama4_vision_model": _llama4,
    "mllama_vision_model": _mllama,
    "glm4v_moe_vision": _glm4v,
    "glm4v_moe": _glm4v,
}
