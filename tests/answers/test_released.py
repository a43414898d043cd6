"""Released integers and the law of the noise in them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw

WIDE = LaplaceLaw(Fraction(100))
FINE = GaussianLaw(Fraction(5))
RELEASED = Released(np.array([[1, -2, 3], [4, 5, -6]]), (Noise(WIDE, Fraction(1, 4), 2), Noise(FINE, Fraction(8), 1)))


def test_values_are_units_times_steps_T1():
    """Each column has its own step (T1)."""
    assert RELEASED.values().tolist() == [[0.25, -0.5, 24], [1, 1.25, -48]]
    assert (RELEASED.cells, RELEASED.draws) == (2, 6)


def test_radii_and_deviations_are_those_of_the_laws():
    """Columns under one law share its quantile and deviation, in their own units."""
    assert RELEASED.radius(0.05).tolist() == [WIDE.accuracy(0.05) / 4] * 2 + [FINE.accuracy(0.05) * 8]
    assert RELEASED.deviations().tolist() == [WIDE.variance() ** 0.5 / 4] * 2 + [FINE.variance() ** 0.5 * 8]
