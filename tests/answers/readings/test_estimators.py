"""Readings: what released sums say of a mean, a variance or a covariance, with intervals that hold the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sulq.answers import wire
from sulq.answers.readings.estimators import SLACK, CentredMean, Covariance, Mean, Plain, Reading, Spread, _two_laplace
from sulq.answers.readings.sized import Average, SizedSpread
from sulq.answers.released import Noise, Released
from sulq.language.law import BinomialLaw, GaussianLaw, LaplaceLaw, Law
from tests.counts import count
from tests.stub import noise

RUNS = count("coverage of intervals", short=20_000, long=400_000)
ONE = Fraction(1)


def runs(totals: list[int], parts: list[Noise], rng: np.random.Generator, size: int = RUNS) -> Released:
    """Many releases of the same exact sums at once, one in each cell."""
    laws = [part.law for part in parts for _ in range(part.width)]
    drawn = [total + noise(law, rng, (size,)) for total, law in zip(totals, laws, strict=True)]
    return Released(np.stack(drawn, axis=1), tuple(parts))


def misses(reading: Reading, released: Released, truth: float | np.ndarray, beta: float, shrink: float = 1.0) -> int:
    """How many cells' intervals, shrunk towards their value, leave the truth out (the worst column)."""
    low, high = reading.interval(released, beta)
    value = reading.value(released)
    low, high = value + shrink * (low - value), value + shrink * (high - value)
    slip = 1e-9 * np.maximum(1.0, np.abs(truth))
    return int(((truth < low - slip) | (truth > high + slip)).sum(axis=0).max())


def covers(missed: int, size: int, beta: float) -> bool:
    """Whether so few misses are no evidence, at one in 1e7, of more than beta."""
    return missed <= stats.binom.ppf(1 - 1e-7, size, beta)


LAWS: list[Law] = [
    LaplaceLaw(Fraction(7, 10)),
    LaplaceLaw(Fraction(10)),
    LaplaceLaw(Fraction(3 * 2**20)),
    GaussianLaw(Fraction(7, 10)),
    GaussianLaw(Fraction(12)),
    GaussianLaw(Fraction(3 * 2**20)),
    BinomialLaw(400),
]
SPOTS = [0.0, 0.03, 0.5]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("beta", [0.3, 0.05])
def test_the_interval_of_a_sum_holds_it_at_its_level_T28(law, beta):
    """A sum's interval is the noise law's own quantile: it covers at 1 - beta, and half of it does not (T28)."""
    rng = np.random.default_rng(11)
    released = runs([1000], [Noise(law, Fraction(1, 4), 1)], rng)
    assert covers(misses(Plain(), released, 250.0, beta), RUNS, beta)
    if float(getattr(law, "scale", 9)) > 1:  # below that one unit is the whole interval
        assert not covers(misses(Plain(), released, 250.0, beta, shrink=0.5), RUNS, beta)
    average = Average(500, Fraction(-1), ONE)
    assert covers(misses(average, released, 0.5, beta), RUNS, beta)


def pair(law: Law, spot: float, values: int) -> tuple[list[int], list[Noise], Mean, float]:
    """The one-sided sums of `values` numbers with a mean at a spot of [-3, 7], and what Mean makes of them."""
    worth = 1 if float(getattr(law, "scale", 9)) < 100 else 2**22
    above = round(values * worth * spot)
    below = values * worth - above
    truth = -3 + 10 * above / (above + below)
    return [above, below], [Noise(law, Fraction(10, worth), 2)], Mean(Fraction(-3), Fraction(7)), truth


@pytest.mark.parametrize("law", [law for law in LAWS if law.variance() < 1e6], ids=str)
@pytest.mark.parametrize("spot", SPOTS)
def test_the_interval_of_a_mean_holds_it_SR18(law, spot):
    """From two one-sided sums, wherever the mean lies, with few values or many, the interval covers (SR18, T28)."""
    rng = np.random.default_rng(12)
    for values, beta in ((3, 0.3), (60, 0.05)):
        totals, parts, mean, truth = pair(law, spot, values)
        assert covers(misses(mean, runs(totals, parts, rng), truth, beta), RUNS, beta)


@pytest.mark.parametrize("law", [LAWS[1], LAWS[2], LAWS[4], LAWS[5]], ids=str)
@pytest.mark.parametrize("spot", [0.5, 1.0])
def test_half_the_interval_of_a_mean_does_not_hold_it_SR18(law, spot):
    """Control: many values are covered too, and the same runs find an interval of half the width out."""
    totals, parts, mean, truth = pair(law, spot, 5000)
    released = runs(totals, parts, np.random.default_rng(13))
    assert covers(misses(mean, released, truth, 0.05), RUNS, 0.05)
    assert not covers(misses(mean, released, truth, 0.05, shrink=0.5), RUNS, 0.05)


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", [0.05, 0.2, 0.5, 1, 2, 6])
def test_the_noise_of_a_mean_is_within_its_reach_exactly_SR18(family, scale):
    """The noise (1-t)X - tY passes the quantile used with probability at most beta, by summing the two laws (SR18).

    Two thirds of the slack would do; none would not.
    """
    law = family(Fraction(scale))
    z = np.arange(-int(45 * scale) - 4, int(45 * scale) + 5)
    mass = np.array([law.pmf(int(k)) for k in z])
    joint = np.outer(mass, mass)
    worst = dict.fromkeys((0.0, SLACK), 0.0)
    for beta in (0.3, 0.05, 1e-3, 1e-6):
        for t in np.linspace(0, 1, 21):
            if family is LaplaceLaw:
                reach = float(_two_laplace(np.array([scale * (1 - t)]), np.array([scale * t]), beta)[0])
            else:
                reach = -stats.norm.ppf(beta / 2) * scale * math.hypot(1 - t, t)
            far = np.abs(np.subtract.outer((1 - t) * z, t * z))
            for slack, before in worst.items():
                worst[slack] = max(before, joint[far > reach + slack + 1e-12].sum() / beta)
    assert worst[SLACK] <= 1
    assert worst[0.0] > 1 or scale < 0.5


@pytest.mark.parametrize("u", [1.0, 0.3, 1e-6])
def test_the_quantile_of_two_laplace_draws(u):
    """P(|X + uY| > t) at the returned t is beta, by integrating one of the two laws."""
    x = np.linspace(-60, 60, 400_001)
    density = np.exp(-np.abs(x)) / 2
    for beta in (0.2, 0.01):
        t = float(_two_laplace(np.array([1.0]), np.array([u]), beta)[0])
        beyond = np.exp(-np.abs(x - t) / u) / 2
        upper = np.where(x < t, beyond, 1 - beyond)
        found = 2 * np.trapezoid(density * upper, x)
        assert found == pytest.approx(beta, rel=3e-4)


def centred(scales: tuple[float, float], values: int, spot: float) -> tuple[list[int], list[Noise], CentredMean, float]:
    """Count and centred sum of numbers in [0, 1000] on a grid of 1/4, with their Gaussian noise."""
    total = round(values * (spot - 0.5) * 1000 * 4)
    parts = [
        Noise(GaussianLaw(Fraction(scales[0])), ONE, 1),
        Noise(GaussianLaw(Fraction(scales[1])), Fraction(1, 4), 1),
    ]
    reading = CentredMean(Fraction(0), Fraction(1000), Fraction(500))
    return [values, total], parts, reading, 500 + total / 4 / values


@pytest.mark.parametrize("scales", [(0.3, 40), (0.8, 2000), (12, 20_000)])
@pytest.mark.parametrize("spot", [0.03, 0.5])
def test_the_interval_of_a_centred_mean_holds_it_SR18(scales, spot):
    """From a count and a centred sum, however coarse the count's Gaussian noise, the interval covers (SR18)."""
    rng = np.random.default_rng(14)
    for values, beta in ((4, 0.3), (300, 0.05)):
        totals, parts, reading, truth = centred(scales, values, spot)
        assert covers(misses(reading, runs(totals, parts, rng), truth, beta), RUNS, beta)
    totals, parts, reading, truth = centred((12, 20_000), 20_000, spot)
    released = runs(totals, parts, rng)
    assert covers(misses(reading, released, truth, 0.05), RUNS, 0.05)
    assert not covers(misses(reading, released, truth, 0.05, shrink=0.5), RUNS, 0.05)


def test_a_count_of_coarse_noise_needs_slack_in_its_own_units():
    """Control: with the slack of the sum's own step alone, a mean far from the middle is missed too often."""
    totals, parts, reading, truth = centred((0.9, 4), 300, 0.9)
    released = runs(totals, parts, np.random.default_rng(15))
    count_, total = released.values().T
    d, beta = truth - 500, 0.28
    narrow = -stats.norm.ppf(beta / 2) * math.hypot(1, 0.9 * d) + SLACK / 4
    assert not covers(int((np.abs(total - d * count_) > narrow).sum()), RUNS, beta)
    assert covers(misses(reading, released, truth, beta), RUNS, beta)


def moments(values: np.ndarray, top: int) -> list[int]:
    """Bernstein sums of degree 2 of whole numbers in [0, top]."""
    return [int((values**2).sum()), int((2 * values * (top - values)).sum()), int(((top - values) ** 2).sum())]


TABLES = {
    "constant": np.full(400, 3),
    "two ends": np.array([0] * 150 + [10] * 250),
    "spread out": np.arange(11).repeat(40),
    "few": np.array([2, 9, 4]),
    "one end": np.full(50, 10),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("ddof", [0, 1])
def test_the_interval_of_a_variance_holds_it_T28(name, family, ddof):
    """Variances and deviations from the sums p, q, r are covered, at the ends of what they can be too (T28)."""
    rng = np.random.default_rng(16)
    values = TABLES[name]
    for scale in (2, 150, 3000):
        released = runs(moments(values, 10), [Noise(family(Fraction(scale)), Fraction(1, 4), 3)], rng)
        truth = values.var(ddof=ddof) / 4
        for beta in (0.3, 0.05):
            assert covers(misses(Spread(Fraction(5), ddof=ddof), released, truth, beta), RUNS, beta)
        root = Spread(Fraction(5), True, ddof)
        assert covers(misses(root, released, math.sqrt(truth), 0.05), RUNS, 0.05)


def test_the_runs_find_an_interval_of_a_variance_that_is_too_narrow():
    """Control: a fifth of the interval of a variance, and the interval for a third of the noise, are found out."""
    rng = np.random.default_rng(17)
    values = TABLES["spread out"]
    truth = float(values.var())
    released = runs(moments(values, 10), [Noise(LaplaceLaw(Fraction(150)), ONE, 3)], rng)
    assert not covers(misses(Spread(Fraction(10)), released, truth, 0.05, shrink=0.2), RUNS, 0.05)
    lied = Released(released.units, (Noise(LaplaceLaw(Fraction(30)), ONE, 3),))
    assert not covers(misses(Spread(Fraction(10)), lied, truth, 0.05), RUNS, 0.05)


def products(rows: np.ndarray) -> tuple[list[int], list[int], list[int]]:
    upper = np.triu_indices(rows.shape[1])
    squares = (rows[:, upper[0]] * rows[:, upper[1]]).sum(axis=0)
    return [len(rows)], rows.sum(axis=0).tolist(), squares.tolist()


@pytest.mark.parametrize("family", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("known", [False, True])
def test_the_interval_of_a_covariance_holds_it_T28(family, known):
    """Every entry of a covariance matrix is covered, with a noisy count or a public one (T28, S4.10)."""
    rng = np.random.default_rng(19)
    rows = np.array([[8, -8], [-8, 8], [3, 5], [0, 0]] * 60)  # z in units of 1/8
    halves = (Fraction(2), Fraction(50))
    z = rows / 8 * np.array([2, 50])
    truth = np.cov(z.T, ddof=0)[np.triu_indices(2)]
    n, sums, squares = products(rows)
    for scale in (2, 40, 900):
        parts = [Noise(family(Fraction(scale, 8)), ONE, 1)] if not known else []
        parts += [
            Noise(family(Fraction(scale)), Fraction(1, 8), 2),
            Noise(family(Fraction(scale * 8)), Fraction(1, 64), 3),
        ]
        released = runs([*([] if known else n), *sums, *squares], parts, rng)
        reading = Covariance(halves, len(rows) if known else None)
        for beta in (0.3, 0.05):
            assert covers(misses(reading, released, truth, beta), RUNS, beta)
    assert not covers(misses(reading, released, truth, 0.05, shrink=0.1), RUNS, 0.05)


def test_rounding_to_the_grid_is_part_of_the_interval():
    """Values half a step from their grid points are still held: mean, deviation and covariance (decision 0007)."""
    step, law = Fraction(1, 4), LaplaceLaw(Fraction(1, 1000))
    shifted = np.array([0.37, 0.36] * 500)
    whole = np.floor(shifted / 0.25 + 0.5).astype(int)  # all of them 0.25
    above = int(whole.sum())
    released = Released(np.array([[above, 4 * len(whole) - above]]), (Noise(law, step, 2),))
    total = Released(np.array([[above]]), (Noise(law, step, 1),))
    counted = Released(
        np.array([[len(whole), above - 2 * len(whole)]]),
        (Noise(GaussianLaw(ONE), ONE, 1), Noise(GaussianLaw(ONE), step, 1)),
    )
    for rounding, holds in ((step / 2, True), (Fraction(0), False)):
        for reading, sums in (
            (Mean(Fraction(0), ONE, rounding), released),
            (Average(len(whole), Fraction(0), ONE, rounding), total),
            (CentredMean(Fraction(0), ONE, Fraction(1, 2), rounding), counted),
        ):
            low, high = reading.interval(sums, 0.05)
            assert bool(low <= shifted.mean() <= high) is holds
    spread = Released(np.array([moments(whole, 4)]), (Noise(law, step**2, 3),))
    assert shifted.var() > 0
    for rounding, holds in ((step / 2, True), (Fraction(0), False)):
        low, high = Spread(ONE, True, rounding=rounding).interval(spread, 0.05)
        assert bool(low <= shifted.std() <= high) is holds
    n, sums, squares = products(np.stack([whole, whole], axis=1))
    parts = (Noise(law, ONE, 1), Noise(law, step, 2), Noise(law, step**2, 3))
    pairs = Released(np.array([[*n, *sums, *squares]]), parts)
    for rounding, holds in ((step / 2, True), (Fraction(0), False)):
        low, high = Covariance((ONE, ONE), None, rounding).interval(pairs, 0.05)
        assert bool((low <= shifted.var()).all() and (shifted.var() <= high).all()) is holds


NONE = [
    (
        Mean(Fraction(2), Fraction(6)),
        [Noise(LaplaceLaw(Fraction(5)), ONE, 2)],
        [[-3, 2], [0, 0], [-9, -9]],
        4.0,
        (2, 6),
    ),
    (
        CentredMean(Fraction(2), Fraction(6), Fraction(4)),
        [Noise(GaussianLaw(Fraction(5)), ONE, 1)] * 2,
        [[0, 7], [-3, 2]],
        4.0,
        (2, 6),
    ),
    (Spread(Fraction(2)), [Noise(LaplaceLaw(Fraction(5)), ONE, 3)], [[-3, -2, -9], [0, 0, 0]], 0.0, (0, 1)),
    (Spread(Fraction(2), ddof=1), [Noise(LaplaceLaw(Fraction(5)), ONE, 3)], [[0, 0, 0]], 0.0, (0, 2)),
    (Covariance((Fraction(3),)), [Noise(LaplaceLaw(Fraction(5)), ONE, 3)], [[0, 5, 5], [-4, 1, 1]], 0.0, (0, 9)),
]


@pytest.mark.parametrize(("reading", "parts", "units", "value", "whole"), NONE, ids=lambda x: type(x).__name__)
def test_without_a_positive_mass_nothing_is_claimed_SR6(reading, parts, units, value, whole):
    """A noisy count of zero or less gives the midpoint (or zero) and the whole range, never an error (SR6, SR18)."""
    released = Released(np.array(units), tuple(parts))
    low, high = reading.interval(released, 0.05)
    assert set(reading.value(released).ravel()) == {value}
    assert set(low.ravel()) == {whole[0]}
    assert set(high.ravel()) == {whole[1]}


def test_values_are_clipped_into_what_they_can_be():
    """Noise cannot take a mean out of its bounds or a variance below zero or above a quarter of the square (SR18)."""
    law = LaplaceLaw(Fraction(1))
    mean = Released(np.array([[150, -30], [-30, 150]]), (Noise(law, ONE, 2),))
    assert Mean(Fraction(2), Fraction(6)).value(mean)[:, 0].tolist() == [6, 2]
    counted = Released(np.array([[10, 900], [10, -900]]), (Noise(law, ONE, 1),) * 2)
    assert CentredMean(Fraction(2), Fraction(6), Fraction(4)).value(counted)[:, 0].tolist() == [6, 2]
    assert Average(10, Fraction(2), Fraction(6)).value(Released(np.array([[999]]), (Noise(law, ONE, 1),))) == 6
    terms = Released(np.array([[0, 99, 0], [50, -9, 50]]), (Noise(law, ONE, 3),))
    assert Spread(Fraction(2)).value(terms)[:, 0].tolist() == [0, 1]
    for reading, released in ((Mean(Fraction(2), Fraction(6)), mean), (Spread(Fraction(2)), terms)):
        low, high = reading.interval(released, 0.05)
        value = reading.value(released)
        assert (low <= value).all()
        assert (value <= high).all()


def test_a_column_that_is_constant_by_its_bounds_has_its_value_SR6():
    """Bounds that leave one value give that mean, a variance of zero, and no division by zero (SR6)."""
    law = LaplaceLaw(Fraction(1))
    released = Released(np.array([[3, -2], [0, 0]]), (Noise(law, ONE, 2),))
    mean = Mean(Fraction(5), Fraction(5))
    assert mean.value(released).ravel().tolist() == [5, 5]
    assert [end.ravel().tolist() for end in mean.interval(released, 0.05)] == [[5, 5], [5, 5]]
    spread = Released(np.array([[1, 0, -1]]), (Noise(law, ONE, 3),))
    assert Spread(Fraction(0)).value(spread) == 0
    assert [float(end[0, 0]) for end in Spread(Fraction(0)).interval(spread, 0.05)] == [0, 0]


READINGS: list[tuple[Reading, int]] = [
    (Plain(), 3),
    (Average(100, Fraction(0), ONE), 3),
    (Mean(Fraction(-1), Fraction(2)), 2),
    (CentredMean(Fraction(-1), Fraction(2), Fraction(1, 2)), 2),
    (Spread(Fraction(3)), 3),
    (SizedSpread(100, Fraction(3)), 2),
    (Covariance((ONE, Fraction(2))), 6),
]


@pytest.mark.parametrize(("reading", "width"), READINGS, ids=lambda x: type(x).__name__)
def test_values_are_recomputed_bit_by_bit_from_the_released_integers_T2(reading, width):
    """A statistic and its interval are functions of released integers and public facts: the same bits (T2, T28)."""
    rng = np.random.default_rng(20)
    law = GaussianLaw(Fraction(7)) if isinstance(reading, CentredMean) else LaplaceLaw(Fraction(7))
    parts = tuple(Noise(law, Fraction(1, 8), 1) for _ in range(width))
    released = Released(rng.integers(-50, 4000, (500, width)), parts)
    elsewhere = wire.decode(wire.encode(released))
    copy = wire.decode(wire.encode(reading))
    assert reading.value(released).tobytes() == copy.value(elsewhere).tobytes()
    for one, other in zip(reading.interval(released, 0.05), copy.interval(elsewhere, 0.05), strict=True):
        assert one.tobytes() == other.tobytes()
    alone = [reading.value(Released(released.units[i : i + 1], parts)).tobytes() for i in range(50)]
    assert b"".join(alone) == reading.value(released)[:50].tobytes()


@pytest.mark.parametrize(("reading", "width"), READINGS, ids=lambda x: type(x).__name__)
def test_a_value_lies_in_its_interval_and_intervals_nest(reading, width):
    """The value is inside its interval, and a higher level has the wider one.

    Joint regions of covariances need not nest where released sums fit no table, as these do not (theory/intervals.md).
    """
    rng = np.random.default_rng(21)
    law = GaussianLaw(Fraction(7)) if isinstance(reading, CentredMean) else LaplaceLaw(Fraction(7))
    released = Released(
        rng.integers(-50, 4000, (500, width)), tuple(Noise(law, Fraction(1, 8), 1) for _ in range(width))
    )
    ends = [reading.interval(released, beta) for beta in (0.01, 0.05, 0.3)]
    value = reading.value(released)
    inner = [(value, value)] * 3 if isinstance(reading, Covariance) else [*ends[1:], (value, value)]
    for (low, high), (inner_low, inner_high) in zip(ends, inner, strict=True):
        assert (low <= inner_low + 1e-9).all()
        assert (high >= inner_high - 1e-9).all()
