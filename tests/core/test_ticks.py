"""Ticks: round, inside the axis, few, and written as plain numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triledger.core.figures.ticks import linear_ticks, log_ticks, power_ticks, tick_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.5, "0.5"), (2.5, "2.5"), (10, "10"), (989, "989"), (1000, "1\u202f000"), (10000, "10\u202f000"),
     (0.001, "0.001"), (1e15, "1\u202f000\u202f000\u202f000\u202f000\u202f000")],
)  # fmt: skip
def test_tick_texts_are_plain_numbers(value: float, text: str) -> None:
    assert tick_text(value) == text


def test_linear_ticks_count_in_their_unit() -> None:
    ticks = linear_ticks(0.0, 79.2 * 2**30, 2**30)
    assert ticks == tuple((k * 2.0**30, str(k)) for k in (0, 20, 40, 60))


def test_log_ticks_show_decades_where_there_are_many_and_steps_where_there_are_few() -> None:
    assert [text for _, text in log_ticks(1, 1e5)] == ["1", "10", "100", "1\u202f000", "10\u202f000", "100\u202f000"]
    assert [text for _, text in log_ticks(8, 120)] == ["10", "20", "50", "100"]
    assert [text for _, text in log_ticks(2e12, 4e14, 1e12)] == ["2", "5", "10", "20", "50", "100", "200"]


def test_power_ticks_double() -> None:
    assert [text for _, text in power_ticks(30, 1100)] == ["32", "64", "128", "256", "512", "1\u202f024"]
    assert [at for at, _ in power_ticks(1, 2**20)] == [2.0**k for k in range(0, 21, 3)]


@given(st.floats(1e-6, 1e15), st.floats(1.01, 1e9))
def test_ticks_lie_inside_in_rising_order_and_are_few(low: float, factor: float) -> None:
    high = low * factor
    for ticks in (log_ticks(low, high), linear_ticks(low, high), power_ticks(low, high)):
        places = [at for at, _ in ticks]
        assert places == sorted(set(places))
        assert len(places) <= 11
        assert all(low * 0.999 <= at <= high * 1.001 for at in places)
        assert not any("e" in text or "nan" in text for _, text in ticks)


@given(st.floats(0.01, 1e6))
def test_texts_say_where_the_tick_is(low: float) -> None:
    for at, text in log_ticks(low, low * 50):
        assert math.isclose(float(text.replace("\u202f", "")), at, rel_tol=1e-9)
