"""Laws of errors: quantiles and p-values beside scipy's, where a normal quantile would be too short."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sulq.answers.released import Noise
from sulq.inference.error_law import MIN_P, ErrorLaw, noise_law
from sulq.language.law import GaussianLaw, LaplaceLaw

NOTHING = np.zeros((1, 0))


def law(
    *, sampling: float = 0.0, freedom: float = 1e9, gaussian: float = 0.0, laplace: tuple[float, ...] = ()
) -> ErrorLaw:
    """One law."""
    return ErrorLaw(*(np.array([x]) for x in (sampling, freedom, gaussian)), np.array([laplace]))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_quantiles_are_those_of_the_laws_by_name(level: float) -> None:
    """Normal, Student's and Laplace's quantiles, the last two within 1%."""
    half = (1 + level) / 2
    assert law(sampling=4.0).reach(level)[0] == pytest.approx(2 * stats.norm.ppf(half), rel=1e-4)
    assert law(gaussian=9.0).reach(level)[0] == pytest.approx(3 * stats.norm.ppf(half), rel=1e-4)
    assert law(laplace=(5.0,)).reach(level)[0] == pytest.approx(5 * stats.laplace.ppf(half), rel=2e-3)
    assert law(sampling=1.0, freedom=12.0).reach(level)[0] == pytest.approx(stats.t.ppf(half, 12), rel=1e-2)


def test_sums_of_laplace_noise_and_sampling_have_their_own_law() -> None:
    """The probability of a distance is that of a million draws; a normal law of the same variance is off."""
    rng, scales = np.random.default_rng(3), (1.0, 4.0, 0.5)
    draws = rng.normal(0, 1.5, 10**6) + sum(rng.laplace(0, scale, 10**6) for scale in scales)
    one = law(sampling=2.25, laplace=scales)
    for distance in (1.0, 5.0, 12.0, 20.0):
        share = float((np.abs(draws) <= distance).mean())
        assert one.within(np.array([distance]))[0] == pytest.approx(share, abs=2.5e-3)
    normal = law(gaussian=float(one.variance[0]))
    assert abs(normal.within(np.array([12.0]))[0] - one.within(np.array([12.0]))[0]) > 5e-3


def test_a_distance_and_its_p_value_belong_together() -> None:
    """At the end of a 95% interval the p-value is 5%; far out it is the least that is told."""
    one = law(sampling=1.0, freedom=30.0, laplace=(1.0, 2.0))
    assert one.p_value(one.reach(0.95))[0] == pytest.approx(0.05, abs=1e-6)
    assert one.p_value(np.array([1e3]))[0] == MIN_P
    assert one.p_value(np.array([0.0]))[0] == pytest.approx(1.0)


def test_no_variance_and_an_endless_one_have_their_intervals() -> None:
    """An error that is nothing reaches nowhere, one of endless variance everywhere."""
    assert law().reach(0.95)[0] == 0.0
    assert law(gaussian=np.inf).reach(0.95)[0] == np.inf


def test_noise_enters_by_its_kind_and_weight() -> None:
    """Laplace columns become scales, Gaussian ones a variance, each times its weight."""
    noise = (Noise(LaplaceLaw(Fraction(100)), Fraction(1, 10), 2), Noise(GaussianLaw(Fraction(30)), Fraction(1), 1))
    gaussian, laplace = noise_law(noise, np.array([1.0, -2.0, 0.5]))
    assert float(gaussian) == pytest.approx(225.0)
    assert laplace.tolist() == pytest.approx([10.0, 20.0], rel=1e-4)
