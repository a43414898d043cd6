"""Discrete Gaussian noise: its exact price, its sampler, its conversion, and what goes wrong without them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sulq.audit.meaning import epsilon_of
from sulq.kernel.facts import rho_within
from sulq.kernel.mechanisms import priced
from sulq.language.law import GaussianLaw, round_up
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
ORDERS = (1.01, 1.5, 2.0, 3.7, 8.0, 32.0)


def exact_divergence(scale: Fraction, moves: tuple[int, ...], order: float) -> mpmath.mpf:
    """Renyi divergence of a vector release moved by these integers, summed from the pmf."""
    with mpmath.workdps(30):
        s = mpmath.mpf(scale.numerator) / scale.denominator
        a = mpmath.mpf(order)
        total = mpmath.mpf(0)
        for move in moves:
            centre = math.floor(order * abs(move))
            reach = math.ceil(13 * scale) + 3
            window = range(-reach - centre, reach + centre + 1)
            mass = mpmath.fsum(mpmath.exp(-((z / s) ** 2) / 2) for z in range(-reach - 1, reach + 2))
            moment = mpmath.fsum(mpmath.exp(-(a * (z / s) ** 2 + (1 - a) * ((z - move) / s) ** 2) / 2) for z in window)
            total += mpmath.log(moment / mass) / (a - 1)
        return total


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(7, 2)], ids=str)
def test_exact_renyi_divergence_is_within_the_debit_T20(scale: Fraction) -> None:
    """T20: from the pmf, the Renyi divergence of order a is at most a D2/(2 scale^2), and equal at whole orders."""
    law = GaussianLaw(scale)
    for moves in ((1,), (2,), (-3,), (1, 1), (2, -1)):
        squared = Fraction(sum(m * m for m in moves))
        debit = priced(law, squared)
        assert debit == squared / (2 * scale**2) == law.rho(squared)
        for order in ORDERS:
            exact = exact_divergence(scale, moves, order)
            assert float(exact) <= order * float(debit) * (1 + 1e-12) + 1e-12
            if order.is_integer():
                assert float(exact) == pytest.approx(order * float(debit), rel=1e-9)


def test_a_quarter_of_the_price_is_too_low_T20() -> None:
    """T20 control (the factor of OpenDP #2911): the exact divergence passes a quarter of rho at every order."""
    debit = float(priced(GaussianLaw(Fraction(7, 2)), Fraction(1)))
    for order in ORDERS:
        assert float(exact_divergence(Fraction(7, 2), (1,), order)) > order * debit / 4


def test_no_pure_price_exists_T20() -> None:
    """T20: the log-ratio of neighbouring outcomes grows without bound, so epsilon is None."""
    law = GaussianLaw(Fraction(3))
    ratios = [math.log(law.pmf(z) / law.pmf(z + 1)) for z in range(100)]
    assert ratios == sorted(ratios)
    assert ratios[-1] > 10
    assert law.epsilon(Fraction(1)) is None


def exact_delta(scale: float, squared_moves: tuple[int, ...], epsilon: float) -> float:
    """Hockey-stick divergence at epsilon of a scalar moved by each of these integers in turn, T answers composed."""
    reach = math.ceil(14 * scale)
    z = np.arange(-reach, reach + 1)
    p = np.exp(-0.5 * (z / scale) ** 2)
    p /= p.sum()
    joint, loss = np.ones(1), np.zeros(1)
    for move in squared_moves:
        joint = np.outer(joint, p).ravel()
        loss = np.add.outer(loss, (2 * z * move + move**2) / (2 * scale**2)).ravel()
    return float((joint * np.clip(-np.expm1(epsilon - loss), 0, None)).sum())


@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0, 12.0])
def test_the_conversion_holds_on_the_exact_curve_T53(scale: float, delta: float) -> None:
    """T20, T53: rho read as (epsilon, delta) by the tight conversion covers the exact curve; half epsilon does not."""
    for moves in ((1,), (2,), (1, 1)):
        rho = sum(m * m for m in moves) / (2 * scale**2)
        epsilon = epsilon_of(rho, delta)
        assert exact_delta(scale, moves, epsilon) <= delta
        assert float(rho_within(epsilon, delta)) >= rho * (1 - 1e-9)
        if scale >= 4 and delta < 0.01:
            assert exact_delta(scale, moves, epsilon / 2) > delta


@pytest.mark.parametrize("scale", SCALES[: count("discrete Gaussian: scales", short=5, long=32)], ids=str)
def test_the_sampler_follows_its_law_T7(scale: Fraction) -> None:
    """T3, T7, T9, trap 1: one large release fits the pmf, its variance, its tails, and its cells are independent."""
    law = GaussianLaw(scale)
    sample = drawn(law, count("discrete Gaussian: draws at each scale", short=100_000, long=1_000_000))
    assert sample.dtype == np.int64
    assert fit(law, sample) > LEVEL
    assert moments_off(law, sample) < SIGMAS
    for beta in (0.3, 0.05, 0.003):
        t = law.accuracy(beta)
        if t:
            assert exceedance_off(law, sample, t - 1) < SIGMAS
    assert correlation_off(sample[:-1], sample[1:]) < SIGMAS
    if scale < 100:
        assert ties_off(law, sample[:-1:2], sample[1::2]) < SIGMAS


def test_wrong_samplers_are_found_T7() -> None:
    """T7 control: a scale off by 2%, a biased sign and a shifted centre all fail; a right sample passes."""
    law = GaussianLaw(Fraction(7, 2))
    right = wrongly_scaled(law, 1.0, 200_000, 1)
    assert fit(law, right) > LEVEL
    assert moments_off(law, right) < SIGMAS
    assert moments_off(law, wrongly_scaled(law, 1.02, 100_000, 2)) > SIGMAS
    assert fit(law, wrongly_scaled(law, 1.02, 200_000, 2)) < LEVEL
    flipped = np.where(np.random.default_rng(3).random(200_000) < 0.03, np.abs(right), right)
    assert fit(law, flipped) < LEVEL
    assert fit(law, right + (np.random.default_rng(4).random(200_000) < 0.1)) < LEVEL


def test_a_rounded_normal_is_found_at_small_scales_T7() -> None:
    """T7 control: the rounded normal is another law: found at scale 1/2, where sulq's TV bound says how far it is."""
    rounded = np.rint(np.random.default_rng(5).normal(0, 0.5, 200_000)).astype(np.int64)
    assert fit(GaussianLaw(Fraction(1, 2)), rounded) < LEVEL


def test_trap1_scale_is_the_standard_deviation() -> None:
    """Trap 1: the empirical variance is scale^2 from scale 1 on, below it less; never more (X2)."""
    for scale in (Fraction(1), Fraction(7, 2), Fraction(1000)):
        assert GaussianLaw(scale).variance() == pytest.approx(float(scale) ** 2, rel=1e-6)
    for scale, factor in itertools.product((Fraction(1, 8), Fraction(1, 2)), (1.0,)):
        assert GaussianLaw(scale).variance() < float(scale) ** 2 * factor
