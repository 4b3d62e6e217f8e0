"""Quantities a person writes and reads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triledger.core.units import (
    UNITS,
    QuantityError,
    digits,
    format_quantity,
    parse_any,
    parse_quantity,
    write_quantity,
)

GIB = 2.0**30
FRACTIONAL = sorted(name for name, unit in UNITS.items() if not unit.whole)
POSITIVE = st.floats(min_value=1e-6, max_value=1e18)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GiB", "bytes", 85_899_345_920),
        ("80GB", "bytes", 80e9),
        ("2.039 TB/s", "bytes/s", 2.039e12),
        ("400 Gb/s", "bytes/s", 50e9),
        ("989.4 TFLOP/s", "FLOP/s", 989.4e12),
        ("312 TFLOPS", "FLOP/s", 312e12),
        ("70B", "amount", 70e9),
        ("2T", "tokens", 2e12),
        ("15.6 T tokens", "tokens", 15.6e12),
        ("45%", "ratio", 0.45),
        ("0.45", "ratio", 0.45),
        ("1.80 USD/h", "USD/h", 1.8),
        ("500 ms", "seconds", 0.5),
        ("3 µs", "seconds", 3e-6),
        ("3 μs", "seconds", 3e-6),
        ("90 d", "seconds", 90 * 86400),
        ("90", "duration", 90 * 86400),
        (90, "duration", 90 * 86400),
        ("36 h", "duration", 36 * 3600),
        ("12 weeks", "duration", 84 * 86400),
        ("1 week", "duration", 7 * 86400),
        ("3 months", "duration", 90 * 86400),
        ("1.5 y", "duration", 547.5 * 86400),
        ("2 /s", "1/s", 2),
        ("8*16", "count", 128),
        ("2**10 + 24", "count", 1048),
        ("(3 + 5) / 2", "count", 4),
        ("2.3M", "count", 2_300_000),
        ("128Ki", "count", 131_072),
        ("1,048,576", "count", 1_048_576),
        ("12\u202f300", "count", 12_300),
        ("1e-3 s", "seconds", 1e-3),
        ("−5", "count", -5),
    ],
)
def test_parses_what_people_write(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("", "count", "write for example 8"),
        ("many", "count", "not a quantity"),
        ("8.5", "count", "not a whole number; 8 would do"),
        ("80 gib", "bytes", "did you mean GiB?"),
        ("80 stone", "bytes", "known: TiB, GiB"),
        ("90 moons", "duration", "write for example 90 d, 12 weeks, 3 months or 1 y"),
        ("1,5 TB/s", "bytes/s", "not a quantity"),
        ("0,123 GB", "bytes", "not a quantity"),
        ("nan", "number", "not a quantity"),
        ("inf", "number", "not a quantity"),
        ("1e999", "number", "not a finite number"),
        (math.nan, "number", "not a finite number"),
        (10**400, "number", "too long"),
        ("1/0", "number", "not a quantity"),
        ("9**9**9", "number", "not a quantity"),
        ("(-8)**0.5", "number", "not a quantity"),
        ("__import__('os')", "number", "not a quantity"),
        ("1" * 101, "number", "too long"),
        ("1" * 99 + ",", "number", "not a quantity"),
        ("(" * 99, "number", "not a quantity"),
        (True, "count", "not a quantity"),
        (None, "count", "not a quantity"),
    ],
)
def test_refuses_with_a_reason(text: object, unit: str, said: str) -> None:
    with pytest.raises(QuantityError, match=said.replace("?", r"\?")):
        parse_quantity(text, unit)


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(sorted(UNITS)))
def test_any_text_is_a_finite_number_or_refused(text: str, unit: str) -> None:
    try:
        value = parse_quantity(text, unit)
    except QuantityError:
        return
    assert math.isfinite(value)


@settings(deadline=None)
@given(POSITIVE, st.sampled_from(FRACTIONAL))
def test_written_quantities_read_back_to_the_same_number(value: float, unit: str) -> None:
    assert parse_quantity(write_quantity(value, unit), unit) == value


@settings(deadline=None)
@given(st.integers(1, 10**15))
def test_written_counts_read_back(value: int) -> None:
    assert parse_quantity(write_quantity(value, "count"), "count") == value


@settings(deadline=None)
@given(POSITIVE, st.sampled_from(["amount", "bytes", "bytes/s", "FLOP/s", "seconds", "ratio", "watts", "1/s"]))
def test_shown_quantities_read_back_to_within_their_digits(value: float, unit: str) -> None:
    assert parse_quantity(format_quantity(value, unit), unit) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (70e9, "amount", "70B"),
        (6_738_415_616.0, "amount", "6.738415616B"),
        (15.6e12, "tokens", "15.6T"),
        (80 * GIB, "bytes", "80 GiB"),
        (288e9, "bytes", "288 GB"),
        (2.039e12, "bytes/s", "2.039 TB/s"),
        (989.4e12, "FLOP/s", "989.4 TFLOP/s"),
        (0.45, "ratio", "45%"),
        (0.07, "ratio", "7%"),
        (1.8, "USD/h", "1.8 USD/h"),
        (0.5, "seconds", "0.5 s"),
        (8e-6, "seconds", "8 µs"),
        (90 * 86400.0, "seconds", "90 d"),
        (90 * 86400.0, "duration", "90 d"),
        (86400.0, "duration", "1 d"),
        (1e-30, "duration", "1e-30 s"),
        (700.0, "watts", "700 W"),
        (500.0, "amount", 500),
        (4096, "count", 4096),
        (1.2, "number", 1.2),
    ],
)
def test_files_say_it_in_the_usual_unit(value: float, unit: str, text: str | float) -> None:
    assert write_quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (66.7 * GIB, "bytes", "66.7 GiB"),
        (1023.99 * 2**20, "bytes", "1.00 GiB"),
        (0, "bytes", "0 B"),
        (999.96e9, "bytes/s", "1.00 TB/s"),
        (0.02089, "seconds", "20.9 ms"),
        (1e-3 * 0.99996, "seconds", "1.00 ms"),
        (38.38 * 86400, "seconds", "38.4 d"),
        (0.5242, "ratio", "52.4 %"),
        (1_170_000, "USD", "$1.17M"),
        (12.5, "USD", "$12.50"),
        (131_072, "count", "131\u202f072"),
        (1_048_576, "count", "1\u202f048\u202f576"),
        (4_194_304, "count", "4\u202f194\u202f304"),
        (1_048_576.4, "count", "1\u202f048\u202f576"),
        (1_907_349, "steps", "1\u202f907\u202f349"),
        (6_738_415_616.0, "parameters", "6\u202f738\u202f415\u202f616"),
        (86400.0, "duration", "1.00 d"),
        (43200.0, "duration", "12.0 h"),
        (-0.0012, "number", "−0.00120"),
        (math.inf, "seconds", "∞"),
        (math.nan, "seconds", "not a number"),
        (None, "seconds", "–"),
    ],
)
def test_shown_as_a_person_reads_it(value: float | None, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "significant", "text"),
    [
        (0.1415, 3, "0.141"),  # the double nearest to 0.1415 lies below it
        (0.14151, 3, "0.142"),
        (9.999, 3, "10.0"),
        (0.09999, 3, "0.100"),
        (1234.5, 3, "1\u202f230"),
        (22.0078, 4, "22.01"),
        (-3.2, 3, "−3.20"),
        (0, 3, "0"),
    ],
)
def test_digits_are_rounded_before_they_are_counted(value: float, significant: int, text: str) -> None:
    assert digits(value, significant) == text


def test_any_unit_of_one_kind_is_understood_alone() -> None:
    assert [parse_any(text) for text in ("0.8", "80%", "8 µs", "1 GiB", "50 GB/s", "700 W")] == [
        *(0.8, 0.8, 8e-6, 2**30, 50e9, 700)
    ]
    with pytest.raises(QuantityError, match="neither a number nor a quantity"):
        parse_any("70 sheep")


@settings(deadline=None)
@given(st.integers(1, 10**15 - 1))
def test_counts_show_all_their_digits(value: int) -> None:
    assert parse_quantity(format_quantity(value, "count"), "count") == value
    assert float(format_quantity(float(value), "steps", 4).replace("\u202f", "")) == value
