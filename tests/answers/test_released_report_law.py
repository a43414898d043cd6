"""Bounds on the error of estimates from reports: they hold for the sums they are about, and narrow to the normal."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from sulq.answers.released import SLIP, ReportLaw, bennett, of_reports
from sulq.errors import QuestionError


def coins_law(coins: int, chance: float) -> ReportLaw:
    """The law of heads among independent coins, each within max(p, 1 - p) of its mean."""
    deviation = math.sqrt(coins * chance * (1 - chance))
    return ReportLaw(coins, deviation, deviation, deviation, max(chance, 1 - chance))


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3, 1e-9])
@pytest.mark.parametrize("chance", [0.5, 0.1, 0.003])
@pytest.mark.parametrize("coins", [10, 1000, 10**6])
def test_the_exact_tail_is_within_beta(coins: int, chance: float, beta: float) -> None:
    """Heads among coins, whose tail is known; four standard deviations less, the control, are passed too often."""
    law = coins_law(coins, chance)
    reach = law.accuracy(beta)
    mean = coins * chance
    tail = stats.binom.cdf(math.ceil(mean - reach) - 1, coins, chance) + stats.binom.sf(
        math.floor(mean + reach), coins, chance
    )
    assert tail <= beta
    if coins == 10**6 and chance > 0.01 and beta > SLIP:
        least = 0.8 * (reach - 2)
        assert stats.binom.sf(math.floor(mean + least), coins, chance) * 2 > beta


def test_many_reports_have_normal_error_bars() -> None:
    """A million fair coins: within 3% of 1.96 deviations at 95%; a hundred pay for being few."""
    assert coins_law(10**6, 0.5).accuracy(0.05) == pytest.approx(1.96 * 500, rel=0.03)
    assert coins_law(100, 0.5).accuracy(0.05) > 1.2 * 1.96 * 5


def test_bennett_solves_its_equation() -> None:
    """The root, to the last figures."""
    for deviation, jump, beta in ((3.0, 0.5, 0.1), (100.0, 1.0, 1e-12), (0.01, 5.0, 0.5)):
        t = bennett(deviation, jump, beta)
        u = jump * t / deviation**2
        exponent = deviation**2 / jump**2 * ((1 + u) * math.log1p(u) - u)
        assert 2 * math.exp(-exponent) == pytest.approx(beta, rel=1e-6)


def test_more_people_widen_a_sum_by_the_root() -> None:
    """And a deviation that the reports show counts only where beta is well above its own slip."""
    law = ReportLaw(100, 20.0, 10.0, 5.0, 0.01)
    wide = law.at(400)
    assert (wide.reports, wide.most, wide.likely, wide.least, wide.jump) == (400, 40.0, 20.0, 10.0, 0.01)
    assert law.variance() == 100
    assert law.accuracy(0.05) < 1.01 * 1.96 * 10 + 2
    assert law.accuracy(1.5 * SLIP) > NormalDist().inv_cdf(1 - SLIP) * 20
    assert law.accuracy(0.05) < law.accuracy(0.01) < law.accuracy(1e-4)


def test_no_deviation_no_error() -> None:
    """What all reports agree on is known, but for a unit of rounding."""
    assert ReportLaw(5, 0.0, 0.0, 0.0, 0.0).accuracy(0.05) == 1


@pytest.mark.parametrize("beta", [0, 1, -1, True, float("nan"), "a"])
def test_a_beta_that_is_none_is_refused(beta: object) -> None:
    """As for every law."""
    with pytest.raises(QuestionError):
        ReportLaw(5, 1.0, 1.0, 1.0, 1.0).accuracy(beta)  # type: ignore[arg-type]


def test_laws_of_reports_are_told_from_others() -> None:
    """A spend buys nothing there."""
    law = ReportLaw(5, 1.0, 1.0, 1.0, 1.0)
    assert of_reports([law, object()]) == [law]
    assert np.isfinite(law.variance())


def test_the_slip_is_set_aside_whichever_bound_is_taken() -> None:
    """The smaller of two bounds, one of them read off the reports: it holds for beta less the chance of a bad reading.

    Where what is always true is the smaller one the reading was looked at all the same. Below twice the slip it is not.
    """
    law = ReportLaw(1000, 50.0, 80.0, 50.0, 0.01)
    for beta in (3e-6, 1e-4):
        assert law.accuracy(beta) >= law.reach(50.0, beta - SLIP) > law.reach(50.0, beta)
    assert law.reach(50.0, SLIP) <= law.accuracy(SLIP) <= law.reach(50.0, SLIP) * (1 + 1e-6) + 2
    # In units so fine that rounding up does not hide it.
    fine = ReportLaw(1000, 5e7, 8e7, 5e7, 1e4)
    assert fine.accuracy(3e-6) > fine.reach(5e7, 3e-6) + 1000
