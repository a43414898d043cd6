"""Distances of points from a value: by definition, and far values are cut off where no point is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.curator.statistics.figure import Move
from sulq.curator.statistics.metric import distances, moved
from sulq.terms.space import FARTHEST, Box, Points, units

CORNERS = ((0, 0), (0, 3), (4, 0))


@pytest.mark.parametrize(
    ("name", "expected"), [("l1", [3, 2, 5]), ("linf", [2, 1, 3]), ("hamming", [2, 2, 2]), ("discrete", [1, 1, 1])]
)
def test_distances_by_their_definition(name: str, expected: list[int]) -> None:
    """From (1, 2) to three points."""
    space = Points(CORNERS, name)
    assert distances(space, units(space, Fraction(1)), np.array([1, 2]), 1).tolist() == expected


def test_a_circle_is_as_far_as_the_shorter_way_round() -> None:
    """Of 24 hours, 23 is one from 0; of every second hour the same, in hours."""
    day = Box(0, 23, distance="circle")
    assert distances(day, units(day, Fraction(1)), np.array([23]), 1)[[0, 1, 11, 22, 23]].tolist() == [1, 2, 12, 1, 0]
    even = Box(0, 22, 2, distance="circle")
    assert distances(even, units(even, Fraction(1)), np.array([23]), 2)[[0, 11]].tolist() == [1, 1]


def test_values_far_out_are_cut_off() -> None:
    """A value past all points is as far as the farthest that is reckoned; 64 bits are never passed."""
    space = Points(((0,), (5,)))
    found = distances(space, units(space, Fraction(1)), np.array([2**62]), 1)
    assert found.tolist() == [FARTHEST, FARTHEST - 5]


def test_moves_by_distance() -> None:
    """What of a move counts for which distance; half a circle is the farthest there is on it."""
    move = Move(6, 20, 4, 3)
    names = ("l1", "linf", "hamming", "discrete")
    assert [moved(Points(CORNERS, name), move, 1) for name in names] == [6, 4, 3, 1]
    assert moved(Box(0, 7, distance="circle"), move, 1) == 4
    assert moved(Box(0, 99, distance="circle"), move, 1) == 6
