"""Metric spaces as values: their points, their units, and what is refused (S4.15)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.language.space import MAX_POINTS, Box, Points, units, values


def test_the_points_of_a_box() -> None:
    """From low by steps to high at most, as units of the statistic and as numbers."""
    box = Box(-1, 2.25, 0.5)
    assert box.size == 7
    assert units(box, Fraction(1, 4)).ravel().tolist() == [-4, -2, 0, 2, 4, 6, 8]
    assert values(box, np.array([0, 6])).ravel().tolist() == [-1.0, 2.0]


def test_the_points_that_are_named() -> None:
    """Each a row; numbers between units are refused."""
    points = Points(((0, 0.5), (3, 1)))
    assert units(points, Fraction(1, 2)).tolist() == [[0, 1], [6, 2]]
    assert values(points, np.array([1])).tolist() == [[3.0, 1.0]]
    with pytest.raises(QuestionError) as refused:
        units(points, Fraction(1))
    assert refused.value.code == "bad-literal"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Box(0), "not-normalisable"),
        (lambda: Box(None, 3), "not-normalisable"),
        (lambda: Box(distance="hamming"), "not-normalisable"),
        (lambda: Box(distance="discrete"), "not-normalisable"),
        (lambda: Box(distance="circle"), "not-normalisable"),
        (lambda: Box(3, 3), "bad-literal"),
        (lambda: Box(0, 3, 0), "bad-literal"),
        (lambda: Box(0, 3, -1), "bad-literal"),
        (lambda: Box(0, float("inf")), "bad-literal"),
        (lambda: Box(0, "3"), "bad-literal"),
        (lambda: Box(0, MAX_POINTS), "too-large"),
        (lambda: Box(0, 3, 1, "euclid"), "bad-question"),
        (lambda: Points(()), "bad-question"),
        (lambda: Points(((1,), (1,))), "bad-question"),
        (lambda: Points(((1,), (1, 2))), "bad-question"),
        (lambda: Points(((),)), "bad-question"),
        (lambda: Points(((True,),)), "bad-literal"),
        (lambda: Points(((1,),), "circle"), "bad-question"),
        (lambda: units(Points(((2**41,),)), Fraction(1)), "too-large"),
        (lambda: units(Box(0, 2**50, 2**40), Fraction(1)), "too-large"),
    ],
)
def test_odd_spaces_are_refused_with_a_code(make: object, code: str) -> None:
    """What is no space, or one whose law does not add up, or one too large."""
    with pytest.raises(QuestionError) as refused:
        make()
    assert refused.value.code == code
