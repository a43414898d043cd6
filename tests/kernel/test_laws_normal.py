"""Discrete Gaussian noise as a function of normal noise: the lemma, the pairs believed by it, and its exact losses."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sulq.kernel.facts import Draw, converts
from sulq.kernel.laws import gaussian_holds
from sulq.language import privacy
from sulq.language.privacy import epsilon_of, normal_epsilon

SCALES = [Fraction(9, 4), Fraction(3), Fraction(5), Fraction(20)]
DELTAS = [Fraction(1, 10**6), Fraction(6, 10**9)]


def draws(*scales: Fraction, mechanism: str = "gaussian") -> tuple[Draw, ...]:
    return tuple(Draw(mechanism, "add_remove", "l2", Fraction(1), scale, Fraction(1), 1) for scale in scales)


def mass(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The discrete Gaussian law, as far as doubles go."""
    reach = math.ceil(40 * scale)
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-(places**2) / (2 * scale**2))
    return places, weights / weights.sum()


def chance(moves: tuple[int, ...], scales: tuple[float, ...], epsilon: float) -> float:
    """The exact delta at an epsilon: how much likelier outcomes are than e^epsilon times their chance elsewhere."""
    losses, masses = np.zeros(1), np.ones(1)
    for move, scale in zip(moves, scales, strict=True):
        places, weights = mass(scale)
        loss = (move**2 - 2 * move * places) / (2 * scale**2)  # ln p(z)/p(z - move) on noise z, from the exact value
        losses, masses = np.add.outer(losses, loss).ravel(), np.multiply.outer(masses, weights).ravel()
    over = losses > epsilon
    return float(np.sum(masses[over] * -np.expm1(epsilon - losses[over])))


@pytest.mark.parametrize("y", [0.0, 0.25, 0.5, 0.123])
def test_a_discrete_gaussian_around_any_point_is_normalised_alike(y: float) -> None:
    """The lemma's sum is 1 within 1.1e-34 at variance 4; at variance 1, the control, within no less than 1e-9."""
    with mpmath.workdps(60):
        for variance, most in ((4, mpmath.mpf("1.1e-34")), (1, mpmath.mpf("1e-8"))):
            total = mpmath.nsum(
                lambda k, v=variance: mpmath.exp(-((k - mpmath.mpf(y)) ** 2) / (2 * v)), [-mpmath.inf, mpmath.inf]
            ) / mpmath.sqrt(2 * mpmath.pi * variance)
            assert abs(total - 1) < most
            if variance == 1 and y != 0.25:
                assert abs(total - 1) > mpmath.mpf("1e-9")


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("move", [1, 2, 3])
def test_a_pair_that_is_believed_holds_exactly_SR26(scale: Fraction, move: int, delta: Fraction) -> None:
    """By the law itself: no outcome set is likelier than the pair allows; a fiftieth less of epsilon is refused."""
    rho = move**2 / (2 * scale**2)
    basic = normal_epsilon(rho, draws(scale), delta)
    believed = gaussian_holds(rho, draws(scale), basic, delta)
    assert believed or basic == epsilon_of(rho, delta)
    assert chance((move,), (float(scale),), float(basic)) <= float(delta)
    if believed:
        assert not gaussian_holds(rho, draws(scale), basic * Fraction(98, 100), delta)


@pytest.mark.parametrize(("moves", "scales"), [((1, 1), (6, 8)), ((2, 1), (7, 5)), ((1, 3), (5, 19))])
def test_several_draws_are_one_normal_number_SR26(moves: tuple[int, int], scales: tuple[int, int]) -> None:
    """Each of its own scale: their rhos add up, and the least scale makes up for the grid."""
    rho = sum(Fraction(move**2, 2 * scale**2) for move, scale in zip(moves, scales, strict=True))
    own = draws(*map(Fraction, scales))
    for delta in DELTAS:
        basic = normal_epsilon(rho, own, delta)
        assert chance(moves, tuple(map(float, scales)), float(basic)) <= float(delta)


def test_the_normal_curve_itself_is_too_low_for_noise_on_a_coarse_grid() -> None:
    """Control: without the variance that is set aside, the exact loss passes what would be believed."""
    found = 0
    for scale, move in itertools.product((0.7, 1.0, 1.5), (1, 2)):
        mu = move / scale
        for epsilon in np.linspace(0.5, 8, 60):
            curve = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
            found += chance((move,), (scale,), float(epsilon)) > 1.05 * curve > 1e-12
    assert found > 20


def test_a_pair_is_lower_by_some_percent_where_the_grid_is_fine() -> None:
    """Between 4 and 10 percent below the conversion of rho; on a coarse grid the conversion is better, and is used."""
    for rho, delta in itertools.product((Fraction(1, 10**5), Fraction(1, 1000), Fraction(1, 10)), DELTAS):
        fine, coarse, known = (
            float(value)
            for value in (
                normal_epsilon(rho, draws(Fraction(200)), delta),
                normal_epsilon(rho, draws(Fraction(3)), delta),
                epsilon_of(rho, delta),
            )
        )
        assert 0.9 < fine / known < 0.96
        assert coarse == known


@pytest.mark.parametrize(
    "own",
    [(), draws(Fraction(50), mechanism="laplace"), (*draws(Fraction(50)), *draws(Fraction(50), mechanism="above"))],
)
def test_only_gaussian_draws_are_read_so(own: tuple[Draw, ...]) -> None:
    """No draw, or one of another law: then the conversion alone is believed."""
    rho, delta = Fraction(1, 1000), Fraction(1, 10**7)
    below = epsilon_of(rho, delta) * Fraction(96, 100)
    assert gaussian_holds(rho, draws(Fraction(50)), below, delta)
    assert gaussian_holds(rho, draws(Fraction(50), mechanism="passed"), below, delta)
    cut = replace(*draws(Fraction(50), mechanism="passed_gaussian"), threshold=250, alone=2)
    assert gaussian_holds(rho, [cut], below, delta)
    assert not gaussian_holds(rho, [replace(cut, threshold=50)], below, delta)  # much of the noise would be past it
    assert not gaussian_holds(rho, own, below, delta)
    assert not converts(rho, below, delta)
    assert normal_epsilon(rho, own, delta) == epsilon_of(rho, delta)


@pytest.mark.parametrize(
    ("rho", "epsilon", "delta"),
    [
        (Fraction(0), Fraction(1), Fraction(1, 10)),
        (Fraction(-1), Fraction(1), Fraction(1, 10)),
        (Fraction(1), Fraction(0), Fraction(1, 10)),
        (Fraction(1), Fraction(-1), Fraction(1, 10)),
        (Fraction(1), Fraction(501), Fraction(1, 10)),
        (Fraction(1), Fraction(1), Fraction(0)),
        (Fraction(1, 10**6), Fraction(6, 100), Fraction(0)),  # whose chance is less than any double
        (Fraction(1, 10**6), Fraction(6, 100), Fraction(1, 10**301)),
        (Fraction(1, 10**340), Fraction(6, 100), Fraction(1, 10**9)),  # whose root is no double
        (Fraction(10**340), Fraction(6, 100), Fraction(1, 10**9)),
        (Fraction(1), Fraction(1), Fraction(3, 2)),
        (Fraction(1, 10**12), Fraction(1, 10**15), Fraction(1, 10**9)),
    ],
)
def test_what_is_no_pair_is_not_believed(rho: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    """Nothing, less than nothing, and more than anybody could mean."""
    assert not gaussian_holds(rho, draws(Fraction(50)), epsilon, delta)


def test_a_plan_of_many_draws_is_near_its_privacy_loss_distribution_SR26() -> None:
    """Twenty tables at fixed scales, as one event: within 1% of what an accountant makes of all of them together."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    scale, number, delta = 60.0, 20, Fraction(6, 10**9)
    one = pld.from_gaussian_mechanism(scale, value_discretization_interval=1e-4)
    exact = one.self_compose(number).get_epsilon_for_delta(float(delta))
    rho = number / (2 * Fraction(60) ** 2)
    found = float(normal_epsilon(rho, draws(*[Fraction(60)] * number), delta))
    assert exact * 0.999 < found < exact * 1.01
    assert number * float(normal_epsilon(rho / number, draws(Fraction(60)), delta)) > 3 * found  # one by one


def test_of_many_draws_the_least_scale_tells_the_pair_SR26(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same value as from all of them, in any order. Control: by the largest scale, where it matters, it is less."""
    own, rho, delta = draws(*(Fraction(5 + i, 2) for i in (3, 0, 7))), Fraction(1, 50), Fraction(1, 10**7)
    found = normal_epsilon(rho, own, delta)
    monkeypatch.setattr(privacy, "_telling", lambda given: given)
    assert found == normal_epsilon(rho, own, delta)
    monkeypatch.setattr(privacy, "_telling", lambda given: [max(given, key=lambda draw: draw.scale)])
    assert found > normal_epsilon(rho, own, delta)
