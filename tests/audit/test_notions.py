"""Breaches and isolation by enumeration: what indistinguishability implies, and mechanisms that fail both."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sulq.audit import amplification, breach, breach_limit, exact_epsilon, isolation, noisy, random_row
from sulq.audit.notions import isolates
from sulq.language.law import LaplaceLaw
from sulq.local.methods import KaryResponse
from tests.figures import figure
from tests.learn.cases import refused


def kary(values: int, keep: Fraction) -> dict[object, dict[object, Fraction]]:
    """Randomised response: the value itself with probability `keep`, else any other."""
    other = (1 - keep) / (values - 1)
    return {x: {y: keep if x == y else other for y in range(values)} for x in range(values)}


def priors(values: int, draws: int) -> list[dict[object, Fraction]]:
    """Beliefs in exact fractions, sharp ones among them."""
    rng = np.random.default_rng(29)
    found = []
    for power in (1, 4):
        for _ in range(draws):
            weights = [int(w) + 1 for w in 1000 * rng.random(values) ** power]
            found.append({x: Fraction(w, sum(weights)) for x, w in enumerate(weights)})
    return found


def test_no_property_is_breached_beyond_gamma_S4_29() -> None:
    """S4.29: randomised response of 5 values, gamma 4: over 60 priors, rho1 of .05 to .5 and all 32 properties.

    No posterior passes gamma rho1/(1 - rho1 + gamma rho1), by enumeration in fractions; a prior of two points reaches
    it. EGS's condition rho2 (1 - rho1)/(rho1 (1 - rho2)) > gamma says the same.
    """
    laws = kary(5, Fraction(1, 2))
    gamma = amplification(list(laws.values()))
    assert gamma == 4
    closest = 0.0
    for rho1 in (Fraction(1, 20), Fraction(1, 5), Fraction(1, 2)):
        limit = breach_limit(gamma, rho1)
        assert limit * (1 - rho1) / (rho1 * (1 - limit)) == gamma  # where the paper's inequality turns
        for prior in priors(5, 30):
            found = breach(prior, laws, rho1)
            assert found.before <= rho1
            assert found.after <= limit
            closest = max(closest, float(found.after / limit))
        sharp = breach({0: rho1, 1: 1 - rho1}, laws, rho1)
        assert sharp.after == limit
        assert sharp.values == frozenset({0})
    assert closest > 0.9  # the limit is no vacuous one
    figure("S4.29", "largest posterior of a property of prior 1/20, gamma 4", float(breach_limit(4, 0.05)), 4 / 23)


def test_the_condition_of_the_paper_is_where_breaches_end_S4_29() -> None:
    """S4.29: from .1 up to rho2 there is a breach for every rho2 up to the limit and none above; so downwards."""
    laws, gamma, rho1 = kary(3, Fraction(3, 5)), 3, Fraction(1, 10)
    assert amplification(list(laws.values())) == gamma
    after = breach({0: rho1, 1: 1 - rho1}, laws, rho1).after
    for rho2 in (Fraction(1, 5), Fraction(1, 4), Fraction(26, 100), Fraction(1, 2)):
        excluded = rho2 * (1 - rho1) / (rho1 * (1 - rho2)) > gamma
        assert excluded is (after < rho2)
    # Downwards: what was likely, 9/10, is at least 1 - limit afterwards.
    least = 1 - breach({0: 1 - rho1, 1: rho1}, laws, rho1).after
    assert least == 1 - breach_limit(gamma, rho1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
def test_indistinguishable_mechanisms_amplify_by_the_exponential_S4_29(epsilon: Fraction) -> None:
    """S4.29: the laws of a noisy sum by one row's value, all other rows known: gamma <= e^epsilon, and no less here.

    Control: at half the scale gamma is e^(2 epsilon).
    """
    for part, power in ((1, 1), (2, 2)):
        laws = [noisy(LaplaceLaw(1 / epsilon / part), 3 + x, -40, 40) for x in (0, 1)]
        assert float(amplification(laws)) == pytest.approx(math.exp(power * epsilon), rel=1e-9)
        assert math.log(amplification(laws)) == pytest.approx(exact_epsilon(laws), rel=1e-9)
    reports = [dict(KaryResponse.of((4,), epsilon).pmf(x)) for x in range(4)]
    assert float(amplification(reports)) <= math.exp(epsilon) * (1 + 1e-9)


def test_publishing_a_random_row_breaches_everything_S4_29() -> None:
    """S4.29, S4.4: statistical distance 1/n, and yet gamma is infinite: what was at .01 is certain."""
    laws = {x: random_row((x, 0, 0, 0)) for x in range(3)}
    assert amplification(list(laws.values())) == math.inf
    prior = {0: Fraction(98, 100), 1: Fraction(1, 100), 2: Fraction(1, 100)}
    found = breach(prior, laws, Fraction(1, 100))
    assert found.after == 1
    assert breach_limit(math.inf, 0.01) == 1


# -- isolation

SPACE = tuple(range(0, 31, 3))  # points on a line


def clamped_sum(database: tuple[int, ...], epsilon: Fraction) -> dict[object, object]:
    """A noisy sum that one row of this space moves by 30 at most: epsilon-indistinguishable."""
    return noisy(LaplaceLaw(30 / epsilon), sum(database), -150, 240)


@pytest.mark.parametrize(("c", "t"), [(2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1)])
def test_isolation_gains_at_most_the_exponential_S4_29(c: int, t: int, epsilon: Fraction) -> None:
    """S4.29: two rows known, the third from 11 points: with the output success is at most e^epsilon times without.

    Control: a mechanism that publishes a random row is past that for epsilon 1/5.
    """
    others = (0, 30)
    databases = [(x, *others) for x in SPACE]
    laws = {one: clamped_sum(one, epsilon) for one in databases}
    assert exact_epsilon(list(laws.values())) <= float(epsilon) * (1 + 1e-9)
    found = isolation(laws, SPACE, c=c, t=t, row=0)
    assert float(found.blind) * (1 - 1e-12) <= found.informed <= math.exp(epsilon) * float(found.blind)
    # By hand: the blind adversary's best point, over all points.
    wins = [sum(isolates(q, one, c=c, t=t, row=0) for one in databases) for q in SPACE]
    assert found.blind == Fraction(max(wins), len(SPACE))
    told = isolation({one: random_row(one) for one in databases}, SPACE, c=c, t=t, row=0)
    named = Fraction(sum(isolates(x, (x, *others), c=c, t=t, row=0) for x in SPACE), len(SPACE))
    assert told.informed >= named / 3 + found.blind * 2 / 3 * Fraction(9, 10)
    if epsilon < 1:
        assert float(told.informed) > math.exp(epsilon) * float(told.blind) > found.informed
    figure("S4.29", f"isolation ({c}, {t}) with and without a noisy sum of epsilon {epsilon}",
           [found.informed, found.blind], "with at most e^epsilon times without")  # fmt: skip


def test_publishing_everything_isolates_everyone_S4_29() -> None:
    """S4.29: shown the row itself, every point that can be isolated is; the loss is infinite (the control)."""
    databases = [(x, 0, 30) for x in SPACE]
    seen = isolation({one: {one: Fraction(1)} for one in databases}, SPACE, c=2, t=2, row=0)
    assert seen.informed == Fraction(9, 11)  # but for the two who sit on another row
    assert seen.informed > math.e ** Fraction(1, 4) * seen.blind
    # The converse is false: where no ball is ever too empty (t = 1) nothing is gained, and all is told.
    assert isolation({one: {one: Fraction(1)} for one in databases}, SPACE, c=2, t=1, row=0).gain == 0
    assert exact_epsilon([{one: Fraction(1)} for one in databases]) == math.inf


def test_all_rows_unknown_the_groups_loss_counts_S4_29() -> None:
    """S4.29: two rows of 5 points each, all 25 databases: within e^(2 epsilon); no output, no gain."""
    space = (0, 1, 3, 7, 15)
    databases = list(itertools.product(space, repeat=2))
    epsilon = Fraction(1, 2)
    laws = {one: noisy(LaplaceLaw(15 / epsilon), sum(one), -120, 150) for one in databases}
    found = isolation(laws, space, c=3, t=2)
    assert found.blind <= found.informed <= math.exp(2 * epsilon) * float(found.blind)
    silent = isolation({one: {"nothing": Fraction(1)} for one in databases}, space, c=3, t=2)
    assert silent.gain == 0
    assert silent.blind == found.blind
    weighed = isolation(laws, space, c=3, t=2, prior={(0, 15): Fraction(1, 2), (0, 0): Fraction(1, 2)})
    assert weighed.blind == Fraction(1, 2)


def test_a_ball_counts_its_rows_S4_29() -> None:
    """(c, t)-isolation by hand: named exactly, near one of two, and in the plane."""
    assert isolates(5, (5, 9), c=2, t=2)  # the point itself: a ball of radius 0
    assert not isolates(5, (5, 5), c=2, t=2)  # two rows there
    assert isolates(6, (5, 9), c=2, t=2)  # radius 2 holds 5 alone
    assert not isolates(6, (5, 9), c=3, t=2)  # radius 3 holds both
    assert not isolates(6, (5, 9), c=2, t=2, row=1)
    assert isolates((0, 0), ((3, 4), (6, 9)), c=2, t=2)
    assert not isolates((0, 0), ((3, 4), (6, 8)), c=2, t=2)  # on the edge, exactly


def test_bad_input_is_refused_S4_29() -> None:
    """Probabilities that are none, values without a law, too much to go through."""
    laws = kary(3, Fraction(1, 2))
    for rho in (0, 1, True, "x", math.nan):
        refused("bad-parameter", breach, {0: Fraction(1)}, laws, rho)
        refused("bad-parameter", breach_limit, 2, rho)
    refused("bad-parameter", breach, {9: Fraction(1)}, laws, 0.1)
    refused("bad-parameter", breach, {0: Fraction(1, 2)}, laws, 0.1)
    many = kary(13, Fraction(1, 2))
    refused("too-large", breach, {x: Fraction(1, 13) for x in range(13)}, many, 0.1)
    one = {(0, 1): {"y": Fraction(1)}}
    for wrong in ({"c": 0.5, "t": 2}, {"c": 2, "t": 0}):
        refused("bad-parameter", isolation, one, (0,), **wrong)
    refused("bad-parameter", isolation, one, (), c=2, t=2)
    refused("bad-parameter", isolation, one, (0,), c=2, t=2, prior={(5, 5): Fraction(1)})
    refused("too-large", isolation, one, range(10**6 + 1), c=2, t=2)
