"""Discrete Laplace noise: its exact price, its sampler, and what goes wrong without them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sulq.kernel.mechanisms import priced, release
from sulq.kernel.private import Private
from sulq.language.law import LaplaceLaw, round_up
from tests.counts import count
from tests.kernel.mechanisms.fit import (
    LEVEL,
    SIGMAS,
    correlation_off,
    drawn,
    exceedance_off,
    fit,
    moments_off,
    ties_off,
    wrongly_scaled,
)

SCALES = [
    *(Fraction(n, d) for n, d in ((3, 8), (1, 1), (7, 2), (40, 1), (2**21 + 1, 2))),
    *(Fraction(n, d) for n, d in ((1, 4), (1, 2), (3, 4), (5, 4), (3, 2), (2, 1), (9, 4), (3, 1), (5, 1), (8, 1))),
    *(round_up(Fraction(n, d)) for n, d in ((1, 3), (2, 3), (10, 7), (10, 3), (100, 7), (1000, 3), (10**6, 7))),
    *(Fraction(2**k) for k in (4, 6, 8, 10, 13, 17, 24, 32, 40, 50)),
]


def exact_epsilon(scale: Fraction, moves: tuple[int, ...]) -> mpmath.mpf:
    """Largest log-ratio over outcomes of a vector release moved by these integers, from the pmf."""
    with mpmath.workdps(30):
        total = mpmath.mpf(0)
        for move in moves:
            a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
            reach = range(-abs(move) - 3, abs(move) + 4)
            total += max(abs(mpmath.log(a ** abs(z) / a ** abs(z - move))) for z in reach)
        return total


def test_exact_epsilon_is_the_debit_T20() -> None:
    """T20, S3.5, S4.7: from the pmf, the loss is exactly D/scale for scalars and vectors of L1 norm D."""
    moves = [(1,), (2,), (-3,), (7,), (1, 1), (2, -1, 3), (0, 5)]
    for scale, move in itertools.product(SCALES, moves):
        sensitivity = Fraction(sum(abs(m) for m in move))
        debit = priced(LaplaceLaw(scale), sensitivity)
        exact = exact_epsilon(scale, move)
        assert mpmath.mpf(debit.numerator) / debit.denominator >= exact - 1e-12
        assert float(debit) == pytest.approx(float(exact), rel=1e-12)
        assert debit == sensitivity / scale
        assert LaplaceLaw(scale).rho(sensitivity) == debit**2 / 2


def test_a_price_for_half_the_move_is_too_low_T20() -> None:
    """T20 control: a halved sensitivity, or a scale read as a rate, prices below the exact loss."""
    exact = exact_epsilon(Fraction(7, 2), (3,))
    assert float(priced(LaplaceLaw(Fraction(7, 2)), Fraction(1))) < float(exact) - 1e-12


def test_the_pmf_of_the_law_is_the_one_priced_T20() -> None:
    """T20: the law's own probabilities have the same largest log-ratio as the formula."""
    law = LaplaceLaw(Fraction(5, 2))
    for move in (1, 2, 6):
        found = max(abs(math.log(law.pmf(z) / law.pmf(z - move))) for z in range(-40, 41))
        assert found == pytest.approx(move / 2.5, rel=1e-12)


def test_the_zero_concentrated_loss_holds_T20() -> None:
    """SR3: the Renyi divergence of every order is within order * rho, rho = epsilon^2/2, and near it at wide scales."""
    for scale, move in itertools.product((Fraction(1, 2), Fraction(2), Fraction(20)), (1, 3)):
        law = LaplaceLaw(scale)
        rho = float(law.rho(Fraction(move)))
        reach = range(-math.ceil(40 * scale) - move, math.ceil(40 * scale) + move)
        ratios = []
        for order in (1.001, 1.5, 2.0, 4.0, 16.0):
            logs = [order * math.log(law.pmf(z)) + (1 - order) * math.log(law.pmf(z - move)) for z in reach]
            moment = math.fsum(map(math.exp, logs))
            divergence = math.log(moment) / (order - 1)
            assert divergence <= order * rho * (1 + 1e-9)
            ratios.append(divergence / (order * rho))
        assert scale < 20 or max(ratios) > 0.9  # so no smaller rho would do


@pytest.mark.parametrize("scale", SCALES[: count("discrete Laplace: scales", short=5, long=32)], ids=str)
def test_the_sampler_follows_its_law_T7(scale: Fraction) -> None:
    """T7, T9, S2.4, E01, trap 1: one large release fits pmf, variance and tails, and its cells are independent."""
    law = LaplaceLaw(scale)
    sample = drawn(law, count("discrete Laplace: draws at each scale", short=200_000, long=1_000_000))
    assert sample.dtype == np.int64
    assert fit(law, sample) > LEVEL
    assert moments_off(law, sample) < SIGMAS
    for d in (0.5, 0.1, 0.01):  # S2.4: beyond scale ln(1/d) with probability d, up to the grid
        t = math.floor(scale * Fraction(math.log(1 / d)))
        assert exceedance_off(law, sample, t) < SIGMAS
        if scale > 1000:
            assert law.tail(t) == pytest.approx(d, rel=1e-2)
    assert correlation_off(sample[:-1], sample[1:]) < SIGMAS
    if scale < 100:
        assert ties_off(law, sample[:-1:2], sample[1::2]) < SIGMAS


def test_wrong_samplers_are_found_T7() -> None:
    """T7 control: a scale off by 2%, a biased sign and a rounded continuous Laplace all fail; a right sample passes."""
    law = LaplaceLaw(Fraction(7, 2))
    right = wrongly_scaled(law, 1.0, 200_000, 1)
    assert fit(law, right) > LEVEL
    assert moments_off(law, right) < SIGMAS
    assert moments_off(law, wrongly_scaled(law, 1.02, 200_000, 2)) > SIGMAS
    assert fit(law, wrongly_scaled(law, 1.03, 200_000, 2)) < LEVEL
    flipped = np.where(np.random.default_rng(3).random(200_000) < 0.03, np.abs(right), right)
    assert fit(law, flipped) < LEVEL
    narrow = LaplaceLaw(Fraction(1))
    rounded = np.rint(np.random.default_rng(4).laplace(0, 1, 200_000)).astype(np.int64)
    assert fit(narrow, rounded) < LEVEL


def test_the_empirical_standard_deviation_is_root_two_scales_E01() -> None:
    """E01, S4.2, trap 1: Lap(3) on a fine grid has standard deviation 4.24, not 3."""
    unit = 2**10
    sample = drawn(LaplaceLaw(Fraction(3 * unit)), 40_000) / unit
    deviation = math.sqrt((sample**2).mean())
    assert deviation == pytest.approx(math.sqrt(18), rel=6 * math.sqrt(5 / 40_000) / 2)
    assert deviation != pytest.approx(3, rel=0.3)


def test_the_scale_of_a_mean_is_not_its_rate_E24() -> None:
    """E24, S2.3: for a mean of n values in [0, b] the scale is b/(alpha n), with density alpha n/(2b) at 0."""
    b, n, alpha, unit = 2, 100, Fraction(1, 2), 2**24
    law = LaplaceLaw(round_up(Fraction(b, n) / alpha * unit))
    assert law.pmf(0) * unit == pytest.approx(float(alpha * n) / (2 * b), rel=1e-6)
    rate = LaplaceLaw(Fraction(n, b) * alpha * unit)
    assert rate.pmf(0) * unit != pytest.approx(float(alpha * n) / (2 * b), rel=0.5)


def test_the_ratio_of_neighbouring_densities_is_e_to_plus_alpha_E25() -> None:
    """E25: moving the mean by b/n multiplies a density by up to e^alpha = 2.01 at alpha .7, never by more."""
    unit = 700
    law = LaplaceLaw(Fraction(1000))  # D = 700 units at scale 1000: alpha = .7
    ratios = [law.pmf(z) / law.pmf(z - unit) for z in range(-3000, 3001, 50)]
    assert max(ratios) == pytest.approx(math.exp(0.7), rel=1e-12) == pytest.approx(2.01, abs=5e-3)
    assert min(ratios) == pytest.approx(math.exp(-0.7), rel=1e-12)


def test_the_exponent_is_epsilon_over_the_sensitivity_E28() -> None:
    """E28, S3.5: with scale Df/epsilon the ratio is at most e^epsilon; with the printed Df/epsilon it is not."""
    moved, epsilon = 3, Fraction(1, 4)
    right, printed = LaplaceLaw(moved / epsilon), LaplaceLaw(epsilon / moved)
    assert right.pmf(0) / right.pmf(moved) == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert math.log(printed.pmf(0) / printed.pmf(moved)) == pytest.approx(moved**2 / float(epsilon), rel=1e-9)
    assert priced(right, Fraction(moved)) == epsilon


def test_the_distribution_function_has_a_falling_exponential_E27() -> None:
    """E27, S3.5: with exp(+|x|/b) the printed function gives -2.69 at x = 2; with exp(-|x|/b) it is the law's."""

    def printed(x: float, sign: int) -> float:
        return 0.5 * (1 + math.copysign(1, x) * (1 - math.exp(sign * abs(x))))

    assert printed(2, +1) == pytest.approx(-2.69, abs=5e-3)
    unit = 2**20
    law = LaplaceLaw(Fraction(unit))
    for x in (0.5, 2.0, 5.0):
        assert 1 - law.tail(int(x * unit)) / 2 == pytest.approx(printed(x, -1), abs=1e-6)


def test_losses_of_two_releases_add_S2_6() -> None:
    """S2.6: over all pairs of outcomes the joint log-ratio of two releases is the sum of theirs, and attained."""
    first, second = LaplaceLaw(Fraction(2)), LaplaceLaw(Fraction(5))
    joint = max(
        abs(math.log(first.pmf(x) * second.pmf(y) / (first.pmf(x - 1) * second.pmf(y + 2))))
        for x, y in itertools.product(range(-9, 10), repeat=2)
    )
    price = priced(first, Fraction(1)) + priced(second, Fraction(2))
    assert joint == pytest.approx(float(price), rel=1e-12)


def test_two_calls_are_independent_T10() -> None:
    """T10: the same box released twice has independent noise, cell by cell."""
    law = LaplaceLaw(Fraction(50))
    box = Private(np.full(20_000, 123, dtype=np.int64))
    first, second = release(law, box), release(law, box)
    assert correlation_off(first, second) < SIGMAS
    assert ties_off(law, first, second) < SIGMAS
    assert (first != second).any()
    assert correlation_off(first, first) > SIGMAS  # control: sticky noise
    assert ties_off(law, first, first) > SIGMAS


def test_empty_groups_do_not_share_their_noise_T9() -> None:
    """T9: 500 empty groups, 60 times: ties and correlation of neighbours as theory says; shared noise fails."""
    law = LaplaceLaw(Fraction(10))
    table = np.stack([drawn(law, 500) for _ in range(60)])
    left, right = table[:, ::2].ravel(), table[:, 1::2].ravel()
    assert ties_off(law, left, right) < SIGMAS
    assert correlation_off(left, right) < SIGMAS
    shared = np.repeat(table[:, :1], 500, axis=1)
    assert ties_off(law, shared[:, ::2].ravel(), shared[:, 1::2].ravel()) > SIGMAS
