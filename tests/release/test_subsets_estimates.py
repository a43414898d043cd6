"""Estimates from random subsets: the papers' figures, standard errors that hold, and what breaks them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from sulq.errors import QuestionError
from sulq.release.subsets import (
    MAX_SUBSETS,
    Series,
    best_groups,
    by_heavy,
    by_regression,
    from_groups,
    from_halves,
    infer_t,
    merged,
    proper,
)
from tests.counts import count
from tests.figures import figure

ROWS = 5000
SHARES = (0.1848, 0.1152, 0.1402, 0.5598)  # of a and b, a alone, b alone, neither


def histograms(attributes: int, l: int) -> tuple[float, int]:  # noqa: E741 - the paper's letter
    """How many histograms inference needs, 2^(4l) k^l l^2 ln k with its constant taken as one, and all C(k, 2l)."""
    return 2.0 ** (4 * l) * attributes**l * l**2 * math.log(attributes), math.comb(attributes, 2 * l)


def counted(
    rng: np.random.Generator, subsets: int, design: str, noise: float = 0.0, shares: tuple[float, ...] = SHARES
) -> tuple[Series, Series]:
    """Counts of a and b over random subsets of 5,000 people, of whom four kinds are drawn."""
    kinds = np.rint(np.array(shares) * ROWS).astype(int)
    if design == "halves":
        drawn = np.stack([rng.binomial(size, 0.5, subsets) for size in kinds])
    else:
        drawn = np.stack([rng.multinomial(size, np.full(subsets, 1 / subsets)) for size in kinds])
    return tuple(
        Series(
            counts=(rest := drawn[where].sum(axis=0) + rng.normal(0, math.sqrt(noise), subsets))[:, None],
            sizes=rest + drawn[others].sum(axis=0) + rng.normal(0, math.sqrt(noise), subsets),
            chances=np.array([kinds[where].sum() / ROWS]),
            noise=np.array([noise]),
            rest=np.array([noise]),
            share_noise=np.zeros(1),
        )
        for where, others in (([0, 1], [2, 3]), ([0, 2], [1, 3]))
    )  # type: ignore[return-value]


def test_the_papers_figures_S0_12() -> None:
    """N = 5000, p_a = .3, R = 25, t = 4000: a standard error of .0060, and all of 50 draws within four of it."""
    rng = np.random.default_rng(1)
    found, errors = [], []
    for _ in range(50):
        value, error = from_halves(*counted(rng, 4000, "halves", 25.0), ROWS)
        found.append(float(value[0, 0]))
        errors.append(float(error[0, 0]))
    assert np.mean(errors) == pytest.approx(0.0060, abs=1e-4)
    assert np.abs(np.array(found) - 0.1848).max() < 4 * 0.0060
    figure("S0.12", "estimate of .1848, mean of 50 draws, and its standard error; n = 5000, R = 25, t = 4000",
           [np.mean(found), np.mean(errors)], [0.1848, 0.0060])  # fmt: skip
    figure("S0.12", "the farthest of the 50", np.abs(np.array(found) - 0.1848).max(), "within 4 * .0060")
    other = counted(rng, 4000, "halves", 25.0)[1]  # the control: b counted on other subsets
    apart, _ = from_halves(counted(rng, 4000, "halves", 25.0)[0], other, ROWS)
    assert abs(float(apart[0, 0])) < 5 * 0.0060
    figure("S0.12", "the same with other subsets for each column (control)", float(apart[0, 0]), "about 0")
    assert abs(float(apart[0, 0]) - 0.1848) > 20 * 0.0060


@pytest.mark.parametrize(
    ("design", "subsets", "noise"), [("halves", 300, 25.0), ("groups", 300, 0.2), ("groups", 60, 4.0)]
)
def test_the_standard_error_is_the_spread_S3_11(design: str, subsets: int, noise: float) -> None:
    """Over 2,000 draws the estimates spread by what they say, about the truth; half of it would be told apart."""
    rng = np.random.default_rng(2)
    estimated = from_halves if design == "halves" else from_groups
    drawn = [estimated(*counted(rng, subsets, design, noise), ROWS) for _ in range(2000)]
    away = np.array([float(value[0, 0]) for value, _ in drawn]) - 0.1848
    said = float(np.mean([error[0, 0] for _, error in drawn]))
    assert abs(away.mean()) < 5.5 * said / math.sqrt(2000)
    assert away.std() == pytest.approx(said, rel=0.1)  # 2,000 draws tell a spread to 1.6%
    assert away.std() != pytest.approx(said / 2, rel=0.1)


def test_few_groups_are_unbiased() -> None:
    """Of g groups the products of excesses tell (1 - 1/g) of the covariance: made up for, which four groups show."""
    rng = np.random.default_rng(9)
    found = np.array([float(from_groups(*counted(rng, 4, "groups"), ROWS)[0][0, 0]) for _ in range(4000)])
    off = float(found.std()) / math.sqrt(4000)
    assert abs(found.mean() - 0.1848) < 5.5 * off
    assert 8 * off < (0.1848 - 0.3 * 0.325) / 4  # what would be missing


def test_noise_in_the_shares_does_not_reach_the_halves() -> None:
    """Counts are centred on the subsets' own mean: noise in the shares leaves the estimate as it is.

    Control: centred on n p/2 with noisy p, an error stays however many subsets there are.
    """
    rng = np.random.default_rng(3)
    away, said, before = [], [], []
    for _ in range(1500):
        a, b = counted(rng, 400, "halves", 25.0)
        noise = 60.0**2 / ROWS**2
        a, b = (replace(x, chances=x.chances + rng.normal(0, math.sqrt(noise), 1)) for x in (a, b))
        value, error = from_halves(a, b, ROWS)
        away.append(float(value[0, 0]) - 0.1848)
        said.append(float(error[0, 0]))
        centred = [x.counts - x.chances * ROWS / 2 for x in (a, b)]
        before.append(float((centred[0].T @ centred[1])[0, 0]) * 4 / (ROWS * 400) - 0.1848)
    assert np.std(away) == pytest.approx(np.mean(said), rel=0.1)
    assert np.std(before) > 1.3 * np.mean(said)


def test_how_many_subsets_S3_11() -> None:
    """T = 2 s^2 m^4 ln(2 m^2/beta)/eta^2: the normal tail of every pair is beta/m^2, and with fewer it is more."""
    m, eta, beta = 4, 4.0, 0.05
    t = infer_t(m, eta, beta)
    assert t == math.ceil(2 * 2 * 4**4 * math.log(2 * 16 / 0.05) / 16) == 414

    def tail(subsets: int) -> float:
        return 2 * math.exp(-subsets * (eta / m**2) ** 2 / (2 * 2))

    assert tail(t) <= beta / m**2 < tail(t - 1)
    assert math.sqrt(0.3 * 0.3) / math.sqrt(900) == pytest.approx(0.01)  # .01 needs about 900 subsets at p = .3
    for wrong in ((0, 1.0, 0.1), (4, 0.0, 0.1), (4, 1.0, 1.0)):
        with pytest.raises(QuestionError, match="minterms is"):
            infer_t(*wrong)


def test_direct_measurement_wins_below_165_attributes_S3_11() -> None:
    """16 k ln k histograms are fewer than C(k, 2) only from k = 165 on."""
    fewer = [k for k in range(3, 400) if histograms(k, 1)[0] < histograms(k, 1)[1]]
    assert fewer == list(range(165, 400))
    assert histograms(10, 2)[1] == 210


def test_factors_within_eta_give_a_product_within_three_S3_12() -> None:
    """|pq - p'q'| <= 3 eta for eta <= 1; 2 eta would not do."""
    rng = np.random.default_rng(4)
    p, q, eta = rng.random(100_000), rng.random(100_000), rng.random(100_000)
    off = [np.abs((p + a * eta) * (q + b * eta) - p * q) for a in (-1, 1) for b in (-1, 1)]
    assert all((each <= 3 * eta + 1e-12).all() for each in off)
    assert any((each > 2 * eta).any() for each in off)


LIFTED = (926 / 5000, 574 / 5000, 714 / 5000, 2786 / 5000)  # Pr[b | a] - Pr[b | not a] = .4133


@pytest.mark.parametrize("design", ["halves", "groups"])
def test_the_slope_S3_12(design: str) -> None:
    """The slope .4133 is found by both methods within their standard errors; .16 of the subsets are heavy."""
    rng = np.random.default_rng(5)
    subsets = 4000 if design == "halves" else 500
    part = 1 / 4 if design == "halves" else (1 - 1 / 500) / 500
    a, b = counted(rng, subsets, design, 25.0 if design == "halves" else 0.2, LIFTED)
    effect = 926 / 1500 - 1640 / 5000
    for method in (by_regression, by_heavy):
        found = method(a, b, ROWS, part)
        assert abs(found.slope.value - 0.4133) < 5 * found.slope.standard_error
        assert found.slope.standard_error < 0.15
        assert abs(found.effect.value - effect) < 5 * found.effect.standard_error
        assert found.effect.value == pytest.approx(found.slope.value * 0.7)
        assert found.conditional.value == pytest.approx(0.328 + found.effect.value)
        assert found.implies
    noise = 25.0 if design == "halves" else 0.2
    slopes = [by_regression(*counted(rng, subsets, design, noise, LIFTED), ROWS, part).slope for _ in range(200)]
    mean = float(np.mean([each.value for each in slopes]))
    assert abs(mean - 0.4133) < 5.5 * float(np.mean([each.standard_error for each in slopes])) / math.sqrt(200) + 1e-3
    figure("S3.12", f"slope of b's excess on a's, {design}, mean of 200 regressions", mean, "0.4133 (.4137 measured)")
    heavy = by_heavy(a, b, ROWS, part).heavy / subsets
    assert heavy == pytest.approx(0.16, abs=5 * math.sqrt(0.16 * 0.84 / subsets) + 0.01)


@pytest.mark.parametrize("method", [by_regression, by_heavy])
def test_standard_errors_and_signs_S3_12(method: object) -> None:
    """Slopes spread by their standard errors; where an effect is above four of them its sign is always right."""
    rng = np.random.default_rng(6)
    right, sure = 0, 0
    for shares in (LIFTED, (0.05, 0.25, 0.3, 0.4)):
        slopes, said = [], []
        truth = shares[0] / (shares[0] + shares[1]) - shares[2] / (shares[2] + shares[3])
        for _ in range(500):
            found = method(*counted(rng, 600, "halves", 100.0, shares), ROWS, 1 / 4)
            slopes.append(found.slope.value)
            said.append(found.slope.standard_error)
            assert found.implies == (truth > 0) or abs(truth) < 4 * found.slope.standard_error
            if abs(truth) > 4 * found.slope.standard_error:
                right, sure = right + (found.implies == (truth > 0)), sure + 1
        assert abs(np.mean(slopes) - truth) < 0.03  # ratios lean a little
        assert np.std(slopes) == pytest.approx(np.mean(said), rel=0.25)
    assert sure > 100
    figure("S3.12", f"signs of the implication that are right where |effect| > 4 SE, of {sure}, {method.__name__}",
           right / sure, "at least 0.99")  # fmt: skip


def laplace(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Discrete Laplace noise, made up for a test."""
    stop = -math.expm1(-1 / scale)
    return (rng.geometric(stop, size) - rng.geometric(stop, size)).astype(float)


def measured(rng: np.random.Generator, people: int, groups: int, scale: float) -> tuple[Series, Series]:
    """Noisy histograms of a and of b by group, each of three cells: true, false, missing; and over all people."""
    kinds = np.rint(np.array(LIFTED) * people).astype(int)
    drawn = np.stack([rng.multinomial(size, np.full(groups, 1 / groups)) for size in kinds])
    noise = 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2
    found = []
    for where, others in (([0, 1], [2, 3]), ([0, 2], [1, 3])):
        counts = drawn[where].sum(axis=0) + laplace(rng, scale, groups)
        rest = drawn[others].sum(axis=0) + laplace(rng, scale, groups) + laplace(rng, scale, groups)
        found.append(
            Series(
                counts=counts[:, None],
                sizes=counts + rest,
                noise=np.array([noise]),
                rest=np.array([2 * noise]),
                chances=(kinds[where].sum() + laplace(rng, scale, 1)) / people,
                share_noise=np.zeros(1),
            )
        )
    return found[0], found[1]


@pytest.mark.parametrize("epsilon", [3, 5, 8, 12])
def test_heavy_intervals_hold_at_the_default_number_of_groups_S3_12(epsilon: int) -> None:
    """Of 20,000 people: 95% intervals miss in about 5% of the cases, at every epsilon, and the bias is small.

    Control: the number that noise alone would choose puts so few people in a group that a quarter or more miss.
    """
    people, scale = 20_000, 4 / epsilon
    noise = 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2
    runs = count(f"intervals of heavy groups, epsilon {epsilon}", short=200, long=4000)
    before = int(min(people * (2 / 9) / noise, MAX_SUBSETS))
    own = best_groups(people, 1 / 3, noise)
    assert own == min(before, people // 10)
    held = {}
    for groups in {own, before}:
        rng = np.random.default_rng(10)
        drawn = [
            by_heavy(*measured(rng, people, groups, scale), people, (1 - 1 / groups) / groups).slope
            for _ in range(runs)
        ]
        held[groups] = float(np.mean([abs(each.value - 0.4133) < 1.96 * each.standard_error for each in drawn]))
        if groups == own:
            assert abs(float(np.mean([each.value for each in drawn])) / 0.4133 - 1) < 0.07
    assert held[own] > 0.92 - 5.5 * math.sqrt(0.92 * 0.08 / runs)
    assert epsilon < 8 or held[before] < 0.8


def test_groups_have_ten_people_or_more() -> None:
    """However little noise there is; never fewer than two groups, never more than a question holds."""
    assert best_groups(5000, 0.5, 1e-9) == 500
    assert best_groups(5000, 0.5, 5.0) == 250
    assert best_groups(5, 0.5, 1.0) == 2
    assert best_groups(10**9, 0.5, 1e-9) == MAX_SUBSETS


def test_the_noise_is_taken_off_the_sum_of_squares_S3_12() -> None:
    """Errors in variables: without the correction the slope is too small by far more than its standard error."""
    rng = np.random.default_rng(7)
    a, b = counted(rng, 20_000, "halves", 200.0, LIFTED)
    found = by_regression(a, b, ROWS, 1 / 4)
    assert abs(found.slope.value - 0.4133) < 5 * found.slope.standard_error
    x, y = a.excess[:, 0], b.excess[:, 0]
    assert 0.4133 - float(x @ y) / float(x @ x) > 8 * found.slope.standard_error


def test_without_a_heavy_subset_nothing_is_said() -> None:
    """Where no count is high the standard error is infinite, and no number is invented."""
    rng = np.random.default_rng(8)
    a, b = counted(rng, 50, "halves")
    flat = replace(a, counts=np.full((50, 1), 750.0), sizes=np.full(50, 2500.0))
    found = by_heavy(flat, b, ROWS, 1 / 4)
    assert (found.heavy, found.slope.value, found.slope.standard_error) == (0, 0.0, math.inf)
    assert not found.implies


def test_a_proper_table() -> None:
    """Clipped and renormalised; of nothing, even. Several estimates are averaged with the mean of their errors."""
    assert proper(np.array([0.5, -0.1, 0.3])) == pytest.approx([0.625, 0.0, 0.375])
    assert proper(np.array([-1.0, -1.0])).tolist() == [0.5, 0.5]
    values, errors = merged([(np.array([1.0]), np.array([0.2])), (np.array([3.0]), np.array([0.4]))])
    assert (values[0], errors[0]) == (2.0, pytest.approx(0.3))


def test_a_random_subset_is_heavy_with_constant_probability_S3_12() -> None:
    """A count of a that is a standard deviation above what is expected: exactly, by the hypergeometric law of a half.

    Of 5,000 rows of whom 1,500 have a: .159 as of a normal; of a subset of 50 with p = .3 it is .141. Control: two
    standard deviations are far rarer.
    """
    half = hypergeom(ROWS, 1500, ROWS // 2)
    heavy = float(half.sf(math.ceil(half.mean() + half.std()) - 1))
    assert heavy == pytest.approx(0.159, abs=0.01)
    few = binom(50, 0.3)
    small = float(few.sf(math.ceil(few.mean() + few.std()) - 1))
    assert small == pytest.approx(0.141, abs=5e-4)
    assert float(half.sf(math.ceil(half.mean() + 2 * half.std()) - 1)) < 0.03
    a, b = counted(np.random.default_rng(12), 4000, "halves", 0.0)
    seen = by_heavy(a, b, ROWS, 1 / 4).heavy / 4000
    assert seen == pytest.approx(heavy, abs=5.5 * math.sqrt(0.16 * 0.84 / 4000) + 0.005)
    figure("S3.12", "probability that a subset is heavy: 4,000 random halves of 5,000 rows; exact; a subset of 50",
           [seen, heavy, small], ["about .16", "about .16", 0.141])  # fmt: skip
