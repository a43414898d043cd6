"""Static kinds and cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.language.kinds import Cells, Code, Grid, Scalar, union


def test_missing_is_missing_anywhere():
    """A union marks a row where any of the masks does, and is None where none can."""
    a, b = np.array([True, False, False]), np.array([False, False, True])
    assert union(None, None) is None
    assert union(None, a) is a
    assert union(a, None, b).tolist() == [True, False, True]


def test_kinds_know_their_sizes():
    """A scalar is bounded only with both ends; codes and grids count their labels and coordinates."""
    assert Scalar(Fraction(0), Fraction(1)).bounded
    assert not Scalar(None, Fraction(1)).bounded
    assert not Scalar(Fraction(0), None).bounded
    assert Code(("a", "b")).size == 2
    assert Grid(Fraction(1), (0, 0, 0), (1, 1, 1)).width == 3
    assert Cells(np.zeros(1), None).of is None
