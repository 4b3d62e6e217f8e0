"""The field's standard symbols for the parameters of formulas."""

from __future__ import annotations

from collections import Counter

#: Parameter name -> symbol, as in Narayanan 2021 (arXiv 2104.04473), Korthikanti 2022 (arXiv 2205.05198) and the
#: roofline literature (Williams 2009).
SYMBOLS = {
    "layers": "L",
    "hidden": "h",
    "hidden_size": "h",
    "heads": "a",
    "kv_heads": "g",
    "head_dim": "d",
    "value_dim": "d_v",
    "q_rank": "r_q",
    "kv_rank": "r_kv",
    "nope_dim": "d_n",
    "rope_dim": "d_r",
    "ffn_size": "f",
    "expert_size": "f_e",
    "shared_size": "f_s",
    "conv_size": "K",
    "vocabulary": "V",
    "padded_vocabulary": "V_p",
    "experts": "E",
    "experts_per_token": "k",
    "sequence_length": "s",
    "sequence": "s",
    "micro_batch": "b",
    "micro_batches": "m",
    "global_batch": "B",
    "tokens": "T",
    "tensor_parallel": "t",
    "tp": "t",
    "pipeline_parallel": "p",
    "pipeline": "p",
    "pp": "p",
    "context_parallel": "c",
    "cp": "c",
    "expert_parallel": "e",
    "ep": "e",
    "data_parallel": "D",
    "dp": "D",
    "virtual_stages": "v",
    "virtual": "v",
    "vpp": "v",
    "parameters": "N",
    "active_parameters": "N_act",
    "peak": "Π",
    "peak_flops": "Π",
    "bandwidth": "β",
    "memory_bandwidth": "β",
    "ranks": "n",
    "group_size": "n",
    "gpus": "n",
    "gpus_per_node": "G",
    "efficiency": "η",
    "latency": "α",
    "alpha_c": "α_c",
    "alpha_nv": "α_nv",
    "alpha_ring": "α_ring",
    "alpha_net": "α_net",
    "kappa": "κ",
    "sigma": "σ",
    "flops": "F",
    "mfu": "MFU",
    "mtbf": "MTBF",
}


def symbol(parameter: str) -> str:
    """The symbol of a formula's parameter; a parameter without one is spelled out."""
    return SYMBOLS.get(parameter, parameter.strip("_").replace("_", " "))


_BELOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def numbered(symbols: list[str]) -> list[str]:
    """The symbols with a number below those that come more than once."""
    often = Counter(symbols)
    seen: Counter[str] = Counter()
    result = []
    for mark in symbols:
        seen[mark] += 1
        result.append(f"{mark}{str(seen[mark]).translate(_BELOW)}" if often[mark] > 1 else mark)
    return result
