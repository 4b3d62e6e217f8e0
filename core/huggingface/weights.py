"""The number format of the stored weights."""

from __future__ import annotations

from .config import Config

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float8_e4m3fn": "fp8"}
_GROUPS = (32, 64, 128)


def weight_format(config: Config) -> tuple[str, list[str]]:
    """The format's name as `serving.weight_format` has it, and a sentence where the file's method is not known.

    A format that has no name there is named like those that have.
    """
    quantised = _quantisation(config)
    if quantised is None:
        dtype = config.word("torch_dtype", "dtype").removeprefix("torch.")
        return _DTYPES.get(dtype, "bf16"), []
    method = quantised.word("quant_method").lower()
    found = METHODS[method](quantised) if method in METHODS else None
    unknown = f"weights quantised by {method or 'a method without name'!r} are not known; taken as bf16"
    return found or "bf16", [] if found else [unknown]


def _quantisation(config: Config) -> Config | None:
    if not config.has("quantization_config"):
        return config.section("compression_config")
    return config.section("quantization_config")


def _fp8(quantised: Config) -> str:
    return "fp8-block" if quantised.entries("weight_block_size") else "fp8"


def _grouped(kind: str, bits: int, group: int) -> str:
    """int4 or int8 with a scale for each channel (-1) or group."""
    return f"{kind}{bits}" if group <= 0 else f"{kind}{bits}-g{group}"


def _group_size(quantised: Config) -> int:
    value = quantised.value("group_size")
    return -1 if value in (None, -1) else quantised.whole("group_size", value)


def _gptq(quantised: Config) -> str:
    bits, group = quantised.size("bits", "w_bit"), _group_size(quantised)
    if bits == 4 and group in _GROUPS:
        return f"gptq-g{group}"
    return _grouped("int", bits, group)


def _awq(quantised: Config) -> str:
    value = quantised.value("q_group_size")
    group = _group_size(quantised) if value is None else quantised.whole("q_group_size", value)
    return _grouped("int", quantised.size("bits", "w_bit"), group)


def _modelopt(quantised: Config) -> str | None:
    algorithm = quantised.word("quant_algo").upper()
    return {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4-g128", "MXFP4": "mxfp4"}.get(algorithm)


def _compressed(quantised: Config) -> str | None:
    """compressed-tensors: groups of modules, each with the bits, kind and grouping of its weights."""
    groups = quantised.value("config_groups")
    if not isinstance(groups, dict):
        return None
    weights = [group.get("weights") for group in groups.values() if isinstance(group, dict)]
    stated = next((each for each in weights if isinstance(each, dict)), None)
    if stated is None:
        return None
    first = Config(quantised.file, stated, f"{quantised.path}config_groups.weights.")
    bits, group = first.size("num_bits"), _group_size(first)
    if first.word("type") != "float":
        return _grouped("int", bits, group)
    if bits == 4:
        return "nvfp4" if group == 16 else "mxfp4"
    return ("fp8-block" if first.word("strategy") == "block" else "fp8") if bits == 8 else None


def _bitsandbytes(quantised: Config) -> str | None:
    if quantised.flag("load_in_4bit", "_load_in_4bit"):
        return "nf4"
    return "int8" if quantised.flag("load_in_8bit", "_load_in_8bit") else None


METHODS = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda quantised: "fp8",
    "gptq": _gptq,
    "auto-round": _gptq,
    "awq": _awq,
    "mxfp4": lambda quantised: "mxfp4",
    "modelopt": _modelopt,
    "compressed-tensors": _compressed,
    "bitsandbytes": _bitsandbytes,
}
