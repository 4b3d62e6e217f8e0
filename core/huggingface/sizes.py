"""The sizes of attention and of the feed-forward part."""

from __future__ import annotations

from typing import Any

from . import names
from .config import Config
from .family import Family, choose


def attention_sizes(config: Config, family: Family, hidden: int) -> dict[str, Any]:
    """Heads and their widths, as facts of a ModelSpec. Raises ScenarioError for what is missing or does not divide."""
    heads = config.size(*names.HEADS)
    if config.value("kv_lora_rank") is not None:
        return {"heads": heads, "kv_heads": heads} | _latent_sizes(config)
    kv_heads = _kv_heads(config, family, heads)
    if heads % kv_heads:
        name = next((name for name in names.KV_HEADS if config.value(name) is not None), names.KV_HEADS[0])
        raise config.refusal(name, f"{kv_heads} does not divide {heads} attention heads")
    head_dim = config.optional_size(*names.HEAD_DIM)
    if head_dim is None and hidden % heads:
        raise config.refusal("head_dim", f"is missing, and {heads} heads do not divide hidden size {hidden}")
    head_dim = head_dim or hidden // heads
    value_dim = config.optional_size("v_head_dim") or head_dim
    return {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": 0 if head_dim * heads == hidden else head_dim,
        "value_dim": 0 if value_dim == head_dim else value_dim,
    }


def _kv_heads(config: Config, family: Family, heads: int) -> int:
    rule = choose(family.kv_heads, config)
    config.mark_read(*names.KV_HEADS)
    if rule == "stated" and config.flag("multi_query_attention"):
        return config.size("multi_query_group_num")
    if rule == "stated":
        return config.optional_size(*names.KV_HEADS, "num_query_groups") or heads
    return heads if rule == "all" else int(rule)


def _latent_sizes(config: Config) -> dict[str, Any]:
    config.mark_read(*names.KV_HEADS, *names.HEAD_DIM, "qk_head_dim")
    sizes = {
        "kv_rank": config.size("kv_lora_rank"),
        "q_rank": config.count("q_lora_rank"),
        "nope_dim": config.size("qk_nope_head_dim"),
        "rope_dim": config.size("qk_rope_head_dim"),
        "value_dim": config.size("v_head_dim"),
    }
    if config.optional_size("index_n_heads") is None:
        return sizes
    if not sizes["q_rank"]:
        raise config.refusal("q_lora_rank", "is missing; the index takes its queries from the compressed query")
    return sizes | {
        "index_heads": config.size("index_n_heads"),
        "index_dim": config.size("index_head_dim"),
        "index_topk": config.size("index_topk"),
    }


def ffn_size(config: Config, family: Family, hidden: int) -> int | None:
    """Inner width of a dense feed-forward part, or None where the file does not say it."""
    if family.dense_size:
        return config.optional_size(family.dense_size)
    if config.value("hidden_dim") is not None and config.value("dim") is not None:
        return config.size("hidden_dim")
    if (multiple := config.optional_size("multiple_of")) is not None:
        return _rounded(int((config.number("ffn_dim_multiplier") or 1.0) * int(8 * hidden / 3)), multiple)
    for ratio in ("expansion_ratio", "mlp_ratio"):
        if (factor := config.number(ratio)) is not None:
            return int(factor * hidden)
    stated = config.optional_size("block_ff_dim") or config.optional_size(*names.FFN)
    if stated is None:
        return family.ffn_multiple * hidden or None
    if config.flag("block_auto_adjust_ff_dim"):
        stated = int((config.number("block_ffn_dim_multiplier") or 1.0) * int(2 * stated / 3))
        return _rounded(stated, config.size("block_multiple_of"))
    if stated % family.ffn_stored:
        raise config.refusal(names.FFN[0], f"{stated} is odd, but the file of this family says twice the width")
    return stated // family.ffn_stored


def ratio_width(factor: float, hidden: int) -> int:
    """Width of a feed-forward part from its ratio: two thirds of it, rounded up to 256."""
    return _rounded(int(2 * factor * hidden / 3), 256)


def _rounded(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _expert_size(config: Config, family: Family, assumed: list[str]) -> int:
    """Inner width of an expert: a field of its own, or in some families that of the feed-forward part."""
    config.value("ffn_config.hidden_size")
    stated = config.optional_size(*names.EXPERT_SIZE)
    if stated is None and not family.known:
        assumed.append(f"experts as wide as {names.FFN[0]} says")
    if stated is None and (family.expert_size or not family.known):
        stated = config.optional_size(family.expert_size or names.FFN[0])
    if stated is None:
        raise config.refusal(family.expert_size or names.EXPERT_SIZE[0], "is missing")
    return stated


def expert_sizes(config: Config, family: Family, assumed: list[str]) -> dict[str, Any]:
    """Routed and shared experts, as facts of a ModelSpec; nothing where the model is dense."""
    experts = config.count(*names.EXPERTS, "moe.num_experts")
    per_token = config.optional_size(*names.PER_TOKEN, "moe.num_experts_per_tok", least=0)
    if experts == 0 and per_token and not config.says(*names.EXPERTS, "moe.num_experts"):
        raise config.refusal(_name_of_experts(config), f"is missing, but a token is sent to {per_token} experts")
    if experts == 0 or (experts == 1 and (not per_token or family.one_expert == "dense")):
        return {}
    if not per_token:
        why = "is missing" if per_token is None else "is 0"
        raise config.refusal(config.first(*names.PER_TOKEN), f"{why}, but there are {experts} experts")
    if per_token > experts:
        raise config.refusal(names.PER_TOKEN[0], f"{per_token} is more than the {experts} experts there are")
    if (groups := config.count("n_group")) and experts % groups:
        raise config.refusal("n_group", f"{groups} does not divide {experts} experts")
    for name in family.needs:
        config.size(name)
    size = _expert_size(config, family, assumed)
    return {
        "experts": experts,
        "experts_per_token": per_token,
        "expert_size": size,
        **_shared(config, family, size),
        "router_bias": _router_bias(config, family),
        "expert_bias": config.holds(choose(family.expert_bias, config)),
        "expert_latent": config.count("moe_latent_size"),
    }


def _name_of_experts(config: Config) -> str:
    """The name under which this file, or its family, counts the experts."""
    for known in (config.fields, config.own_names):
        if found := next((name for name in names.EXPERTS if name in known), None):
            return found
    return names.EXPERTS[0]


def _shared(config: Config, family: Family, size: int) -> dict[str, Any]:
    config.mark_read(*names.SHARED_EXPERTS)
    shared = config.count(*names.SHARED_SIZE) or config.count(*names.SHARED_EXPERTS) * size
    return {"shared_size": shared, "shared_gate": family.shared_gate and shared > 0}


def _router_bias(config: Config, family: Family) -> str:
    stated = choose(family.router_bias, config) or "none"
    if stated != "none":
        return stated
    steered = config.word("topk_method") == "noaux_tc" or (
        config.word("scoring_func") == "sigmoid" and bool(config.flag("use_routing_bias"))
    )
    return "steering" if steered else "none"


def state_sizes(config: Config, family: Family, hidden: int, kinds: set[str]) -> dict[str, Any]:
    """Sizes of layers with a state, as facts of a ModelSpec, for the kinds of mixing that the model has."""
    facts: dict[str, Any] = {}
    if "delta" in kinds:
        facts |= {
            "linear_key_heads": config.size("linear_num_key_heads"),
            "linear_key_dim": config.size("linear_key_head_dim"),
            "linear_value_heads": config.size("linear_num_value_heads"),
            "linear_value_dim": config.size("linear_value_head_dim"),
            "conv_size": config.size("linear_conv_kernel_dim"),
        }
    if "conv" in kinds:
        facts |= {"conv_size": config.size("conv_L_cache"), "conv_bias": bool(config.flag("conv_bias"))}
    if "mamba" in kinds:
        facts |= _mamba(config, family, hidden)
    if {"mamba2", "attention+mamba2"} & kinds:
        facts |= _mamba2(config, family, hidden)
    return facts


def _shared_facts(config: Config, family: Family) -> dict[str, Any]:
    bias = config.flag("use_conv_bias", "mamba_conv_bias")
    return {
        "conv_size": config.size("conv_kernel", "mamba_d_conv", "mamba_conv_kernel"),
        "conv_bias": True if bias is None else bias,
        "ssm_bias": config.holds(choose(family.ssm_bias, config)),
        "ssm_norm": config.holds(choose(family.ssm_norm, config)),
    }


def _mamba(config: Config, family: Family, hidden: int) -> dict[str, Any]:
    inner = config.optional_size("d_inner")
    config.mark_read("intermediate_size")
    expand = config.number("mamba_expand") or config.number("expand")
    if inner is None and config.value("expand") is not None:
        inner = config.optional_size("intermediate_size")
    if expand is not None:
        inner = inner or int(expand * hidden)
        if inner != int(expand * hidden):
            raise config.refusal("expand", f"times hidden size {hidden} is not the inner size {inner}")
    if inner is None:
        raise config.refusal("expand", "is missing; it is the inner size over the hidden size")
    rank = config.value("time_step_rank", "mamba_dt_rank")
    return {
        "ssm_size": inner,
        "state_size": config.size("state_size", "mamba_d_state"),
        "ssm_rank": -(-hidden // 16) if rank in (None, "auto") else config.whole("time_step_rank", rank),
        **_shared_facts(config, family),
    }


def _mamba2(config: Config, family: Family, hidden: int) -> dict[str, Any]:
    alone = () if config.says("num_attention_heads") else ("num_heads", "head_dim")
    heads = config.size(config.first("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", *alone[:1]))
    width_name = config.first("mamba_head_dim", "mamba_d_head", "mamba_headdim", *alone[1:])
    width = config.value(width_name)
    inner = config.optional_size("mamba_d_ssm")
    if inner is None and width == "auto":
        inner = int((config.number("mamba_expand") or config.number("expand") or 2) * hidden)
    elif inner is None:
        inner = heads * config.size(width_name)
    config.mark_read("mamba_expand", "expand", "intermediate_size")
    chunk = config.optional_size("chunk_size", "mamba_chunk_size")
    return {
        "ssm_size": inner,
        "ssm_heads": heads,
        "ssm_groups": config.size("n_groups", "mamba_n_groups", "mamba_ngroups"),
        "state_size": config.size("ssm_state_size", "mamba_d_state", "state_size"),
        "scan_chunk": chunk or 256,
        **_shared_facts(config, family),
    }
