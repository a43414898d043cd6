"""Sums of independent draws: their quantiles are met, against brute convolution and against samples."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.readings.noise_sums import FINE, AddedLaw, added, reach
from sulq.language.law import BinomialLaw, FlipLaw, GaussianLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers
from tests.counts import count
from tests.stub import noise

RUNS = count("coverage of sums of noise", short=20_000, long=1_000_000)
SMALL: list[Law] = [LaplaceLaw(Fraction(3, 10)), LaplaceLaw(Fraction(2)), GaussianLaw(Fraction(1)), BinomialLaw(8)]
WIDE: list[Law] = [LaplaceLaw(Fraction(30)), LaplaceLaw(Fraction(5000)), GaussianLaw(Fraction(40)), BinomialLaw(4000)]


def convolved(law: Law, number: int) -> dict[int, float]:
    """The law of a sum of draws, by adding one after the other."""
    far = int(40 * law.variance() ** 0.5) + 3
    one = np.array([law.pmf(z) for z in range(-far, far + 1)])
    total = np.array([1.0])
    for _ in range(number):
        total = np.convolve(total, one)
    middle = len(total) // 2
    return {i - middle: float(p) for i, p in enumerate(total)}


@pytest.mark.parametrize("law", SMALL, ids=str)
@pytest.mark.parametrize("number", [2, 3, 5])
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
def test_the_quantile_of_a_sum_is_the_smallest_that_holds(law, number, beta):
    """P(|sum| > t) is at most beta at the answer, and more than beta one unit before it, by convolution."""
    exact = convolved(law, number)
    t = AddedLaw(law, number).accuracy(beta)
    assert sum(p for z, p in exact.items() if abs(z) > t) <= beta
    if not isinstance(law, BinomialLaw) and law.scale < 2:  # tables; wider normal ones have some slack
        assert t == 0 or sum(p for z, p in exact.items() if abs(z) > t - 1) > beta


@pytest.mark.parametrize("law", [*SMALL[1:], *WIDE], ids=str)
@pytest.mark.parametrize(("left", "right", "q"), [(2, 0, 0.0), (7, 9, 0.5), (3, 20, 0.25), (0, 4, 0.9), (12, 1, 0.95)])
def test_a_contrast_of_sums_stays_within_its_reach_T28(law, left, right, q):
    """(1-q)X - qY passes its reach with probability at most beta; half of it is passed too often (T28)."""
    rng = np.random.default_rng(31)
    x, y = (sum((noise(law, rng, (RUNS,)) for _ in range(n)), np.zeros(RUNS)) for n in (left, right))
    drawn = (1 - q) * x - q * y
    far = reach(law, left, right, q, 0.05)
    assert covers(int((drawn > far + 1e-9).sum()), RUNS, 0.05)
    assert not covers(int((drawn > far / 2).sum()), RUNS, 0.05)


def test_a_weight_next_to_nothing_is_one_of_nothing():
    """A quantile of 5e-324 is a number, and its reach is that of one sum alone; it ended in NumPy's overflow."""
    law = LaplaceLaw(Fraction(10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [reach(law, 3, 5, q, 0.05) for q in (5e-324, 1e-210, 0.0)]
    assert found[0] == found[1] == found[2]


def test_a_coarser_grid_costs_little():
    """Past FINE units a Laplace scale is worked out on a coarser grid: never less, and at most a tenth more."""
    fine = reach(LaplaceLaw(Fraction(FINE)), 20, 20, 0.5, 0.025) / FINE
    wide = reach(LaplaceLaw(Fraction(FINE * 1000)), 20, 20, 0.5, 0.025) / (FINE * 1000)
    assert fine * 0.999 <= wide <= fine * 1.1


@pytest.mark.parametrize("law", [*SMALL, *WIDE], ids=str)
def test_a_tiny_beta_has_a_wide_reach(law):
    """Finer than the tables go, the draws' own bounds are added: never less than for a larger beta."""
    reaches = [reach(law, 5, 6, 0.3, beta) for beta in (0.1, 1e-6, 1e-9, 1e-11, 1e-200)]
    assert reaches == sorted(reaches)
    assert AddedLaw(law, 3).accuracy(1e-30) >= AddedLaw(law, 3).accuracy(1e-8)


def test_sums_of_draws_take_their_simplest_form():
    """One draw is itself, wide Gaussians are Gaussian, coins are more coins, and sums of sums are one."""
    law = LaplaceLaw(Fraction(3))
    assert added(law, 1) is law
    assert added(added(law, 2), 3) == AddedLaw(law, 6)
    assert added(GaussianLaw(Fraction(4)), 9).scale == pytest.approx(12)
    assert added(BinomialLaw(6), 2) == BinomialLaw(12)
    assert AddedLaw(law, 5).variance() == pytest.approx(5 * law.variance())
    assert reach(law, 0, 0, 0.5, 0.05) == 0.0
    assert reach(GaussianLaw(Fraction(4)), 1, 0, 0.0, 0.7) > 0
    with pytest.raises(TypeError):
        added(FlipLaw(Fraction(2), 3), 2)
