"""Coefficients and marginals say the same; what several say is averaged by the inverse of the variances."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.release.synthetic.evidence import Evidence, coefficients, tabled
from sulq.release.synthetic.measurement import Measurement
from sulq.release.synthetic.space import closure
from sulq.release.synthetic.summing import gathered

SIZES = (2, 3, 4)
PAIRS = ((0, 1), (0, 2), (1, 2))


def test_marginals_come_back_from_their_coefficients() -> None:
    """Exact marginals, told as coefficients, are themselves; a cell's deviation is the noise's own."""
    table = np.random.default_rng(1).random(SIZES)
    several = [Measurement(p, gathered(table, [p])[p], 3.0) for p in PAIRS]
    found = Evidence.measured(several, SIZES, [(), *closure(PAIRS)])
    for each in several:
        values, spread = found.marginal(each.places)
        assert np.allclose(values, each.values)
        assert spread < 3.0  # what it shares with others is told by them too
    alone, spread = Evidence.measured(several[:1], SIZES, [(), *closure(PAIRS[:1])]).marginal(PAIRS[0])
    assert np.allclose(alone, several[0].values)
    assert spread == pytest.approx(3.0)
    assert found.total == pytest.approx(table.sum())


def test_the_transpose_of_coefficients() -> None:
    """<tabled(v), t> = <v, coefficients(t)>, for an interaction of two columns."""
    rng = np.random.default_rng(2)
    table, values = rng.normal(size=(3, 4)), rng.normal(size=6)
    there = float(np.vdot(tabled(values, (1, 2), SIZES), table))
    assert there == pytest.approx(float(values @ coefficients(table, (1, 2), SIZES)))
    assert there != pytest.approx(float(values @ coefficients(table**2, (1, 2), SIZES)))  # the control


def test_two_tellings_of_one_number() -> None:
    """Deviations 3 and 4 make 2.4, and the nearer telling weighs 16 to 9."""
    one = Evidence(SIZES, {(): np.array([10.0])}, {(): np.array([3.0])})
    two = Evidence(SIZES, {(): np.array([20.0])}, {(): np.array([4.0])})
    both = one.joined(two)
    assert both.deviations[()][0] == pytest.approx(2.4)
    assert both.total == pytest.approx((16 * 10 + 9 * 20) / 25)
