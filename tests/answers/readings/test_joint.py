"""Counts and sums read from a mean's parts, means beside variances, covariances and correlations: all covered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.readings.joint import (
    Correlation,
    PairCovariance,
    PublicNumber,
    SpreadMean,
    WeightedSum,
    radius,
)
from sulq.answers.readings.regions import laplace_reach
from sulq.answers.released import Noise, Released
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers, misses, runs
from tests.counts import count

RUNS = count("coverage of readings made of several sums", short=20_000, long=200_000)
ONE = Fraction(1)
NARROW: list[Law] = [LaplaceLaw(Fraction(3, 10)), GaussianLaw(Fraction(1, 2))]
LAWS: list[Law] = [NARROW[0], LaplaceLaw(Fraction(20)), NARROW[1], GaussianLaw(Fraction(9))]


@pytest.mark.parametrize("law", [*LAWS, BinomialLaw(400)], ids=str)
@pytest.mark.parametrize("weights", [(1, 0), (1, 1), (3, 1), (5, -2)])
def test_a_weighted_sum_of_columns_is_covered_T28(law, weights):
    """Exact for one column and for equal ones, by the noise's quantile for others; half is too narrow (T28)."""
    rng = np.random.default_rng(41)
    released = runs([50, 90], [Noise(law, Fraction(1, 2), 2)], rng, RUNS)
    combined = WeightedSum(tuple(Fraction(w) for w in weights))
    truth = 25.0 * weights[0] + 45.0 * weights[1]
    assert covers(misses(combined, released, truth, 0.05), RUNS, 0.05)
    if law.variance() > 30:
        assert not covers(misses(combined, released, truth, 0.05, shrink=0.5), RUNS, 0.05)


def test_draws_of_different_kinds_are_bounded_together():
    """Columns of different laws and steps are covered too."""
    rng = np.random.default_rng(42)
    for parts in (
        [Noise(LaplaceLaw(Fraction(4)), ONE, 1), Noise(LaplaceLaw(Fraction(9)), Fraction(1, 4), 1)],
        [Noise(GaussianLaw(Fraction(4)), ONE, 1), Noise(GaussianLaw(Fraction(9)), Fraction(1, 4), 1)],
        [Noise(LaplaceLaw(Fraction(4)), ONE, 1), Noise(GaussianLaw(Fraction(4)), ONE, 1)],
    ):
        released = runs([7, 9], parts, rng, RUNS)
        truth = float(2 * 7 * parts[0].step + 9 * parts[1].step)
        assert covers(misses(WeightedSum((Fraction(2), ONE)), released, truth, 0.05), RUNS, 0.05)


def test_the_quantile_of_several_laplace_draws():
    """Equal and unequal weights, a tiny one and one alone: passed at the level and no more."""
    rng = np.random.default_rng(43)
    draws = rng.laplace(size=(200_000, 3))
    for weights in ([1.0, 1.0, 1.0], [1.0, 0.5, 0.1], [1.0, 1e-12, 0.0], [2.0]):
        t = float(laplace_reach(np.array(weights), 0.05))
        beyond = float((np.abs(draws[:, : len(weights)] @ np.array(weights)) > t).mean())
        assert 0.04 <= beyond <= 0.0525


def bernstein(values: np.ndarray) -> list[int]:
    """The terms of degree 2 of whole values from 0 to 10."""
    return [int((values**2).sum()), int((2 * values * (10 - values)).sum()), int(((10 - values) ** 2).sum())]


@pytest.mark.parametrize("law", [*LAWS, BinomialLaw(400)], ids=str)
@pytest.mark.parametrize("values", [np.arange(11), np.repeat([0, 10], 60), np.full(90, 10), np.arange(2000) % 7])
def test_a_mean_beside_a_variance_is_covered_SR18(law, values):
    """From the three terms of degree 2, few values or many, anywhere in the range (SR18, T28)."""
    released = runs(bernstein(values), [Noise(law, ONE, 3)], np.random.default_rng(44), RUNS)
    mean = SpreadMean(Fraction(0), Fraction(10))
    assert covers(misses(mean, released, float(values.mean()), 0.05), RUNS, 0.05)
    if law.variance() > 30 and len(values) > 1000:
        assert not covers(misses(mean, released, float(values.mean()), 0.05, shrink=0.4), RUNS, 0.05)


def moments(size: int, slope: float) -> tuple[list[int], float, float]:
    """Sums of two numbers on a grid of 1/8 in [-1, 1], their covariance and correlation."""
    rng = np.random.default_rng(9)
    x = rng.integers(-8, 9, size)
    y = np.clip(np.rint(slope * x + rng.normal(0, 3, size)), -8, 8).astype(int)
    z = np.stack([x, y]) / 8
    covariance = np.cov(z, ddof=0)
    sums = [size, int(x.sum()), int(y.sum()), int((x * x).sum()), int((x * y).sum()), int((y * y).sum())]
    return sums, float(covariance[0, 1]), float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


@pytest.mark.parametrize("law", [LAWS[1], LAWS[3]], ids=str)
@pytest.mark.parametrize(("size", "slope"), [(30, 0.5), (3000, 0.8), (3000, -0.3), (300, 0.0)])
def test_covariances_and_correlations_are_covered_T28(law, size, slope):
    """Of pairs of numbers, related or not, few or many (T28)."""
    (sums, covariance, correlation), few = moments(size, slope), RUNS // 5
    parts = [Noise(law, ONE, 1), Noise(law, Fraction(1, 8), 2), Noise(law, Fraction(1, 64), 3)]
    released = runs(sums, parts, np.random.default_rng(45), few)
    halves = (Fraction(4), Fraction(2))
    assert covers(misses(PairCovariance(halves), released, 8 * covariance, 0.05), few, 0.05)
    sample = 8 * covariance * size / (size - 1)
    assert covers(misses(PairCovariance(halves, 1), released, sample, 0.05), few, 0.05)
    assert covers(misses(Correlation(halves), released, correlation, 0.05), few, 0.05)
    if size == 3000:
        assert not covers(misses(PairCovariance(halves), released, 8 * covariance, 0.05, shrink=0.5), few, 0.05)
        assert not covers(misses(Correlation(halves), released, correlation, 0.05, shrink=0.3), few, 0.05)


def test_without_noise_they_are_the_statistics_themselves():
    """Exact sums give the exact statistic; nothing at all gives the middle, zero and the whole range."""
    parts = (Noise(LAWS[1], ONE, 1), Noise(LAWS[1], Fraction(1, 8), 2), Noise(LAWS[1], Fraction(1, 64), 3))
    sums, covariance, correlation = moments(200, 0.5)
    released = Released(np.array([sums], dtype=np.int64), parts)
    halves = (Fraction(1), Fraction(1))
    assert PairCovariance(halves).value(released)[0, 0] == pytest.approx(covariance)
    assert Correlation(halves).value(released)[0, 0] == pytest.approx(correlation)
    empty = Released(np.zeros((1, 6), dtype=np.int64), parts)
    assert Correlation(halves).value(empty)[0, 0] == 0
    assert [end[0, 0] for end in Correlation(halves).interval(empty, 0.05)] == [-1, 1]
    terms = Released(np.array([bernstein(np.array([1, 4, 4]))], dtype=np.int64), (Noise(LAWS[1], ONE, 3),))
    assert SpreadMean(Fraction(0), Fraction(10)).value(terms)[0, 0] == 3
    nothing = Released(np.zeros((1, 3), dtype=np.int64), (Noise(LAWS[1], ONE, 3),))
    assert SpreadMean(Fraction(0), Fraction(10)).value(nothing)[0, 0] == 5
    assert [end[0, 0] for end in SpreadMean(Fraction(0), Fraction(10)).interval(nothing, 0.05)] == [0, 10]
    assert PublicNumber(Fraction(3)).value(nothing).tolist() == [[3.0]]
    assert [end.tolist() for end in PublicNumber(Fraction(3)).interval(nothing, 0.05)] == [[[3.0]], [[3.0]]]
    assert radius(nothing, np.zeros(3), 0.05) == 0
