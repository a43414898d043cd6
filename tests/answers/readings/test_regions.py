"""Joint regions: variances, covariances, correlations and ratios are covered wherever the truth lies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.readings import regions
from sulq.answers.readings.estimators import Covariance, Spread
from sulq.answers.readings.joint import Correlation, PairCovariance
from sulq.answers.readings.noise_sums import AddedLaw
from sulq.answers.readings.regions import combined_reach, laplace_reach, ratios
from sulq.answers.readings.sized import SizedSpread
from sulq.answers.released import Noise, Released
from sulq.language.law import GaussianLaw, LaplaceLaw, Law
from tests.answers.readings.test_estimators import covers, misses, runs
from tests.counts import count

RUNS = count("coverage of joint regions", short=200, long=20_000)
BETAS = (0.5, 0.05, 0.01)
ONE, TOP = Fraction(1), 16
FAMILIES = [LaplaceLaw, GaussianLaw]


# Whole numbers x from 0 to 16 and y beside them: ordinary, skewed, nearly constant, at the ends of what can be.
def _tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(70)
    x = np.clip(np.rint(rng.normal(8, 3, 900)), 0, TOP).astype(int)
    skewed = np.minimum(rng.geometric(0.5, 900) - 1, TOP)
    ends = np.repeat([0, TOP], 250)
    return {
        "ordinary": (x, np.clip(x + rng.integers(-3, 4, 900), 0, TOP)),
        "skewed": (skewed, np.minimum(rng.geometric(0.4, 900) - 1, TOP)),
        "nearly constant": (np.where(np.arange(900) < 9, 9, 8), np.where(np.arange(900) % 100 == 3, 9, 8)),
        "constant": (np.full(300, 5), np.full(300, 11)),
        "both ends, alike": (ends, ends),
        "both ends, opposite": (ends, TOP - ends),
        "one end": (np.full(200, TOP), np.zeros(200, int)),
        "few": (np.array([3, 9, 4]), np.array([0, 16, 2])),
        "two": (np.array([0, 16]), np.array([16, 0])),
    }


TABLES = _tables()


def terms(x: np.ndarray) -> list[int]:
    """Bernstein sums of degree two of x/16, in units of 1/256."""
    return [int((x**2).sum()), int((2 * x * (TOP - x)).sum()), int(((TOP - x) ** 2).sum())]


def products(*columns: np.ndarray) -> list[int]:
    """Count, sums and products of z = (x - 8)/8 in units of 1, 1/8 and 1/64."""
    z = [column - TOP // 2 for column in columns]
    pairs = [(i, j) for i in range(len(z)) for j in range(i, len(z))]
    return [len(z[0]), *(int(one.sum()) for one in z), *(int((z[i] * z[j]).sum()) for i, j in pairs)]


def noises(family: type, scale: float, columns: int) -> list[Noise]:
    """The noise of a count, of sums and of products, as a spend would divide."""
    law = [family(Fraction(scale) * factor) for factor in (1, 16, 96)]
    return [
        Noise(law[0], ONE, 1),
        Noise(law[1], Fraction(1, 8), columns),
        Noise(law[2], Fraction(1, 64), columns * (columns + 1) // 2),
    ]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("family", FAMILIES)
def test_variances_and_deviations_are_covered_T28(name: str, family: type) -> None:
    """With noise that is little, moderate and drowning, at three levels, n secret or public (T28)."""
    x, _ = TABLES[name]
    rng, n = np.random.default_rng(71), len(x)
    for scale in (1, 12, 90):
        released = runs(terms(x), [Noise(family(Fraction(256 * scale)), Fraction(1, 256), 3)], rng, RUNS)
        centred = runs(products(x)[1:], noises(family, scale, 1)[1:], rng, RUNS)
        for ddof, beta in ((0, 0.5), (0, 0.05), (1, 0.01)):
            truth = x.var(ddof=ddof)
            assert covers(misses(Spread(Fraction(TOP), ddof=ddof), _wide(released), truth, beta), RUNS, beta)
            sized = SizedSpread(n, ONE, ddof=ddof)
            assert covers(misses(sized, centred, truth / 64, beta), RUNS, beta)
        root = Spread(Fraction(TOP), root=True)
        assert covers(misses(root, _wide(released), x.std(), 0.05), RUNS, 0.05)


def _wide(released: Released) -> Released:
    """Sums of x of [0, 16] where those of x/16 are given."""
    return Released(released.units, tuple(Noise(one.law, one.step * TOP**2, one.width) for one in released.noise))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("family", FAMILIES)
def test_covariances_and_correlations_are_covered_T28(name: str, family: type) -> None:
    """Wherever they lie, n secret or public; a correlation of a constant is anything (T28)."""
    x, y = TABLES[name]
    rng, cov = np.random.default_rng(72), np.cov(x / 8, y / 8, ddof=0)
    for scale, betas in ((0.3, (0.05,)), (3, BETAS), (25, (0.5,))):
        parts = noises(family, scale, 2)
        released = runs(products(x, y), parts, rng, RUNS)
        public = Released(released.units[:, 1:], released.noise[1:])
        upper = cov[np.triu_indices(2)]
        for beta in betas:
            assert covers(misses(PairCovariance((ONE, ONE)), released, cov[0, 1], beta), RUNS, beta)
            assert covers(misses(Covariance((ONE, ONE), len(x)), public, upper, beta), RUNS, beta)
        sample = cov[0, 1] * len(x) / (len(x) - 1)
        assert covers(misses(PairCovariance((ONE, ONE), 1), released, sample, 0.05), RUNS, 0.05)
        assert covers(misses(Covariance((ONE, ONE)), released, upper, 0.05), RUNS, 0.05)
        if cov[0, 0] * cov[1, 1] > 0:
            truth = cov[0, 1] / math.sqrt(cov[0, 0] * cov[1, 1])
            for beta in betas:
                assert covers(misses(Correlation((ONE, ONE)), released, truth, beta), RUNS, beta)
        low, high = Correlation((ONE, ONE)).interval(released, betas[0])
        assert low.min() >= -1
        assert high.max() <= 1


RATIOS = {
    "share": ([300, 700], [[1, 0], [0, 1]], (0.0, 1.0)),
    "share, none": ([0, 700], [[1, 0], [0, 1]], (0.0, 1.0)),
    "share, all": ([700, 700], [[1, 0], [0, 1]], (0.0, 1.0)),
    "percent of few": ([2, 5], [[100, 0], [0, 1]], (0.0, 100.0)),
    "part of two": ([40, 160], [[1, 0], [1, 1]], (0.0, 1.0)),
    "sums": ([-900, 350], [[2.5, 0], [0, 1]], None),
    "divisor near nought": ([500, 30], [[1, 0], [0, 1]], None),
    "three sums": ([120, 80, 400], [[1, -1, 0], [0.5, 0, 1]], None),
}


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("family", FAMILIES)
def test_ratios_are_covered_T28(name: str, family: type) -> None:
    """Of sums and of counts, with divisors far from nought and near it; shares stay within their range (T28)."""
    totals, rows, bounds = RATIOS[name]
    weights, rng = np.array(rows, dtype=float), np.random.default_rng(73)
    truth = float(weights[0] @ totals / (weights[1] @ totals))
    for scale in (0.4, 2, 12):
        parts = [Noise(family(Fraction(scale) * (1 + i)), ONE, 1) for i in range(len(totals))]
        values = runs(totals, parts, rng, RUNS).values()
        for beta in BETAS:
            low, high, _ = ratios(values @ weights[0], values @ weights[1], weights, parts, beta, bounds=bounds)
            assert covers(int(((truth < low - 1e-9) | (truth > high + 1e-9)).sum()), RUNS, beta)
            if bounds is not None:
                assert low.min() >= bounds[0]
                assert high.max() <= bounds[1]


def test_first_derivatives_alone_are_found_out() -> None:
    """Control: the quotient and 1.96 of its deviations by first derivatives leave the truth out too often."""
    totals, rows, _ = RATIOS["divisor near nought"]
    weights, parts = np.array(rows, dtype=float), [Noise(GaussianLaw(Fraction(12 * k)), ONE, 1) for k in (1, 2)]
    a, b = runs(totals, parts, np.random.default_rng(74), 20_000).values().T
    b = np.where(b == 0, 1e-9, b)
    truth = totals[0] / totals[1]
    missed = np.abs(a / b - truth) > 1.96 * np.hypot(12, a / b * 24) / np.abs(b)
    assert not covers(int(missed.sum()), len(a), 0.05)
    low, high, _ = ratios(a, b, weights, parts, 0.05, bounds=None)
    assert covers(int(((truth < low) | (truth > high)).sum()), len(a), 0.05)


def test_a_region_without_the_means_part_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: means taken as known leave the variance out too often where noise is not small."""
    x, y = TABLES["nearly constant"]
    released = runs(products(x, y), noises(LaplaceLaw, 120, 2), np.random.default_rng(79), 20_000)
    truth = np.cov(x / 8, y / 8, ddof=0)[np.triu_indices(2)]
    assert covers(misses(Covariance((ONE, ONE)), released, truth, 0.05), 20_000, 0.05)

    def known(n: np.ndarray, sums: np.ndarray, *_: object) -> tuple[np.ndarray, np.ndarray]:
        mean = np.clip(sums / regions.positive(n), -1, 1)
        return mean, mean

    monkeypatch.setattr(regions, "mean_range", known)
    assert not covers(misses(Covariance((ONE, ONE)), released, truth, 0.05), 20_000, 0.05)


def test_sums_of_many_draws_have_a_region_too() -> None:
    """Groups added up after release: bounded by exponential moments, covered, and less than each by itself."""
    rng, law = np.random.default_rng(75), LaplaceLaw(Fraction(256 * 3))
    noise = Noise(AddedLaw(law, 20), Fraction(1), 3)
    x = TABLES["ordinary"][0]
    drawn = np.stack(
        [sum(runs([0], [Noise(law, ONE, 1)], rng, RUNS).units[:, 0] for _ in range(20)) for _ in range(3)], 1
    )
    released = Released(np.array(terms(x)) * 20 + drawn, (noise,))
    assert covers(misses(Spread(Fraction(TOP)), released, x.var(), 0.05), RUNS, 0.05)
    weights = [np.ones(1)] * 3
    apart = 3 * noise.law.accuracy(0.05 / 3)
    assert 1.5 * math.sqrt(3 * noise.law.variance()) < combined_reach([noise] * 3, weights, 0.05)[0] < apart


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scale", [0.05, 0.3, 0.7, 1.5, 4])
def test_a_sum_of_integer_draws_stays_within_its_reach_exactly(family: type, scale: float) -> None:
    """By adding up both laws, for equal weights and others; without the slack it would not (the control)."""
    law: Law = family(Fraction(scale).limit_denominator(1000))
    z = np.arange(-int(45 * scale) - 4, int(45 * scale) + 5)
    mass = np.array([law.pmf(int(k)) for k in z])
    joint, worst = np.outer(mass, mass), dict.fromkeys((True, False), 0.0)
    _, wider, slack = regions._continuous(law)
    for beta in (0.5, 0.05, 1e-3, 1e-6):
        for w in np.linspace(0, 1, 11):
            reach = float(combined_reach([Noise(law, ONE, 1)] * 2, [np.ones(1), np.array([w])], beta)[0])
            far = np.abs(np.add.outer(z, w * z))
            for full, before in worst.items():
                less = 0.0 if full else slack * (1 + w) + 1e-6
                worst[full] = max(before, joint[far > reach - less + 1e-9].sum() / beta)
    assert worst[True] <= 1
    assert worst[False] > 1
    assert wider >= scale * (1 - 1e-3)


def test_a_draw_with_a_uniform_one_is_more_peaked_than_the_wider_law() -> None:
    """For every Gaussian scale the check passes; with no variance added it does not (the control)."""
    for scale in np.geomspace(0.02, 63.9, 40):
        law = GaussianLaw(Fraction(scale).limit_denominator(10**6))
        assert regions._continuous(law)[2] == 0.5
        assert not regions._more_peaked(law, scale) or scale < 0.03
    assert regions._continuous(GaussianLaw(Fraction(100)))[1:] == (100.0, regions.SLACK)
    for scale in np.geomspace(0.05, 50, 40):  # Laplace: e^(-t/wider) is above the chords of the tail
        wider, rate = 0.5 / math.tanh(0.5 / scale), 1 / scale
        t = np.linspace(0, 60 * scale + 2, 4001)
        j = np.floor(t + 0.5)
        node = np.where(j > 0, 2 * np.exp(-j * rate) / (1 + np.exp(-rate)), 1.0)
        after = 2 * np.exp(-(j + 1) * rate) / (1 + np.exp(-rate))
        passed = np.where(j > 0, node + (t + 0.5 - j) * (after - node), 1 - 2 * t * math.tanh(rate / 2))
        assert (passed <= np.exp(-t / wider) * (1 + 1e-9)).all()


def test_the_reach_rises_in_every_weight_and_holds_at_tiny_levels() -> None:
    """Raising weights never narrows it beyond rounding; a level of 1e-200 has the bound of each draw."""
    rng = np.random.default_rng(76)
    weights = rng.random((400, 5))
    more = weights * (1 + rng.random((400, 5)))
    for beta in (*BETAS, 1e-8):
        assert (laplace_reach(more, beta) >= laplace_reach(weights, beta) * (1 - 1e-6)).all()
    low = weights.max(axis=1) * math.log(1e200)
    assert (laplace_reach(weights, 1e-200) >= low).all()
    assert np.isfinite(laplace_reach(np.zeros((2, 3)), 0.05)).all()


def test_the_width_is_near_that_of_a_normal_law() -> None:
    """Where noise is small beside the statistic: at most 5.2 deviations for Laplace, 4.5 for Gaussian noise."""
    rng, (x, y) = np.random.default_rng(77), TABLES["ordinary"]
    for family, most in ((LaplaceLaw, 5.2), (GaussianLaw, 4.5)):
        spread = runs(terms(x), [Noise(family(Fraction(256)), ONE, 3)], rng, 4000)
        pair = runs(products(x, y), noises(family, 1, 2), rng, 4000)
        for reading, released in (
            (Spread(Fraction(TOP)), spread),
            (Spread(Fraction(TOP), root=True), spread),
            (PairCovariance((ONE, ONE)), pair),
            (Correlation((ONE, ONE)), pair),
        ):
            low, high = reading.interval(released, 0.05)
            assert float((high - low).mean() / reading.value(released).std()) < most


def test_ten_thousand_groups_are_read_at_once() -> None:
    """Every reading is columnar: the same numbers for a cell alone as among ten thousand."""
    rng, (x, y) = np.random.default_rng(78), TABLES["ordinary"]
    released = runs(products(x, y), noises(GaussianLaw, 1, 2), rng, 10_000)
    for reading in (PairCovariance((ONE, ONE)), Correlation((ONE, ONE)), Covariance((ONE, ONE))):
        low, high = reading.interval(released, 0.05)
        alone = Released(released.units[7:8], released.noise)
        assert [end[0].tolist() for end in reading.interval(alone, 0.05)] == [low[7].tolist(), high[7].tolist()]
