"""Distances of points from a value: by definition, and far values are cut off where no point is."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.whole.figure import Move
from sulq.kernel.whole.metric import FARTHEST, Candidates, Points

CORNERS = ((0, 0), (0, 3), (4, 0))


def circle(numbers: Iterable[int], around: int) -> Points:
    return Points(tuple((number,) for number in numbers), "circle", around)


@pytest.mark.parametrize(
    ("name", "expected"), [("l1", [3, 2, 5]), ("linf", [2, 1, 3]), ("hamming", [2, 2, 2]), ("discrete", [1, 1, 1])]
)
def test_distances_by_their_definition(name: str, expected: list[int]) -> None:
    """From (1, 2) to three points."""
    assert Points(CORNERS, name).distances(np.array([1, 2])).tolist() == expected


def test_a_circle_is_as_far_as_the_shorter_way_round() -> None:
    """Of 24 hours, 23 is one from 0; of every second hour the same, in hours."""
    day = circle(range(24), 24)
    assert day.distances(np.array([23]))[[0, 1, 11, 22, 23]].tolist() == [1, 2, 12, 1, 0]
    assert circle(range(0, 24, 2), 24).distances(np.array([23]))[[0, 11]].tolist() == [1, 1]


def test_a_circle_is_even_where_every_place_is_a_point() -> None:
    """Only then do the weights of all points add up to the same whatever the value is: worked out for all values."""
    for points in (circle(range(5), 5), circle(range(3, 8), 5), circle(range(0, 10, 2), 10), circle((0, 1, 7), 3)):
        totals = [sum(2.0 ** -points.distances(np.array([value]))) for value in range(-9, 9)]
        assert points.even == (max(totals) - min(totals) < 1e-12)
    assert not Points(CORNERS, "l1").even


def test_values_far_out_are_cut_off() -> None:
    """A value past all points is as far as the farthest that is reckoned; 64 bits are never passed."""
    found = Points(((0,), (5,)), "l1").distances(np.array([2**62]))
    assert found.tolist() == [FARTHEST, FARTHEST - 5]


def test_moves_by_distance() -> None:
    """What of a move counts for which distance; half a circle is the farthest there is on it."""
    move = Move(6, 20, 4, 3)
    names = ("l1", "linf", "hamming", "discrete")
    assert [Points(CORNERS, name).moved(move) for name in names] == [6, 4, 3, 1]
    assert circle(range(8), 8).moved(move) == 4
    assert circle(range(100), 100).moved(move) == 6


@pytest.mark.parametrize(
    "space",
    [
        ((), "l1"),
        (((0,), (1, 2)), "l1"),
        (((),), "l1"),
        (((0.5,),), "l1"),
        (((FARTHEST + 1,),), "l1"),
        (((0,),), "far"),
        (((0,),), "circle"),
        (((0, 1),), "circle", 3),
        (((0,),), "l1", 3),
    ],
    ids=str,
)
def test_a_space_that_is_none_is_refused(space: tuple) -> None:
    """No points, points of several widths, between units, or too far out; a circle without a length, or of vectors."""
    with pytest.raises(Refused):
        Points(*space)


@pytest.mark.parametrize("weights", [(), (0,), (1, -1), (1.0,), (True,), (2**20, 1)], ids=str)
def test_weights_that_are_no_base_measure_are_refused_S3_31(weights: tuple) -> None:
    """None at all, what is no positive whole number, or more together than are drawn from. Control: some that are."""
    assert Candidates((1, 2**20 - 1)).weights[0] == 1
    with pytest.raises(Refused):
        Candidates(weights)
