"""Quantities: what a person writes ("2.039 TB/s", "70B", "8*16") to SI numbers, and numbers to what a person reads.

Inside the program there are only bytes, seconds, FLOP, FLOP/s, bytes/s, US dollars, watts and ratios.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}


def _prefixed(unit: str, scale: float = 1.0, prefixes: dict[str, float] | None = None) -> dict[str, float]:
    table = prefixes or {p: f for p, f in DECIMAL.items() if p != "B"}
    return {prefix + unit: factor * scale for prefix, factor in table.items()}


_BYTES = _prefixed("B") | _prefixed("B", prefixes=BINARY) | _prefixed("b", 1 / 8)
_RATES = {f"{name}/s": factor for name, factor in _BYTES.items()}
_FLOPS = _prefixed("FLOP/s") | _prefixed("FLOPS")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
#: Spans of a calendar beside them: a month has 30 days, a year 365.
_DAYS = {
    "day": 1,
    "days": 1,
    "w": 7,
    "week": 7,
    "weeks": 7,
    "month": 30,
    "months": 30,
    "y": 365,
    "year": 365,
    "years": 365,
}


@dataclass(frozen=True)
class Unit:
    """One kind of quantity: the spellings it accepts with their factor to SI.

    `written` are the spellings for files, in order of preference among equally short ones. A bare number is in SI
    unless `bare` is another factor.
    """

    name: str
    factors: dict[str, float]
    example: str
    written: tuple[str, ...] = ()
    whole: bool = False
    bare: float = 1.0


_NAMED = ("T", "B", "M", "k")
_BYTES_WRITTEN = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB", "B")
_RATES_WRITTEN = ("TB/s", "GB/s", "MB/s", "kB/s", "B/s")
_FLOPS_WRITTEN = ("PFLOP/s", "TFLOP/s", "GFLOP/s", "FLOP/s")
_SECONDS_WRITTEN = ("s", "ms", "µs", "ns", "min", "h", "d")

UNITS = {
    unit.name: unit
    for unit in (
        Unit("count", DECIMAL | BINARY, "8", ("k", "M", "B"), whole=True),
        Unit("amount", DECIMAL, "70B", _NAMED),
        Unit("tokens", DECIMAL | {f"{p} tokens".strip(): f for p, f in DECIMAL.items()}, "2T", _NAMED),
        Unit("bytes", _BYTES, "80 GiB", _BYTES_WRITTEN),
        Unit("bytes/s", _RATES, "2.039 TB/s", _RATES_WRITTEN),
        Unit("FLOP/s", _FLOPS, "312 TFLOP/s", _FLOPS_WRITTEN),
        Unit("seconds", _SECONDS, "500 ms", _SECONDS_WRITTEN),
        Unit(
            "duration",
            _SECONDS | {name: 86400.0 * days for name, days in _DAYS.items()},
            "90 d, 12 weeks, 3 months or 1 y",
            ("d", "h", "min", "s"),
            bare=86400.0,
        ),
        Unit("ratio", {"%": 0.01}, "45%", ("%",)),
        Unit("USD/h", {"USD/h": 1.0, "$/h": 1.0, "USD/GPU-h": 1.0}, "1.80 USD/h", ("USD/h",)),
        Unit("watts", _prefixed("W"), "700 W", ("MW", "kW", "W")),
        Unit("kg/kWh", {"kg/kWh": 1.0, "g/kWh": 1e-3}, "0.4 kg/kWh", ("kg/kWh",)),
        Unit("1/s", {"/s": 1.0, "req/s": 1.0, "requests/s": 1.0}, "2 /s", ("/s",)),
        Unit("number", {}, "1.5"),
    )
}

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
#: Signs as they are printed, and as arithmetic writes them.
_TYPOGRAPHY = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " ", "−": "-", "×": "*", "·": "*", "μ": "µ"})
_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:[ ,_]\d{3})+(?!\d)")
# The number is atomic, so that no text makes the match try again and again.
_QUANTITY = re.compile(
    r"\s*(?P<number>(?>(?:[-+*()\s]|/(?=\s*[\d(.])|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)+))(?P<unit>[^\d\s.,()*+-].*)?",
    re.ASCII | re.DOTALL,
)


class QuantityError(ValueError):
    """Text that is not a quantity of the wanted unit; the message says what would do."""


def parse_quantity(text: Any, unit_name: str) -> float:
    """A number in SI from what a person wrote, such as "80 GiB", "1.5T" or "8*16".

    Raises QuantityError with the reason and an example. Infinities and NaN are refused.
    """
    unit = UNITS[unit_name]
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        raise QuantityError(f"{text!r} is not a quantity; write for example {unit.example}")
    if len(str(text)) > 100:
        raise QuantityError(f"{str(text)[:20]!r}… is too long for a quantity; write for example {unit.example}")
    try:
        value = _parse_text(text, unit) if isinstance(text, str) else text * unit.bare
    except (ArithmeticError, SyntaxError, MemoryError, RecursionError):
        raise _not_a_quantity(text, unit) from None
    if not math.isfinite(value):
        raise QuantityError(f"{text} is not a finite number; write for example {unit.example}")
    if unit.whole and value != round(value):
        raise QuantityError(f"{text} is not a whole number; {max(1, round(value))} would do")
    return int(value) if unit.whole else value


def parse_any(text: str) -> float:
    """A number in SI, bare or with any unit that belongs to one kind of quantity alone. Raises QuantityError."""
    for unit in ("number", "bytes", "bytes/s", "FLOP/s", "seconds", "ratio", "watts"):
        with suppress(QuantityError):
            return parse_quantity(text, unit)
    raise QuantityError(f"{text!r} is neither a number nor a quantity; write for example 0.8, 80%, 8 µs or 1 GiB")


def _not_a_quantity(text: Any, unit: Unit) -> QuantityError:
    return QuantityError(f"{text!r} is not a quantity; write for example {unit.example}")


def _parse_text(text: str, unit: Unit) -> float:
    plain = _THOUSANDS.sub(lambda match: re.sub("[ ,_]", "", match[0]), text.translate(_TYPOGRAPHY))
    match = _QUANTITY.fullmatch(plain)
    if not match:
        raise _not_a_quantity(text, unit)
    spelling = " ".join((match["unit"] or "").split())
    if spelling and spelling not in unit.factors:
        raise QuantityError(f"{text!r}: {_unknown_unit(spelling, unit)}; write for example {unit.example}")
    number, factor = match["number"].strip(), unit.factors.get(spelling, unit.bare)
    try:
        # A literal is scaled in decimal, so that 2.3M is 2300000 and not 2299999.9999999995.
        return float(Decimal(number) * Decimal(repr(factor)))
    except InvalidOperation:
        return _arithmetic(ast.parse(number, mode="eval"), text, unit) * factor


def _unknown_unit(spelling: str, unit: Unit) -> str:
    """Why a unit is refused; letters of another case are pointed out, since b and B, m and M differ."""
    alike = [known for known in unit.factors if known and known.lower() == spelling.lower()]
    if alike:
        return f"unknown unit {spelling!r}, did you mean {' or '.join(alike)}?"
    known = ", ".join(unit.written)
    return f"unknown unit {spelling!r}" + (f" (known: {known})" if known else "")


def _arithmetic(node: ast.AST, text: str, unit: Unit) -> float:
    """The value of +, -, *, / and ** on numbers; anything else is not a quantity."""
    match node:
        case ast.Expression():
            return _arithmetic(node.body, text, unit)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp() if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](_arithmetic(node.operand, text, unit))
        case ast.BinOp() if type(node.op) in _OPERATORS:
            operands = _arithmetic(node.left, text, unit), _arithmetic(node.right, text, unit)
            value = _OPERATORS[type(node.op)](*operands)
            if isinstance(value, float):
                return value
    raise _not_a_quantity(text, unit)


# ---------------------------------------------------------------- numbers to text

_SCALES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_NAMED_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY_SCALES = ((2.0**50, "Pi"), (2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"), (1.0, ""))
_TIME_SCALES = ((3600.0, "h"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_THIN = "\u202f"


def _rounded(value: float, significant: int) -> tuple[float, int]:
    """The value rounded to significant digits, and the power of ten of its first digit."""
    mantissa, _, exponent = f"{value:.{significant - 1}e}".partition("e")
    return float(f"{mantissa}e{exponent}"), int(exponent)


def digits(value: float, significant: int = 3) -> str:
    """A number with `significant` digits, never in exponent notation, thousands set apart by a thin space."""
    if value == 0:
        return "0"
    rounded, magnitude = _rounded(value, significant)
    text = f"{rounded:,.{max(0, significant - 1 - magnitude)}f}"
    return text.replace(",", _THIN).replace("-", "−")


def _scaled(value: float, scales: tuple[tuple[float, str], ...], significant: int) -> tuple[str, str]:
    """The number in the largest of the scales in which it is at least one once rounded, and that scale's name."""
    for factor, prefix in scales:
        if _rounded(value / factor, significant)[0] >= 1:
            return digits(value / factor, significant), prefix
    factor, prefix = scales[-1]
    return digits(value / factor, significant), prefix


def format_quantity(value: float | None, unit_name: str, significant: int = 3) -> str:
    """A number with its unit as a person reads it: "62.1 GiB", "2.04 TB/s", "38.4 d", "$1.17M", "52.4 %"."""
    if value is None:
        return "–"
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    sign = "−" if value < 0 else ""
    return sign + _FORMATS.get(unit_name, _format_number)(abs(value), significant)


def _format_count(value: float, _significant: int) -> str:
    """All digits of what can be counted one by one: a rounded one would end in zeros that nobody counted."""
    return f"{value:,.0f}".replace(",", _THIN) if _is_counted(value) or 1e4 <= value < 1e15 else digits(value, 4)


def _format_number(value: float, significant: int) -> str:
    return _format_count(value, significant) if value >= 1000 and _is_counted(value) else digits(value, significant)


def _is_counted(value: float) -> bool:
    return value == round(value) and value < 1e15


def _format_amount(value: float, significant: int) -> str:
    return "".join(_scaled(value, _NAMED_SCALES, significant))


def _format_tokens(value: float, significant: int) -> str:
    return _format_amount(value, significant) if value >= 1e5 else _format_count(value, significant)


def _in_scales(suffix: str, scales: tuple[tuple[float, str], ...] = _SCALES) -> Any:
    def write(value: float, significant: int) -> str:
        number, prefix = _scaled(value, scales, significant)
        return f"{number} {prefix}{suffix}"

    return write


def _format_seconds(value: float, significant: int) -> str:
    if value >= 2 * 86400:
        return f"{digits(value / 86400, significant)} d"
    if value == 0:
        return "0 s"
    scales = _TIME_SCALES if value >= 7200 else _TIME_SCALES[1:]
    return " ".join(_scaled(value, scales, significant))


def _format_duration(value: float, significant: int) -> str:
    return f"{digits(value / 86400, significant)} d" if value >= 86400 else _format_seconds(value, significant)


def _format_usd(value: float, significant: int) -> str:
    if value < 1000:
        return f"${value:,.2f}"
    return "$" + _format_amount(value, significant)


def _format_kg(value: float, significant: int) -> str:
    return f"{digits(value / 1e3, significant)} t" if value >= 1e3 else f"{digits(value, significant)} kg"


_FORMATS = {
    "count": _format_count,
    "amount": _format_amount,
    "tokens": _format_tokens,
    "bytes": _in_scales("B", _BINARY_SCALES),
    "decimal bytes": _in_scales("B"),
    "bytes/s": _in_scales("B/s"),
    "FLOP": _in_scales("FLOP"),
    "FLOP/s": _in_scales("FLOP/s"),
    "FLOP/B": lambda value, significant: f"{digits(value, significant)} FLOP/B",
    "tokens/s": lambda value, significant: f"{_format_amount(value, significant)} tok/s",
    "seconds": _format_seconds,
    "duration": _format_duration,
    "days": lambda value, significant: f"{digits(value, significant)} d",
    "ratio": lambda value, significant: f"{digits(value * 100, significant)} %",
    "USD": _format_usd,
    "USD/h": lambda value, _significant: f"{value:,.2f} USD/h",
    "watts": _in_scales("W"),
    "kWh": lambda value, significant: _in_scales("Wh")(value * 1e3, significant),
    "kg": _format_kg,
    "kg/kWh": lambda value, significant: f"{digits(value, significant)} kg/kWh",
    "1/s": lambda value, significant: f"{digits(value, significant)} /s",
    "times": lambda value, significant: f"{digits(value, significant)}×",
}


def write_quantity(value: float, unit_name: str) -> str | float | int:
    """The shortest spelling for a file that reads back to the very same number; a bare number where none does."""
    unit = UNITS[unit_name]
    exact = Decimal(repr(float(value)))
    space = "" if unit_name in ("amount", "tokens", "ratio") else " "
    texts = []
    for spelling in () if unit.whole else unit.written:
        number = exact / Decimal(repr(unit.factors[spelling]))
        if 1 <= abs(number) < 1024 or unit.factors[spelling] == 1 or len(unit.written) == 1:
            texts.append(f"{number.normalize():f}{space}{spelling}")
    texts = [text for text in texts if len(text) < 25 and parse_quantity(text, unit_name) == value]
    if texts:
        return min(texts, key=len)
    if unit.bare != 1:
        return f"{float(value)!r} {unit.written[-1]}"
    return int(value) if value == int(value) else float(value)
