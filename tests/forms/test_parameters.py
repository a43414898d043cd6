"""Parameters are refused by name and limits, before anything is asked."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, number, whole


def test_a_whole_number_within_its_limits() -> None:
    """Python's and NumPy's; a truth value, a fraction and a text are none."""
    for value in (1, 3, np.int64(2), np.uint8(3)):
        assert whole(value, "rounds", 1, 3) == int(value)
    for bad in (0, 4, True, 2.0, "2", None):
        with pytest.raises(QuestionError, match="rounds is a whole number from 1 to 3") as refusal:
            whole(bad, "rounds", 1, 3)
        assert refusal.value.code == "bad-parameter"


def test_a_condition_that_holds_is_silent() -> None:
    """And one that does not says what is wrong."""
    checked(True, "not said")
    with pytest.raises(QuestionError, match="said"):
        checked(False, "said")


def test_numbers_are_of_python_or_of_numpy() -> None:
    """Whole numbers, fractions, floats of any width; what is no finite number is NaN, truth values among it."""
    for value in (0.25, np.float32(0.25), np.float64(0.25), Fraction(1, 4)):
        assert number(value) == between(value, "beta") == 0.25
    assert number(np.int64(7)) == number(7) == 7.0
    for wrong in (
        True,
        np.bool_(True),
        "0.25",
        None,
        1j,
        math.inf,
        math.nan,
        np.float64("inf"),
        10**400,
        Decimal("0.25"),
    ):
        assert math.isnan(number(wrong))
        with pytest.raises(QuestionError, match="beta lies strictly between 0 and 1"):
            between(wrong, "beta")
    for wrong in (0, 1, -0.5, np.float64(1)):
        with pytest.raises(QuestionError):
            between(wrong, "beta")
    assert between(3, "width", 2, 10) == 3.0
