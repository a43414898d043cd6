"""Estimates as texts: the printed value lies in the printed interval, which holds the true one (decision 0078)."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.display.numbers import FIGURES, Estimate, NumberStyle, decimal, figure, plain, texts

NUMBERS = st.floats(-1e18, 1e18, allow_nan=False) | st.floats(-1, 1, allow_nan=False) | st.integers(-(10**12), 10**12)
WIDTHS = st.floats(0, 1e15) | st.floats(0, 1) | st.integers(0, 10**9)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    value, under, over = draw(NUMBERS), draw(WIDTHS), draw(WIDTHS)
    return value, value - under, value + over


def read(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


@given(st.lists(estimates(), min_size=1, max_size=5))
def test_the_printed_interval_holds_the_true_one_and_the_printed_value(column: list[Estimate]) -> None:
    """Whatever the column and its style; ends are rounded outwards, and so is what stands after +-."""
    style = NumberStyle.of(column)
    for estimate in column:
        value, low, high = (decimal(number) for number in estimate if number is not None)
        if style.place(estimate) is None:
            continue  # an exact value: its text is of six figures
        at = read(style.value(estimate))
        start, end = map(read, style.ends(estimate))
        assert start <= low <= value <= high <= end
        assert start <= at <= end
        away = read(style.away(estimate))
        if not style.bracketed:
            assert at - away <= low
            assert high <= at + away


@given(st.lists(estimates(), min_size=1, max_size=5))
def test_no_digit_is_printed_that_the_interval_does_not_bear(column: list[Estimate]) -> None:
    """The last place that may differ from a nought is the second figure of the half-width, or of a count the units."""
    style = NumberStyle.of(column)
    for estimate in column:
        value, low, high = estimate
        place = style.place(estimate)
        if place is None or value is None or low is None or high is None:
            continue
        half = (high - low) / 2
        assert place >= math.floor(math.log10(half)) + 1 - FIGURES - 1e-9 if half else True
        for text in (style.value(estimate), *style.ends(estimate)):
            scaled = read(text).scaleb(-place)
            assert scaled == scaled.to_integral_value()


def test_a_value_to_six_figures_says_more_than_its_interval_bears() -> None:
    """Control: a mean within 330 was printed with a tenth; an end rounded inwards leaves out the true one."""
    estimate = (24650.691, 24329.755, 24970.58)
    assert f"{estimate[0]:,.6g}" == "24,650.7"
    assert texts([estimate]) == ["24,650 +- 330"]
    inwards = Decimal(f"{estimate[2]:.3g}")
    assert not Decimal(str(estimate[2])) <= Decimal(24_900) < inwards


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ([(12099, 12093, 12105), (0, -6, 6)], ["12,099 +- 6", "0 +- 6"]),
        ([(-45, -78.0, -12.0)], ["-45 +- 33"]),
        ([(1987, 1987, 1987)], ["1987 +- 0"]),
        ([(1989, 1985, 1999), (2, 1, 3)], ["1989 in [1985, 1999]", "2 in [1, 3]"]),
        ([(None, 0, 10), (5.25, 4.2, 6.3)], ["unknown", "5.2 +- 1.1"]),
        ([(1_000_000_000, 999_987_655, 1_000_012_345)], ["1,000,000,000 +- 13,000"]),
        ([(30.869784, 29.893758, 31.832515)], ["30.87 +- 0.98"]),
        ([(5.00279e-7, 5.00073e-7, 5.00484e-7)], ["5.0028e-7 +- 2.1e-10"]),
        ([(2e20, 1e20, 3e20)], ["2.0e20 +- 1.0e20"]),
        ([(5.0, -math.inf, 7.0)], ["5.0 in [-inf, 7.0]"]),
        ([(5.25, None, None)], ["5.2 in [-inf, inf]"]),
        ([(0.0, 0.0, 0.31)], ["0.00 in [0.00, 0.31]"]),
        ([(-0.04, -1.3, 1.22)], ["0.0 +- 1.3"]),
    ],
)
def test_a_column_has_one_style(column: list[Estimate], shown: list[str]) -> None:
    """Counts whole, years without a comma, negative, unknown, tiny and huge ones; one kind of interval for all."""
    assert texts(column) == shown


@pytest.mark.parametrize(
    ("number", "alone", "exact"),
    [
        (1234.5, "1234", "1234.5"),
        (12345.6, "12,346", "12345.6"),
        (0.012345, "0.0123", "0.012345"),
        (3.0, "3", "3"),
        (0.0, "0", "0"),
        (-2.5, "-2.5", "-2.5"),
        (1e-9, "1e-9", "1e-9"),
        (1e20, "100,000,000,000,000,000,000", "1e20"),
        (math.inf, "anything", "inf"),
        (123456789.123, "123,456,789", "123456789"),
    ],
)
def test_numbers_without_an_interval(number: float, alone: str, exact: str) -> None:
    """How far something may be off, to three figures; a public value, to six, with every digit before the point."""
    assert (figure(number), plain(number)) == (alone, exact)


def test_whole_numbers_have_thousands_apart_from_ten_thousand_on() -> None:
    """A year never has; in a column that reaches ten thousand all have."""
    assert (figure(9_999), figure(10_000)) == ("9999", "10,000")
    assert plain(12_345.5, separated=True) == "12,345.5"
    assert texts([(9999, 9990, 10008), (15, 6, 24)]) == ["9,999 +- 9", "15 +- 9"]
