"""Labels and cells as texts: years without a comma, dates as dates, unknown said in one word."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from sulq.display.labels import column, interval, label

DAY = datetime.date(2020, 1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "missing"),
        (1984, "1984"),
        (12_345, "12345"),
        (12_345.0, "12345"),
        (0.25, "0.25"),
        (Fraction(1, 4), "0.25"),
        (True, "True"),
        ("Lod", "Lod"),
        (DAY, "2020-01-02"),
        (datetime.datetime(2020, 1, 2, 3, 4), "2020-01-02 03:04:00"),  # noqa: DTZ001 - in UTC
        ((0.0, 20.0), "[0, 20)"),
        ((DAY, DAY), "[2020-01-02, 2020-01-02)"),
    ],
)
def test_a_label_is_a_name_and_no_amount(value: object, text: str) -> None:
    """Numbers among them have no thousands apart and no point that says nothing."""
    assert label(value) == text


def test_bins_are_half_open_but_for_the_last() -> None:
    """What is no bin stays as it is; SQL's word for a missing label is its own."""
    assert [interval((0, 20), closed=False), interval((80, 100), closed=True)] == ["[0, 20)", "[80, 100]"]
    assert interval(5, closed=True) == 5
    assert label(None, missing="NULL") == "NULL"


def test_a_column_says_what_is_unknown_and_what_is_missing() -> None:
    """An estimate that is not known is unknown, never a name of nothing; a label that is not there is missing."""
    assert column([(5, 2, 8), (None, 0, 120)], noisy=[True, True]) == ["5 +- 3", "unknown"]
    assert column([("a", None, None), (None, None, None)], noisy=[False, False]) == ["a", "missing"]
    assert column([(12_345, None, None), (0.5, None, None)], noisy=[True, True]) == ["12,345", "0.5"]
    assert column([(DAY, DAY, DAY)]) == ["2020-01-02 in [2020-01-02, 2020-01-02]"]
    assert column([("x", "a", "z"), (True, False, True)]) == ["x", "True"]
    assert column([(Fraction(1, 2), 0, 1)]) == ["0.50 +- 0.50"]
    assert column([]) == []
